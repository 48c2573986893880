"""One column's cells exchanged between rows until its tables with the other columns are near given ones.

Rows are drawn one by one from their distributions, so tables come out with the noise of drawing. Two rows
exchange their cells where that brings all tables nearer to what they should be, in squares. Counts of the
column itself never change; a cell that must stay empty is never filled. Differences are whole numbers, so a
decision is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

UNIT = 64  # a row; tables are compared to 1/64 of one
NEVER = 2**24  # what a row in an impossible cell costs
PARTS = 6  # the pairs of rows that are tried between two updates of the tables


@dataclass(frozen=True, eq=False)
class Aim:
    """A table: each row's cell among its other columns, the table's cell of each v, the counts wanted, and
    where none may be."""

    index: Ints
    group: Ints
    counts: Floats
    never: NDArray[np.bool_] | None = None


def balanced(v: Ints, within: Ints, aims: Sequence[Aim], sweeps: int, rng: np.random.Generator) -> Ints:
    """The cells v of all rows after so many tries of each; only rows of the same `within` exchange."""
    rows = len(v)
    if rows < 2 or not aims or not sweeps:
        return v
    v = v.copy()
    sizes = [aim.counts.size for aim in aims]
    start = np.cumsum([0, *sizes[:-1]])
    place = np.stack([at + aim.index * aim.counts.shape[1] for at, aim in zip(start, aims, strict=True)])
    place = place.astype(np.int32)
    group = np.stack([aim.group for aim in aims]).astype(np.int32)
    excess = np.concatenate([_excess(v, aim) for aim in aims])
    wide = len(excess)
    for _ in range(sweeps):
        a, b = _partners(within, rng)
        size = -(-len(a) // PARTS)
        for at in range(0, len(a), max(1, size)):
            _try(excess, v, place, group, wide, a[at : at + size], b[at : at + size])
    return v


def _partners(within: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Random pairs of rows of the same class, in random order."""
    mixed = rng.permutation(len(within))
    mixed = mixed[np.argsort(within[mixed], kind="stable")]
    a, b = mixed[: len(mixed) // 2 * 2 : 2], mixed[1::2]
    same = np.flatnonzero(within[a] == within[b])
    same = same[rng.permutation(len(same))]
    return a[same], b[same]


def _excess(v: Ints, aim: Aim) -> NDArray[np.int64]:
    own = aim.counts.shape[1]
    counts = np.bincount(aim.index * own + aim.group[v], minlength=aim.counts.size)
    scale = len(v) / max(float(aim.counts.sum()), 1e-9)
    excess = UNIT * counts - np.rint(UNIT * scale * aim.counts.ravel()).astype(np.int64)
    if aim.never is not None:
        excess += NEVER * aim.never.ravel()
    return np.asarray(excess, np.int64)


def _try(
    excess: NDArray[np.int64],
    v: Ints,
    place: NDArray[np.int32],
    group: NDArray[np.int32],
    wide: int,
    a: Ints,
    b: Ints,
) -> None:
    """Rows a[i] and b[i] exchange their cells where that is better; tables follow."""
    differ = np.flatnonzero(v[a] != v[b])
    a, b = a[differ], b[differ]
    ga, gb = group[:, v[a]], group[:, v[b]]
    pa, pb = place[:, a], place[:, b]
    aa, ab, ba, bb = pa + ga, pa + gb, pb + ga, pb + gb
    gain = excess.take(ab)
    gain -= excess.take(aa)
    gain += excess.take(ba)
    gain -= excess.take(bb)
    # The squares change by 2 (gain) and, in each of the four cells of a table, by one row's own square.
    others = ((pa != pb) & (ga != gb)).sum(axis=0)
    better = np.flatnonzero(gain.sum(axis=0) + 2 * UNIT * others < 0)
    # Each by itself is better; all at once may go too far. As many as lead to the least squares.
    while len(better):
        change = _change(aa, ab, ba, bb, better, wide)
        downhill, square = -int((excess * change).sum()), UNIT * int((change * change).sum())
        if downhill >= square or len(better) == 1:
            excess += UNIT * change
            keep = v[a[better]].copy()
            v[a[better]], v[b[better]] = v[b[better]], keep
            return
        better = better[: max(1, min(len(better) - 1, len(better) * max(downhill, 0) // square))]


def _change(
    aa: NDArray[np.int32],
    ab: NDArray[np.int32],
    ba: NDArray[np.int32],
    bb: NDArray[np.int32],
    rows: Ints,
    wide: int,
) -> NDArray[np.int64]:
    there = np.bincount(ab[:, rows].ravel(), minlength=wide) + np.bincount(
        ba[:, rows].ravel(), minlength=wide
    )
    gone = np.bincount(aa[:, rows].ravel(), minlength=wide) + np.bincount(bb[:, rows].ravel(), minlength=wide)
    return np.asarray(there - gone, np.int64)
