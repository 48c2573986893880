"""A column at several resolutions: nested cells, from two or three of them to the finest.

The finest cells are runs of the column's private marginal; each coarser level joins neighbours of the level
below to about equal masses, heavy ones staying alone. Of a nominal column the heaviest categories stay alone
and the others are one cell. Missing is always a cell of its own, and so are the values that a rule names. A
table may take each of its columns at any level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.shared.attributes import Attribute, attribute, joined
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from dpsynth_cli.numeric.exact import power
from dpsynth_cli.questions import Axis, Bins, Floats, Ints, Scored

SIZES = (2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512)  # cells of a level, at most


WIDE = 32  # a level of so many cells has some where values are rare and far apart
LIGHT = 2.0  # rows; a run of fewer may be noise
LEAST_VALUES = 3  # of a column that has scores: of two values a table says all
FAR = 3.0  # standard deviations; values further away have the score of these


@dataclass(frozen=True, eq=False)
class Ladder:
    """A column's finest cells, and the cell of each of them at each level; the last level is the finest."""

    finest: Attribute
    levels: tuple[Ints, ...]

    @property
    def column(self) -> Column:
        return self.finest.column

    @property
    def cells(self) -> int:
        return self.finest.cells

    @property
    def top(self) -> int:
        """The finest level."""
        return len(self.levels) - 1

    @cached_property
    def sizes(self) -> list[int]:
        """How many cells each level has."""
        return [int(cell.max()) + 1 for cell in self.levels]

    def size(self, level: int) -> int:
        return self.sizes[level]

    def level(self, most: float) -> int:
        """The finest level of at most so many cells, missing not counted; the coarsest if there is none."""
        fits = [level for level, size in enumerate(self.sizes) if size - self.column.nullable <= most]
        return max(fits, default=0)

    def axis(self, level: int) -> Axis:
        """The cells of a level as a question names them."""
        first = self.finest.marginal.first[self.finest.start]
        cell = self.levels[level]
        if self._rising(level):
            starts = np.flatnonzero(np.append(True, np.diff(cell) > 0))
            return Bins(self.column.name, (*first[starts].tolist(), self.column.codes))
        every = Bins(self.column.name, (*first.tolist(), self.column.codes))
        return Scored((every,), (tuple(cell.tolist()),), tuple(range(int(cell.max()) + 2)))

    def between(self, fine: int, coarse: int) -> Ints:
        """For each cell of the finer level the cell of the coarser one that it is part of."""
        found = np.zeros(self.size(fine), np.int64)
        found[self.levels[fine]] = self.levels[coarse]
        return found

    def masses(self, level: int, finest: Floats) -> Floats:
        """Masses of the finest cells (the last axis) added up in the cells of a level."""
        order = np.argsort(self.levels[level], kind="stable")
        starts = np.searchsorted(self.levels[level][order], np.arange(self.size(level)))
        return np.asarray(np.add.reduceat(finest[..., order], starts, axis=-1))

    def scores(self, level: int, masses: Floats) -> Floats | None:
        """How large values of the cells of a level are, in standard deviations from their mean, by masses of
        the finest cells; missing is 0. None for a column whose order says nothing, or of two values."""
        values = self.cells - self.column.nullable
        if self.column.type == "nominal" or values < LEAST_VALUES:
            return None
        first = self.codes_of(self.top).astype(np.float64)
        middle = first + (np.diff(np.append(first, self.column.codes)) - 1) / 2
        weights = np.where(np.arange(self.cells) < values, masses, 0.0)
        rows = max(float(weights.sum()), 1e-9)
        away = middle - float((weights * middle).sum()) / rows
        spread = math.sqrt(float((weights * away**2).sum()) / rows)
        z = np.where(np.arange(self.cells) < values, np.clip(away / max(spread, 1e-9), -FAR, FAR), 0.0)
        weights = masses + 1e-9
        return self.masses(level, weights * z) / self.masses(level, weights)

    def first(self, level: int) -> Ints:
        """The first of the finest cells in each cell of a level."""
        found = np.zeros(self.size(level), np.int64)
        found[self.levels[level][::-1]] = np.arange(self.cells)[::-1]
        return found

    def codes_of(self, level: int) -> Ints:
        """The first code of each cell of a level."""
        return np.asarray(self.finest.marginal.first[self.finest.start][self.first(level)])

    def counted(self) -> Ints:
        """For each of the finest cells the number of the counted run that it is part of; cells have the same
        where a run is cut between them, so that only their sum was counted."""
        known = self.finest.marginal.counted
        if known is None:
            return np.arange(self.cells)
        return np.asarray(np.cumsum(np.isin(self.codes_of(self.top), known)) - 1)

    def _rising(self, level: int) -> bool:
        return bool((np.diff(self.levels[level]) >= 0).all())


