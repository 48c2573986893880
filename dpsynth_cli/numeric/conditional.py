"""One column given others: a log-linear conditional, fitted to tables by iterative proportional fitting.

Rows are there already, with the columns that come before. Each has a distribution over the cells of the next
column, p(v | row) = start(v | row) times one factor for each table: a number for the row's cell among the
table's other columns, and v. The factors are such that the rows' distributions, added up in each cell, are
the tables (Deming and Stephan 1940; multinomial logistic regression by its sufficient statistics).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

FEWEST = 0.5  # rows that a cell must be expected to have for its factor to grow
TIMID = 3.0  # rows; a factor of fewer is drawn to 1, or it would follow the rows that happen to be there
MOST, LEAST = 20.0, 1e-4  # a factor's change in one pass


@dataclass(frozen=True, eq=False)
class Target:
    """A table: the cell of each row among its other columns, the table's cell of each v, and its counts."""

    index: Ints
    group: Ints
    counts: Floats  # cells of the others x cells of its own

    def given(self) -> Floats:
        """Counts scaled to the rows that are there; 0 where the table has none."""
        rows = np.bincount(self.index, minlength=len(self.counts))
        sums = self.counts.sum(axis=1)
        scale = np.divide(rows, sums, out=np.zeros(len(sums)), where=sums > 0)
        return np.asarray(self.counts * scale[:, None])


def fitted(start: Floats, targets: Sequence[Target], passes: int) -> tuple[Floats, list[Floats]]:
    """The distributions (v x rows) that have these tables, and the factors that lead there.

    The last table fits exactly; where one contradicts another the later one wins.
    """
    factors = [np.ones(target.counts.shape) for target in targets]
    wanted = [target.given() for target in targets]
    p = start.copy()
    for _ in range(passes if len(targets) > 1 else 1):
        for at, (target, given, factor) in enumerate(zip(targets, wanted, factors, strict=True)):
            there = added(p, target.index, len(given), target.group, given.shape[1])
            ratio = np.clip(given / np.maximum(there, 1e-12), LEAST, MOST)
            ratio[there <= FEWEST] = np.minimum(ratio[there <= FEWEST], 1.0)
            ratio[given.sum(axis=1) <= 0] = 1.0  # nothing is known of these rows
            if at < len(targets) - 1:
                trust = np.where(given < FEWEST, 1.0, there / (there + TIMID))
                ratio = (factor * ratio) ** trust / factor
            factor *= ratio
            p *= ratio.T[target.group].take(target.index, axis=1)
            p = normalised(p, start)
    return p, [np.round(factor, 9) for factor in factors]


def multiplied(start: Floats, cells: Sequence[tuple[Ints, Ints]], factors: Sequence[Floats]) -> Floats:
    """The distributions of other rows, by the same factors; `cells` has index and group of each table."""
    p = start
    for (index, group), factor in zip(cells, factors, strict=True):
        p = normalised(p * factor.T[group].take(index, axis=1), start)
    return p


def normalised(p: Floats, otherwise: Floats | None = None) -> Floats:
    """Distributions that add up to 1 (v x rows); a row that nothing is left for is as `otherwise`, or even.

    >>> normalised(np.array([[3.0, 0.0], [1.0, 0.0]])).tolist()
    [[0.75, 0.5], [0.25, 0.5]]
    """
    whole = p.sum(axis=0)
    lost = whole <= 1e-100
    if lost.any():
        return normalised(np.where(lost, 1.0 if otherwise is None else otherwise, p))
    return np.asarray(p / whole)


def added(p: Floats, index: Ints, cells: int, group: Ints, own: int) -> Floats:
    """Distributions added up: cells of the others x the table's own cells."""
    found = np.zeros((own, cells))
    for v, row in zip(group.tolist(), p, strict=True):
        found[v] += np.bincount(index, row, cells)
    return np.ascontiguousarray(found.T)
