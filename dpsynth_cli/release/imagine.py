"""A release imagined over a public reference table: which questions would be asked, at what price, and how
far the result would be from the reference.

The reference is uniform over the declared domain, or a public table; nothing here depends on private data.
The noise is the real one, because mechanisms choose by noisy numbers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.tables import Sample, Table, uniform
from dpsynth_cli.questions import Ints, Misfit, Model, Question, RowScores
from dpsynth_cli.release.synthesis import accountant_of, run
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.curator import open_curator
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.sums.tables import distances

REFERENCE_ROWS = 100_000


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
    made: Table


def reference(spec: Spec, rows: int, table: Table | None = None) -> Table:
    """The public table, or a uniform one, of a size that a moment suffices for."""
    if table is None:
        return uniform(spec.domain, max(1, min(rows, REFERENCE_ROWS)))
    if not len(table):
        raise UsageError("the reference table has no rows.", next_step="Give one that has, or none.")
    return table.at_most(REFERENCE_ROWS)


def imagine(spec: Spec, rows: int, table: Table) -> Imagined:
    """Run the mechanism as if there were `rows` rows like those of the table, and draw from its model."""
    bill: list[Charge] = []
    passes, counting = 0, 0.0

    def sums(questions: Sequence[Question]) -> tuple[list[Ints], int]:
        nonlocal passes, counting
        start = time.process_time()
        tally = table.tally(list(questions), spec.domain)
        added_up = tally.partial()[1]
        answers = [scaled(*each) for each in zip(questions, tally.sums(), added_up, strict=True)]
        passes, counting = passes + 1, counting + time.process_time() - start
        return answers, rows

    def scaled(question: Question, exact: Ints, added_up: Ints | None) -> Ints:
        if isinstance(question.statistic, RowScores):
            return np.resize(exact, rows * len(question.statistic.weights))
        if isinstance(question.statistic, Misfit):  # what is expected is of so many rows already
            assert added_up is not None
            return distances(question.statistic, times(added_up))
        return times(exact)

    def times(sums: Ints) -> Ints:
        return np.asarray(np.rint(sums * (rows / len(table))), np.int64)

    accountant = accountant_of(spec)
    ask = open_curator(
        sums, spec.domain, accountant, system_source(), lambda charges, answers: None, lambda: None, (), bill
    )
    start = time.process_time()
    model = run(spec, ask).model
    seconds = time.process_time() - start - counting
    start = time.process_time()
    made = Sample(None)
    count = min(rows, REFERENCE_ROWS)
    for block in model.draw(count, np.random.default_rng(0)):
        made.add(block)
    a_row = (time.process_time() - start) / max(1, count)
    return Imagined(model, accountant, bill, passes, seconds, a_row, made.table(spec.domain))
