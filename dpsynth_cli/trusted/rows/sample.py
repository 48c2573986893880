"""CodesByColumn of rows that are looked at for the steward: all rows of a table, or an even sample of them.

What is made here from real rows is raw data. It goes to `evaluate`, whose figures are confidential.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Ints, Progress, Question
from dpsynth_cli.trusted.rows.problems import Problems, count_piece
from dpsynth_cli.trusted.rows.scan import Scan, encoded, some
from dpsynth_cli.trusted.sums.tally import Tally

BATCH = 2**16  # rows that are counted at once

CodesByColumn: TypeAlias = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Table:
    """CodesByColumn of the rows that are looked at, and how many rows the whole table has."""

    codes: CodesByColumn
    rows: int

    def __len__(self) -> int:
        return len(next(iter(self.codes.values())))

    def take(self, which: NDArray[Any]) -> Table:
        return Table({name: values[which] for name, values in self.codes.items()}, self.rows)

    def at_most(self, rows: int | None, seed: int = 0) -> Table:
        """An even sample of so many rows, in their order; the same ones for tables of the same length."""
        if rows is None or len(self) <= rows:
            return self
        return self.take(np.sort(np.random.default_rng(seed).permutation(len(self))[:rows]))

    def sums(self, questions: list[Question], domain: Domain) -> list[NDArray[np.int64]]:
        """The exact answers, as the trusted core gives them."""
        return self.tally(questions, domain).sums()

    def tally(self, questions: list[Question], domain: Domain) -> Tally:
        """All rows, as the trusted core adds them up."""
        tally = Tally(questions, domain)
        for start in range(0, len(self), BATCH):
            part = {name: values[start : start + BATCH] for name, values in self.codes.items()}
            tally.add(part, min(BATCH, len(self) - start))
        return tally


class Sample:
    """At most `most` rows of blocks that pass by, all equally likely, in their order.

    Which rows are kept depends on the seed and on their places alone. Blocks come one after the other,
    however they were cut; or they are pieces with numbers, in any order and from several threads.
    """

    def __init__(self, most: int | None, seed: int = 0) -> None:
        self._most, self._seed, self._rng = most, seed, np.random.default_rng(seed)
        self._blocks: list[Mapping[str, NDArray[Any]]] = []
        self._keys: list[NDArray[np.float64]] = []
        self._places: list[Ints] = []
        self._held, self._limit = 0, np.inf
        self._one_at_a_time = Lock()
        self.rows = 0

    def add(self, block: Mapping[str, NDArray[Any]], piece: int | None = None) -> None:
        with self._one_at_a_time:
            kept = self.choose(len(next(iter(block.values()))), piece)
            self.hold({name: values.take(kept) for name, values in block.items()})

    def choose(self, count: int, piece: int | None = None) -> Ints:
        """The places of those of the next so many rows that `hold` is to be given."""
        first, rng = self.rows, self._rng
        if piece is not None:
            first, rng = piece << 32, np.random.default_rng((self._seed, piece))
        self.rows += count
        if self._most is None:
            return np.arange(count)
        keys = rng.random(count)
        kept = np.flatnonzero(keys < self._limit)
        self._keys.append(keys.take(kept))
        self._places.append(first + kept)
        self._held += len(kept)
        return kept

    def hold(self, block: Mapping[str, NDArray[Any]]) -> None:
        self._blocks.append(block)
        if self._most is not None and self._held > 2 * self._most:
            self._shrink(self._most)

    def watching(self, blocks: Iterable[Mapping[str, NDArray[Any]]]) -> Iterator[Mapping[str, NDArray[Any]]]:
        """The same blocks, each seen before it goes on."""
        for block in blocks:
            self.add(block)
            yield block

    def table(self, domain: Domain) -> Table:
        if self._most is not None and self._blocks:
            self._shrink(self._most)
        none = np.zeros(0, np.int64)
        codes = {c.name: np.concatenate([b[c.name] for b in self._blocks] or [none]) for c in domain}
        return Table(codes, self.rows)

    def _shrink(self, most: int) -> None:
        """One block of the rows with the least keys, by their places."""
        keys, places = np.concatenate(self._keys), np.concatenate(self._places)
        kept = np.argsort(places)
        if len(keys) > most:
            self._limit = float(np.partition(keys, most - 1)[most - 1])
            kept = kept[keys[kept] <= self._limit]
        self._blocks = [
            {name: np.concatenate([b[name] for b in self._blocks])[kept] for name in self._blocks[0]}
        ]
        self._keys, self._places, self._held = [keys[kept]], [places[kept]], len(kept)


def scanned(
    scan: Scan, domain: Domain, most: int | None, progress: Progress, counted: Problems | None = None
) -> Table:
    """One pass over a scan; only cells that are kept are encoded. What is not yet counted is on the way."""
    sample = Sample(most)
    progress("evaluating", 0, scan.size)
    for number, piece in enumerate(scan.pieces()):
        arrays, ruined = scan.cells(piece)
        kept = sample.choose(len(next(iter(arrays.values()))) + ruined, number)
        sample.hold(encoded(scan.columns, *some(arrays, kept)))
        if counted is not None:
            count_piece(scan.columns, arrays, ruined, counted)
        progress("evaluating", piece.size, scan.size)
    return sample.table(domain)
