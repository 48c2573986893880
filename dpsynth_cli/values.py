"""The numbers that codes stand for: one function for what is written and for what rules are checked on."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import GRID, Column
from dpsynth_cli.scales import to_values

TENS = 22  # powers of ten up to this one are exact in a float64


def numbers_of(codes: NDArray[Any], column: Column) -> NDArray[Any]:
    """The values of codes in a numeric column's own unit; anything for the code of a missing value.

    >>> numbers_of(np.array([0, 41]), Column("age", "integer", lower=10, upper=120)).tolist()
    [10, 51]
    """
    if column.grid is not None:  # whole numbers below 2^53, divided once: the float64 nearest to the decimal
        steps = (column.first + codes.astype(np.int64)) * float(column.grid.numerator)
        return np.asarray(steps / column.grid.denominator)
    if column.scale != "linear" and column.size > 1:
        return to_values(codes, column)
    if column.type == "continuous":
        return _roundest(codes, float(column.lower), float(column.upper))
    return int(column.lower) + codes.astype(np.int64) * column.unit


@cache
def _step_and_digits(lower: float, upper: float) -> tuple[Fraction, int | None]:
    """How far codes are apart, and with how many digits each has four numbers; None if with none."""
    span = upper - lower
    step = Fraction(span) / GRID if 0 < span < math.inf else Fraction(0)
    return step, next((d for d in range(-TENS, TENS + 1) if 4 * Fraction(10) ** -d <= step), None)


def _roundest(codes: NDArray[Any], lower: float, upper: float) -> NDArray[np.float64]:
    """A number of few digits among those that have the code, the fewest if these are at least two less; the
    middle where floats are too coarse for it. So 0 and 12.3 come out as such, if they were found.

    >>> _roundest(np.array([0, 2**29 - 1, 2**29, 322122547]), 0.0, 1.0).tolist()
    [0.0, 0.4999999992, 0.5, 0.3]
    """
    span = upper - lower
    step, digits = _step_and_digits(lower, upper)
    if digits is None or max(abs(lower), abs(upper)) * 10.0**digits > 2**50:
        return _middles(codes, lower, upper)
    ten = 10.0 ** abs(digits)

    def written(multiples: NDArray[np.float64]) -> NDArray[np.float64]:
        return multiples / ten if digits >= 0 else multiples * ten

    first = codes * float(step)
    first += lower
    first = first * ten if digits >= 0 else first / ten  # in multiples of 10^-digits
    wide = float(step * Fraction(10) ** digits)
    found = np.floor(first)
    found += 2  # inside, since at least four are
    # Those with a multiple of a hundred are few, those with one of a thousand fewer, and so on. At the edges
    # of a code floats may be off, so how the number is read decides.
    left, unit = np.arange(len(codes)), 100.0
    begins, ends = first - 0.01, first + (wide + 0.01)
    while len(left) and unit < 2**53:
        rounder = np.ceil(begins / unit) * unit
        there = rounder <= ends
        left, begins, ends, rounder = left[there], begins[there], ends[there], rounder[there]
        x = written(rounder)
        read = np.minimum(np.floor((x - lower) / span * GRID), GRID - 1)
        same = (read == codes[left]) & (x <= upper)
        found[left[same]] = rounder[same]
        unit *= 10
    return written(found) + 0.0  # no -0


def _middles(codes: NDArray[Any], lower: float, upper: float) -> NDArray[np.float64]:
    """lower + (u + 1/2) / 2^30 (upper - lower), in bounds."""
    if not upper > lower:
        return np.full(len(codes), lower)
    x: NDArray[np.float64] = codes + 0.5
    x *= 1 / GRID  # a power of two: exact
    span = upper - lower
    if math.isinf(span):
        return np.clip(lower * (1 - x) + upper * x, lower, upper)
    x *= span
    x += lower
    return np.minimum(x, upper, out=x)  # rounding may pass the upper bound, never the lower
