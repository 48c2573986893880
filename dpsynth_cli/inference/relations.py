"""Which relations of columns a transcript has: counted, looked at, or assumed.

Two columns are *counted* together where a table has both, or a signed sum of columns of two values; *summed*
where both are in other sums (products, scores); *looked at* where their table was only compared with a
prediction (`Misfit`): how far it is from that is known, but not in which way; *assumed* else: the model takes
them as independent, given the columns that connect them if there are such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.inference.tables import Counted, Signed, counted_tables
from dpsynth_cli.mechanisms.search.find import STEP
from dpsynth_cli.numeric.selection import sampling_part
from dpsynth_cli.questions import (
    Affine,
    Answer,
    Axis,
    Distance,
    Misfit,
    Question,
    Scored,
    UnitPairs,
    UnitSizes,
)
from dpsynth_cli.trusted.core.shapes import columns_of

COUNTED, SUMMED, LOOKED, ASSUMED = "counted", "summed", "looked at", "assumed"


@dataclass(frozen=True)
class Gap:
    """How far a pair's table is from what the model expects, as a part of all rows: beyond chance, and the
    noise of that."""

    beyond: float
    noise: float


@dataclass(frozen=True, eq=False)
class Known:
    """All that answers tell: tables, signed sums, and the gaps of pairs that were looked at."""

    domain: Domain
    total: int
    tables: list[Counted]
    signed: list[Signed]
    gaps: dict[frozenset[str], Gap]
    summed: list[set[str]]  # columns of answers that are neither

    @property
    def together(self) -> list[tuple[str, ...]]:
        """The columns of each table and signed sum."""
        return [table.columns for table in self.tables] + [one.columns for one in self.signed]

    def relation(self, one: str, other: str) -> str:
        """What is known of two columns together."""
        if any({one, other} <= set(table.columns) for table in self.tables):
            return COUNTED
        products = [sum_ for sum_ in self.signed if {one, other} <= set(sum_.columns)]
        if any(all(self.domain[name].codes == 2 for name in sum_.columns) for sum_ in products):
            return COUNTED
        if products or any({one, other} <= columns for columns in self.summed):
            return SUMMED
        return LOOKED if frozenset((one, other)) in self.gaps else ASSUMED

    def apart(self, name: str, code: int, partner: str) -> bool:
        """Whether a category has been counted by itself, together with another column."""
        if any({name, partner} <= set(one.columns) for one in self.signed):
            return True
        return any(table.alone(self.domain[name], code) for table in self.with_columns((name, partner)))

    def counts(self, name: str) -> bool:
        """Whether the values of a column were counted: by a table, or a sum that tells two of them apart."""
        two = self.domain[name].codes == 2 and any(set(one.columns) == {name} for one in self.signed)
        return two or bool(self.with_columns([name]))

    def with_columns(self, columns: Sequence[str]) -> list[Counted]:
        """The tables that have all of these columns."""
        return [table for table in self.tables if set(columns) <= set(table.columns)]

    def connected(self, one: str, other: str) -> bool:
        """Whether counted tables lead from one column to the other."""
        reached, before = {one}, set[str]()
        while reached != before:
            before = set(reached)
            for columns in self.together:
                if reached & set(columns):
                    reached |= set(columns)
        return other in reached

    def pairs(self) -> list[tuple[str, str]]:
        return list(combinations([column.name for column in self.domain], 2))


def known(asked: Sequence[tuple[Question, Answer]], domain: Domain, total: int) -> Known:
    """What questions and their answers tell about columns; those that looked for their bounds, steps or
    categories had other codes, and are left out."""
    asked = [(question, answer) for question, answer in asked if question.step != STEP]
    tables, signed = counted_tables(asked, domain)
    gaps: dict[frozenset[str], Gap] = {}
    for question, answer in asked:
        if isinstance(question.statistic, Misfit):
            gaps |= _gaps(question.statistic, answer, max(1, total))
    counted = {table.number for table in tables} | {one.number for one in signed}
    summed = [
        columns_of([question])
        for number, (question, _) in enumerate(asked)
        if number not in counted and not isinstance(question.statistic, Misfit | UnitSizes | UnitPairs)
    ]
    return Known(domain, total, tables, signed, gaps, summed)


def _gaps(misfit: Misfit, answer: Answer, rows: int) -> dict[frozenset[str], Gap]:
    """The gap of every table of two columns (and of a class, which is no column of the pair)."""
    found: dict[frozenset[str], Gap] = {}
    for t, cells in enumerate(misfit.tables):
        names = [next(iter(_names(axis))) for axis in cells.axes if len(_names(axis)) == 1]
        expected = [np.asarray(own[t], np.float64) for own in misfit.expected]
        chance = sum(float(sampling_part(table).sum()) for table in expected)
        value = float(sum(block[t] for block in answer.blocks))
        noise = answer.sd * len(answer.blocks) ** 0.5 / 2 / rows
        gap = Gap(max(0.0, (value - chance) / 2 / rows), noise)
        for pair in combinations(names, 2):
            found[frozenset(pair)] = gap
    return found


def _names(axis: Axis) -> set[str]:
    if isinstance(axis, Scored):
        return {attribute.column for attribute in axis.attributes}
    return set(axis.columns) if isinstance(axis, Affine | Distance) else {axis.column}
