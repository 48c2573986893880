"""Rows moved between the cells of a column until its tables are as near as whole rows can be.

Rows that are drawn one by one have the noise of drawing in every table. Where a cell is due a row or less,
that is as much as it is due, and no change of the distributions takes it away: only a look at what is there
does. Here each row in turn goes to the cell that brings all tables nearest to what they are due, in squares.
Differences are whole numbers, so a decision is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.conditional import Target
from dpsynth_cli.numeric.systematic import Ints

UNIT = 64  # a row; tables are compared to 1/64 of one
SWEEPS = 3  # tries of every row
PARTS, LEAST = 16, 8  # parts of the rows that are tried at once, if each has so many
NEVER = 2**40  # what a row costs where none may be


def settled(v: Ints, targets: Sequence[Target], allowed: NDArray[np.bool_], rng: np.random.Generator) -> Ints:
    """The cells of all rows after some tries of each; a row goes only where it is `allowed` (rows x cells).

    >>> even = Target(np.zeros(4, np.int64), np.arange(2), np.array([[1.0, 1.0]]))
    >>> moved = settled(np.zeros(4, np.int64), [even], np.ones((4, 2), bool), np.random.default_rng(0))
    >>> sorted(moved.tolist())
    [0, 0, 1, 1]
    """
    rows, cells = allowed.shape
    v = v.copy()
    start = np.cumsum([0, *[target.counts.size for target in targets]])
    place = np.stack(
        [at + target.index * target.counts.shape[1] for at, target in zip(start, targets, strict=False)],
        axis=1,
    )
    group = np.stack([target.group for target in targets], axis=1)
    excess = np.concatenate([_excess(v, target) for target in targets])
    same = np.zeros((cells, cells), np.int64)  # tables in which two cells are one
    for own in group.T:
        same += own[:, None] == own
    parts = max(1, min(PARTS, rows // LEAST))
    for _ in range(SWEEPS):
        mixed, before = rng.permutation(rows), v.copy()
        for part in range(parts):
            some = mixed[part::parts]
            gain = np.where(allowed[some], 2 * UNIT * (len(targets) - same[v[some]]), NEVER)
            for own, at in zip(group.T, place[some].T, strict=True):
                gain += 2 * (excess.take(at[:, None] + own) - excess.take(at + own[v[some]])[:, None])
            best = gain.argmin(axis=1)
            gains = gain[np.arange(len(some)), best]
            better = np.flatnonzero(gains < 0)
            better = better[np.argsort(gains[better], kind="stable")]
            moved = some[better], best[better]
            _move(excess, v, place, group, *moved)
        if np.array_equal(before, v):
            break
    return v


def _excess(v: Ints, target: Target) -> Ints:
    """What rows of these cells have above what is due, in 1/64 of a row; nothing where nothing is known."""
    given, own = target.given(), target.counts.shape[1]
    counts = np.bincount(target.index * own + target.group[v], minlength=given.size).reshape(given.shape)
    known = target.counts.sum(axis=1, keepdims=True) > 0
    return np.where(known, UNIT * counts - np.rint(UNIT * given).astype(np.int64), 0).ravel()


def _move(excess: Ints, v: Ints, place: Ints, group: Ints, rows: Ints, to: Ints) -> None:
    """Rows go to their new cells, and the excess follows. Each by itself makes it better; all at once may go
    too far, so the best go first, about as many as lead to the least squares."""
    while len(rows):
        there, gone = place[rows] + group[to], place[rows] + group[v[rows]]
        cells, number = np.unique(np.concatenate([there, gone]), return_inverse=True)
        sign = np.repeat([1, -1], len(rows))[:, None] + np.zeros(place.shape[1], np.int64)
        change = np.rint(np.bincount(number.ravel(), sign.ravel())).astype(np.int64)
        downhill, square = -int((excess[cells] * change).sum()), UNIT * int((change * change).sum())
        if 4 * downhill >= 3 * square or len(rows) == 1:
            excess[cells] += UNIT * change
            v[rows] = to
            return
        fewer = max(1, min(len(rows) - 1, len(rows) * max(downhill, 0) // square))
        rows, to = rows[:fewer], to[:fewer]
