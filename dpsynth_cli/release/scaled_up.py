"""The rows of a public table, asked as if there were more or fewer of them: what imagined releases sum up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import CellCounts, Ints, Misfit, Question, RowScores, UnitSizes
from dpsynth_cli.release.recode import recoded
from dpsynth_cli.trusted.sums.tables import distances


@dataclass(frozen=True)
class _OfUnits(Question):
    """A question about units, asked of rows: references have no units."""


def _as_rows(question: Question) -> Question:
    if not isinstance(question.statistic, UnitSizes):
        return question
    return _OfUnits(question.step, CellCounts(question.statistic.cells), question.share)


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
        questions = [_as_rows(question) for question in questions]
        tally = self.codes.tally(list(questions), self.asked)
        each = zip(questions, tally.sums(), tally.partial()[1], strict=True)
        answers = [self._scaled(*one) for one in each]
        self.passes, self.seconds = self.passes + 1, self.seconds + time.process_time() - start
        return answers

    def _scaled(self, question: Question, exact: Ints, added_up: Ints | None) -> Ints:
        if isinstance(question.statistic, RowScores):
            return np.resize(exact, self.rows * len(question.statistic.weights))
        if isinstance(question.statistic, Misfit):  # what is expected is of so many rows already
            assert added_up is not None
            return distances(question.statistic, self._times(added_up))
        if isinstance(question, _OfUnits):
            return self._spread(exact, self.asked.unit_rows or 1)
        return self._times(exact)

    def _spread(self, cells: Ints, k: int) -> Ints:
        """As many units of 1, 2, .. k rows: nothing is known of them."""
        each = cells * (self.rows / len(self.table)) / (k * (k + 1) / 2)
        return np.repeat(np.asarray(np.rint(each), np.int64), k)

    def _times(self, sums: Ints) -> Ints:
        return np.asarray(np.rint(sums * (self.rows / len(self.table))), np.int64)
