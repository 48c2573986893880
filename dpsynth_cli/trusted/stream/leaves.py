"""Raw counts of a stream that are not finished yet: how many rows each leaf of the partition has.

They are as sensitive as the rows, and never leave the trusted core. Each `Leaves` knows the most that any of
its rows has paid so far, as a share of the stream's budget.

Claim: whatever is asked, and in whatever order pieces are merged, no row pays more than the whole. A row is
in one piece at a time; measuring a piece adds the question's share to what the piece has paid, and is
refused above 1; merging takes the larger of both. Rows in different pieces change disjoint answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Answer, Asking, CellCounts, Cells, Halves, Ints, Question, Total
from dpsynth_cli.trusted.core.accountant import Accountant, Price
from dpsynth_cli.trusted.core.bill import Bill, TranscriptMismatch
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.core.sensitivity import is_free
from dpsynth_cli.trusted.noise.words import SystemSource
from dpsynth_cli.trusted.sums.batch import Codes, path_of

WAITING = 2**22  # codes of rows that wait to be counted


@dataclass(frozen=True, eq=False)
class Leaves:
    """Leaf codes[i], by its path from the root, has counts[i] > 0 rows; leaves not named have none.

    Codes rise.
    """

    codes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    paid: Fraction = Fraction(0)

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    def __add__(self, other: Leaves) -> Leaves:
        paid = max(self.paid, other.paid)
        if not len(self.codes) or not len(other.codes):
            some = other if len(other.codes) else self
            return Leaves(some.codes, some.counts, paid)
        codes = np.concatenate([self.codes, other.codes])
        order = np.argsort(codes, kind="stable")  # two sorted runs: linear time
        codes = codes[order]
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        counts = np.add.reduceat(np.concatenate([self.counts, other.counts])[order], first)
        return Leaves(codes[first], counts, paid)

    def level(self, depth: int, j: int) -> Ints:
        """The counts of level j, when the codes are paths of `depth` halvings."""
        if j == 0:
            return np.array([self.rows], np.int64)
        cells = self.codes >> (depth - j)
        # Sums of integers below 2^53 are exact in float64.
        return np.bincount(cells, weights=self.counts, minlength=1 << j).astype(np.int64)


class Gathered:
    """Adds up batches of rows to `Leaves` of a partition."""

    def __init__(self, partition: Cells, omega: Domain) -> None:
        self.partition, self.omega = partition, omega
        self._waiting: list[np.ndarray] = []
        self._leaves = Leaves()

    def add(self, codes: Codes, rows: int) -> None:
        if rows:
            self._waiting.append(path_of(self.partition, codes, self.omega))
            if sum(map(len, self._waiting)) >= WAITING:
                self._count()

    def merge(self, other: Gathered) -> None:
        self._waiting += other._waiting
        self._leaves = self._leaves + other._leaves

    def leaves(self) -> Leaves:
        self._count()
        return self._leaves

    def _count(self) -> None:
        if self._waiting:
            codes = np.concatenate(self._waiting)
            self._waiting.clear()
            codes.sort()
            first = np.append(0, np.flatnonzero(codes[1:] != codes[:-1]) + 1)
            counts = np.diff(first, append=len(codes))
            self._leaves = self._leaves + Leaves(codes[first].astype(np.int64), counts)


def prefix(partition: Cells, j: int) -> Cells:
    """Level j of a partition by halves: the first j halvings."""
    assert partition.order is not None
    order = partition.order[:j]
    axes = tuple(
        Halves(axis.column, order.count(a))
        for a, axis in enumerate(partition.axes)
        if isinstance(axis, Halves)
    )
    return Cells(axes, order)


def measured(
    leaves: Leaves,
    partition: Cells,
    omega: Domain,
    accountant: Accountant,
    source: SystemSource,
    public_counts: bool,
) -> tuple[Asking, Callable[[], Leaves], list[tuple[Question, Answer]]]:
    """An `ask` about the rows of a piece; the piece with what it has paid then; and what was answered.

    Answers are not durable yet: nothing that follows from them may leave the process before the
    state that holds them is. With private arrivals nothing is free: under replace_one, too, a row may
    be replaced by one of another time, and then the number of rows of a piece changes.
    """
    # What its rows have paid for larger or smaller pieces counts as spent: nothing is ever forgotten.
    accountant.charge([Price("none", Fraction(0), leaves.paid * accountant.total, 0.0)])
    journal = InMemory()
    asking = open_curator(_Levels(leaves, partition), Bill(omega, accountant), source, journal)

    def answer(questions: Sequence[Question]) -> list[Answer]:
        if not public_counts and any(is_free(question, omega) for question in questions):
            raise ValueError("with private arrivals the number of rows is not free")
        return asking(questions)

    def paid() -> Leaves:
        return Leaves(leaves.codes, leaves.counts, accountant.spent / accountant.total)

    return Asking(answer, asking.sd), paid, journal.answers


@dataclass(frozen=True, eq=False)
class _Levels:
    """Raw counts of the levels of a partition."""

    leaves: Leaves
    partition: Cells

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        levels = [_level(question, self.partition) for question in questions]
        assert self.partition.order is not None
        finest = self.leaves.level(len(self.partition.order), max(levels, default=0))
        return [finest.reshape(1 << j, -1).sum(axis=1) for j in levels]


def _level(question: Question, partition: Cells) -> int:
    """The level of the partition whose counts are asked for: the only thing that may be."""
    statistic = question.statistic
    if isinstance(statistic, Total) and question.by is None:
        return 0
    if isinstance(statistic, CellCounts) and question.by is None and isinstance(statistic.cells, Cells):
        assert partition.order is not None
        j = len(statistic.cells.order or ())
        if statistic.cells in (prefix(partition, j), Cells(())) and j <= len(partition.order):
            return j
    raise TranscriptMismatch("a stream counts rows in the levels of its own partition only")
