"""A release imagined over a public reference table: which questions would be asked, at what price, and what
rows would come out.

References are the generated tables of `family.py`, or a public table; nothing here depends on private data.
The noise is the real one, because mechanisms choose by noisy numbers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.tables import Sample, Table
from dpsynth_cli.questions import CellCounts, Ints, Misfit, Model, Question, RowScores, UnitSizes
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.family import family
from dpsynth_cli.release.recode import recoded
from dpsynth_cli.release.synthesis import run
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.sums.tables import distances

LIKE_ROWS = 100_000  # of a public table
FAMILY_ROWS = 20_000  # of each generated one
DRAWN_ROWS = 50_000  # that are compared with a reference, at most, if it has no more itself
LIKE = "like"  # what a public table is called among references


@dataclass(frozen=True)
class Imagined:
    """What a release of `rows` rows like the reference did. Seconds are of this machine's processor: of the
    mechanism by itself, and of one row drawn; `passes` is how often rows were read.
    """

    model: Model
    accountant: Accountant
    bill: list[Charge]
    passes: int
    seconds: float
    seconds_a_row: float


def references(spec: Spec, rows: int, like: Table | None = None) -> dict[str, Table]:
    """The public table, or the family, each of a size that a moment suffices for."""
    if like is None:
        return family(spec, max(1, min(rows, FAMILY_ROWS)))
    if not len(like):
        raise UsageError("the reference table has no rows.", next_step="Give one that has, or none.")
    return {LIKE: like.at_most(LIKE_ROWS)}


@dataclass(frozen=True)
class _OfUnits(Question):
    """A question about units, asked of rows: references have no units."""

    edges: tuple[int, ...] = ()


def _as_rows(question: Question) -> Question:
    if not isinstance(question.statistic, UnitSizes):
        return question
    asked = question.statistic
    return _OfUnits(question.step, CellCounts(asked.cells), question.share, edges=asked.edges)


@dataclass
class _ScaledUp:
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
            return self._spread(exact, question.edges)
        return self._times(exact)

    def _spread(self, cells: Ints, edges: tuple[int, ...]) -> Ints:
        """As many units of 1, 2, .. k rows: nothing is known of them."""
        each = cells * (self.rows / len(self.table)) / (edges[-1] * (edges[-1] + 1) / 2)
        return np.asarray(np.rint(np.outer(each, np.diff(edges))), np.int64).ravel()

    def _times(self, sums: Ints) -> Ints:
        return np.asarray(np.rint(sums * (self.rows / len(self.table))), np.int64)


def imagine(spec: Spec, rows: int, table: Table) -> tuple[Imagined, Table]:
    """Run the mechanism as if there were `rows` rows like those of the table, and draw from its model."""
    scaled_up = _ScaledUp(table, spec.domain, rows)
    bill = Bill(spec.domain, accountant_of(spec))
    start = time.process_time()
    ask = open_curator(scaled_up, bill, system_source(), InMemory())
    outcome = run(spec, ask, bill, 0, DRAWN_ROWS, scaled_up.declare)
    model = outcome.model
    seconds = time.process_time() - start - scaled_up.seconds
    start = time.process_time()
    made = Sample(None)
    count = min(rows, max(len(table), DRAWN_ROWS))
    for block in model.draw(count, np.random.default_rng(0)):
        made.add(block)
    a_row = (time.process_time() - start) / max(1, count)
    found = Imagined(model, bill.accountant, bill.charges, scaled_up.passes, seconds, a_row)
    domain = outcome.found.domain
    return found, recoded(made.table(domain), domain, spec.domain)
