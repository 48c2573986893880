"""Means, spreads and products of columns, as sums over rows: what weights that are never negative keep.

Noisy counts of rare cells are often below nothing. Weights that are never negative have too much there, and
so too little elsewhere, unless sums over many cells are kept as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.inference.relations import COUNTED, SUMMED, Known
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.questions import Floats, Ints

FIRST, SECOND = 0.3, 1.0  # standard deviations of its noise that a sum is kept to: of numbers, of products
MOST = 300  # sums in all
MOST_CATEGORIES = 16  # of a column; of more, those with the most rows


@dataclass(frozen=True, eq=False)
class Moment:
    """What each row adds to a sum, which rows it is about, and how near it is kept."""

    adds: Floats
    rows: Floats
    near: float


def moments(released: Drawn, known: Known) -> list[Moment]:
    """All rows, those of each category, numbers in all and by category, squares and products of numbers; of
    two columns where they were measured together."""
    weight, ones = released.weight, np.ones(len(released.table))
    numbers: dict[str, Moment] = {}
    categories: dict[str, list[Moment]] = {}
    first, second = [Moment(ones, ones, FIRST)], list[Moment]()
    for column in known.domain:
        codes = released.table.codes[column.name].astype(np.int64)
        if column.categorical:
            categories[column.name] = list(_categories(column, codes, weight))
            first += categories[column.name]
            continue
        own = _number(column, codes, weight)
        if column.nullable:
            first.append(Moment(own.rows, own.rows, FIRST))
        if own.adds.any():
            numbers[column.name] = own
            first.append(own)
            second.append(Moment(own.adds**2, own.rows, SECOND))
    for one, other in combinations([column.name for column in known.domain], 2):
        if known.relation(one, other) not in (COUNTED, SUMMED):
            continue
        if one in numbers and other in numbers:
            second.append(_product(numbers[one], numbers[other], SECOND))
        elif one in numbers or other in numbers:
            both = ([numbers[name]] if name in numbers else categories.get(name, []) for name in (one, other))
            first += [_product(a, b, FIRST) for a, b in product(*both)]
    return (first + second)[:MOST]


def _categories(column: Column, codes: Ints, weight: Floats) -> Iterator[Moment]:
    rows = np.bincount(codes, weight, column.codes)
    for code in np.argsort(-rows, kind="stable")[:MOST_CATEGORIES]:
        there = (codes == code).astype(np.float64)
        yield Moment(there, there, FIRST)


def _number(column: Column, codes: Ints, weight: Floats) -> Moment:
    """A column in standard deviations from its mean; nothing where all its values are the same."""
    there = (codes < column.size).astype(np.float64)
    own = weight * there
    rows = max(float(own.sum()), 1e-300)
    apart = np.where(there > 0, codes - float(own @ codes) / rows, 0.0)
    spread = float(np.sqrt(own @ apart**2 / rows))
    return Moment(apart / spread if spread > 0 else np.zeros(len(codes)), there, FIRST)


def _product(one: Moment, other: Moment, near: float) -> Moment:
    return Moment(one.adds * other.adds, one.rows * other.rows, near)
