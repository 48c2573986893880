"""Columns of two values: what is asked of them are characters, sums of products of +1 and -1.

A table of two such columns has one number beyond its sums, and one of three has one beyond its pairs: the sum
over rows of the product of their signs. Asked by itself it has a quarter (an eighth) of the noise variance
that the counts of all cells leave in it. Known as the Fourier or Walsh-Hadamard basis (Barak et al. 2007).
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from dpsynth_cli.questions import Ask, Bins, Floats, Gram, Question, Scored

SIGNS = (1, -1)


def binary(column: Column) -> bool:
    return column.codes == 2


def character(step: str, columns: list[Column], share: Fraction, by: str | None) -> Question:
    """The question for one, two or more columns of two values."""
    axes = [Bins(column.name, (0, 1, 2)) for column in columns]
    *several, last = axes
    if not several:
        return Question(
            step, Gram((last, Bins(last.column, (0, 2))), scores=(SIGNS, (1,)), bits=1), share, by
        )
    if len(several) == 1:
        return Question(step, Gram((several[0], last), scores=(SIGNS, SIGNS), bits=1), share, by)
    cells = 2 ** len(several)
    number = Scored(tuple(several), tuple((0, 2**at) for at in range(len(several))), tuple(range(cells + 1)))
    parity = tuple(-1 if bin(cell).count("1") % 2 else 1 for cell in range(cells))
    return Question(step, Gram((number, last), scores=(parity, SIGNS), bits=1), share, by)


def pattern(order: int) -> Floats:
    """The sign of each cell of a table of so many columns."""
    return np.asarray(reduce(np.multiply.outer, [np.array([1.0, -1.0])] * order))


def ask_signs(
    ask: Ask, omega: Domain, columns: list[Column], totals: Floats, share: Fraction
) -> dict[str, Marginal]:
    """The marginals of columns of two values, by class, from the difference of their counts."""
    answers = ask([character("columns", [column], share / len(columns), omega.strata) for column in columns])
    found = {}
    for column, answer in zip(columns, answers, strict=True):
        first = np.clip((totals + answer.values) / 2, 0.0, totals)
        found[column.name] = Marginal(
            np.arange(2),
            np.ones(2, np.int64),
            [np.array([a, n - a]) for a, n in zip(first, totals, strict=True)],
        )
    return found
