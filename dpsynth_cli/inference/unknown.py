"""What no answer tells, as random changes of the released rows that would have given the same answers.

Counts say how many rows a cell has, and the model says where in the cell they lie. Each cell that counts tell
from noise is spread in another way: its mean moves to either side, further for a column by itself than for
one given another, since its own counts are finer than those of pairs; given another, by a random amount in
each cell and by one that rises or falls with the other column, as a relation inside of cells would make it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column
from dpsynth_cli.inference.relations import COUNTED, Known
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.inference.tables import Counted
from dpsynth_cli.questions import Floats, Ints

DRAWS = 16  # random changes of each kind
TOLD = 2.0  # a cell is told from noise if it has so many standard deviations of noise
ALONE, GIVEN = 0.3, 0.15  # how far from the middle of its cell, of 1, the mean of a column may be
TILT = 0.12  # and how far from the least to the greatest of another column's values

Change: TypeAlias = Callable[[np.random.Generator], dict[str, NDArray[np.int64]]]  # other codes of a column


def unknown_variance(
    statistic: Statistic, released: Drawn, known: Known, weight: Floats, rng: np.random.Generator
) -> Floats:
    """The mean square of what each number of a statistic moves by, added up over all that is not told."""
    codes = released.table.codes
    before = statistic(codes, weight)
    found = np.zeros(len(before))
    for change in _changes(statistic.columns, released, known):
        moved = np.stack([statistic(codes | change(rng), weight) - before for _ in range(DRAWS)])
        there = np.isfinite(moved)
        found += np.where(there, moved**2, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    return found


def spread_alone(released: Drawn, known: Known) -> list[Change]:
    """A change of each numeric column, in its own cells."""
    return [_spread(column, None, released, known) for column in known.domain if not column.categorical]


def _changes(columns: Sequence[str], released: Drawn, known: Known) -> Iterator[Change]:
    """Functions that give columns with other codes."""
    for name in columns:
        column = known.domain[name]
        if column.categorical:
            continue
        others = [other for other in columns if other != name]
        counted = [other for other in others if known.relation(name, other) == COUNTED]
        partners: list[str | None] = [*counted] or [None]
        for partner in partners:
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

    def change(rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        place = (codes - low[group] + rng.random(len(codes))) / width[group]
        mean = 0.5 + room * rng.uniform(-1, 1, many)[group]
        if partner is not None:  # in all cells the same way, as a relation inside of them would
            scores = _scores(released.table.codes[partner], known.domain[partner], rng)
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
