"""Values of two columns that leave a later one none: directional path consistency (Dechter and Pearl 1987).

Rows are drawn column by column. Where the link of a column has one empty cell and another of its tables has
another, two values of earlier columns may together leave it none; a row that has both must break one of the
tables. So such pairs are not drawn: with an origin no distance is drawn at which no destination of that
origin lies. All of it follows from cells that were found to be empty, the last column first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.mechanisms.joint.frame import Frame, Table
from dpsynth_cli.mechanisms.joint.steps import Rows
from dpsynth_cli.questions import Ints

Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Support:
    """Which cells of a column there are with which of an earlier one, `other`, each at a level."""

    other: int
    other_level: int
    level: int
    there: Bools  # cells of the other x its own

    def at(self, frame: Frame, column: int, level: int) -> Bools:
        """With the column's own cells at another level: a cell is there if any part of it is."""
        ladder = frame.ladders[column]
        if level >= self.level:
            return self.there[:, ladder.between(level, self.level)]
        coarser = ladder.between(self.level, level)
        order = np.argsort(coarser, kind="stable")
        starts = np.searchsorted(coarser[order], np.arange(ladder.size(level)))
        return np.asarray(np.logical_or.reduceat(self.there[:, order], starts, axis=1))


def dead_ends(
    frame: Frame, tables: Sequence[Table], order: Sequence[tuple[int, Table | None]]
) -> dict[int, list[Support]]:
    """For each column what later ones leave it, given earlier ones; `order` has columns with their links."""
    at = {j: number for number, (j, _) in enumerate(order)}
    own: dict[int, list[Support]] = {j: [] for j in at}
    for table in tables:
        if len(table.columns) == 2:
            later, support = _support(table, at)
            own[later].append(_with_missing(frame, later, support))
    found: dict[int, list[Support]] = {j: [] for j in at}
    for j, link in reversed(order):
        if link is None:
            continue
        first = _with_missing(frame, j, _support(link, at)[1])
        for second in (*own[j], *found[j]):
            if second.other == first.other or second.there.all():
                continue
            level = min(first.level, second.level)
            there = _composed(first.at(frame, j, level), second.at(frame, j, level))
            if not there.all():
                one, two = (first, second) if at[first.other] < at[second.other] else (second, first)
                there = there if one is first else there.T
                _add(
                    frame,
                    found[two.other],
                    two.other,
                    Support(one.other, one.other_level, two.other_level, there),
                )
    return found


def _add(frame: Frame, found: list[Support], column: int, new: Support) -> None:
    """One more, joined with what is known of the same cells of the other column."""
    for at, old in enumerate(found):
        if (old.other, old.other_level) == (new.other, new.other_level):
            level = max(old.level, new.level)
            there = old.at(frame, column, level) & new.at(frame, column, level)
            found[at] = Support(old.other, old.other_level, level, there)
            return
    found.append(new)


def possible(
    frame: Frame, supports: Sequence[Support], column: int, level: int, rows: Rows, above: int = -1
) -> list[tuple[Bools, Ints]]:
    """Tables of which cells of the column there are at a level, and the cell of each row in them; of what is
    told only in finer cells than those of the level `above`."""
    return [
        (one.at(frame, column, level), rows.cell(one.other, one.other_level))
        for one in supports
        if one.level > above
    ]


def _support(table: Table, at: dict[int, int]) -> tuple[int, Support]:
    """Of a table of two columns: the later one, and what there is of it."""
    there: Bools = np.asarray((table.counts > 0).any(axis=0))
    (one, two), (level_one, level_two) = table.columns, table.levels
    if at[one] > at[two]:
        return one, Support(two, level_two, level_one, there.T)
    return two, Support(one, level_one, level_two, there)


def _with_missing(frame: Frame, column: int, support: Support) -> Support:
    """A column that another one makes missing may be so whatever its tables say."""
    if all(column != implied for _, implied in frame.implied):
        return support
    there = support.there.copy()
    there[:, frame.ladders[column].levels[support.level][-1]] = True
    return Support(support.other, support.other_level, support.level, there)


def _composed(one: Bools, other: Bools) -> Bools:
    """Pairs of rows with a cell in common (whole numbers below 2^24: exact in any order)."""
    return np.asarray(one.astype(np.float32) @ other.T.astype(np.float32) > 0.5)
