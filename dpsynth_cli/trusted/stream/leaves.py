"""Raw counts of a stream: how many rows each leaf of the partition has.

They are as sensitive as the rows, and never leave the trusted core.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Cells, Ints
from dpsynth_cli.trusted.sums.batch import CodesByColumn, path_of

WAITING = 2**22  # codes of rows that wait to be counted


@dataclass(frozen=True, eq=False)
class Leaves:
    """Leaf codes[i], by its path from the root, has counts[i] rows, below 0 where rows are taken away;
    leaves not named have none.

    Codes rise. `paid`, for sparse counting: the most that any of its rows has paid, as a share of the whole.
    """

    codes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    paid: Fraction = Fraction(0)

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    def __neg__(self) -> Leaves:
        """The same rows, to be taken away."""
        return Leaves(self.codes, -self.counts, self.paid)

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
        some = counts != 0  # rows that came and went
        return Leaves(codes[first][some], counts[some], paid)

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

    def add(self, codes: CodesByColumn, rows: int) -> None:
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
