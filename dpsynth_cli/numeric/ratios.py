"""Noisy tables drawn towards what is expected of them, as far as their noise says (empirical Bayes).

A cell where e rows are expected holds r e of them. The ratios r of all cells of a table come from one
mixture of a few stories, which the noisy counts themselves teach by EM: if they are like what is expected
they stay there, if most cells are empty they learn that, and a cell that stands out keeps its count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import exp, log

Floats: TypeAlias = NDArray[np.float64]

# The stories a cell can have: about r e rows, for normal widths of r; at last about `most` rows.
RATIOS = np.array([0.0, 0.1, 0.3, 0.55, 0.8, 1.0, 1.25, 1.7, 2.5, 4.0, 7.0, 14.0, 40.0])
WIDTHS = np.array([0.0, 0.07, 0.1, 0.12, 0.1, 0.05, 0.15, 0.3, 0.5, 1.0, 2.0, 5.0, 20.0])
TOP = 0.1  # the width of the last one, in `most`
PRIOR = np.append(np.where(RATIOS == 1, 5.0, 0.2), 0.2)  # before any cell was seen, in cells
ROUNDS = 8  # of EM
NEIGHBOURS = (1, 2, 4)  # on both sides of a cell
QUIET = 2.0  # standard deviations of noise: an empty neighbourhood has less,
MISSED = 4.0  # and was expected to have more
MAIN = 5.0  # standard deviations of noise: a main cell has more
CERTAIN = 3.0  # standard deviations of a sum of noise, or of its squares
HIDDEN = 0.05  # of all rows
DOUBT = 0.03  # a cell of a mostly empty table is empty unless that is less likely than this


def shrunk(noisy: Floats, variance: float, expected: Floats, most: Floats, zeros: bool = False) -> Floats:
    """The posterior mean of each cell; no cell is above `most`, and 0 is 0 where that is. With `zeros` a cell
    that is more likely empty than not is empty; in a table of mostly empty cells, one that may well be.

    `most` has a story of its own: all rows of the smaller of two categories. A table that is no further from
    what is expected than its noise alone would be stays as expected.

    >>> noisy, expected = np.array([12.0, 190.0, 7.0]), np.array([10.0, 10.0, 9.0])
    >>> shrunk(noisy, 25.0, expected, np.full(3, 200.0)).round().tolist()
    [10.0, 191.0, 9.0]
    """
    away = noisy - expected
    energy = variance * (len(noisy) + np.sqrt(2.0 * len(noisy)))  # of noise alone, and a standard deviation
    if float((away * away).sum()) < energy:
        return np.minimum(expected, most)
    centre = np.vstack([np.minimum(RATIOS[:, None] * expected, most), most])
    width = np.vstack([WIDTHS[:, None] * expected, TOP * most]) ** 2
    spread = width + variance
    likely = -0.5 * ((noisy - centre) ** 2 / spread + log(spread))
    likely = exp(likely - likely.max(axis=0))
    weights = PRIOR / PRIOR.sum()
    for _ in range(ROUNDS):
        told = weights[:, None] * likely
        weights = PRIOR + (told / told.sum(axis=0)).sum(axis=1)
        weights = np.round(weights / weights.sum(), 9)
    told = weights[:, None] * likely
    means = np.clip(centre + (noisy - centre) * (width / spread), 0.0, most)
    found = (told * means).sum(axis=0) / told.sum(axis=0)
    if zeros:
        doubt = 0.5 if weights[0] < 0.5 else DOUBT
        found[told[0] > doubt * told.sum(axis=0)] = 0.0
    return np.asarray(found)


def shrunk_by_class(
    noisy: Sequence[Floats],
    variance: float,
    expected: Sequence[Floats],
    most: Sequence[Floats],
    zeros: bool = False,
) -> list[Floats]:
    """The same for the tables of several classes: all together first, and the classes towards that.

    What all classes together show beyond what is expected is expected of each class then.
    """
    shape = noisy[0].shape
    expected = [table.ravel() for table in expected]
    if len(noisy) > 1:
        before = np.sum(expected, axis=0)
        whole, most_of_all = np.sum(noisy, axis=0).ravel(), np.sum(most, axis=0).ravel()
        after = shrunk(whole, variance * len(noisy), before, most_of_all, zeros)
        ratio = np.divide(after, before, out=np.ones_like(after), where=before > 0)
        expected = [table * ratio for table in expected]
    alone = shrunk(
        np.concatenate([table.ravel() for table in noisy]),
        variance,
        np.concatenate(expected),
        np.concatenate([table.ravel() for table in most]),
        zeros,
    )
    return [part.reshape(shape) for part in np.split(alone, len(noisy))]


def interaction(away: Floats, variance: float) -> tuple[Floats, float]:
    """What differences of tables, a class each, say beyond tables of fewer of their columns, and the variance
    of the noise that is left in a cell, on average. Of sums along columns so much is kept as is no noise.

    >>> interaction(np.array([[[5.0, 1.0], [2.0, 2.0]]]), 16.0)
    (array([[[ 1., -1.],
            [-1.,  1.]]]), 4.0)
    """
    alone = away
    for axis in range(1, away.ndim):
        alone = alone - alone.mean(axis=axis, keepdims=True)
    part = math.prod((cells - 1) / cells for cells in away.shape[1:])
    sums, many = away - alone, (1 - part) * away.size
    energy = variance * (many + math.sqrt(2 * many))  # of noise alone, and a standard deviation
    kept = round(max(0.0, 1 - energy / max(float((sums * sums).sum()), 1e-300)), 9)
    return alone + kept * sums, variance * (part + kept * (1 - part))


def decided(noisy: Floats, variance: float) -> NDArray[np.bool_]:
    """Where a table of two columns is empty because its rows decide their column: beside the main cell of
    each row there is no more than noise, neither in all nor in a few cells. None if noise could hide more
    than a small part of all.

    >>> decided(np.array([[90.0, 1.0, -1.0], [0.0, -1.0, 80.0]]), 1.0).tolist()
    [[False, True, True], [True, True, False]]
    >>> bool(decided(np.array([[90.0, 6.0, -1.0], [0.0, -1.0, 80.0]]), 1.0).any())
    False
    """
    sd, top = math.sqrt(variance), noisy.max(axis=1)
    clear = top > MAIN * sd
    beside = clear[:, None] & (np.arange(noisy.shape[1]) != noisy.argmax(axis=1)[:, None])
    rest, whole = noisy[beside], max(float(noisy.sum()), 0.0)
    hidden = CERTAIN * sd * math.sqrt(len(rest))
    few = rest.sum() < hidden < HIDDEN * whole and top[clear].sum() > (1 - HIDDEN) * whole
    if few and (rest**2).sum() < variance * (len(rest) + CERTAIN * math.sqrt(2 * len(rest))):
        return np.asarray(beside)
    return np.zeros(noisy.shape, bool)


def vacant(
    noisy: Floats, variance: float, expected: Floats, ordered: Sequence[int], alone: Sequence[int]
) -> NDArray[np.bool_]:
    """Where a table seems empty by its neighbourhoods: a cell and the next ones along the `ordered` axes hold
    no more than noise would, and far less than expected. Of the axes `alone` the last cell is no neighbour.

    One cell that stands above its noise is often noise where cells are many; with all around it, rarely. Rows
    that noise leaves far from all others would be far from any law that the columns follow.

    >>> noisy, expected = np.array([40.0, 38.0, 2.0, -5.0, 6.0, 1.0]), np.full(6, 14.0)
    >>> vacant(noisy, 9.0, expected, [0], []).tolist()
    [False, False, False, True, True, True]
    """
    empty = np.zeros(noisy.shape, bool)
    for far in NEIGHBOURS:
        there, wanted, cells = noisy, expected, np.ones(noisy.shape)
        for axis in ordered:
            there, wanted, cells = (
                _around(table, axis, far, axis in alone) for table in (there, wanted, cells)
            )
        noise = np.sqrt(variance * cells)
        empty |= (there < QUIET * noise) & (wanted > MISSED * noise)
    return empty


def _around(table: Floats, axis: int, far: int, alone: bool) -> Floats:
    """The sum of each cell and so many on both sides of it on an axis."""
    moved = np.moveaxis(table, axis, 0)
    total, last = moved.copy(), len(moved) - alone
    sums = np.concatenate([np.zeros((1, *moved.shape[1:])), np.cumsum(moved[:last], axis=0)])
    at = np.arange(last)
    total[:last] = sums[np.minimum(at + far + 1, last)] - sums[np.maximum(at - far, 0)]
    return np.moveaxis(total, 0, axis)


def raked(table: Floats, rows: Floats, columns: Floats, possible: Floats) -> Floats:
    """The table scaled to these sums of its rows and columns (iterative proportional fitting).

    Every possible cell gets a little first, so that a sum can be reached; where `possible` is 0 it stays 0.

    >>> table = raked(np.eye(2) + 1, np.array([6.0, 4.0]), np.array([5.0, 5.0]), np.ones((2, 2)))
    >>> table.sum(axis=0).tolist(), table.sum(axis=1).round(3).tolist()
    ([5.0, 5.0], [6.0, 4.0])
    """
    total = max(float(rows.sum()), 1e-9)
    table = (table + 1e-6 / total * np.outer(rows, columns) + 1e-12) * possible
    for _ in range(15):
        sums = table.sum(axis=1)
        if np.abs(sums - rows).max() < 1e-7 * total:
            break
        table = table * _scale(rows, sums)[:, None]
        table = table * _scale(columns, table.sum(axis=0))
    return np.asarray(np.round(table, 6))


def _scale(wanted: Floats, there: Floats) -> Floats:
    return np.divide(wanted, there, out=np.zeros_like(there), where=there > 0)
