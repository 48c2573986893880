"""One column given others: a log-linear conditional, fitted to tables by iterative proportional fitting.

Rows are there already, with the columns that come before. Each has a distribution over the cells of the next
column, p(v | row) = start(v | row) times one factor for each table: a number for the row's cell among the
table's other columns, and v. The factors are such that the rows' distributions, added up in each cell, are
the tables (Deming and Stephan 1940; multinomial logistic regression by its sufficient statistics).

Distributions are rows x cells: a row's factors are copied in one piece, and rows are taken in batches that
stay near the processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import power
from dpsynth_cli.numeric.systematic import chosen

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Weights: TypeAlias = NDArray[np.floating[Any]]

FEWEST = 0.5  # rows that a cell must be expected to have for its factor to grow
TIMID = 3.0  # rows; a factor of fewer is drawn to 1, or it would follow the rows that happen to be there
CLOSER = 5e-4  # of the rows, by which the table that is furthest away comes nearer in a pass: else it ends
MOST, LEAST = 20.0, 1e-4  # a factor's change in one pass
SMALL, LARGE = 1e-30, 1e30  # of a distribution that is not scaled; beyond, and it is
NOTHING = 1e-100  # of a distribution; below, it may be lost to rounding
LOST = 1e-30  # of a product of tables in small numbers; below, it is made step by step
NEAR = 2**16  # numbers of a batch of rows


@dataclass(frozen=True, eq=False)
class Target:
    """A table: the cell of each row among its other columns, the table's cell of each v, and its counts."""

    index: Ints
    group: Ints
    counts: Floats  # cells of the others x cells of its own

    def given(self, weights: Floats | None = None) -> Floats:
        """Counts scaled to the rows that are there, or to their weights; 0 where the table has none."""
        rows = np.bincount(self.index, weights, len(self.counts))
        sums = self.counts.sum(axis=1)
        scale = np.divide(rows, sums, out=np.zeros(len(sums)), where=sums > 0)
        return np.asarray(self.counts * scale[:, None])


@dataclass(frozen=True, eq=False)
class Alike:
    """Rows that are alike in some columns, and tables of these: the number of each row's kind, how many kinds
    there are, and targets that kinds are the rows of."""

    index: Ints
    kinds: int
    targets: Sequence[Target]


def fitted(start: Floats, several: Sequence[Alike], passes: int) -> tuple[Floats, list[list[Floats]]]:
    """The distributions (rows x v) that have these tables, and the factors that lead there.

    Tables of rows that are alike are fitted to the sums of each kind of row, one after the other, and what
    that changes then goes to all rows at once. The last table fits best; where one contradicts another the
    later one wins.
    """
    fits, before = [_Fit(own) for own in several], np.inf
    p, scale = start.copy(), np.ones(len(start))  # a row's distribution is p times scale
    for _ in range(passes if sum(len(own.targets) for own in several) > 1 else 1):
        for fit in fits:
            wide = fit.change(p, scale, fit is fits[-1])
            for some in batches(*p.shape):
                part = p[some]
                part *= wide.take(fit.own.index[some], axis=0)
                whole = np.einsum("ij->i", part)
                if whole.min(initial=1.0) <= SMALL or whole.max(initial=1.0) >= LARGE:
                    normalise(part, start[some])
                    whole = np.ones(len(part))
                np.divide(1.0, whole, out=scale[some])
        away = max((fit.away for fit in fits), default=0.0)
        if before - away < CLOSER * len(p):
            break
        before = away
    p *= scale[:, None]
    return p, [[np.round(factor, 9) for factor in fit.factors] for fit in fits]


