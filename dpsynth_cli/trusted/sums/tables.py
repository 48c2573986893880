"""Counts of rows in many tables at once, and how far tables are from what was expected. Exact integers.

Tables with axes in common are counted together: rows are counted once in the product of all their axes, which
has a bounded number of cells, and that is added up again for each table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod

import numpy as np

from dpsynth_cli.questions import Axis, Bins, Cells, Ints, Misfit
from dpsynth_cli.trusted.core.shapes import axis_cells, cell_count
from dpsynth_cli.trusted.sums.batch import Batch
from dpsynth_cli.trusted.sums.cells import joined

MOST = 2**14  # cells of a count: they stay in the processor's cache;
ROOM = 2**22  # and of all


@dataclass(frozen=True, eq=False)
class Counted:
    """What a table's counts are added to: classes x cells, or all cells where classes have cells of their
    own."""

    cells: Cells | tuple[Cells, ...]
    by: str | None
    total: Ints

    def axes(self) -> tuple[Axis, ...]:
        """The axes of which it is the product, the class first; none if it is not. Those of one cell change
        no number of a cell, and there may be more of them than an array may have axes."""
        if not isinstance(self.cells, Cells) or self.cells.order is not None:
            return ()
        label = () if self.by is None else (Bins(self.by, tuple(range(len(self.total) + 1))),)
        axes = tuple(axis for axis in (*label, *self.cells.axes) if axis_cells(axis) > 1)
        return axes if len(set(axes)) == len(axes) else ()


@dataclass
class Together:
    """Axes whose product is counted, and each table that is added up from it: its number, and the places of
    its axes among these."""

    axes: list[Axis]
    cells: int
    tables: list[tuple[int, list[int]]] = field(default_factory=list)
    counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


class Tables:
    """Tables that are counted batch by batch. Their totals are complete after `finish`."""

    def __init__(self, tables: Sequence[Counted]) -> None:
        self._tables = tables
        self._groups: list[Together] | None = None

    def add(self, batch: Batch) -> None:
        """Add the counts of a batch of rows."""
        if self._groups is None:  # a count costs as much as it has cells
            most = min(MOST, ROOM // max(1, len(self._tables)), 2 ** (batch.rows.bit_length() - 1))
            self._groups = together([table.axes() for table in self._tables], most)
        for group in self._groups:
            own = self._tables[group.tables[0][0]]
            total = own.total
            if len(group.tables) > 1:
                sizes = [axis_cells(axis) for axis in group.axes]
                number = joined([*zip(map(batch.cells, group.axes), sizes, strict=True)])
                counts = np.bincount(number, minlength=group.cells).reshape(sizes)
                group.counts = counts + group.counts if group.counts.size else counts
            elif total.size == 1:
                total += batch.rows
            else:
                count(total, batch.numbers(own.cells, own.by))

    def finish(self) -> None:
        """Add up what was counted together."""
        for group in self._groups or ():
            for at, places in group.tables if group.counts.size else ():
                total = self._tables[at].total
                total += added(group.counts, places).reshape(total.shape)
            group.counts = np.zeros(0, np.int64)


def together(tables: Sequence[tuple[Axis, ...]], most: int) -> list[Together]:
    """Tables, by their axes, in groups whose axes have a product of at most so many cells. One that has more,
    or has no axes, is alone.

    Those of most cells come first. Each goes where all of its axes are, else where it adds least.
    """
    groups: list[Together] = []
    homes: dict[Axis, set[int]] = {axis: set() for axes in tables for axis in axes}  # groups that have it
    room: set[int] = set()  # groups that another axis may go to
    size = {axis: axis_cells(axis) for axis in homes}
    least = min(size.values(), default=0)
    sizes = [prod(size[axis] for axis in axes) for axes in tables]
    for at in sorted(range(len(tables)), key=lambda at: -sizes[at]):
        axes = tables[at]
        if not axes or sizes[at] > most:
            groups.append(Together(list(axes), sizes[at], [(at, list(range(len(axes))))]))
            continue
        own = [homes[axis] for axis in axes]
        found = own[0].intersection(*own)
        if not found:
            near = room.intersection(own[0].union(*own))
            grown = {g: prod(size[axis] for axis in axes if g not in homes[axis]) for g in near}
            found = {g for g in near if groups[g].cells * grown[g] <= most}
            best = min(((grown[g], g) for g in found), default=(1, len(groups)))[1]
        else:
            best = min(found)
        if best == len(groups):
            groups.append(Together([], 1))
        group = groups[best]
        for axis in axes:
            if best not in homes[axis]:
                homes[axis].add(best)
                group.axes.append(axis)
                group.cells *= size[axis]
        group.tables.append((at, [group.axes.index(axis) for axis in axes]))
        (room.add if least * group.cells <= most else room.discard)(best)
    return groups


def count(total: Ints, cells: np.ndarray) -> None:
    """Add one to the cell of each row."""
    if total.size > len(cells) and total.flags.c_contiguous:  # a count of its own costs as much as its cells
        np.add.at(total.reshape(-1), cells, 1)
    else:
        total += np.bincount(cells, minlength=total.size).reshape(total.shape)


def added(table: Ints, axes: Sequence[int]) -> Ints:
    """The table summed over all axes but these, in their order."""
    return np.asarray(np.einsum(table, [*range(table.ndim)], [*axes]))


def distances(asked: Misfit, tables: Ints) -> Ints:
    """Of each table, class by class, the sum of |count - expected|.

    Claim: a row more or less moves each distance of its own class by 1 and none of another. It holds for the
    counts of all rows together, so this comes after the last merge, once.
    """
    expected = np.fromiter(chain.from_iterable(chain.from_iterable(asked.expected)), np.int64, len(tables))
    sizes = [cell_count(table) for table in asked.tables] * len(asked.expected)
    starts = np.cumsum([0, *sizes[:-1]])
    return np.asarray(np.add.reduceat(np.abs(tables - expected), starts))
