"""One table of all columns, where the budget is so large that noise would hardly change a count.

Then nothing is modelled: a cell has the rows that were counted in it. Whether it is asked is a public rule:
over all cells noise should add or take fewer rows than a small part of all.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.joint.cube import impossible
from dpsynth_cli.mechanisms.joint.cube_plan import Tables
from dpsynth_cli.mechanisms.joint.cube_rows import drawing
from dpsynth_cli.mechanisms.shared.rules import Rules
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.questions import Ask, CellCounts, Model, Question

MOST_CELLS = 2**20
WRONG = 0.01  # of the rows, that noise may add or take
NOTE = (
    "The budget is so large that all columns were counted together, with next to no noise: the output has "
    "nearly the same rows as the input. A smaller epsilon protects them."
)


def run(ask: Ask, omega: Domain, sizes: Sizes, rest: Fraction, rules: Rules) -> Model | None:
    """The model for the share that is left of the budget; None, and nothing asked, where noise would show."""
    columns = list(omega)
    cells = math.prod(column.codes for column in columns)
    if cells > MOST_CELLS:
        return None
    question = Question("whole", CellCounts(Tables(columns).cells(tuple(range(len(columns))))), rest)
    if cells * ask.sd(question) ** 2 > WRONG * sizes.at_least:  # the noise is an integer: at most its square
        return None
    counts = np.maximum(ask([question])[0].values, 0).astype(np.float64)
    never = impossible(omega, rules)
    if never is not None:
        counts[never] = 0.0
    rows = int(sizes.total if omega.rows_public else counts.sum())
    if not counts.any():
        counts = np.ones(cells) if never is None else np.where(never, 0.0, 1.0)
    return Model(
        rows, drawing(columns, counts / counts.sum(), few=0), (NOTE,), {"cells": cells, "whole": True}
    )
