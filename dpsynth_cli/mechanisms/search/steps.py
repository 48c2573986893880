"""What the values of a column are rounded to, from noisy counts of rows by the step they are multiples of.

Most numbers that people write are rounded, and a column that is modelled between its real values has ties
nowhere and spikes beside them. Rows are counted by the largest step that their value is a multiple of; the
smallest of these that more rows have than noise would is the column's. Few other rows are rounded, which
moves them by half a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import STEPS, Column, exact
from dpsynth_cli.mechanisms.search.noise import reach
from dpsynth_cli.questions import Answer

SHARE = Fraction(1, 50)  # of the budget, for all columns together; or the least of these that shows the steps
MORE = tuple(Fraction(1, part) for part in (40, 30, 25, 20, 16))
FEW_ROWS = 2_200  # of so many rows, some of them round by chance: how many there are is not known yet
RARE = 0.005  # of the rows: so many may be rounded
CHANCE = 0.02  # that noise is taken for rows of a step
SEEN = 5.0  # times what noise may be: fewer rows show nothing
FEW = 64  # whole numbers that are not worth a look
MOST = 2**24  # values; a column of more is as good as continuous


def roundable(column: Column) -> bool:
    """Whether its step is not known, and would change anything."""
    if column.type == "integer":
        return column.step is None and column.unit == 1 and column.size >= FEW
    return (
        column.type == "continuous"
        and column.grid is None
        and column.scale == "linear"
        and column.upper > column.lower
    )


def share_for(sd: Callable[[Fraction], float]) -> Fraction:
    """What to spend, by the noise that the counts of a column have for it (Laplace noise, the longest)."""
    for share in (SHARE, *MORE):
        if SEEN * reach("discrete_laplace", sd(share), len(STEPS) + 1, CHANCE) <= FEW_ROWS:
            return share
    return SHARE


def asked_for(column: Column) -> Column:
    """The column whose codes are steps."""
    return replace(column, rounding=True)


def rounded(column: Column, answer: Answer) -> Column:
    """The column on the multiples of the step that was seen, its bounds moved inwards to such; as it was if
    none was.

    >>> price = Column("price", "continuous", lower=0.05, upper=9.99)
    >>> counts = np.bincount([6] * 40 + [7] * 2 + [8] * 957 + [23], minlength=24)
    >>> found = rounded(price, Answer(counts, (24,), "none", 1.0))
    >>> found.step, found.lower, found.upper, found.size
    (Fraction(1, 10), 0.1, 9.9, 99)
    """
    counts = answer.values[: len(STEPS) + 1].astype(np.float64)
    total, reached = float(counts.sum()), reach(answer.noise, answer.sd, len(counts), CHANCE)
    there = np.flatnonzero(counts > max(reached, RARE * total))
    if float(counts[there].sum()) < SEEN * reached or not len(there) or there[-1] == len(STEPS):
        return column
    step = STEPS[there[-1]]
    first, last = math.ceil(exact(column.lower) / step), math.floor(exact(column.upper) / step)
    if not 1 <= last - first < MOST or max(abs(first), abs(last)) > 2**50:
        return column
    if column.type == "integer":
        if step <= 1:
            return column
        return replace(column, step=step, lower=int(first * step), upper=int(last * step))
    return replace(column, step=step, lower=float(first * step), upper=float(last * step))
