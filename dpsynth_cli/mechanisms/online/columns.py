"""Single columns of a stream of mixed tables: counted from its first release on, in cells that are public.

A categorical column is counted code by code, a numeric one on two levels of halves. Which cells there are
does not depend on rows, so that the counts can go on for as long as the stream does.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.shared.focus import axis_of
from dpsynth_cli.mechanisms.shared.oneway import Marginal, class_totals, estimated
from dpsynth_cli.mechanisms.shared.oneway_plan import COARSE, COARSE_SHARE, ColumnPlan, count, weight
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.questions import Answer, Bins, Question, Total
from dpsynth_cli.shares import divide

FINE = 10  # halvings of a numeric column


def plans_for(omega: Domain, share: Fraction) -> list[ColumnPlan]:
    """How each column is counted, for one share of all."""
    columns = omega.modelled
    shares = divide(share, [weight(column) for column in columns])
    return [_plan(omega, column, own) for column, own in zip(columns, shares, strict=True)]


def _plan(omega: Domain, column: Column, share: Fraction) -> ColumnPlan:
    scale = Scale.even(column.size, column.nullable)
    coarse, fine = (min(column.bits, bits + column.nullable) for bits in (COARSE, FINE))
    if column.categorical or column.bits <= coarse:
        every = Bins(column.name, tuple(range(column.codes + 1)))
        return ColumnPlan(column, scale, (), [count(omega, every, share)])
    levels = (coarse, fine) if fine >= coarse + 2 else (fine,)
    weights = [COARSE_SHARE, 1 - COARSE_SHARE] if len(levels) == 2 else [1.0]
    questions = [
        count(omega, axis_of(column, scale, level), own)
        for level, own in zip(levels, divide(share, weights), strict=True)
    ]
    return ColumnPlan(column, scale, levels, questions)


def column_questions(omega: Domain, total: Fraction, plans: Sequence[ColumnPlan]) -> list[Question]:
    """The number of rows, of all or of each class, then the columns."""
    return [Question("total", Total(), total, omega.strata)] + [q for plan in plans for q in plan.questions]


def marginals_of(
    omega: Domain, plans: Sequence[ColumnPlan], answers: Sequence[Answer]
) -> dict[str, Marginal]:
    """The marginal of each column, from the answers to `column_questions`."""
    total, *counts = answers
    sizes = Sizes(np.maximum(total.values.astype(np.float64), 0.0), total.sd**2)
    totals = class_totals(omega, sizes, counts)
    left = iter(counts)
    return {plan.column.name: estimated(plan, [next(left) for _ in plan.questions], totals) for plan in plans}
