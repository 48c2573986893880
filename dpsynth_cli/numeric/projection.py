"""Between a subspace and the box: what a mean leaves room for, how far axes reach, and back to the grid.

Coordinates y lie in [-1/2, 1/2]. Numbers that decide codes are rounded to multiples of a power of two, so
that sums of their products are exact in float64 in whatever order they are added: a model drawn on another
machine, with another number of threads, gives the same codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

BITS = 18  # of a coordinate that is rounded: finer than any private number here
FINE = 2**16  # a scale with more values than this needs no care in rounding


def rounded(values: Floats) -> Floats:
    """The nearest multiples of 2^-18.

    >>> rounded(np.array([0.1])).tolist()
    [0.09999847412109375]
    """
    return np.asarray(np.rint(values * 2.0**BITS) * 2.0**-BITS)


def finely(values: Floats) -> Floats:
    """The nearest multiples of 2^-28, whose products with rounded numbers still add up exactly."""
    return np.asarray(np.rint(values * 2.0**28) * 2.0**-28)


def room(mean: Floats, low: Floats | float = -0.5) -> Floats:
    """The largest variance that a coordinate of this mean can have: that of a coin between low and 1/2.

    >>> room(np.array([0.0, 0.5, -0.9])).tolist()
    [0.25, 0.0, 0.0]
    """
    return np.asarray(np.maximum((mean - low) * (0.5 - mean), 0.0))


def reach(vectors: Floats) -> Floats:
    """How far <v, y> can be from 0 in the box: public, given v.

    >>> reach(np.array([[0.6], [0.8]])).tolist()
    [0.7]
    """
    return np.asarray(np.abs(vectors).sum(axis=0) / 2)


def halvings(widths: Floats, depth: int) -> tuple[int, ...]:
    """Which side of a box to halve at each level: always the longest, so that cells become cubes.

    >>> halvings(np.array([4.0, 1.0]), 4)
    (0, 0, 0, 1)
    """
    left, order = widths.copy(), []
    for _ in range(depth):
        order.append(int(np.argmax(left)))
        left[order[-1]] /= 2
    return tuple(order)


def cubes(widths: Floats, cells: float) -> tuple[int, ...]:
    """How often to cut each side of a box so that about so many cells come out, nearly cubes.

    >>> cubes(np.array([4.0, 1.0]), 16)
    (8, 2)
    """
    low, high = float(widths.max()) / max(cells, 1.0), float(widths.max())
    for _ in range(50):
        side = (low * high) ** 0.5
        low, high = (side, high) if np.prod(np.maximum(1, np.rint(widths / side))) > cells else (low, side)
    return tuple(int(k) for k in np.maximum(1, np.rint(widths / high)))


def normals(shape: tuple[int, int], rng: np.random.Generator, sd: Floats | None = None) -> Floats:
    """Standard normal numbers, rounded; with `sd`, each row times its own."""
    whole = rng.standard_normal(shape, dtype=np.float32)
    whole *= np.float32(2**BITS)
    np.rint(whole, out=whole)
    scale = np.ones(shape[0]) if sd is None else sd
    return np.asarray(whole * (scale * 2.0**-BITS)[:, None])


def to_codes(y: Floats, sizes: Sequence[int], rng: np.random.Generator) -> list[Ints]:
    """Rows (one column each) to codes 0 .. size-1: metric projection on the box, then on the grid.

    A point between two codes of a coarse grid goes to one of them at random, so that means stay. The
    input is overwritten.
    """
    np.clip(y, -0.5, 0.5, out=y)
    y += 0.5
    codes = []
    for x, size in zip(y, sizes, strict=True):
        x *= size - 1
        x += 0.5 if size > FINE else rng.random(len(x))
        codes.append(x.astype(np.int64))
    return codes


def balanced(y: Floats, shares: Floats, rounds: int = 30) -> Floats:
    """What to multiply the coordinates with, so that `chosen` takes each as often as its share says.

    >>> y = np.array([[0.5, 0.5, -0.2, 0.3], [0.1, 0.1, 0.6, 0.3]])
    >>> w = balanced(y, np.array([0.5, 0.5]))
    >>> p = w[:, None] * np.maximum(y, 0)
    >>> (p / p.sum(axis=0)).mean(axis=1).round(3).tolist()
    [0.5, 0.5]
    """
    due = np.maximum(shares, 0.0)
    large, weights = np.maximum(y, 0.0), np.ones(len(y))
    for _ in range(rounds if due.any() else 0):
        each = weights[:, None] * large + 1e-9
        found = (each / each.sum(axis=0)).mean(axis=1)
        weights = np.clip(weights * (due / due.sum()) / found, 2.0**-10, 2.0**10)
    return rounded(weights)


def chosen(y: Floats, rng: np.random.Generator) -> Ints:
    """One code for each row (one column each), by its coordinates: as likely as they are large.

    >>> chosen(np.array([[0.5, -0.1, 0.0], [0.0, 0.3, 0.0]]), np.random.default_rng(0))[:2].tolist()
    [0, 1]
    """
    up_to = np.cumsum(np.maximum(y, 0.0) + 1e-9, axis=0)
    return np.asarray((up_to[:-1] <= rng.random(y.shape[1]) * up_to[-1]).sum(axis=0))
