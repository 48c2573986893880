"""Sums over units: questions about how many rows they have, as counts of a table that has one row a unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Bins, CellCounts, Cells, Ints, Question, UnitSizes
from dpsynth_cli.trusted.engines import SumOver
from dpsynth_cli.trusted.rows.unit_rows import SIZE, Kept


@dataclass(frozen=True)
class KeptUnits:
    """The rows that were kept of all units, and the units."""

    rows: Kept
    each: Kept

    def sums(self, sum_over: SumOver, omega: Domain, questions: Sequence[Question]) -> list[Ints]:
        """The exact integers of the questions, each of the table that it is about."""
        of_rows = [one for one in questions if not isinstance(one.statistic, UnitSizes)]
        of_units = [counted(one, omega) for one in questions if isinstance(one.statistic, UnitSizes)]
        found = iter(sum_over(self.rows, omega, of_rows)[0] if of_rows else [])
        also = iter(sum_over(self.each, unit_domain(omega), of_units)[0] if of_units else [])
        return [next(also if isinstance(one.statistic, UnitSizes) else found) for one in questions]

    def close(self) -> None:
        self.rows.close()
        self.each.close()


def unit_domain(omega: Domain) -> Domain:
    """The columns of a table of units: those of a row, and how many rows it has."""
    size = Column(SIZE, "integer", lower=1, upper=omega.unit_rows or 1)
    return replace(omega, columns=(*omega.columns, size))


def counted(question: Question, omega: Domain) -> Question:
    """A question about sizes as counts of the table of units."""
    assert isinstance(question.statistic, UnitSizes)
    size = Bins(SIZE, tuple(range((omega.unit_rows or 1) + 1)))
    return replace(question, statistic=CellCounts(Cells((*question.statistic.cells.axes, size))))
