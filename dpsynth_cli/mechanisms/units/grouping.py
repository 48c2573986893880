"""Rows put together as units: each unit has rows whose unit columns are alike, and then the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.units.distribution import Distribution
from dpsynth_cli.numeric.exact import log
from dpsynth_cli.questions import Block, Floats, Ints

LIKELY = 4  # units for each cell in which rows count as alike


def sizes_drawn(units: Distribution, rows: int, rng: np.random.Generator) -> Ints:
    """How many rows each of some units has, in all so many rows: as evenly over sizes as can be.

    Where they do not add up, a few units have one row more or fewer, of sizes in the same group if they can.
    """
    count = max(1, int(rows / units.mean + rng.random()))
    upto = np.cumsum(units.each)
    at = (np.arange(count) + rng.random()) / count * upto[-1]
    size = np.minimum(np.searchsorted(upto, at, side="right") + 1, len(upto))
    edges, missing = np.asarray(units.edges), rows - int(size.sum())
    group, step = np.searchsorted(edges, size) - 1, int(np.sign(missing))
    room = edges[group + 1] - size if missing > 0 else size - edges[group] - 1
    while missing and room.any():
        own = rng.permutation(np.flatnonzero(room))[: abs(missing)]
        size[own] += step
        room[own] -= 1
        missing -= step * len(own)
    more = [np.full(missing // len(upto), len(upto)), [missing % len(upto)]] if missing > 0 else []
    size = np.concatenate([size, *more]).astype(np.int64)
    while missing < 0:
        one = int(rng.integers(len(size)))
        fewer = min(int(size[one]), -missing)
        size[one] -= fewer
        missing += fewer
        size = size[size > 0]
    return size[size > 0]


def groups_drawn(chances: Floats, wanted: Ints, rng: np.random.Generator) -> Ints:
    """For each row a group, with these probabilities, such that each group has as many rows as are wanted."""
    upto = np.cumsum(chances, axis=1)
    drawn = (rng.random(len(chances))[:, None] * upto[:, -1:] >= upto).sum(axis=1)
    drawn = np.minimum(drawn, chances.shape[1] - 1)
    excess = np.bincount(drawn, minlength=len(wanted)) - wanted
    free = [
        rng.permutation(np.flatnonzero(drawn == own))[: excess[own]] for own in np.flatnonzero(excess > 0)
    ]
    over = np.concatenate(free) if free else np.zeros(0, np.int64)
    for group in rng.permutation(np.flatnonzero(excess < 0)):
        likely = log(np.maximum(chances[over, group], 1e-300)) + rng.gumbel(size=len(over))
        order = np.argsort(-likely)
        drawn[over[order[: -excess[group]]]] = group
        over = over[order[-excess[group] :]]
    return np.asarray(drawn, np.int64)


def grouped(
    block: Mapping[str, Ints],
    columns: Sequence[Column],
    group: Ints,
    sizes: Sequence[Ints],
    name: str,
    first: int,
    rng: np.random.Generator,
) -> Block:
    """The same rows, those of a unit one after the other, with its number (from `first` on) under `name`.

    Rows of a group are put next to those like them, and shared out to its units, which have `sizes[group]`
    rows. A unit has the unit columns of one of its rows.
    """
    number = np.empty(len(group), np.int64)
    source = np.empty(len(group), np.int64)
    units = 0
    for this, size in enumerate(sizes):
        if not len(size):
            continue
        own = np.flatnonzero(group == this)
        own = own[alike(block, own, columns, float(size.mean()), rng)]
        size = rng.permutation(size)
        lead = np.cumsum(size) - size + (rng.random(len(size)) * size).astype(np.int64)
        number[own] = units + np.repeat(np.arange(len(size)), size)
        source[own] = np.repeat(own[lead], size)
        units += len(size)
    place = rng.permutation(units)[number]  # units in any order
    order = np.argsort(place, kind="stable")
    made: Block = {column: codes[order] for column, codes in block.items()}
    for column in columns:
        made[column.name] = block[column.name][source[order]]
    made[name] = first + place[order]
    return made


def alike(
    block: Mapping[str, Ints], own: Ints, columns: Sequence[Column], s: float, rng: np.random.Generator
) -> Ints:
    """An order of rows in which neighbours are alike: by categories, then by coarse cells of all numbers,
    then by the first number itself."""
    keys: list[Ints] = [rng.permutation(len(own))]
    labels = [block[column.name][own] for column in columns if column.categorical]
    numbers = [block[column.name][own] for column in columns if not column.categorical]
    if numbers:
        kinds = len(np.unique(np.column_stack(labels), axis=0)) if labels else 1
        room = len(own) / (s * LIKELY * max(1, kinds))
        cells = max(1, int(max(1.0, room) ** (1 / len(numbers))))
        keys.append(numbers[0])
        keys += [_coarse(codes, cells) for codes in reversed(numbers)]
    keys += list(reversed(labels))
    return np.lexsort(keys)


def _coarse(codes: Ints, cells: int) -> Ints:
    """Ranks in so many parts; equal values in the same."""
    ordered = np.sort(codes)
    return np.searchsorted(ordered, codes) * cells // max(1, len(codes))
