"""One batch of rows, and what was looked up for it: cells, numbers of cells, classes.

Several columns are packed into one number, the cell of their product: what is looked up for it or counted of
it is for all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Affine, Axis, Cells, Distance, Ints, Moments, RowScores, Scored
from dpsynth_cli.trusted.core.shapes import axis_cells, cell_count
from dpsynth_cli.trusted.sums.cells import (
    between,
    centred,
    clipped,
    column_cells,
    holding,
    joined,
    size,
    spread,
)
from dpsynth_cli.trusted.sums.rows_about import rows_about

CodesByColumn = Mapping[str, np.ndarray]
SCORES = 2**12 - 1  # cells of a pack whose scores are looked up
MEMBERS = 24  # of a pack, some of one cell: an array has at most 64 axes, and a sum over some of them 52


@dataclass(frozen=True, eq=False)
class Pack:
    """Some axes by their places, how many cells each has, and each row's cell in their product."""

    members: tuple[int, ...]
    sizes: tuple[int, ...]
    number: np.ndarray

    @property
    def cells(self) -> int:
        return prod(self.sizes)


class Batch:
    """Rows of codes, a column each."""

    def __init__(self, codes: CodesByColumn, rows: int, omega: Domain) -> None:
        self.codes, self.rows, self.omega = codes, rows, omega
        self._cells: dict[Axis, np.ndarray] = {}
        self._packs: dict[tuple[tuple[Axis, ...], int], list[Pack]] = {}
        self._parts: dict[str, list[tuple[int, Batch]]] = {}
        self.moments: dict[Moments, Ints] = {}  # sums that were made already

    def cells(self, axis: Axis) -> np.ndarray:
        """The cell of each row on one axis."""
        if axis not in self._cells:
            self._cells[axis] = self._looked_up(axis)
        return self._cells[axis]

    def path(self, cells: Cells) -> np.ndarray:
        """The cell number of each row in a partition: row-major, or the path from the root."""
        if not cells.axes:
            return np.zeros(self.rows, dtype=np.uint8)
        if cells.order is None:
            return joined([(self.cells(axis), axis_cells(axis)) for axis in cells.axes])
        number = np.zeros(self.rows, dtype=holding(cell_count(cells)))
        for position, axis in enumerate(cells.axes):
            places = spread(cells.order, position)
            cell = self.cells(axis)
            number += (cell if places is None else places.take(cell)).astype(number.dtype, copy=False)
        return number

    def numbers(self, cells: Cells | tuple[Cells, ...], by: str | None) -> np.ndarray:
        """Each row's cell, numbered through all classes."""
        if isinstance(cells, Cells):
            number = self.path(cells)
            if by is None:
                return number
            return joined([(self.codes[by], self.omega[by].codes), (number, cell_count(cells))])
        first = np.cumsum([0] + [cell_count(part) for part in cells])
        number = np.empty(self.rows, dtype=np.int64)
        for k, part in self.by_class(by):
            own = slice(None) if by is None else np.flatnonzero(self.codes[by] == k)
            number[own] = first[k] + part.path(cells[k])
        return number

    def by_class(self, by: str | None) -> list[tuple[int, Batch]]:
        """The rows of each class that has some."""
        if by is None:
            return [(0, self)]
        if by not in self._parts:
            label = self.codes[by]
            parts = self._parts[by] = []
            for k in np.flatnonzero(np.bincount(label)):
                own = np.flatnonzero(label == k)
                codes = {name: values.take(own) for name, values in self.codes.items()}
                parts.append((int(k), Batch(codes, len(own), self.omega)))
        return self._parts[by]

    def packs(self, axes: tuple[Axis, ...], most: int) -> list[Pack]:
        """The axes in packs of at most so many cells; an axis that has more is alone."""
        if (axes, most) not in self._packs:
            sizes = [axis_cells(axis) for axis in axes]
            self._packs[axes, most] = [
                Pack(
                    members,
                    tuple(sizes[i] for i in members),
                    joined([(self.cells(axes[i]), sizes[i]) for i in members]),
                )
                for members in packed(sizes, most)
            ]
        return self._packs[axes, most]

    def _looked_up(self, axis: Axis) -> np.ndarray:
        if isinstance(axis, Affine):
            score = np.zeros(self.rows, dtype=np.int64)
            weights = np.asarray(axis.weights, dtype=np.int64)
            for name in axis.columns:
                column = self.omega[name]
                own, weights = np.split(weights, [column.width])
                if column.type == "nominal":
                    score += (own * (2**axis.bits - 1)).take(self.codes[name])
                else:
                    score += own[0] * centred(self.codes[name], column, axis.bits)
            return between(axis.edges, score)
        if isinstance(axis, Scored):
            return self._scored(axis)
        if isinstance(axis, Distance):
            away = np.empty(self.rows, dtype=np.int64)
            for here, z in rows_about(self.codes, self.rows, self.omega, axis.columns, axis.bits, axis.about):
                away[here] = size(z.T, axis.norm)
            return between(axis.edges, away)
        return column_cells(axis, self.codes[axis.column], self.omega[axis.column])

    def _scored(self, axis: Scored) -> np.ndarray:
        """The cell of the sum of each row's scores: of a pack at once."""
        reach = sum(max(map(abs, row)) for row in axis.scores) + max(map(abs, axis.edges))
        kind = np.int32 if reach < 2**31 else np.int64
        packs = self.packs(axis.attributes, SCORES)
        scores = [
            reduce(np.add.outer, [np.asarray(axis.scores[i], dtype=kind) for i in pack.members]).ravel()
            for pack in packs
        ]
        if len(packs) == 1:
            return between(axis.edges, scores[0]).astype(holding(axis_cells(axis))).take(packs[0].number)
        each = (own.take(pack.number) for own, pack in zip(scores, packs, strict=True))
        return between(axis.edges, reduce(np.add, each))


def packed(sizes: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Places in groups of a few whose sizes have a product of at most `most`, the largest first.

    >>> packed([2, 9, 3, 5], 10)
    [(1,), (0, 3), (2,)]
    """
    groups: list[tuple[int, list[int]]] = []
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        for at, (cells, members) in enumerate(groups):
            if cells * sizes[i] <= most and len(members) < MEMBERS:
                groups[at] = (cells * sizes[i], sorted([*members, i]))
                break
        else:
            groups.append((sizes[i], [i]))
    return [tuple(members) for _, members in groups]


def cells_of(axis: Axis, codes: CodesByColumn, omega: Domain) -> np.ndarray:
    """The cell of each row on one axis."""
    return Batch(codes, _rows(codes), omega).cells(axis)


def path_of(cells: Cells, codes: CodesByColumn, omega: Domain) -> np.ndarray:
    """The cell number of each row in a partition."""
    return Batch(codes, _rows(codes), omega).path(cells)


def row_scores(statistic: RowScores, batch: Batch) -> Ints:
    """Each row's coordinates, of integer norm at most the bound; integers, of that row alone."""
    scores = [
        np.asarray(row, dtype=np.int64).take(batch.cells(axis))
        for row, axis in zip(statistic.scores, statistic.axes, strict=True)
    ]
    w = np.zeros((batch.rows, len(statistic.weights)), dtype=np.int64)
    for f, weights in enumerate(statistic.weights):
        for score, weight in zip(scores, weights, strict=True):
            w[:, f] += weight * score
    return clipped(w, statistic.bound)


def _rows(codes: CodesByColumn) -> int:
    return len(next(iter(codes.values())))
