"""Draws that are even over rows: a cell for each row by its own distribution, with little noise of drawing.

The numbers that decide are multiples of the golden ratio, modulo 1, along rows that are sorted by what
matters: even over every run of neighbours, so over the rows of each cell of a table, and of two tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

GOLDEN = 0.6180339887498949


def even(keys: Sequence[Ints], rng: np.random.Generator) -> Floats:
    """Numbers in [0, 1), even over the rows of each value of the first key, and of the next inside it."""
    rows = len(keys[0])
    order = np.lexsort([rng.permutation(rows), *reversed(list(keys))])
    u = np.empty(rows)
    u[order] = (np.arange(rows) * GOLDEN + rng.random()) % 1.0
    return u


def chosen(p: Floats, u: Floats) -> Ints:
    """The cell of each row, by its distribution (cells x rows) and a number in [0, 1); never one of mass 0.

    >>> chosen(np.array([[0.0, 0.5], [1.0, 0.5]]), np.array([0.0, 0.7])).tolist()
    [1, 1]
    """
    cell = np.zeros(p.shape[1], np.int64)
    last = np.zeros(p.shape[1], np.int64)
    whole = np.zeros(p.shape[1])
    for v, part in enumerate(p):
        whole = whole + part
        cell += whole <= u
        last[part > 0] = v
    return np.minimum(cell, last)


def within(weights: Floats, index: Ints, group: Ints, v: Ints, rng: np.random.Generator) -> Ints:
    """A finer cell for each row, inside its cell v, by the weights of its own row `index`.

    `group` has the cell of each finer one. Where all weights inside a cell are 0 they count as even.

    >>> rng = np.random.default_rng(0)
    >>> weights, group, v = np.array([[1.0, 0.0, 2.0]]), np.array([0, 0, 1]), np.array([0, 1, 0])
    >>> within(weights, np.zeros(3, int), group, v, rng).tolist()
    [0, 2, 0]
    """
    cells, wide = int(group.max()) + 1, len(group)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(cells + 1))
    sums = np.concatenate([[0.0], np.cumsum(weights[:, order] + 1e-9)])
    low, high = sums[index * wide + starts[v]], sums[index * wide + starts[v + 1]]
    u = even([index * cells + v], rng)
    at = np.searchsorted(sums, low + u * (high - low), side="right") - 1
    return np.asarray(order[np.clip(at - index * wide, starts[v], starts[v + 1] - 1)])


def joined(table: Floats, group: Ints, cells: int, axis: int = -1) -> Floats:
    """One axis of a table added up in groups.

    >>> joined(np.array([[1.0, 2.0, 4.0]]), np.array([1, 0, 1]), 2).tolist()
    [[2.0, 5.0]]
    """
    moved = np.moveaxis(table, axis, 0)
    found = np.zeros((cells, *moved.shape[1:]))
    np.add.at(found, group, moved)
    return np.ascontiguousarray(np.moveaxis(found, 0, axis))
