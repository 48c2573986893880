"""A release imagined over a public reference table: which questions would be asked, at what price.

The reference is uniform over the declared domain, so nothing here depends on any data. The noise is
the real one, because mechanisms choose by noisy numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsynth_cli.accounting import accountant_of
from dpsynth_cli.questions import Ints, Model, Question
from dpsynth_cli.spec import Spec
from dpsynth_cli.trusted.accountant import Accountant
from dpsynth_cli.trusted.curator import open_curator
from dpsynth_cli.trusted.prices import Charge
from dpsynth_cli.trusted.source import system_source
from dpsynth_cli.trusted.sums import Tally

REFERENCE_ROWS = 20_000


def imagine(spec: Spec, rows: int) -> tuple[Model, Accountant, list[Charge]]:
    """Run the mechanism on a uniform table of `rows` rows; what it would ask, and what that costs."""
    rng = np.random.default_rng(0)
    count = max(1, min(rows, REFERENCE_ROWS))
    codes = {column.name: rng.integers(column.codes, size=count) for column in spec.domain}

    def sums(questions: Sequence[Question]) -> tuple[list[Ints], int]:
        tally = Tally(questions, spec.domain)
        tally.add(codes, count)
        scaled = [np.rint(exact * (rows / count)).astype(np.int64) for exact in tally.sums()]
        return scaled, rows

    accountant = accountant_of(spec)
    bill: list[Charge] = []
    ask = open_curator(
        sums, spec.domain, accountant, system_source(), lambda charges, answers: None, lambda: None, (), bill
    )
    model = spec.mechanism.run(ask, spec.domain, spec.params, spec.split)
    return model, accountant, bill
