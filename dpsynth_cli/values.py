"""The numbers that codes stand for: one function for what is written and for what rules are checked on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import GRID, Column
from dpsynth_cli.scales import to_values


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
        return _middles(codes, float(column.lower), float(column.upper))
    return int(column.lower) + codes.astype(np.int64) * column.unit


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