class _Fit:
    """The factors of tables of rows that are alike."""

    def __init__(self, own: Alike) -> None:
        self.own, self._sums = own, Sums(own.index, own.kinds)
        self._rows = np.bincount(own.index, minlength=own.kinds).astype(np.float64)
        self._given = [target.given(self._rows) for target in own.targets]
        self._of_kinds = [Sums(target.index, len(target.counts)) for target in own.targets]
        self.factors = [np.ones(target.counts.shape) for target in own.targets]

    def change(self, p: Floats, scale: Floats, last: bool) -> Floats:
        """By what the distributions of each kind of row are multiplied for the next pass (kinds x v)."""
        cells = p.shape[1]
        sums = self._sums.of(p, np.arange(cells), cells, scale)
        self.away = 0.0
        change = np.ones(sums.shape)
        for at, target in enumerate(self.own.targets):
            ratio = self._ratio(at, sums, last and at == len(self.own.targets) - 1)
            self.factors[at] *= ratio
            wide = ratio[:, target.group].take(target.index, axis=0)
            change *= wide
            if len(self.own.targets) > 1:
                sums *= wide
                whole = np.einsum("ij->i", sums)
                sums *= np.divide(self._rows, whole, out=np.zeros(len(whole)), where=whole > NOTHING)[:, None]
        return change

    def _ratio(self, at: int, sums: Floats, last: bool) -> Floats:
        given, target = self._given[at], self.own.targets[at]
        there = self._of_kinds[at].of(sums, target.group, given.shape[1])
        self.away = max(self.away, float(np.abs(given - there).sum()) / 2)
        ratio = np.clip(given / np.maximum(there, 1e-12), LEAST, MOST)
        ratio[there <= FEWEST] = np.minimum(ratio[there <= FEWEST], 1.0)
        ratio[given.sum(axis=1) <= 0] = 1.0  # nothing is known of these rows
        if last:
            return np.asarray(ratio)
        trust = np.where(given < FEWEST, 1.0, there / (there + TIMID))
        return np.asarray(power(self.factors[at] * ratio, trust) / self.factors[at])


def picked(tables: Sequence[Weights], indices: Sequence[Ints], u: Floats) -> Ints:
    """A cell for each row: by the product of its rows of several tables (rows x cells, at most 1 each), and a
    number in [0, 1). A table that leaves a row nothing is left out; the first leaves every row something."""
    found = np.empty(len(u), np.int64)
    for some in batches(len(u), tables[0].shape[1]):
        rows = [index[some] for index in indices]
        p = products(list(zip(tables, rows, strict=True)))
        whole = np.einsum("ij->i", p)
        if whole.min(initial=1.0) <= LOST:
            lost = np.flatnonzero(whole <= LOST)
            p[lost] = _step_by_step(tables, [row[lost] for row in rows])
            whole = np.einsum("ij->i", p)
        found[some] = chosen(p, u[some], whole)
    return found


def products(each: Sequence[tuple[Weights, Ints]]) -> Weights:
    """The product of its rows of several tables (rows x cells), for each row."""
    found = each[0][0].take(each[0][1], axis=0)
    for table, index in each[1:]:
        found *= table.take(index, axis=0)
    return found


def _step_by_step(tables: Sequence[Weights], rows: Sequence[Ints]) -> Floats:
    p = normalise(tables[0].take(rows[0], axis=0).astype(np.float64))
    for table, row in zip(tables[1:], rows[1:], strict=True):
        p = normalise(p * table.take(row, axis=0), p)
    return p


def normalise(p: Floats, otherwise: Floats | None = None) -> Floats:
    """Distributions made to add up to 1, in place; a row that nothing is left for is as `otherwise`, or even.

    >>> normalise(np.array([[3.0, 1.0], [0.0, 0.0]])).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    whole = np.einsum("ij->i", p)
    if whole.min(initial=1.0) <= NOTHING:
        lost = np.flatnonzero(whole <= NOTHING)
        p[lost] = 1.0 if otherwise is None else otherwise[lost]
        return normalise(p)
    p *= (1.0 / whole)[:, None]
    return p


def batches(rows: int, cells: int) -> Iterator[slice]:
    """Runs of rows whose distributions stay near the processor."""
    size = max(64, NEAR // max(1, cells))
    for at in range(0, rows, size):
        yield slice(at, min(rows, at + size))


class Sums:
    """Adds up rows in cells."""

    def __init__(self, index: Ints, cells: int) -> None:
        from scipy.sparse import csc_array  # takes long to import, and not every command needs it

        rows = len(index)
        at = np.arange(rows + 1, dtype=np.int32)
        self._matrix = csc_array((np.ones(rows), index.astype(np.int32), at), shape=(cells, rows))

    def of(self, p: Floats, group: Ints, own: int, scale: Floats | None = None) -> Floats:
        """Distributions, times the scale of each, added up: cells x the table's own cells."""
        if scale is not None:
            self._matrix.data[:] = scale
        sums = self._matrix @ p
        if len(group) == own and (group == np.arange(own)).all():
            return np.asarray(sums)
        found = np.zeros((own, len(sums)))
        np.add.at(found, group, sums.T)
        return np.ascontiguousarray(found.T)


def added(p: Floats, index: Ints, cells: int, group: Ints, own: int) -> Floats:
    """Distributions added up: cells of the others x the table's own cells."""
    return Sums(index, cells).of(p, group, own)
