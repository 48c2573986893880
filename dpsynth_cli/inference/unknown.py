"""What no answer tells, as random changes of the released rows that would have given the same answers.

Where in a cell values lie: counts say how many rows a cell has, and the model spreads them evenly. Each cell
that counts tell from noise is given another spread, with a mean anywhere in it for a column by itself, and
less far from the middle for one column given another, of which the first is known more finely.
A pair of columns that was looked at but not counted: its table is as far from the model as was found, in an
unknown way. So as large a part of the rows is sorted by both columns, in a random direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column
from dpsynth_cli.inference.relations import COUNTED, LOOKED, Known
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.inference.tables import Counted
from dpsynth_cli.questions import Floats, Ints

DRAWS = 32  # random changes of each kind
TOLD = 2.0  # a cell is told from noise if it has so many standard deviations of noise
ALONE, GIVEN = 0.5, 0.25  # how far from the middle of its cell, of 1, the mean of a column may be
SORTED = 3.0  # a part of rows that is sorted moves this many times less than its share: see the docs


def unknown_variance(statistic: Statistic, released: Drawn, known: Known, rng: np.random.Generator) -> Floats:
    """For each number of a statistic the mean square of what it moves by, summed over all that is not told."""
    codes, total = released.table.codes, np.full(len(released.table), released.total / len(released.table))
    before = statistic(codes, total)
    found = np.zeros(len(before))
    for change in _changes(statistic.columns, released, known):
        moved = [statistic(codes | change(rng), total) - before for _ in range(DRAWS)]
        found += np.nanmean(np.square(moved), axis=0) if len(moved) else 0.0
    return found


def _changes(columns: Sequence[str], released: Drawn, known: Known) -> Iterator[object]:
    """Functions that give columns with other codes."""
    for name in columns:
        column = known.domain[name]
        if column.categorical:
            continue
        others = [other for other in columns if other != name]
        counted = [other for other in others if known.relation(name, other) == COUNTED]
        for partner in counted or [None]:
            yield _spread(column, partner, released, known)
    for i, one in enumerate(columns):
        for other in columns[i + 1 :]:
            if known.relation(one, other) == LOOKED:
                gap = known.gaps[frozenset((one, other))]
                yield _sorted(one, other, min(1.0, SORTED * (gap.beyond + gap.noise)), released)


def _spread(column: Column, partner: str | None, released: Drawn, known: Known):  # type: ignore[no-untyped-def]
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
        mean = np.clip(rng.uniform(0.5 - room, 0.5 + room, many), 0.02, 0.98)
        moved = low[group] + np.floor(place ** (1 / mean - 1)[group] * width[group]).astype(np.int64)
        return {column.name: np.where(values, np.minimum(moved, high[group]), codes)}

    return change


def _told(table: Counted, scope: Sequence[str], released: Drawn) -> Ints:
    """The cell of each row along these columns, -1 where it has too few rows to be told from noise."""
    number, size = np.zeros(len(released.table), np.int64), 1
    for name in scope:
        a = table.columns.index(name)
        size *= table.values.shape[a]
        number = number * table.values.shape[a] + table.cell[a](released.table.codes[name])
    outside = table.values.size / max(1, size)
    rows = np.bincount(np.maximum(number, 0)) * (released.total / max(1, len(released.table)))
    told = rows[np.maximum(number, 0)] > TOLD * table.sd * outside**0.5
    return np.where(told & (number >= 0), number, -1)


def _sorted(one: str, other: str, part: float, released: Drawn):  # type: ignore[no-untyped-def]
    first, second = released.table.codes[one], released.table.codes[other]

    def change(rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        chosen = np.flatnonzero(rng.random(len(first)) < part)
        by_first = chosen[np.argsort(_ranked(first[chosen], rng), kind="stable")]
        by_second = second[chosen[np.argsort(_ranked(second[chosen], rng), kind="stable")]]
        moved = second.copy()
        moved[by_first] = by_second if rng.random() < 0.5 else by_second[::-1]
        return {other: moved}

    def _ranked(codes: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        return codes + rng.random(len(codes)) / 2

    return change
