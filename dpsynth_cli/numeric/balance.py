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

from dpsynth_cli.numeric.systematic import mixed_by

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

UNIT = 64  # a row; tables are compared to 1/64 of one
NEVER = 2**24  # what a row in an impossible cell costs
OWED = 4.0  # standard deviations of a cell's count, at most, that are owed from rows to rows
PARTS = 6  # the pairs of rows that are tried between two updates of the tables


@dataclass(frozen=True, eq=False)
class Aim:
    """A table: each row's cell among its other columns, the table's cell of each v, the counts wanted, and
    where none may be. `owed` has what earlier rows left above the counts wanted of them (in 1/64 of a row, by
    cell), and is brought up to date."""

    index: Ints
    group: Ints
    counts: Floats
    never: NDArray[np.bool_] | None = None
    owed: Ints | None = None


def balanced(v: Ints, within: Ints, aims: Sequence[Aim], sweeps: int, rng: np.random.Generator) -> Ints:
    """The cells v of all rows after so many tries of each; only rows of the same `within` exchange."""
    rows = len(v)
    if rows < 2 or not aims or not sweeps:
        return v
    v = v.copy()
    start = np.cumsum([0, *[aim.counts.size for aim in aims]])
    place = np.empty((rows, len(aims)), np.int32)
    for at, aim in enumerate(aims):
        place[:, at] = start[at] + aim.index * aim.counts.shape[1]
    group = np.stack([aim.group for aim in aims], axis=1).astype(np.int32)
    excess = np.concatenate([_excess(v, aim) for aim in aims])
    for _ in range(sweeps):
        mixed = mixed_by(within, rng)
        a, b = mixed[: rows // 2 * 2 : 2], mixed[1::2]
        pairs = np.flatnonzero((within[a] == within[b]) & (v[a] != v[b]))
        for part in range(PARTS):
            some = pairs[part::PARTS]
            _try(excess, v, place, group, a[some], b[some])
    for at, aim in enumerate(aims):
        if aim.owed is not None:
            aim.owed[:] = _kept(excess[start[at] : start[at + 1]], aim, rows)
    return v


def _excess(v: Ints, aim: Aim) -> NDArray[np.int32]:
    own = aim.counts.shape[1]
    counts = np.bincount(aim.index * own + aim.group[v], minlength=aim.counts.size)
    excess = UNIT * counts - _due(aim, len(v))
    if aim.never is not None:
        excess += NEVER * aim.never.ravel()
    if aim.owed is not None:
        excess += aim.owed
    return excess.astype(np.int32)


def _due(aim: Aim, rows: int) -> Ints:
    scale = rows / max(float(aim.counts.sum()), 1e-9)
    return np.rint(UNIT * scale * aim.counts.ravel()).astype(np.int64)


def _kept(excess: NDArray[np.int32], aim: Aim, rows: int) -> Ints:
    """What is owed to the next rows: no more than chance could have made, for what tables that contradict
    each other leave would only grow."""
    left = excess.astype(np.int64)
    if aim.never is not None:
        left -= NEVER * aim.never.ravel()
    most = np.rint(OWED * np.sqrt(UNIT * _due(aim, rows))).astype(np.int64)
    return np.clip(left, -most, most)


def _try(
    excess: NDArray[np.int32],
    v: Ints,
    place: NDArray[np.int32],
    group: NDArray[np.int32],
    a: Ints,
    b: Ints,
) -> None:
    """Rows a[i] and b[i] exchange their cells where that is better; tables follow."""
    ga, gb = group.take(v[a], axis=0), group.take(v[b], axis=0)
    pa, pb = place.take(a, axis=0), place.take(b, axis=0)
    aa, ab, ba, bb = pa + ga, pa + gb, pb + ga, pb + gb
    gain = excess.take(ab)
    gain -= excess.take(aa)
    gain += excess.take(ba)
    gain -= excess.take(bb)
    # The squares change by 2 (gain) and, in each of the four cells of a table, by one row's own square.
    gain += 2 * UNIT * ((pa != pb) & (ga != gb))
    gains = np.einsum("ij->i", gain, dtype=np.int64)
    better = np.flatnonzero(gains < 0)
    # Each by itself is better; all at once may go too far. About as many as lead to the least squares.
    while len(better):
        change = _change(aa, ab, ba, bb, better, len(excess))
        downhill, square = -int((excess * change).sum()), UNIT * int((change * change).sum())
        if 4 * downhill >= 3 * square or len(better) == 1:
            excess += (UNIT * change).astype(np.int32)
            keep = v[a[better]].copy()
            v[a[better]], v[b[better]] = v[b[better]], keep
            return
        fewer = max(1, len(better) * max(downhill, 0) // square)
        better = better[np.arange(fewer) * len(better) // fewer]


def _change(
    aa: NDArray[np.int32],
    ab: NDArray[np.int32],
    ba: NDArray[np.int32],
    bb: NDArray[np.int32],
    pairs: Ints,
    cells: int,
) -> Ints:
    """What exchanges of these pairs add to each cell of the tables."""
    there, gone = (
        np.bincount(np.concatenate([part.take(pairs, axis=0) for part in parts]).ravel(), minlength=cells)
        for parts in ((ab, ba), (aa, bb))
    )
    return np.asarray(there - gone)
