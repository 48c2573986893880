"""Rows put together as units: each unit has rows whose unit columns are alike, and then the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.questions import Block, Floats, Ints

LIKELY = 4  # units for each cell in which rows count as alike


def sizes_drawn(chances: Floats, rng: np.random.Generator) -> Ints:
    """For each row the size of its unit: 1, 2, .. with these probabilities."""
    upto = np.cumsum(chances, axis=1)
    drawn = (rng.random(len(chances))[:, None] * upto[:, -1:] >= upto).sum(axis=1) + 1
    return np.asarray(np.minimum(drawn, chances.shape[1]), np.int64)


def grouped(
    block: Mapping[str, Ints],
    columns: Sequence[Column],
    size: Ints,
    name: str,
    first: int,
    rng: np.random.Generator,
) -> tuple[Block, int]:
    """The same rows, those of a unit one after the other, with its number (from `first` on) under `name`,
    and how many units there are.

    Rows that are to be in units of s rows are put next to those like them, and every s of them are a unit;
    the last may have fewer. It has the unit columns of one of its rows.
    """
    number = np.empty(len(size), np.int64)
    source = np.empty(len(size), np.int64)
    units = 0
    for s in range(1, int(size.max(initial=0)) + 1):
        own = np.flatnonzero(size == s)
        if not len(own):
            continue
        own = own[alike(block, own, columns, s, rng)]
        unit = np.arange(len(own)) // s
        number[own] = units + unit
        lead = unit * s + np.minimum(rng.integers(0, s, unit[-1] + 1)[unit], len(own) - 1 - unit * s)
        source[own] = own[lead]
        units += int(unit[-1]) + 1
    place = rng.permutation(units)[number]  # units in any order
    order = np.argsort(place, kind="stable")
    made: Block = {column: codes[order] for column, codes in block.items()}
    for column in columns:
        made[column.name] = block[column.name][source[order]]
    made[name] = first + place[order]
    return made, units


def alike(
    block: Mapping[str, Ints], own: Ints, columns: Sequence[Column], s: int, rng: np.random.Generator
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
