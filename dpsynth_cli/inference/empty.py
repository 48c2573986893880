"""Cells that were measured and have no released row: rows without weight that stand for them.

A model leaves out what it takes for noise, such as the few rows of a long tail, and no weights of
released rows bring that back: so rows are put into such cells, and the counts decide what they weigh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.calibration import FREE
from dpsynth_cli.inference.cells import cell_ends
from dpsynth_cli.inference.relations import Known
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.tables import CellOf
from dpsynth_cli.questions import Ints

PRECISE = 4.0  # times the least noise of a column's counts: tables with more say nothing of empty cells
COPIES = (32, 512)  # rows for each code of an empty cell, with other columns of released rows
DECIDE = 50.0  # times the variance of its noise, that the weights of a cell's rows may vary by
MOST_CODES = 48  # of a column that rows are added for
ANYWHERE = 256


def with_empty_cells(
    columns: Sequence[str], released: Drawn, known: Known, rng: np.random.Generator
) -> Drawn:
    """The released rows, and behind them rows for cells of these columns that have none."""
    table, added = released.table, []
    for name in columns:
        codes, sd = _codes_of_empty_cells(name, released, known)
        copies = int(np.clip(DECIDE * sd**2 / (FREE * released.scale**2), *COPIES))
        if len(codes) and len(table):
            picked = dict(table.take(rng.integers(len(table), size=copies * len(codes))).codes)
            added.append(picked | {name: np.repeat(codes, copies)})
    if not added:
        return released
    more = sum(len(next(iter(one.values()))) for one in added)
    joined = {
        name: np.concatenate([codes.astype(np.int64), *(one[name] for one in added)])
        for name, codes in table.codes.items()
    }
    return replace(released, table=Table(joined, table.rows + more), added=more)


def with_rows_anywhere(released: Drawn, known: Known, rng: np.random.Generator) -> Drawn:
    """The released rows, and behind them some from all over the domain: weights of these can have sums that
    those of rows in one corner cannot."""
    table = released.table
    anywhere = {name: rng.integers(known.domain[name].codes, size=ANYWHERE) for name in table.codes}
    joined = {
        name: np.concatenate([codes.astype(np.int64), anywhere[name]]) for name, codes in table.codes.items()
    }
    return replace(released, table=Table(joined, table.rows + ANYWHERE), added=ANYWHERE)


def _codes_of_empty_cells(name: str, released: Drawn, known: Known) -> tuple[Ints, float]:
    """First, middle and last codes of the cells of a numeric column that no released row is in, and the
    noise of its best counts."""
    column, rows = known.domain[name], released.table.codes[name].astype(np.int64)
    none = np.zeros(0, np.int64)
    axes = list[tuple[float, CellOf]]()
    for table in known.with_columns([name]):
        a = table.columns.index(name)
        others = [b for b in range(len(table.columns)) if b != a]
        if all(table.whole(b, known.domain) for b in range(len(table.columns))):
            many = np.prod([table.values.shape[b] for b in others], initial=1.0)
            axes.append((table.sd * float(many) ** 0.5, table.cell[a]))
    if column.categorical or not axes:
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
