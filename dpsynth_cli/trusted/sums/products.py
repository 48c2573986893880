"""Sums of products over one batch: moments, scores of attributes, sums in cells. Exact integers, in any
order.

One-hot products are counts (`tables.py`): here is only of which tables. Products of values are float64, in
chunks whose sums stay below 2^53.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, combinations_with_replacement

import numpy as np

from dpsynth_cli.questions import Cells, CellSums, Gram, Ints, Moments
from dpsynth_cli.trusted.core.sensitivity import clip_bound, reach
from dpsynth_cli.trusted.sums.batch import Batch
from dpsynth_cli.trusted.sums.cells import clipped, joined
from dpsynth_cli.trusted.sums.rows_about import rows_about
from dpsynth_cli.trusted.sums.tables import added

PACK = 2**8 - 1  # cells of attributes that are counted together


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
    d = sum(batch.omega[name].width for name in asked.columns)
    first, second = np.zeros(d, np.int64), np.zeros((d, d), np.int64)
    exact = 2**53 // max(1, reach(asked) ** 2) // 2  # rows whose products add up exactly in float64
    for _, z in rows_about(
        batch.codes, batch.rows, batch.omega, asked.columns, asked.bits, asked.about, max(1, exact)
    ):
        if asked.clip is not None:
            z = clipped(z.T, clip_bound(asked), asked.norm).T
        first += z.sum(axis=1)
        if asked.degree == 2:
            chunk = z.astype(np.float64)
            second += (chunk @ chunk.T).astype(np.int64)
    return first, second[np.triu_indices(d)]


def gram(asked: Gram, batch: Batch) -> Ints:
    """The sums of products of the attributes' scores, pair after pair."""
    assert asked.scores is not None
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


def pairs_of(asked: Gram) -> list[Cells]:
    """The tables of pairs that a Gram without scores counts, each attribute's own among them if wanted."""
    places = range(len(asked.axes))
    pairs = combinations_with_replacement(places, 2) if asked.diagonal else combinations(places, 2)
    return [Cells(tuple(asked.axes[at] for at in dict.fromkeys(pair))) for pair in pairs]


def cell_sums(asked: CellSums, cells: np.ndarray, count: int, batch: Batch) -> Ints:
    """One-hot attributes added up in each of `count` cells: cell x attribute cell."""
    by_place: dict[int, Ints] = {}
    for pack in batch.packs(asked.attributes, max(1, min(PACK, batch.rows // count))):
        number = joined([(cells, count), (pack.number, pack.cells)])
        table = np.bincount(number, minlength=count * pack.cells).reshape(count, *pack.sizes)
        by_place |= {place: added(table, (0, 1 + i)) for i, place in enumerate(pack.members)}
    return np.concatenate([by_place[i] for i in range(len(asked.attributes))], axis=1)
