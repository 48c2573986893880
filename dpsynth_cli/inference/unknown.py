"""What no answer tells, as random changes of the released rows that would have given the same answers.

Counts say how many rows a cell has, and nothing says where in the cell they lie. So each cell that counts
tell from noise is spread in another way, with a mean that is anywhere in the cell, all places as likely. In
the cells of a pair the mean of a column also differs from that in its own cells: by a random amount in each,
and by one that rises or falls with the other column, as a relation inside of cells would make it. How much
so was looked up in public tables (docs/inference.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column
from dpsynth_cli.inference.relations import COUNTED, Known
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.statistics import Codes
from dpsynth_cli.inference.tables import Counted
from dpsynth_cli.questions import Floats, Ints

DRAWS = 32  # random changes of each kind
TOLD = 2.0  # a cell is told from noise if it has so many standard deviations of noise
ALONE = 0.5  # how far from the middle of its cell, of 1, the mean of a column may be
GIVEN, TILT = 0.15, 0.12  # and further in the cells of a pair: at random, and at the other column's ends

Change: TypeAlias = Callable[[np.random.Generator, Codes], dict[str, NDArray[np.int64]]]  # other codes


def unknown_variance(
    function: Callable[[Codes, Floats], Floats],
    columns: Sequence[str],
    released: Drawn,
    known: Known,
    weight: Floats,
    rng: np.random.Generator,
) -> Floats:
    """The mean square of what each number of a function of rows and weights moves by, added up over all
    that is not told of these columns."""
    codes = released.table.codes
    before = function(codes, weight)
    found = np.zeros(before.shape)
    for change in changes(columns, released, known):
        moved = np.stack([function({**codes, **change(rng, codes)}, weight) - before for _ in range(DRAWS)])
        there = np.isfinite(moved)
        found += np.where(there, moved**2, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    return found


def changes(columns: Sequence[str], released: Drawn, known: Known) -> Iterator[Change]:
    """Functions that give columns with other codes."""
    for name in columns:
        column = known.domain[name]
        if column.categorical or not known.counts(name):
            continue
        others = [other for other in columns if other != name]
        for partner in (None, *(other for other in others if known.relation(name, other) == COUNTED)):
            yield _spread(column, partner, released, known)


def _spread(column: Column, partner: str | None, released: Drawn, known: Known) -> Change:
    codes = released.table.codes[column.name].astype(np.int64)
    scope = [column.name] if partner is None else [column.name, partner]
    cells = [_told(table, scope, released) for table in known.with_columns(scope)]
    values = codes < column.size
    stacked = np.stack([*cells, values.astype(np.int64)])
    _, group = np.unique(stacked, axis=1, return_inverse=True)
    group = group.ravel()
    many = int(group.max(initial=0)) + 1
    low, high = np.full(many, np.iinfo(np.int64).max), np.full(many, -1)
    np.minimum.at(low, group, codes)
    np.maximum.at(high, group, codes)
    width = (high - low + 1).astype(np.float64)
    room = ALONE if partner is None else GIVEN

    def change(rng: np.random.Generator, current: Codes) -> dict[str, NDArray[np.int64]]:
        codes = current[column.name].astype(np.int64)
        place = np.clip((codes - low[group] + rng.random(len(codes))) / width[group], 0.0, 1.0)
        mean = 0.5 + room * rng.uniform(-1, 1, many)[group]
        if partner is not None:  # in all cells the same way, as a relation inside of them would
            scores = _scores(current[partner], known.domain[partner], rng)
            mean += TILT * rng.uniform(-1, 1) * scores
        power = 1 / np.clip(mean, 0.02, 0.98) - 1
        moved = low[group] + np.floor(place**power * width[group]).astype(np.int64)
        return {column.name: np.where(values, np.minimum(moved, high[group]), codes)}

    return change


def _scores(codes: NDArray[np.int64], column: Column, rng: np.random.Generator) -> Floats:
    """From -1 to 1: by rank; for categories without an order at random."""
    if column.type == "nominal":
        return np.asarray(rng.uniform(-1, 1, column.codes)[codes])
    _, place, times = np.unique(codes, return_inverse=True, return_counts=True)
    return np.asarray(((2 * np.cumsum(times) - times) / max(1, len(codes)) - 1)[place])


def _told(table: Counted, scope: Sequence[str], released: Drawn) -> Ints:
    """The cell of each row along these columns, -1 where it has too few rows to be told from noise."""
    number, size = np.zeros(len(released.table), np.int64), 1
    for name in scope:
        a = table.columns.index(name)
        size *= table.values.shape[a]
        number = number * table.values.shape[a] + table.cell[a](released.table.codes[name])
    outside = table.values.size / max(1, size)
    rows = np.bincount(np.maximum(number, 0), released.weight)
    told = rows[np.maximum(number, 0)] > TOLD * table.sd * outside**0.5
    return np.where(told & (number >= 0), number, -1)
