"""A snapshot of a stream: its blocks were counted one by one, and their counts add up.

Each block has a tree of its own depth over the same columns. The finest partition that the trees of all
blocks can be added up to is where their counts are added, and their variances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.inference.tables import CellOf, Counted, counted_tables
from dpsynth_cli.questions import Answer, Floats, Ints, Question


def of_all_blocks(blocks: Sequence[Sequence[tuple[Question, Answer]]], omega: Domain) -> list[Counted]:
    """The table of the whole snapshot, and the number of its events."""
    tables = [counted_tables(asked, omega)[0] for asked in blocks]
    found = []
    for choose in (min, max):  # the number of events, and the finest table
        own = [choose(block, key=lambda table: table.values.size) for block in tables]
        if len({table.columns for table in own}) == 1:
            found.append(_added(own))
    return found


def _added(tables: Sequence[Counted]) -> Counted:
    shape = tuple(min(sizes) for sizes in zip(*(table.values.shape for table in tables), strict=True))
    values, variance = np.zeros(shape), 0.0
    for table in tables:
        values = values + _coarser(table.values, shape)
        variance += table.sd**2 * table.values.size / max(1, math.prod(shape))
    first = tables[0]
    cells = tuple(
        _cell(cell, size // least)
        for cell, size, least in zip(first.cell, first.values.shape, shape, strict=True)
    )
    return Counted(first.columns, cells, values, math.sqrt(variance), first.noise, first.step, first.number)


def _coarser(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Neighbours added up; cells are halves of halves, so that they fit."""
    for axis, size in enumerate(shape):
        step = values.shape[axis] // size
        values = np.add.reduceat(values, np.arange(0, values.shape[axis], step), axis=axis)
    return values


def _cell(cell: CellOf, step: int) -> CellOf:
    def coarser(codes: NDArray[Any]) -> Ints:
        return cell(codes) // step

    return coarser
