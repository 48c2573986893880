"""Moves on a lattice whose paths are nearly as long as straight lines: the Euclidean distance as a graph.

There are as many moves as it takes: in the plane, with equal steps, those of a king and a knight. A move
costs its Euclidean length, rounded up, so no path is shorter than a straight line; by how much it is longer
at most, `longest` says for the very lattice: with equal steps of 12 units 1.031 times in two dimensions,
1.061 in three and 1.083 in four.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

UNITS = 12  # of one step: rounding up makes none of these moves longer by more than 2.1 percent
MOST_AXES = 4  # with cells in a row: beyond, moves are too many
TOLERANCE = (1 / 16, 1 / 10)  # of a path, beyond a straight line: in up to three dimensions, and in four
CANDIDATES = 4000  # for moves


def euclidean(squares: NDArray[np.int64]) -> NDArray[np.int64]:
    """Square roots, rounded up, exactly.

    >>> euclidean(np.array([0, 1, 2, 4, 5])).tolist()
    [0, 1, 2, 2, 3]
    """
    root = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    root += (root + 1) ** 2 <= squares
    root -= root**2 > squares
    return root + (root**2 < squares)


def star(cells: Sequence[int], steps: Sequence[int]) -> list[tuple[tuple[int, ...], int]]:
    """The moves upwards, with what they cost, for axes of so many cells that are so many units apart.

    From short to long: a move is one of them if a path of those that there are already is longer by more than
    the tolerance. With equal steps no candidate reaches further than four cells.

    >>> star([9, 9], [12, 12])
    [((0, 1), 12), ((1, 0), 12), ((1, 1), 17), ((1, 2), 27), ((2, 1), 27)]
    """
    rowed = [step for count, step in zip(cells, steps, strict=True) if count > 1]
    far = 4 * max(rowed, default=1)
    box = tuple(min(count, far // step + 1) for count, step in zip(cells, steps, strict=True))
    while math.prod(box) > CANDIDATES:  # the longest sides get shorter
        box = tuple(min(side, max(box) - 1) for side in box)
    return list(_star(box, tuple(steps), TOLERANCE[0] if len(rowed) < MOST_AXES else TOLERANCE[1]))


@lru_cache(maxsize=64)
def _star(
    box: tuple[int, ...], steps: tuple[int, ...], tolerance: float
) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Among the moves inside a box."""
    place = np.indices(box).reshape(len(box), -1)
    squares = np.square(place * np.array(steps, np.int64).reshape(-1, 1)).sum(axis=0)
    lengths, costs = np.sqrt(squares), euclidean(squares)
    path = np.zeros(place.shape[1])  # from 0, along the moves so far
    found = np.zeros(0, np.int64)
    for k in np.argsort(squares, kind="stable")[1:]:
        below = found[(place[:, found] <= place[:, [k]]).all(axis=0)]  # a move's number is what it adds
        path[k] = np.min(path[k - below] + costs[below], initial=math.inf)
        if path[k] > (1 + tolerance) * lengths[k]:
            path[k], found = costs[k], np.append(found, k)
    return tuple((tuple(place[:, k].tolist()), int(costs[k])) for k in found)


def longest(cells: Sequence[int], steps: Sequence[int], apart: int, side: int) -> float:
    """How many times longer than a straight line a shortest path may be, between any two cells.

    `apart` axes have cells apart, from and to which it is a side more: that is added to a path, while a
    straight line is the root of the sum of squares.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    shape = tuple(cells)
    place = np.indices(shape).reshape(len(shape), -1)
    squares = sum((part * step) ** 2 for part, step in zip(place, steps, strict=True))
    number = np.arange(math.prod(shape)).reshape(shape)
    tails, heads, costs = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for move, cost in star(cells, steps):  # upwards alone: no path is longer for the others
        start = tuple(slice(0, count - part) for part, count in zip(move, shape, strict=True))
        end = tuple(slice(part, None) for part in move)
        tails.append(number[start].ravel())
        heads.append(number[end].ravel())
        costs.append(np.full(tails[-1].size, float(cost)))
    ways = csr_array(
        (np.concatenate(costs), (np.concatenate(tails), np.concatenate(heads))), shape=(number.size,) * 2
    )
    path = dijkstra(ways, indices=0)
    most = 1.0
    for count in range(apart + 1):
        straight = np.sqrt(squares + count * float(side) ** 2)
        most = max(
            most, float(((path + count * side)[straight > 0] / straight[straight > 0]).max(initial=1.0))
        )
    return most
