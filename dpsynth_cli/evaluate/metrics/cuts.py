"""Columns cut into cells in the data's own terms: at quantiles of the real column, spikes alone.

Declared bounds do not enter, so a loose bound hides nothing. A category is a cell; so is each value of a
column with few different whole numbers, which counts as a category wherever columns are told apart by their
kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.scales import decimals, known
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Floats

PARTS = {1: 32, 2: 16, 3: 8, 4: 6, 5: 4}  # of a number in tables of so many columns
FEW = 30  # different whole numbers, at most, that are categories
DENSE = 4_000_000  # cells up to which a table is counted in an array
LOOKED_UP = 100_000  # codes of a column up to which their cells are kept in an array

Columns: TypeAlias = tuple[str, ...]
Codes: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cut:
    """Where a column is cut: `at` sorted codes. Of a category each of these is a cell, and all others are
    one; of a number each is a cell too, and so is what lies between two. Missing has the last one."""

    column: Column
    at: Codes
    category: bool

    @property
    def size(self) -> int:
        return (len(self.at) + 2) if self.category else (2 * len(self.at) + 2)

    def cells(self, codes: NDArray[Any]) -> Codes:
        """The cell of each code.

        >>> x = Column("x", "integer", lower=0, upper=99, nullable=True)
        >>> Cut(x, np.array([10, 20]), category=False).cells(np.array([3, 10, 15, 20, 99, 100])).tolist()
        [0, 1, 2, 3, 4, 5]
        """
        if self.column.codes <= min(LOOKED_UP, len(codes)):
            return np.asarray(self._found(np.arange(self.column.codes))[codes], np.int64)
        return self._found(codes.astype(np.int64))

    def _found(self, codes: Codes) -> Codes:
        place = np.searchsorted(self.at, codes)
        on = np.zeros(len(codes), bool)
        if len(self.at):
            on = self.at[np.minimum(place, len(self.at) - 1)] == codes
        found = np.where(on, place, len(self.at)) if self.category else 2 * place + on
        if self.column.nullable:
            found[codes == self.column.size] = self.size - 1
        return np.asarray(found, np.int64)


def cut(column: Column, real: NDArray[Any], parts: int, category: bool) -> Cut:
    """A column cut by its real codes."""
    there = known(real, column)
    if category:
        return Cut(column, np.unique(there).astype(np.int64), True)
    there = np.sort(there)
    at = there[np.arange(1, parts) * len(there) // parts] if len(there) else there
    return Cut(column, np.unique(at).astype(np.int64), False)


def is_category(column: Column, real: NDArray[Any]) -> bool:
    """Whether a column is one of categories: by its declaration, or because its real values are few whole
    numbers."""
    if column.categorical or column.type in ("date", "datetime"):
        return column.categorical
    there = known(real, column)
    few = np.unique(there[:1000])
    if len(few) > FEW:
        return False
    few = np.unique(there)
    return 0 < len(few) <= FEW and decimals(few, column, of=1.0) == 0


def kinds(real: Table, domain: Domain) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """The columns of categories, and those of numbers."""
    category = {column.name: is_category(column, real.codes[column.name]) for column in domain}
    return tuple(c for c in domain if category[c.name]), tuple(c for c in domain if not category[c.name])


class CutTables:
    """Tables cut alike: the cell of each row in each column, and how many there are."""

    def __init__(self, real: Table, tables: tuple[Table, ...], domain: Domain, parts: int) -> None:
        self.sizes: dict[str, int] = {}
        self.cells: list[dict[str, Codes]] = [{} for _ in tables]
        self.rows = [len(table) for table in tables]
        for column in domain:
            own = real.codes[column.name]
            where = cut(column, own, parts, is_category(column, own))
            self.sizes[column.name] = where.size
            for cells, table in zip(self.cells, tables, strict=True):
                cells[column.name] = where.cells(table.codes[column.name]).astype(np.int32)

    def numbers(self, columns: Columns) -> tuple[list[Codes], int]:
        """The cell of each row in the table of these columns, row-major, and how many there are: all of them,
        or those that have a row where all are very many."""
        first, *rest = columns
        whole = self.sizes[first]
        found = [cells[first] for cells in self.cells]
        for name in rest:
            size = self.sizes[name]
            if whole * size >= 2**62:
                found, whole = _renumbered(found)
            kind = np.int32 if whole * size < 2**31 else np.int64
            found = [own.astype(kind, copy=False) * kind(size) for own in found]
            for own, cells in zip(found, self.cells, strict=True):
                own += cells[name]
            whole *= size
        return (found, whole) if whole <= DENSE else _renumbered(found)

    def shares(self, columns: Columns) -> list[Floats]:
        """The parts of the rows of each table in each cell."""
        found, whole = self.numbers(columns)
        return [np.bincount(own, minlength=whole) / max(1, len(own)) for own in found]

    def tvd(self, columns: Columns) -> float:
        """The total variation distance of the first two tables."""
        found, whole = self.numbers(columns)
        one, other = (max(1, rows) for rows in self.rows[:2])
        # Whole numbers: equal shares are equal.
        weights = np.repeat([float(other), -float(one)], self.rows[:2])
        away = np.bincount(np.concatenate(found[:2]), weights, whole)
        return float(np.abs(away, out=away).sum() / (2 * one * other))


def distance(p: Floats, q: Floats) -> float:
    """Total variation distance of two tables of proportions."""
    return float(np.abs(p - q).sum() / 2)


def _renumbered(found: list[Codes]) -> tuple[list[Codes], int]:
    """Only cells that occur, in their order."""
    there, number = np.unique(np.concatenate(found), return_inverse=True)
    return np.split(number, np.cumsum([len(own) for own in found])[:-1]), max(1, len(there))
