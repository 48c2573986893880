"""Rows that exchange cells until their pair tables are near given ones.

Two rows exchange their cells of one attribute if that brings the tables of this attribute with all others
nearer to their targets, in squares. One-way counts never change. Differences are held in whole numbers, so a
decision is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[int, int]

UNIT = 64  # a row; tables are compared to 1/64 of one
NEVER = 2**26  # what a row in an impossible cell costs
PARTS = 6  # the pairs of rows that are tried between two updates of the tables


def exchanged(
    cells: Ints,
    sizes: Sequence[int],
    targets: Mapping[Pair, Floats],
    impossible: Mapping[Pair, NDArray[np.bool_]],
    sweeps: int,
    rng: np.random.Generator,
) -> Ints:
    """The rows (at most 2^16, a cell of each attribute) after so many tries of every row and attribute."""
    rows, d = cells.shape
    half = rows // 2
    if not half or d < 2 or not sweeps:
        return cells
    first = np.cumsum([0, *sizes])
    wide = int(first[-1])
    y = (cells + first[:-1]).astype(np.min_scalar_type(wide))
    # All tables in one symmetric matrix: what there is minus what there should be.
    excess = np.zeros((wide, wide), np.int32)
    for i, j in combinations(range(d), 2):
        table = _excess(cells[:, i] * sizes[j] + cells[:, j], targets[i, j])
        if (i, j) in impossible:
            table += NEVER * impossible[i, j]
        excess[first[i] : first[i + 1], first[j] : first[j + 1]] = table
        excess[first[j] : first[j + 1], first[i] : first[i + 1]] = table.T
    size = -(-half // PARTS)
    for _ in range(sweeps):
        for j in range(d):
            mixed = rng.permutation(rows)
            for at in range(0, half, size):
                end = min(at + size, half)
                _try(
                    excess, y, j, slice(first[j], first[j + 1]), mixed[at:end], mixed[half + at : half + end]
                )
    return np.asarray(y - first[:-1], np.int64)


def _excess(number: Ints, target: Floats) -> NDArray[np.int32]:
    counts = np.bincount(number, minlength=target.size).reshape(target.shape)
    scale = len(number) / max(float(target.sum()), 1e-9)
    return np.asarray(UNIT * counts - np.rint(UNIT * scale * target), np.int32)


def _try(excess: NDArray[np.int32], y: NDArray[Any], j: int, own: slice, a: Ints, b: Ints) -> None:
    """Rows a[i] and b[i] exchange their cells of attribute j where that is better; tables follow."""
    differ = np.flatnonzero(y[a, j] != y[b, j])
    a, b = a[differ], b[differ]
    ya, yb = (y.take(rows, axis=0).T.astype(np.int64, order="C") for rows in (a, b))
    wide = len(excess)
    table = excess[own].ravel()  # of attribute j with all: small enough to stay near the processor
    u, v = (ya[j] - own.start) * wide, (yb[j] - own.start) * wide
    gain = table.take(ya + v)
    gain -= table.take(ya + u)
    gain += table.take(yb + u)
    gain -= table.take(yb + v)
    # The squares change by 2 (gain) and, in each of the four cells of a table, by one row's own square.
    others = (ya != yb).sum(axis=0) - 1
    better = np.flatnonzero(gain.sum(axis=0) + 2 * UNIT * others < 0)
    # Each by itself is better; all at once may go too far. As many as lead to the least squares.
    before = excess[own].astype(np.int64)
    change = _change(ya[:, better], yb[:, better], j, own, wide)
    downhill, square = -int((before * change).sum()), UNIT * int((change * change).sum())
    if downhill < square:
        better = better[: max(1, len(better) * max(downhill, 0) // square)]
        change = _change(ya[:, better], yb[:, better], j, own, wide)
    excess[own] = before + UNIT * change
    excess[:, own] = excess[own].T
    y[a[better], j], y[b[better], j] = yb[j, better], ya[j, better]


def _change(ya: Ints, yb: Ints, j: int, own: slice, wide: int) -> Ints:
    """What the exchanges of these rows add to the tables of attribute j with all others."""
    u, v = (ya[j] - own.start) * wide, (yb[j] - own.start) * wide
    size = (own.stop - own.start) * wide
    there, gone = (
        np.bincount((ya + one).ravel(), minlength=size) + np.bincount((yb + other).ravel(), minlength=size)
        for one, other in ((v, u), (u, v))
    )
    change = (there - gone).reshape(-1, wide)
    change[:, own] = 0
    return np.asarray(change)
