"""Sums over units, and over pairs of rows of one unit: as counts of a table that has one row a unit, or a
pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpsynth_cli.changes import change_codes, changes
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Bins, CellCounts, Cells, Ints, Question, UnitPairs, UnitSizes
from dpsynth_cli.trusted.engines import SumOver
from dpsynth_cli.trusted.rows.encode import Codes
from dpsynth_cli.trusted.rows.kept_rows import Kept
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import Piece
from dpsynth_cli.trusted.rows.unit_rows import SIZE
from dpsynth_cli.trusted.rows.unit_runs import BEFORE, FAR_RANK, FIRST, NONE, RANK

CHANGE, FAR_CHANGE = "\0change ", "\0far change "  # in front of the names of columns


@dataclass(frozen=True)
class KeptUnits:
    """The rows that were kept of all units, the units, and pairs of their rows."""

    rows: Kept
    each: Kept
    pairs: Kept

    def sums(self, sum_over: SumOver, omega: Domain, questions: Sequence[Question]) -> list[Ints]:
        """The exact integers of the questions, each of the table that it is about."""
        found: dict[int, Ints] = {}

        def add_up(table: Kept | Pairs, columns: Domain, asked: Mapping[int, Question]) -> None:
            if asked:
                found.update(zip(asked, sum_over(table, columns, list(asked.values()))[0], strict=True))

        numbered = list(enumerate(questions))
        of_units = {n: counted(one) for n, one in numbered if isinstance(one.statistic, UnitSizes)}
        of_pairs = {n: paired(one, omega) for n, one in numbered if isinstance(one.statistic, UnitPairs)}
        add_up(self.rows, omega, {n: one for n, one in numbered if n not in of_units | of_pairs})
        add_up(self.each, unit_domain(omega), of_units)
        add_up(Pairs(self.pairs, omega), pair_domain(omega), of_pairs)
        for n, one in numbered:
            if isinstance(one.statistic, UnitPairs):
                found[n] = np.ascontiguousarray(found[n].reshape(2, -1)[0])  # not those beyond `most`
        return [found[n] for n, _ in numbered]

    def close(self) -> None:
        for table in (self.rows, self.each, self.pairs):
            table.close()


class Pairs:
    """A table of pairs whose changes are made when they are asked for."""

    def __init__(self, kept: Kept, omega: Domain) -> None:
        self._kept, self._omega = kept, omega
        self._wanted: list[str] = []

    def only(self, names: Sequence[str]) -> Pairs:
        part = Pairs(self._kept, self._omega)
        part._wanted = list(names)
        return part

    def count_rows(self) -> int:
        return self._kept.rows

    def pieces(self) -> Iterator[Piece]:
        return self._kept.pieces()

    def encode(self, piece: Piece, counted: Problems | None = None) -> dict[str, Codes]:
        codes = self._kept.encode(piece)
        for column in self._omega:
            for name, earlier in ((CHANGE, BEFORE), (FAR_CHANGE, FIRST)):
                if name + column.name in self._wanted:
                    before, after = codes[earlier + column.name], codes[column.name]
                    codes[name + column.name] = changes(column, before, after).astype(np.int32)
        return {name: codes[name] for name in self._wanted}


def unit_domain(omega: Domain) -> Domain:
    """The columns of a table of units: those of a row, and how many rows it has."""
    size = Column(SIZE, "integer", lower=1, upper=omega.unit_rows or 1)
    return replace(omega, columns=(*omega.columns, size))


def pair_domain(omega: Domain) -> Domain:
    """The columns of a table of pairs: those of the two rows, changes, and ranks."""
    earlier = [replace(one, name=prefix + one.name) for prefix in (BEFORE, FIRST) for one in omega]
    changed = [
        Column(prefix + one.name, "integer", lower=0, upper=change_codes(one) - 1)
        for prefix in (CHANGE, FAR_CHANGE)
        for one in omega
    ]
    ranks = [Column(name, "integer", lower=0, upper=int(NONE)) for name in (RANK, FAR_RANK)]
    return replace(omega, columns=(*omega.columns, *earlier, *changed, *ranks))


def counted(question: Question) -> Question:
    """A question about sizes as counts of the table of units."""
    assert isinstance(question.statistic, UnitSizes)
    size = Bins(SIZE, question.statistic.edges)  # code 0 is one row
    return replace(question, statistic=CellCounts(Cells((*question.statistic.cells.axes, size))))


def paired(question: Question, omega: Domain) -> Question:
    """A question about pairs as counts of their table: first of those whose rank is below `most`."""
    asked = question.statistic
    assert isinstance(asked, UnitPairs)
    earlier, changed, rank = (FIRST, FAR_CHANGE, FAR_RANK) if asked.far else (BEFORE, CHANGE, RANK)
    axes = [Bins(rank, (0, asked.most, pair_domain(omega)[rank].codes))]
    axes += [replace(axis, column=earlier + axis.column) for axis in asked.before]
    axes += asked.after
    axes += [replace(axis, column=changed + axis.column) for axis in asked.change]
    return replace(question, statistic=CellCounts(Cells(tuple(axes))))
