"""Counts of rows by the cells that were measured: a condition holds in all of a cell, in none, or cuts it.

Of a cell that it cuts, anything from none to all of its rows may be meant: no released row says how many,
since the model put it there. So such a count has the cells inside as its least and all that it touches as
its greatest, with the noise of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.inference.changes import comparisons, shows_changes
from dpsynth_cli.inference.measured import EXACT_SD, KURTOSIS, Estimate
from dpsynth_cli.inference.relations import Known
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.inference.tables import Counted
from dpsynth_cli.questions import Ints
from dpsynth_cli.relations.arrays import of_codes
from dpsynth_cli.relations.language import NotAnExpression
from dpsynth_cli.relations.nodes import Expression, names
from dpsynth_cli.relations.values import evaluate

EVEN = 64  # codes of a column that are looked at besides the ends of cells
MOST_POINTS = 2**20  # combinations of such codes
MOST_CELLS = 2**21  # of all groups of a query


@dataclass(frozen=True)
class Between:
    """The rows of a group: at least those of the cells inside, at most those of all that it touches."""

    least: Estimate
    most: Estimate
    cut: bool

    @property
    def none(self) -> bool:
        """Whether no cell is touched: no row can be in it."""
        return self.most.sd == 0

    def interval(self, level: float, more: float) -> tuple[float, float]:
        """With the noise of both ends, which no count is below nothing of, and `more` variance."""
        ends = [
            Estimate(max(0.0, end.value), math.hypot(end.sd, math.sqrt(more)), end.kurtosis)
            for end in (self.least, self.most)
        ]
        low, high = (end.width(level) for end in ends)
        return ends[0].value - low, max(ends[0].value + low, ends[1].value + high)


def cell_ends(size: int, cells: Sequence[Callable[[Ints], Ints]]) -> Ints:
    """The first and last codes of all cells of codes below `size`, and some even ones between."""
    points = np.unique(np.linspace(0, size - 1, min(size, EVEN)).astype(np.int64))
    found = [points]
    for cell in cells:
        own = points
        while True:
            of = cell(own)
            apart = np.flatnonzero((of[1:] != of[:-1]) & (np.diff(own) > 1))
            if not len(apart):
                break
            own = np.insert(own, apart + 1, (own[apart] + own[apart + 1]) // 2)
        ends = np.flatnonzero(of[1:] != of[:-1])
        found += [own[ends], own[ends + 1]]
    return np.unique(np.concatenate(found))


def rows_between(statistic: Statistic, released: Drawn, known: Known) -> list[Between] | None:
    """The rows of each group of a count, from the table that tells most of them; None where none has all
    its columns."""
    best: tuple[float, list[Between]] | None = None
    for table in known.with_columns(statistic.columns):
        outside = [a for a, name in enumerate(table.columns) if name not in statistic.columns]
        if not statistic.columns or not all(table.whole(a, known.domain) for a in outside):
            continue
        if not all(table.whole(table.columns.index(name), known.domain) for name in statistic.columns):
            continue
        found = _by_table(statistic, released, table, outside)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return None if best is None else best[1]


def _by_table(
    statistic: Statistic, released: Drawn, table: Counted, outside: list[int]
) -> tuple[float, list[Between]] | None:
    """How wide its intervals are about, told by the released rows, and the rows of each group."""
    axes = [table.columns.index(name) for name in statistic.columns]
    points = [own for name in statistic.columns if (own := _points(statistic, table, name)) is not None]
    if len(points) < len(statistic.columns) or math.prod(map(len, points)) > MOST_POINTS:
        return None
    grid = np.meshgrid(*points, indexing="ij")
    codes = {name: own.ravel() for name, own in zip(statistic.columns, grid, strict=True)}
    kept = [a for a in range(len(table.columns)) if a not in outside]
    noisy = np.transpose(table.values.sum(axis=tuple(outside)), [kept.index(a) for a in axes])
    groups = len(statistic.keys)
    if groups * noisy.size > MOST_CELLS:
        return None

    def cells(of: dict[str, Ints]) -> Ints:
        number = np.zeros(len(next(iter(of.values()))), np.int64)
        for a, name in zip(axes, statistic.columns, strict=True):
            number = number * table.values.shape[a] + table.cell[a](of[name])
        return number

    cell = cells(codes)
    chosen, group = statistic.members(codes)
    there = np.bincount(cell, minlength=noisy.size)
    own = np.bincount(group * noisy.size + cell[chosen], minlength=groups * noisy.size)
    own = own.reshape(groups, noisy.size)
    touched = own > 0
    inside_it = touched & (own == there)
    many = math.prod(table.values.shape[a] for a in outside)
    rows = np.bincount(cells({name: released.table.codes[name] for name in codes}), minlength=noisy.size)
    cut_rows = (touched & ~inside_it) @ rows * released.scale
    noise = table.sd * np.sqrt(many * touched.sum(axis=1))
    values = noisy.ravel()

    def estimate(which: NDArray[np.bool_]) -> Estimate:
        summed = max(1, many * int(which.sum()))
        sd = max(table.sd, EXACT_SD) * math.sqrt(many * int(which.sum()))
        return Estimate(float(values[which].sum()), sd, KURTOSIS.get(table.noise, 3.0) / summed)

    found = [
        Between(estimate(inside_it[k]), estimate(touched[k]), bool((touched[k] & ~inside_it[k]).any()))
        for k in range(groups)
    ]
    return float((cut_rows + 4 * noise).sum()), found


def _points(statistic: Statistic, table: Counted, name: str) -> Ints | None:
    """Codes of a column that show where its cells begin and end, and where the query changes; None where
    these would be too many."""
    column = statistic.domain[name]
    if column.categorical:
        return np.arange(column.codes)
    if not shows_changes(statistic, name):
        return np.arange(column.codes) if column.codes <= MOST_POINTS else None
    found = cell_ends(column.size, [table.cell[table.columns.index(name)], *_changes(statistic, name)])
    return np.append(found, column.size) if column.nullable else found


def _changes(statistic: Statistic, name: str) -> Iterator[Callable[[Ints], Ints]]:
    """Comparisons of a query that depend on this column alone, as functions of its codes."""
    parts = [] if statistic.query.where is None else [statistic.query.where]
    computed = statistic.relations.computed_for(statistic.query.named)
    parts += [statistic.relations.by_name[one].expression for one in sorted(computed)]
    for one in (found for part in parts for found in comparisons(part)):
        if statistic.relations.modelled(one) == (name,):
            with suppress(NotAnExpression):  # texts have no order
                statistic.typing(one)
                yield partial(_truth, statistic, name, one)


def _truth(statistic: Statistic, name: str, one: Expression, codes: Ints) -> Ints:
    known = {name: of_codes(codes, statistic.domain[name])}
    values = statistic.relations.values(known, len(codes), [own.name for own in names(one)])
    return evaluate(one, values, len(codes)).data.astype(np.int64)
