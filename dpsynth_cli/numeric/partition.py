"""Dyadic geometry: columns of codes halved in turn, and the codes that lie in each cell.

A column is its number of values and whether it has one more code for missing. Halved b times it has 2^b
cells, of which some may hold no code at all: then no row can ever be there. In a nullable column the first
halving is values against missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Size: TypeAlias = tuple[int, bool]


def halvings(column: Size) -> int:
    """How often a column can be halved until every code is alone.

    >>> halvings((5, False)), halvings((5, True)), halvings((1, False))
    (3, 4, 0)
    """
    values, nullable = column
    return (values - 1).bit_length() + nullable


def turns(columns: Sequence[Size], depth: int) -> tuple[int, ...]:
    """Which column is halved at each level: each in its turn, until its codes are alone.

    >>> turns([(2**30, False), (3, False)], 7)
    (0, 1, 0, 1, 0, 0, 0)
    """
    left = [halvings(column) for column in columns]
    order: list[int] = []
    while len(order) < depth and any(left):
        for axis, bits in enumerate(left):
            if bits and len(order) < depth:
                order.append(axis)
                left[axis] -= 1
    return tuple(order)


def longest_first(columns: Sequence[Size], lengths: Sequence[float], depth: int) -> tuple[int, ...]:
    """Which column is halved at each level where columns have lengths: the one whose cells are longest then,
    until its codes are alone. Separating missing makes nothing shorter.

    >>> longest_first([(2**30, False), (2**30, False)], [1.0, 0.25], 5)
    (0, 0, 0, 1, 0)
    """
    bits, most = [0] * len(columns), [halvings(column) for column in columns]
    order: list[int] = []
    while len(order) < depth and bits != most:
        sides = [
            length * 2.0 ** -max(0, b - nullable) if b < top else -1.0
            for (_, nullable), length, b, top in zip(columns, lengths, bits, most, strict=True)
        ]
        order.append(max(range(len(sides)), key=lambda a: sides[a]))
        bits[order[-1]] += 1
    return tuple(order)


def level_diameters(
    columns: Sequence[Size], apart: Sequence[bool], order: Sequence[int]
) -> tuple[list[float], float]:
    """For each level, from the root to the leaves, the diameters of its cells added up; and that of a leaf.

    Distances are the largest over the columns. Along a column of ordered codes two of them are as far apart
    as their places on the unit scale, along one whose codes are all `apart` 1 unless they are equal, and
    missing is at distance 1 from all else. Cells without a code do not count, and all others as if they were
    as large as the largest of their level: the sums are never too small.

    >>> level_diameters([(2**30, False)], [False], (0, 0))
    ([1.0, 1.0, 1.0], 0.25)
    >>> level_diameters([(4, False)], [True], (0, 0))
    ([1.0, 2.0, 0.0], 0.0)
    """
    sums, bits = [], [0] * len(columns)
    for turn in (None, *order):
        if turn is not None:
            bits[turn] += 1
        count, widest = 1, 0.0
        for (values, nullable), flat, b in zip(columns, apart, bits, strict=True):
            if nullable and not b:
                widest = 1.0
                continue
            cells = 1 << (b - nullable)
            codes = -(-values // cells)  # of the largest cell
            count *= min(cells, values) + nullable
            # A continuous column has so many codes that a cell is as wide as its part of them.
            widest = max(widest, float(codes > 1) if flat else (codes - (codes < 2)) / values)
        sums.append(count * widest)
    return sums, widest


def even_edges(column: Size, cells: int) -> Ints:
    """The first code of each of so many cells, and the end: values are cut alike, missing is one cell more.

    >>> even_edges((10, True), 4).tolist()
    [0, 3, 5, 8, 10, 11]
    """
    values, nullable = column
    edges = -(-np.arange(cells + 1, dtype=np.int64) * values // cells)
    return np.append(edges, values + 1) if nullable else edges


def code_ranges(column: Size, bits: int) -> tuple[Ints, Ints]:
    """The first code and the number of codes of each of a column's 2^bits cells.

    >>> [part.tolist() for part in code_ranges((3, True), 3)]
    [[0, 1, 2, 3, 3, 3, 3, 3], [1, 1, 1, 0, 1, 0, 0, 0]]
    """
    values, nullable = column
    if nullable and not bits:
        return np.zeros(1, np.int64), np.array([values + 1])
    cells = 1 << (bits - nullable)
    edges = even_edges((values, False), cells)
    first, count = edges[:-1], np.diff(edges)
    if nullable:
        missing = np.zeros(cells, np.int64)
        missing[0] = 1
        first, count = np.append(first, np.full(cells, values)), np.append(count, missing)
    return first, count


def along(order: Sequence[int], axis: int) -> NDArray[Any]:
    """For each of the 2^len(order) cells, by path from the root, its cell along one axis, in a small type.

    >>> along((0, 1, 0), 0).tolist()
    [0, 1, 0, 1, 2, 3, 2, 3]
    """
    cell = np.zeros(1, np.min_scalar_type(2 ** list(order).count(axis) - 1))
    for turn in order:
        cell = np.repeat(cell, 2)
        if turn == axis:
            cell = 2 * cell
            cell[1::2] += 1
    return cell


def volumes(columns: Sequence[Size], order: Sequence[int]) -> NDArray[np.float64]:
    """How many combinations of codes each leaf holds; 0 where no row can be.

    >>> volumes([(3, False), (2, False)], (0, 1, 0)).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0]
    """
    volume = np.ones(1 << len(order))
    for axis, column in enumerate(columns):
        _, count = code_ranges(column, list(order).count(axis))
        volume *= count.astype(np.float64)[along(order, axis)]
    return volume