def ladder(column: Column, marginal: Marginal, finest: int, cuts: Sequence[int] = ()) -> Ladder:
    """The levels of a column whose finest has at most so many cells, if it is not nominal; `cuts` are codes
    at which a cell begins at every level."""
    own = _whole_tails(_tails(attribute(column, marginal, 2**20, cuts), finest, cuts), cuts)
    if column.categorical and column.codes > len(own.start):
        raise ValueError("categories are never joined in the finest cells")
    mass = np.sum([own.masses(k) for k in range(len(marginal.masses))], axis=0)
    first = own.marginal.first[own.start]
    if column.type == "nominal":
        kept = np.isin(first, cuts) | np.isin(first + 1, cuts) | (first == column.size)
        levels = _heaviest(mass, kept)
    else:
        levels = _neighbours(
            mass, first, column, cuts, int(own.marginal.width[len(own.marginal.width) - 1 - column.nullable])
        )
    return Ladder(own, (*levels, np.arange(own.cells)))


def _tails(own: Attribute, finest: int, cuts: Sequence[int]) -> Attribute:
    """The runs joined to at most so many cells: half of them of about equal mass, half of them finer where
    values are far apart, as a mean squared error would have it."""
    values = own.cells - own.column.nullable
    if own.column.categorical or values <= finest:
        return own
    mass = np.sum(own.marginal.masses, axis=0)[:values]
    start = joined(spread(mass, own.marginal.width[:values]), finest)
    forced = np.searchsorted(own.marginal.first[:values], [cut for cut in cuts if cut < own.column.size])
    counted = own.marginal.counted
    if counted is not None and len(counted) <= finest // 8:  # few runs: their sums are worth keeping
        inside = counted[counted < own.column.size]
        forced = np.union1d(forced, np.searchsorted(own.marginal.first[:values], inside))
    start = np.union1d(start, forced)
    return replace(own, start=np.append(start, values) if own.column.nullable else start)


def _whole_tails(own: Attribute, cuts: Sequence[int]) -> Attribute:
    """Each tail one cell with the last of those that stand above noise: counts of so few rows tell nothing of
    where in it they are, and noise would move them far out."""
    if own.marginal.stands is None:
        return own
    low, high = own.marginal.stands
    first = own.marginal.first[own.start]
    inside = (first > low) & (first < high)
    kept = inside | (first == 0) | (first >= own.column.size) | np.isin(first, cuts)
    return replace(own, start=own.start[kept])


def spread(mass: Floats, width: Ints) -> Floats:
    """Weights by which cells are joined: mass, and the cube root of density, the best for squared errors."""
    rows = np.where(mass >= LIGHT, mass, 0.0)
    root = power(rows * width.astype(np.float64) ** 2, 1 / 3)
    return np.asarray(mass / max(float(mass.sum()), 1e-9) + root / max(float(root.sum()), 1e-9))


def _heaviest(mass: Floats, kept: NDArray[np.bool_]) -> list[Ints]:
    """The heaviest categories alone, the others together, for each size that joins at least two."""
    rank = np.empty(len(mass), np.int64)
    rank[np.lexsort((np.arange(len(mass)), -np.where(kept, np.inf, mass)))] = np.arange(len(mass))
    least = max(2, int(kept.sum()) + 1)
    return [np.minimum(rank, size - 1) for size in SIZES if least <= size < len(mass)]


def _neighbours(mass: Floats, first: Ints, column: Column, cuts: Sequence[int], last: int) -> list[Ints]:
    """Neighbours joined, from the finest level to the coarsest; missing stays alone."""
    values = len(mass) - column.nullable
    forced = np.isin(first[:values], cuts)
    cell, levels = np.arange(len(mass)), []
    for size in reversed(SIZES):
        if size >= values:
            continue
        begins = np.flatnonzero(np.append(True, np.diff(cell[:values]) > 0))
        both = np.add.reduceat(mass[:values], begins)
        if size >= WIDE:
            ends = np.append(first[begins[1:]], first[values - 1] + last)
            both = spread(both, ends - first[begins])
        starts = joined(both, size)
        begin = np.zeros(values, bool)
        begin[begins[starts]] = True
        begin |= forced
        cell = np.append(np.cumsum(begin) - 1, [begin.sum()] * column.nullable).astype(np.int64)
        levels.append(cell)
    return levels[::-1]
