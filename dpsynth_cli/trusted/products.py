"""Sums of products over one batch: moments, pair tables, sums in cells. Exact integers, in any order.

One-hot products are counts. Columns are packed (`batch.py`), packs counted two by two, and what was counted
of other columns is added up again. Products of values are float64, in chunks whose sums stay below 2^53.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

import numpy as np

from dpsynth_cli.questions import CellSums, Gram, Ints, Moments
from dpsynth_cli.trusted.batch import Batch, Pack
from dpsynth_cli.trusted.cells import clipped, coordinates, fixed_point, joined
from dpsynth_cli.trusted.sensitivity import clip_bound

CHUNK = 2**19  # numbers that are multiplied together: they stay in the processor's cache
PACK = 2**8 - 1  # cells of a pack: two of them have fewer than 2^16


def moments(asked: Moments, batch: Batch) -> Ints:
    """The sum of z, or of the upper triangle of z z^T; one look at the rows gives both."""
    if asked not in batch.moments:
        first, second = _moments(asked, batch)
        batch.moments[replace(asked, degree=1)] = first
        if asked.degree == 2:
            batch.moments[asked] = second
    return batch.moments[asked]


def _moments(asked: Moments, batch: Batch) -> tuple[Ints, Ints]:
    """The sum of z and (for degree 2) of the upper triangle of z z^T, a few rows at a time."""
    d, q = sum(batch.omega[name].width for name in asked.columns), 2**asked.bits - 1
    rows = max(1, min(max(256, CHUNK // d), 2**53 // (q * q) // 2))
    first, second = np.zeros(d, np.int64), np.zeros((d, d), np.int64)
    for start in range(0, batch.rows, rows):
        here = slice(start, start + rows)
        z = np.stack(
            [
                part
                for name in asked.columns
                for part in coordinates(batch.codes[name][here], batch.omega[name], asked.bits)
            ]
        )
        if asked.clip is not None:
            z = clipped(z.T, clip_bound(asked)).T
        first += z.sum(axis=1)
        if asked.degree == 2:
            chunk = z.astype(np.float64)
            second += (chunk @ chunk.T).astype(np.int64)
    return first, second[np.triu_indices(d)]


def gram(asked: Gram, batch: Batch) -> Ints:
    """The cross products of attributes, pair after pair."""
    if asked.scores is None:
        return _pair_tables(asked, batch)
    z = np.stack(
        [
            np.asarray(row, dtype=np.int64).take(batch.cells(axis))
            for row, axis in zip(asked.scores, asked.axes, strict=True)
        ]
    )
    d, q = len(z), 2**asked.bits - 1
    rows = max(1, 2**53 // max(1, q * q) // 2)
    total = np.zeros((d, d), dtype=np.int64)
    for start in range(0, batch.rows, rows):
        chunk = z[:, start : start + rows].astype(np.float64)
        total += (chunk @ chunk.T).astype(np.int64)
    return np.asarray(total[np.triu_indices(d, 1)])


def _pair_tables(asked: Gram, batch: Batch) -> Ints:
    d = len(asked.axes)
    packs = batch.packs(asked.axes, min(PACK, isqrt(batch.rows)))  # a table costs as much as it has cells
    found: dict[tuple[int, int], Ints] = {}
    for at, one in enumerate(packs):
        alone = np.bincount(one.number, minlength=one.cells).reshape(one.sizes)
        for i, a in enumerate(one.members):
            found[a, a] = _kept(alone, (i,))
            for j, b in enumerate(one.members[:i]):
                found[b, a] = _kept(alone, (j, i))
        for other in packs[at + 1 :]:
            _add_tables(found, one, other)
    pairs = [(i, j) for i in range(d) for j in range(i, d) if i < j or asked.diagonal]
    return np.concatenate([found[pair].ravel() for pair in pairs]).astype(np.int64, copy=False)


def _add_tables(found: dict[tuple[int, int], Ints], one: Pack, other: Pack) -> None:
    """The tables of all pairs with a column in each of two packs."""
    number = joined([(one.number, one.cells), (other.number, other.cells)])
    both = np.bincount(number, minlength=one.cells * other.cells).reshape(*one.sizes, other.cells)
    for i, a in enumerate(one.members):
        table = _kept(both, (i, len(one.members))).reshape(-1, *other.sizes)
        for j, b in enumerate(other.members):
            pair = _kept(table, (0, 1 + j))
            found[min(a, b), max(a, b)] = pair if a < b else pair.T


def _kept(table: Ints, axes: tuple[int, ...]) -> Ints:
    """The table summed over all axes but these, which rise."""
    return np.asarray(table.sum(axis=tuple(i for i in range(table.ndim) if i not in axes)))


def cell_sums(asked: CellSums, cells: np.ndarray, count: int, batch: Batch) -> Ints:
    """One-hot attributes or fixed-point values added up in each of `count` cells: cell x attribute cell."""
    if asked.columns:
        tables = []
        for name in asked.columns:
            x = fixed_point(batch.codes[name], batch.omega[name], asked.bits)
            assert len(x) * (2**asked.bits - 1) < 2**53, "a batch too large for exact float sums"
            tables.append(np.bincount(cells, weights=x, minlength=count).astype(np.int64)[:, None])
        return np.concatenate(tables, axis=1)
    by_place: dict[int, Ints] = {}
    for pack in batch.packs(asked.attributes, max(1, min(PACK, batch.rows // count))):
        number = joined([(cells, count), (pack.number, pack.cells)])
        table = np.bincount(number, minlength=count * pack.cells).reshape(count, *pack.sizes)
        by_place |= {place: _kept(table, (0, 1 + i)) for i, place in enumerate(pack.members)}
    return np.concatenate([by_place[i] for i in range(len(asked.attributes))], axis=1)
