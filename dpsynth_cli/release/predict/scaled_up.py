"""The rows of a public table, asked as if there were more or fewer of them: what imagined releases sum up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.changes import change_zero, changes
from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.labels import KIND, is_label
from dpsynth_cli.questions import (
    Bins,
    CellCounts,
    Ints,
    Misfit,
    Question,
    RowScores,
    Total,
    UnitPairs,
    UnitSizes,
)
from dpsynth_cli.release.predict.recode import recoded
from dpsynth_cli.trusted.core.open_labels import LabelCounts
from dpsynth_cli.trusted.sums.tables import distances


@dataclass(frozen=True)
class _OfUnits(Question):
    """A question about units, asked of rows: references have no units."""

    edges: tuple[int, ...] = ()


def _as_rows(question: Question) -> Question:
    if isinstance(question.statistic, UnitPairs):
        return Question(question.step, Total(), question.share)
    if not isinstance(question.statistic, UnitSizes):
        return question
    asked = question.statistic
    return _OfUnits(question.step, CellCounts(asked.cells), question.share, edges=asked.edges)


@dataclass
class ScaledUp:
    """The rows of a table, as if there were `rows` of them; how often they were passed over, and how long."""

    table: Table
    omega: Domain  # of the table
    rows: int
    passes: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.codes, self.asked = self.table, self.omega

    def declare(self, asked: Domain) -> None:
        """The rows in the codes of other bounds and categories."""
        self.codes, self.asked = recoded(self.table, self.omega, asked), asked

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        start = time.process_time()
        as_rows = [_as_rows(question) for question in questions]
        tally = self.codes.tally(as_rows, self.asked)
        each = zip(as_rows, tally.sums(), tally.partial()[1], strict=True)
        answers = [self._scaled(*one) for one in each]
        for number, question in enumerate(questions):
            if isinstance(question.statistic, UnitPairs):
                answers[number] = self._pairs(question.statistic)
        self.passes, self.seconds = self.passes + 1, self.seconds + time.process_time() - start
        return answers

    def labels(self, names: Sequence[str]) -> Iterator[LabelCounts]:
        """The labels of columns of the table that are not the other one; a unit has one, and is taken for a
        row."""
        for place, name in enumerate(names):
            column = self.omega[name]
            counts = self._times(np.bincount(self.table.codes[name], minlength=column.codes)[: column.size])
            here = [i for i, label in enumerate(column.categories) if counts[i] > 0 and label != column.other]
            fits = [i for i in here if is_label(column.categories[i].encode())]
            yield place, np.array([column.categories[i].encode() for i in fits], KIND), counts[fits]

    def _scaled(self, question: Question, exact: Ints, added_up: Ints | None) -> Ints:
        if isinstance(question.statistic, RowScores):
            return np.resize(exact, self.rows * len(question.statistic.weights))
        if isinstance(question.statistic, Misfit):  # what is expected is of so many rows already
            assert added_up is not None
            return distances(question.statistic, self._times(added_up))
        if isinstance(question, _OfUnits):
            return self._spread(exact, question.edges)
        return self._times(exact)

    def _spread(self, cells: Ints, edges: tuple[int, ...]) -> Ints:
        """As many units of 1, 2, .. k rows: nothing is known of them."""
        each = cells * (self.rows / len(self.table)) / (edges[-1] * (edges[-1] + 1) / 2)
        return np.asarray(np.rint(np.outer(each, np.diff(edges))), np.int64).ravel()

    def _pairs(self, asked: UnitPairs) -> Ints:
        """Every row with the next one of the table, half as many pairs as rows: references have no order, and
        what follows there has nothing to do with what was before."""

        def place(axis: Bins, codes: Ints) -> Ints:
            return np.searchsorted(axis.edges, codes, side="right") - 1

        cell = np.zeros(len(self.codes), np.int64)
        for axes, values in (
            (asked.before, self._before),
            (asked.after, self._after),
            (asked.change, self._change),
        ):
            for axis in axes:
                cell = cell * (len(axis.edges) - 1) + place(axis, values(axis.column))
        axes = (*asked.before, *asked.after, *asked.change)
        cells = int(np.prod([len(axis.edges) - 1 for axis in axes]))
        return self._times(np.bincount(cell, minlength=cells)) // 2

    def _after(self, name: str) -> Ints:
        return np.asarray(self.codes.codes[name], np.int64)

    def _before(self, name: str) -> Ints:
        return np.roll(self._after(name), 1)

    def _change(self, name: str) -> Ints:
        zero = change_zero(self.asked[name])
        codes = changes(self.asked[name], self._before(name), self._after(name))
        return zero + np.abs(codes - zero) if name == self.asked.unit_order else codes  # time does not fall

    def _times(self, sums: Ints) -> Ints:
        return np.asarray(np.rint(sums * (self.rows / len(self.table))), np.int64)
