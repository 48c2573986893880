"""Draws that are even over rows: a cell for each row by its own distribution, with little noise of drawing.

The numbers that decide are multiples of the golden ratio, modulo 1, along rows that are sorted by what
matters: even over every run of neighbours, so over the rows of each cell of a table, and of two tables.
Sorted by many columns, one inside the other, neighbours are alike in all of them (as in a systematic sample
of a sorted list).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Weights: TypeAlias = NDArray[np.floating[Any]]

GOLDEN = 0.6180339887498949
RUN = 8  # cells
FEW = 16  # cells that are looked at one by one
NEAR = 2**17  # numbers of a batch of rows: they stay near the processor


def even(keys: Sequence[Ints], rng: np.random.Generator) -> Floats:
    """Numbers in [0, 1), even over the rows of each value of the first key, and of the next inside it."""
    key = keys[0].astype(np.int64, copy=False)  # products may be large
    for other in keys[1:]:
        key = key * (int(other.max(initial=0)) + 1) + other
    return even_along(mixed_by(key, rng), rng)


def even_along(order: Ints, rng: np.random.Generator) -> Floats:
    """Numbers in [0, 1), a row each, even over every run of rows that are next to each other in an order."""
    u = np.empty(len(order))
    u[order] = _golden(len(order), rng)
    return u


def _golden(count: int, rng: np.random.Generator) -> Floats:
    u = np.arange(count) * GOLDEN + rng.random()
    return np.asarray(u - np.floor(u))


def mixed_by(key: Ints, rng: np.random.Generator) -> Ints:
    """The rows in the order of a key (0 or more), in random order where it is the same.

    >>> mixed_by(np.array([70_000, 3, 70_001]), np.random.default_rng(0)).tolist()
    [1, 0, 2]
    """
    return sorted_by(key, np.argsort(rng.integers(2**16, size=len(key), dtype=np.uint16), kind="stable"))


def sorted_by(key: Ints, order: Ints) -> Ints:
    """The rows in the order of a key (0 or more), in the order that they had where it is the same.

    Sorted 16 bits at a time, which numpy does by counting.

    >>> sorted_by(np.array([70_000, 3, 70_000]), np.array([2, 1, 0])).tolist()
    [1, 2, 0]
    """
    most, shift = int(key.max(initial=0)), 0
    while most >> shift:
        digit = (key >> shift & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
        shift += 16
    return order


def chosen(p: Weights, u: Floats, whole: Weights | None = None) -> Ints:
    """The cell of each row, by its weights (rows x cells) and a number in [0, 1); never one of weight 0. The
    sums of rows may be given.

    >>> chosen(np.array([[0.0, 1.0], [0.5, 0.5]]), np.array([0.0, 0.7])).tolist()
    [1, 1]
    """
    rows, cells = p.shape
    found = np.empty(rows, np.int64)
    wide = cells if cells <= FEW else -(-cells // RUN) * RUN
    size = max(64, NEAR // wide)
    for at in range(0, rows, size):
        some = slice(at, min(rows, at + size))
        part = p[some]
        aim = (u[some] * (np.einsum("ij->i", part) if whole is None else whole[some])).astype(p.dtype)
        if cells <= FEW:
            found[some] = _reached(part, aim)
            continue
        if cells < wide:
            part = np.zeros((len(part), wide), p.dtype)
            part[:, :cells] = p[some]
        runs = np.einsum("ijk->ij", part.reshape(len(part), -1, RUN))
        run = np.arange(len(part)) * runs.shape[1] + (first := _reached(runs, aim))
        before = (np.cumsum(runs, axis=1) - runs).take(run)
        inside = part.reshape(-1, RUN).take(run, axis=0)
        found[some] = first * RUN + _reached(inside, np.maximum(aim - before, 0))
    return found


def _reached(p: Weights, aim: Weights) -> Ints:
    """The first cell at which the sum of a row is above the aim, else the last that has any."""
    last = p.shape[1] - 1
    cell, left, above = np.zeros(len(aim), np.int16), aim.copy(), np.empty(len(aim), bool)
    for part in p.T[:-1]:
        left -= part
        cell += np.greater_equal(left, 0, out=above)
    none = np.flatnonzero((cell == last) & (p[:, -1] <= 0))
    if len(none):
        cell[none] = last - np.argmax(p[none, ::-1] > 0, axis=1)
    return cell.astype(np.int64)


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
    found = order[starts[v]]
    some = np.flatnonzero(np.diff(starts)[v] > 1)  # the others have no choice
    if not len(some):
        return np.asarray(found)
    index, v = index[some], v[some]
    sums = np.concatenate([[0.0], np.cumsum(weights[:, order] + 1e-9)])
    low, high = sums[index * wide + starts[v]], sums[index * wide + starts[v + 1]]
    order_of = mixed_by(index * cells + v, rng)  # rows of the same cell look at the same numbers
    low, high = low[order_of], high[order_of]
    at = np.empty(len(v), np.int64)
    at[order_of] = np.searchsorted(sums, low + _golden(len(v), rng) * (high - low), side="right") - 1
    found[some] = order[np.clip(at - index * wide, starts[v], starts[v + 1] - 1)]
    return np.asarray(found)


def joined(table: Floats, group: Ints, cells: int, axis: int = -1) -> Floats:
    """One axis of a table added up in groups.

    >>> joined(np.array([[1.0, 2.0, 4.0]]), np.array([1, 0, 1]), 2).tolist()
    [[2.0, 5.0]]
    """
    moved = np.moveaxis(table, axis, 0)
    found = np.zeros((cells, *moved.shape[1:]))
    np.add.at(found, group, moved)
    return np.ascontiguousarray(np.moveaxis(found, 0, axis))
