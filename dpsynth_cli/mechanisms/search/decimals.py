"""How many decimals the values of a column have, from noisy counts of rows by that number.

Most numbers that people write are rounded, and a column that is modelled between its real values has ties
nowhere and spikes beside them. Rows are counted by the fewest decimals that their value can be written with;
the fewest that nearly all rows can are the column's, if rows can be told from noise at all. A row with more
is rounded, which moves it by half a step.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import DIGITS, Column, exact
from dpsynth_cli.questions import Answer

SHARE = Fraction(1, 50)  # of the budget, for all columns together
NEARLY = 0.995  # of the rows
SEEN = 8.0  # all rows, in standard deviations: fewer show nothing
DOUBT = 2.5  # standard deviations
MOST = 2**24  # values; a column of more is as good as continuous


def roundable(column: Column) -> bool:
    """Whether its decimals are not known, and would change anything."""
    return (
        column.type == "continuous"
        and column.grid is None
        and column.scale == "linear"
        and column.upper > column.lower
    )


def asked_for(column: Column) -> Column:
    """The column whose codes are decimals."""
    return replace(column, digits=True)


def rounded(column: Column, answer: Answer) -> Column:
    """The column on the grid of the decimals that were seen, its bounds moved inwards to that; as it was if
    none were.

    >>> price = Column("price", "continuous", lower=0.05, upper=9.99)
    >>> counts = np.array([0, 1, 2, 40, 957, 0, 0, 1, 0, 0, 0, 1, 0])
    >>> found = rounded(price, Answer(counts, (13,), "none", 1.0))
    >>> found.step, found.lower, found.upper, found.size
    (Fraction(1, 10), 0.1, 9.9, 99)
    """
    counts = answer.values[: DIGITS[1] - DIGITS[0] + 1].astype(np.float64)
    total, sd = float(counts.sum()), answer.sd
    if total < SEEN * sd * math.sqrt(len(counts)):
        return column
    more = total - np.cumsum(counts[:-1])
    doubt = DOUBT * sd * np.sqrt(np.arange(len(counts) - 1, 0, -1))
    few = np.flatnonzero(more <= (1 - NEARLY) * total + doubt)
    if not len(few):
        return column
    step = Fraction(10) ** -(int(few[0]) + DIGITS[0])
    first, last = math.ceil(exact(column.lower) / step), math.floor(exact(column.upper) / step)
    if not 1 <= last - first < MOST or max(abs(first), abs(last)) > 2**50:
        return column
    return replace(column, step=step, lower=float(first * step), upper=float(last * step))
