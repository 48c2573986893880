"""Cells that were measured and have no released row: rows without weight that stand for them.

A model leaves out what it takes for noise, such as the few rows of a long tail, and no weights of
released rows bring that back: so rows are put into such cells, and the counts decide what they weigh.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.calibration import FREE
from dpsynth_cli.inference.cells import cell_ends
from dpsynth_cli.inference.relations import Known
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.tables import CellOf, Counted
from dpsynth_cli.questions import Ints

PRECISE = 4.0  # times the least noise of a column's counts: tables with more say nothing of empty cells
COPIES = (32, 512)  # rows for each code of an empty cell, with other columns of released rows
DECIDE = 50.0  # times the variance of its noise, that the weights of a cell's rows may vary by
DECIDE_PAIR, COPIES_OF_PAIR = 10.0, (2, 64)  # the same for cells of a number and another column
MOST_CODES = 48  # of a column that rows are added for
MOST_ROWS_OF_PAIR = 4096
MOST_PAIRS = 2**16  # combinations of two categories that are looked at
ANYWHERE = 256


def with_empty_cells(
    columns: Sequence[str], released: Drawn, known: Known, rng: np.random.Generator, pairs: bool = True
) -> Drawn:
    """The released rows, and behind them rows for cells of these columns that have none; `pairs` says whether
    for those of a number and another column, too."""
    table, added = released.table, []
    for codes, sd in _empty_cells(columns, released, known):
        many = len(next(iter(codes.values()), ()))
        copies = int(np.clip(DECIDE * sd**2 / (FREE * released.scale**2), *COPIES))
        if many and len(table):
            picked = dict(table.take(rng.integers(len(table), size=copies * many)).codes)
            added.append(picked | {name: np.repeat(own, copies) for name, own in codes.items()})
    for pair in combinations(columns, 2) if pairs else ():
        if len(table) and not all(known.domain[name].categorical for name in pair):
            codes = _rows_of_pair(pair, released, known, rng)
            many = len(codes[pair[0]])
            added.append(dict(table.take(rng.integers(len(table), size=many)).codes) | codes)
    if not added:
        return released
    more = sum(len(next(iter(one.values()))) for one in added)
    joined = {
        name: np.concatenate([codes.astype(np.int64), *(one[name] for one in added)])
        for name, codes in table.codes.items()
    }
    return replace(released, table=Table(joined, table.rows + more), added=more)


def _empty_cells(
    columns: Sequence[str], released: Drawn, known: Known
) -> Iterator[tuple[dict[str, Ints], float]]:
    """Codes of columns in cells without rows, and the noise of their best counts: numbers and categories by
    themselves, and pairs of categories that were counted together."""
    categories = [name for name in columns if known.domain[name].categorical]
    for name in columns:
        if name not in categories:
            codes, sd = _codes_of_empty_cells(name, released, known)
            yield {name: codes}, sd
    for scope in [(name,) for name in categories] + list(combinations(categories, 2)):
        tables = [table for table in known.with_columns(scope) if _all_whole(table, known)]
        sizes = [known.domain[name].codes for name in scope]
        if not tables or prod(sizes) > MOST_PAIRS:
            continue
        empty = np.zeros(sizes, bool)
        for table in tables:
            empty |= reduce(np.logical_and.outer, (_alone(table, name, known) for name in scope))
        empty[tuple(released.table.codes[name].astype(np.int64) for name in scope)] = False
        least = min(table.sd * (table.values.size / prod(sizes)) ** 0.5 for table in tables)
        yield dict(zip(scope, np.argwhere(empty)[:MOST_CODES].T, strict=True)), least


def _rows_of_pair(
    pair: tuple[str, str], released: Drawn, known: Known, rng: np.random.Generator
) -> dict[str, Ints]:
    """Codes of rows in the cells of a pair that have no released row, anywhere in each cell: by the table of
    the pair that has the least noise."""
    none = {name: np.zeros(0, np.int64) for name in pair}
    best: tuple[float, Counted] | None = None
    for table in known.with_columns(pair):
        sd = table.sd * (table.values.size / prod(_lengths(table, pair))) ** 0.5
        if _all_whole(table, known) and prod(_lengths(table, pair)) <= MOST_PAIRS:
            best = min(best or (sd, table), (sd, table), key=lambda one: one[0])
    if best is None:
        return none
    sd, table = best
    first, second = (table.cell[table.columns.index(name)] for name in pair)
    there = np.zeros(_lengths(table, pair), bool)
    there[
        tuple(cell(released.table.codes[name]) for cell, name in zip((first, second), pair, strict=True))
    ] = True
    choices = [
        _codes_of_cells(known.domain[name], cell) for name, cell in zip(pair, (first, second), strict=True)
    ]
    empty = [
        cells for cells in np.argwhere(~there) if all(k in own for k, own in zip(cells, choices, strict=True))
    ]
    if not empty:
        return none
    needed = DECIDE_PAIR * sd**2 / (FREE * released.scale**2)
    copies = int(
        np.clip(needed, COPIES_OF_PAIR[0], min(COPIES_OF_PAIR[1], max(2, MOST_ROWS_OF_PAIR // len(empty))))
    )
    found = {}
    for axis, name in enumerate(pair):
        ends = np.repeat([choices[axis][cells[axis]] for cells in empty], copies, axis=0)
        found[name] = rng.integers(ends[:, 0], ends[:, 1] + 1)
    return found


def _lengths(table: Counted, pair: tuple[str, str]) -> list[int]:
    return [table.values.shape[table.columns.index(name)] for name in pair]


def _codes_of_cells(column: Column, cell: CellOf) -> dict[int, tuple[int, int]]:
    """The first and last code of each cell; of categories that are counted together the first alone."""
    if column.categorical:
        points = np.arange(column.codes)
    else:
        points = cell_ends(column.size, [cell])
        points = np.append(points, column.size) if column.nullable else points
    of = cell(points)
    found = {}
    for k in np.unique(of[of >= 0]):
        own = points[of == k]
        found[int(k)] = int(own[0]), int(own[0 if column.categorical else -1])
    return found


def _alone(table: Counted, name: str, known: Known) -> NDArray[np.bool_]:
    """Which codes of a column have a cell of their own in a table."""
    cells = table.cell[table.columns.index(name)](np.arange(known.domain[name].codes))
    return np.asarray(np.bincount(cells)[cells] == 1)


def _all_whole(table: Counted, known: Known) -> bool:
    return all(table.whole(a, known.domain) for a in range(len(table.columns)))


def with_rows_anywhere(released: Drawn, known: Known, rng: np.random.Generator) -> Drawn:
    """The released rows, and behind them some from all over the domain: weights of these can have sums that
    those of rows in one corner cannot."""
    table = released.table
    more = released.added + ANYWHERE
    anywhere = {name: rng.integers(known.domain[name].codes, size=ANYWHERE) for name in table.codes}
    joined = {
        name: np.concatenate([codes.astype(np.int64), anywhere[name]]) for name, codes in table.codes.items()
    }
    return replace(released, table=Table(joined, table.rows + ANYWHERE), added=more)


def _codes_of_empty_cells(name: str, released: Drawn, known: Known) -> tuple[Ints, float]:
    """First, middle and last codes of the cells of a numeric column that no released row is in, and the
    noise of its best counts."""
    column, rows = known.domain[name], released.table.codes[name].astype(np.int64)
    none = np.zeros(0, np.int64)
    axes = list[tuple[float, CellOf]]()
    for table in known.with_columns([name]):
        a = table.columns.index(name)
        others = [b for b in range(len(table.columns)) if b != a]
        if _all_whole(table, known):
            many = np.prod([table.values.shape[b] for b in others], initial=1.0)
            axes.append((table.sd * float(many) ** 0.5, table.cell[a]))
    if not axes:
        return none, 0.0
    least = min(sd for sd, _ in axes)
    cells = [cell for sd, cell in axes if sd <= PRECISE * least]
    points = cell_ends(column.size, cells)
    empty = np.zeros(len(points), bool)
    for cell in cells:
        empty |= ~np.isin(cell(points), cell(rows))
    points = points[empty]
    if not len(points):
        return none, least
    _, group = np.unique(np.stack([cell(points) for cell in cells]), axis=1, return_inverse=True)
    of_cell = [points[group.ravel() == k] for k in range(int(group.max()) + 1)]
    chosen = np.unique(np.concatenate([own[[0, len(own) // 2, -1]] for own in of_cell]))
    some = np.unique(np.linspace(0, len(chosen) - 1, min(len(chosen), MOST_CODES)).astype(np.int64))
    return chosen[some], least
