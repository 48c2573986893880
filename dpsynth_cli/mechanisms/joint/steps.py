"""How one column is drawn: its working level, its link, and a factor for each of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.mechanisms.joint.frame import Frame, Scope, Table
from dpsynth_cli.numeric.systematic import joined, mixed_by, sorted_by
from dpsynth_cli.questions import Floats, Ints

WORKING = 128  # cells of a column's working level, at most
LEAST = 1e-24  # what a cell gets that only another column asks for


@dataclass(frozen=True, eq=False)
class Factor:
    """A table by the cells of its other columns, class by class, and its own: counts, and what was fitted."""

    others: tuple[int, ...]
    levels: tuple[int, ...]
    group: Ints  # the table's own cell of each cell of the working level
    counts: Floats
    fit: Floats


@dataclass(frozen=True, eq=False)
class Step:
    """One column. If it is `linked`, the last factor is its link; `link` has that in finer cells of its own
    than the working level, if there are any: `group` is then the working cell of each."""

    column: int
    level: int
    start: Floats  # classes x cells of the working level
    factors: list[Factor]
    linked: bool
    link: Factor | None = None
    link_level: int = 0
    missing: int | None = None  # the cell that another column may ask for, whatever the link says

    def given(self) -> Floats:
        """The distribution by cells of the link, or by class: over cells of the working level."""
        if not self.linked:
            return self.start
        own = self.factors[-1]
        cells = own.counts.shape[1]
        even = np.repeat(self.start, len(own.counts) // len(self.start), axis=0)
        whole = joined(even, own.group, cells)
        sums = own.counts.sum(axis=1, keepdims=True)
        given = np.where(sums > 0, own.counts / np.maximum(sums, 1e-9), whole)
        inside = even / np.maximum(
            whole[:, own.group], 1e-300
        )  # of a cell of the table, as the column itself
        found = np.asarray(given[:, own.group] * inside)
        if self.missing is not None:
            found[:, self.missing] = np.maximum(found[:, self.missing], LEAST)
        return found


class Rows:
    """Rows that are being drawn: the class of each, and the finest cells of the columns so far. They are kept
    sorted by those columns, the latest first, so that rows that are next to each other are alike."""

    def __init__(self, frame: Frame, classes: Ints, rng: np.random.Generator) -> None:
        self.classes: NDArray[Any] = classes.astype(np.int32)  # half of what int64 takes
        self.cells: NDArray[Any] = np.zeros((len(frame.ladders), len(classes)), np.int32)
        self._frame, self._known = frame, dict[tuple[int, int], Ints]()
        self._order = mixed_by(classes, rng)

    def set(self, j: int, cells: Ints) -> None:
        """The finest cells of a column."""
        self.cells[j] = cells
        self._order = sorted_by(self.cell(j, self._frame.coarse[j]), self._order)

    def sorted(self, key: Ints) -> Ints:
        """The rows sorted by a key, and inside it by the columns so far."""
        return sorted_by(key, self._order)

    def index(self, columns: Sequence[int], levels: Sequence[int]) -> Ints:
        """The number of each row's cell in a table of these columns: the class first."""
        index = self.classes
        for i, level in zip(columns, levels, strict=True):
            index = index * self._frame.ladders[i].size(level) + self.cell(i, level)
        return index

    def cell(self, i: int, level: int) -> Ints:
        """The cell of each row in a column at a level."""
        if (i, level) not in self._known:
            level_of: NDArray[Any] = self._frame.ladders[i].levels[level].astype(np.int32)
            self._known[i, level] = level_of.take(self.cells[i])
        return self._known[i, level]


def step_of(
    frame: Frame, j: int, tables: Sequence[Table], link: Table | None, asked: Sequence[Scope]
) -> Step:
    """The step of column j: tables of most columns first, the link last."""
    ladder = frame.ladders[j]
    others = sorted((own for own in tables if own is not link), key=lambda own: -len(own.columns))
    levels = [own.levels[own.columns.index(j)] for own in others]
    levels += [own[columns.index(j)] for columns, own in asked]
    coarse = frame.coarse[j]
    level = max(coarse, min(max([*levels, coarse]), ladder.level(WORKING)))
    start = ladder.masses(level, frame.masses[j])
    start = start / np.maximum(start.sum(axis=1, keepdims=True), 1e-300)
    factors = [_factor(frame, own, j, level) for own in (*others, *([link] if link else []))]
    implied = any(j == b for _, b in frame.implied)
    missing = int(ladder.levels[level][-1]) if implied else None
    if link is None or link.levels[link.columns.index(j)] <= level:
        return Step(j, level, start, factors, link is not None, missing=missing)
    rest, coarser, counts, own = _turned(link, j)
    finer = Factor(rest, coarser, ladder.between(own, level), counts, counts)
    return Step(j, level, start, factors, True, finer, own, missing)


def _factor(frame: Frame, table: Table, j: int, level: int) -> Factor:
    """The table with column j last, in cells of the working level if its own are finer."""
    others, levels, counts, own = _turned(table, j)
    ladder = frame.ladders[j]
    if own > level:
        counts, own = joined(counts, ladder.between(own, level), ladder.size(level)), level
    return Factor(others, levels, ladder.between(level, own), counts, np.ones(counts.shape))


def _turned(table: Table, j: int) -> tuple[tuple[int, ...], tuple[int, ...], Floats, int]:
    at = table.columns.index(j)
    others = tuple(i for i in table.columns if i != j)
    levels = tuple(own for i, own in zip(table.columns, table.levels, strict=True) if i != j)
    counts = np.moveaxis(table.counts, at + 1, -1)
    return others, levels, counts.reshape(-1, counts.shape[-1]), table.levels[at]
