"""Rows of one model of every combination: at even distances along its cells; few rows by column, settled.

A cell that is due less than a row gets one or none. Where rows are few that is most of the cells, and what
the cells of a pair of columns are off by adds up; so there each column is drawn given those before it, and
rows are moved until all tables of two and three columns are as near as whole rows can be
(`numeric/settled.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.joint.rows import BLOCK, FEW
from dpsynth_cli.numeric.conditional import Target
from dpsynth_cli.numeric.settled import settled
from dpsynth_cli.numeric.systematic import GOLDEN, chosen, even
from dpsynth_cli.questions import Block, Floats, Ints

TABLES = 30  # of a column with others before it, that its rows are settled by
UNLIKELY = 0.02  # of what is likeliest; less, and rows are not moved there


def drawing(
    columns: Sequence[Column], p: Floats, few: int = FEW
) -> Callable[[int, np.random.Generator], Iterator[Block]]:
    """Rows of a distribution over all combinations of these columns, row-major; up to `few` are settled."""
    sizes = [column.codes for column in columns]
    upto = np.cumsum(p)
    upto /= upto[-1]
    last = int(np.flatnonzero(p)[-1])

    def block(codes: Sequence[Ints]) -> Block:
        return {column.name: code for column, code in zip(columns, codes, strict=True)}

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        if 0 < rows <= few:
            yield block(few_rows(p.reshape(sizes), rows, rng))
            return
        start = rng.random()
        for number, at in enumerate(range(0, rows, BLOCK)):  # each between the rows of the blocks before
            many = min(BLOCK, rows - at)
            points = (np.arange(many) + (start + number * GOLDEN) % 1.0) / many
            cells = np.minimum(np.searchsorted(upto, points, side="right"), last)
            yield block(np.unravel_index(rng.permutation(cells), sizes))

    return draw


def few_rows(p: Floats, rows: int, rng: np.random.Generator) -> list[Ints]:
    """The codes of so many rows, a column each."""
    found: list[Ints] = []
    before = np.zeros(rows, np.int64)  # the combination of the columns so far
    tables = [p]  # of all columns, of all but the last, ...
    for _ in p.shape[1:]:
        tables.append(tables[-1].sum(axis=-1))
    for table in reversed(tables):
        size = table.shape[-1]
        given = table.reshape(-1, size).take(before, axis=0)
        v = chosen(given, even([before], rng))
        if size > 1:
            allowed = given > UNLIKELY * given.max(axis=1, keepdims=True)
            allowed[np.arange(rows), v] = True
            targets = [_target(table, [*found, v], some) for some in _tables(table.shape)]
            v = settled(v, targets, allowed, rng)
        found.append(v)
        before = before * size + v
    return found


def _tables(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The last column, its pairs with those before it, and its threes as far as they are few."""
    axis = len(sizes) - 1
    earlier = [a for a in range(axis) if sizes[a] > 1]
    orders = [[(*some, axis) for some in combinations(earlier, order)] for order in range(3)]
    return [axes for each in orders[: 2 + (len(orders[2]) <= TABLES)] for axes in each]


def _target(table: Floats, codes: Sequence[Ints], axes: Sequence[int]) -> Target:
    """What rows are due in the last of some columns, given the others."""
    *others, own = axes
    index = np.zeros(len(codes[own]), np.int64)
    for a in others:
        index = index * table.shape[a] + codes[a]
    sums = table.sum(axis=tuple(a for a in range(table.ndim) if a not in axes))
    return Target(index, np.arange(table.shape[own]), sums.reshape(-1, table.shape[own]))
