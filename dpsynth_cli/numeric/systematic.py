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
RUN = 8  # cells
NEAR = 2**16  # numbers of a batch of rows: they stay near the processor


def even(keys: Sequence[Ints], rng: np.random.Generator) -> Floats:
    """Numbers in [0, 1), even over the rows of each value of the first key, and of the next inside it."""
    key = keys[0]
    for other in keys[1:]:
        key = key * (int(other.max(initial=0)) + 1) + other
    u = np.empty(len(key))
    u[mixed_by(key, rng)] = (np.arange(len(key)) * GOLDEN + rng.random()) % 1.0
    return u


def mixed_by(key: Ints, rng: np.random.Generator) -> Ints:
    """The rows in the order of a key (0 or more), in random order where it is the same.

    Sorted 16 bits at a time, which numpy does by counting.

    >>> mixed_by(np.array([70_000, 3, 70_001]), np.random.default_rng(0)).tolist()
    [1, 0, 2]
    """
    order, most, shift = rng.permutation(len(key)), int(key.max(initial=0)), 0
    while not shift or most >> shift:
        digit = (key >> shift & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
        shift += 16
    return order


def chosen(p: Floats, u: Floats) -> Ints:
    """The cell of each row, by its distribution (rows x cells) and a number in [0, 1); never one of mass 0.

    >>> chosen(np.array([[0.0, 1.0], [0.5, 0.5]]), np.array([0.0, 0.7])).tolist()
    [1, 1]
    """
    rows, cells = p.shape
    runs = -(-cells // RUN)
    found = np.empty(rows, np.int64)
    size = max(64, NEAR // (runs * RUN))
    for at in range(0, rows, size):
        some = slice(at, min(rows, at + size))
        part = p[some]
        if cells < runs * RUN:
            part = np.zeros((len(part), runs * RUN))
            part[:, :cells] = p[some]
        found[some] = _chosen(part.reshape(len(part), runs, RUN), u[some])
    return found


def _chosen(p: Floats, u: Floats) -> Ints:
    """Of rows x runs x cells of a run: first the run, then the cell in it."""
    run, before = (
        _reached(np.einsum("ijk->ij", p), u) if p.shape[1] > 1 else (np.zeros(len(u), np.int64), 0.0)
    )
    inside = p.reshape(-1, RUN).take(np.arange(len(u)) * p.shape[1] + run, axis=0)
    cell, _ = _reached(inside, u - before)
    return run * RUN + cell


def _reached(p: Floats, u: Floats) -> tuple[Ints, Floats]:
    """The first cell at which the sum of a row is above u, else the last that has any; and the sum before."""
    cell = np.zeros(len(u), np.int64)
    whole, before = np.zeros(len(u)), np.zeros(len(u))
    for part in np.ascontiguousarray(p.T):
        whole += part
        below = whole <= u
        cell += below
        np.copyto(before, whole, where=below)
    over = np.flatnonzero(cell == p.shape[1])
    if len(over):
        cell[over] = p.shape[1] - 1 - np.argmax(p[over, ::-1] > 0, axis=1)
        before[over] -= p[over, cell[over]]
    return cell, before


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
    u = even([index * cells + v], rng)
    at = np.searchsorted(sums, low + u * (high - low), side="right") - 1
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
