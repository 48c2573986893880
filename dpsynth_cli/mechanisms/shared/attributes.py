"""A column as an attribute of few cells: what tables of several columns are made of.

The cells are runs of the column's private marginal, joined until they are few: a code that many rows have
stays alone, missing too, and the others are joined to about equal masses, so cells are finer where rows are.
A row that is drawn in a cell gets its code from the marginal again, so numbers stay as fine as that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from dpsynth_cli.numeric.decks import Deck, dealt
from dpsynth_cli.numeric.systematic import within
from dpsynth_cli.questions import Bins, Floats, Ints

CARDS = 2**15  # of a cell's deck, at most


@dataclass(frozen=True, eq=False)
class Attribute:
    """A column, its marginal, and the run at which each of its cells begins."""

    column: Column
    marginal: Marginal
    start: Ints

    @cached_property
    def axis(self) -> Bins:
        """The cells as a question names them."""
        return Bins(self.column.name, (*self.marginal.first[self.start].tolist(), self.column.codes))

    @property
    def cells(self) -> int:
        return len(self.start)

    def masses(self, k: int) -> Floats:
        """The mass of each cell in class k."""
        return np.add.reduceat(self.marginal.masses[k], self.start)

    def decks(self, k: int, rows: Ints, rng: np.random.Generator) -> list[Deck]:
        """For each cell a deck of its runs in class k, to deal so many rows of."""
        ends = [*self.start[1:].tolist(), len(self.marginal.first)]
        return [
            self.marginal.deck(k, count, rng, slice(first, end), CARDS)
            for first, end, count in zip(self.start.tolist(), ends, rows.tolist(), strict=True)
        ]

    def codes(self, classes: Ints, cells: Ints, rng: np.random.Generator) -> Ints:
        """A code for each row, given its class and cell: every cell's rows are spread as the marginal is."""
        if self.cells == len(self.marginal.first):
            return self.marginal.codes(cells, rng)
        weights, cell = self._inside
        return self.marginal.codes(within(weights, classes, cell, cells, rng), rng)

    @cached_property
    def _inside(self) -> tuple[Floats, Ints]:
        """The masses of runs by class, their widths in a cell of no mass; and the cell of each run."""
        cell = np.repeat(np.arange(self.cells), np.diff(np.append(self.start, len(self.marginal.first))))
        masses = np.array(self.marginal.masses)
        empty = np.array([self.masses(k) <= 0 for k in range(len(masses))])
        even = self.marginal.width / self.marginal.width.sum()
        return np.where(empty[:, cell], even, masses), cell


class Spread:
    """Codes for rows of class k whose cells are given: every cell's rows are spread as the marginal is, and
    not in the same way when they are asked for again, so many times."""

    def __init__(self, own: Attribute, k: int, cells: Ints, times: int, rng: np.random.Generator) -> None:
        self._own, self._cells = own, cells.astype(np.min_scalar_type(own.cells))
        self._order: NDArray[np.intp] | None = None
        if own.cells < len(own.marginal.first):
            self._order = np.argsort(self._cells, kind="stable")
            self._counts = np.bincount(cells, minlength=own.cells)
            self._decks = own.decks(k, self._counts * times, rng)

    def codes(self, rng: np.random.Generator) -> Ints:
        runs: NDArray[Any] = self._cells
        if self._order is not None:
            runs = np.empty(len(self._cells), np.int32)
            runs[self._order] = dealt(self._decks, self._counts)
        return self._own.marginal.codes(runs, rng)


def attribute(column: Column, marginal: Marginal, most: int, cuts: Sequence[int] = ()) -> Attribute:
    """The column in at most `most` cells (one more for missing); categories stay as they are.

    `cuts` are codes at which a cell must begin, each for one cell more.
    """
    if len(cuts):
        own = attribute(column, _cut(marginal, cuts), most)
        return replace(own, start=np.union1d(own.start, np.searchsorted(own.marginal.first, cuts)))
    runs = len(marginal.first)
    if column.categorical or runs <= most:
        return Attribute(column, marginal, np.arange(runs))
    values = runs - column.nullable  # missing is the last run
    mass = np.sum(marginal.masses, axis=0)[:values]
    start = joined(mass, most)
    return Attribute(column, marginal, np.append(start, values) if column.nullable else start)


def _cut(marginal: Marginal, cuts: Sequence[int]) -> Marginal:
    """The same marginal, with runs that end at the cuts: their masses are even over their codes."""
    first = np.union1d(marginal.first, cuts)
    run = np.searchsorted(marginal.first, first, side="right") - 1
    width = np.diff(np.append(first, marginal.first[-1] + marginal.width[-1]))
    masses = [mass[run] * (width / marginal.width[run]) for mass in marginal.masses]
    counted = marginal.first if marginal.counted is None else marginal.counted
    return Marginal(first, width, masses, counted, marginal.stands)


def joined(mass: Floats, most: int) -> Ints:
    """Where to begin cells so that they are at most `most`: heavy runs alone, others of about equal mass.

    >>> joined(np.array([1.0, 1.0, 90.0, 1.0, 1.0, 1.0, 1.0]), 4).tolist()
    [0, 2, 3, 5]
    """
    share = float(most)
    while True:
        heavy = mass >= mass.sum() / share if share > 1 else np.zeros(len(mass), bool)
        light = np.where(heavy, 0.0, mass)
        before = (np.cumsum(light) - light) / max(light.sum(), 1e-300) * max(1.0, share - heavy.sum())
        part = np.floor(np.round(before, 9))  # all but whole is whole: no last bit decides
        begins = np.append(True, heavy[1:] | heavy[:-1] | (np.diff(part) > 0))
        if begins.sum() <= most or share <= 1:
            return np.flatnonzero(begins)
        share *= 0.9
