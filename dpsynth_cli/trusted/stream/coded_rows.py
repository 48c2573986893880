"""Rows of a stream as codes: kept until the tables are chosen that they are counted in.

They are as sensitive as the file they came from, and never leave the trusted core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Ints, Question
from dpsynth_cli.trusted.engines.local import Pieces, added_up
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.sums.batch import CodesByColumn
from dpsynth_cli.trusted.sums.tally import Tally

PIECE = 2**17  # rows that are counted together


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Codes by column, in the domain's order; sign -1 is a row that is taken away."""

    codes: dict[str, Ints]
    signs: Ints

    @property
    def rows(self) -> int:
        return int(self.signs.sum())

    def __neg__(self) -> CodedRows:
        return replace(self, signs=-self.signs)

    def __add__(self, other: CodedRows) -> CodedRows:
        codes = {name: np.concatenate([own, other.codes[name]]) for name, own in self.codes.items()}
        return CodedRows(codes, np.concatenate([self.signs, other.signs]))

    def since(self, first: int) -> CodedRows:
        """All but so many."""
        return CodedRows({name: own[first:] for name, own in self.codes.items()}, self.signs[first:])

    def sums(self, questions: Sequence[Question], omega: Domain) -> list[Ints]:
        """The exact integers of each question: rows that are taken away count as -1, before anything is made
        of the sums."""
        whole = Tally(questions, omega)
        for sign in (1, -1):
            at = np.flatnonzero(self.signs == sign)
            for first in range(0, len(at), PIECE):
                some = at[first : first + PIECE]
                tally = Tally(questions, omega)
                tally.add({name: own[some] for name, own in self.codes.items()}, len(some))
                rows, sums = tally.partial()
                whole.merge((sign * rows, [None if own is None else sign * own for own in sums]))
        return whole.sums()


@dataclass(frozen=True, eq=False)
class Summed:
    """A batch that was counted as it was read: the exact integers of each question."""

    rows: int
    sums: list[Ints]

    def __neg__(self) -> Summed:
        return Summed(-self.rows, [-own for own in self.sums])


class _Gathered:
    """Adds up batches of codes."""

    def __init__(self) -> None:
        self.pieces: list[CodesByColumn] = []

    def add(self, codes: CodesByColumn, rows: int) -> None:
        if rows:
            self.pieces.append(codes)


def none_yet(omega: Domain) -> CodedRows:
    """No rows."""
    return CodedRows({column.name: np.zeros(0, np.int64) for column in omega}, np.zeros(0, np.int64))


def read_rows(
    scan: Pieces, omega: Domain, progress: Callable[[int], None], counted: Problems | None
) -> CodedRows:
    """A batch as codes."""
    pieces = [piece for one in added_up(scan, _Gathered, progress, counted=counted) for piece in one.pieces]
    codes = {
        column.name: np.concatenate([np.zeros(0, np.int64), *(piece[column.name] for piece in pieces)])
        for column in omega
    }
    return CodedRows(codes, np.ones(len(next(iter(codes.values()))), np.int64))


def read_sums(
    scan: Pieces,
    omega: Domain,
    questions: Sequence[Question],
    progress: Callable[[int], None],
    counted: Problems | None,
) -> Summed:
    """A batch as the exact integers of questions."""
    first, *rest = added_up(scan, lambda: Tally(questions, omega), progress, counted=counted)
    for tally in rest:
        first.merge(tally.partial())
    return Summed(first.rows, first.sums())
