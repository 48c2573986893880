"""Values to codes: the code of a cell is a total function of that cell alone.

The claim: **the code of a cell depends on that cell and the declared column, on nothing else.** Out of bounds
is clamped; an unlisted category becomes the other one, else missing, else the first; a missing or unreadable
cell becomes missing, else the other category, else the lowest code. What a cell says is read in `values.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.arrow import from_numpy, to_numpy
from dpsynth_cli.domain import GRID, OCTAVES, STEPS, Column
from dpsynth_cli.scales import to_codes
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.text import MISSING, UNLISTED, Values
from dpsynth_cli.trusted.rows.values import from_arrow, from_text, is_missing

ONE = STEPS.index(1)

Codes: TypeAlias = NDArray[np.int32]


def encode_bytes(array: pa.Array, column: Column) -> Codes:
    """The codes of cells that are text: bytes as they stand in a file.

    >>> age = Column("age", "integer", lower=0, upper=120, nullable=True)
    >>> encode_bytes(pa.array([b"41", b" 41.0 ", b"1e9", b"", b"old"]), age).tolist()
    [41, 41, 120, 121, 121]
    """
    return codes(from_text(array, column), column)


def encode_arrow(
    array: pa.Array,
    column: Column,
    counted: Problems | None = None,
    weigh: Callable[[], NDArray[np.int64]] | None = None,
) -> Codes:
    """The codes of cells that have an Arrow type, one that is `readable` as the declared type.

    What is not as declared is `counted` on the way, each cell as often as `weigh` says; that changes no code.
    """
    if pa.types.is_dictionary(array.type):
        labels, indices = array.dictionary, array.indices.cast(pa.int64())
        places = to_numpy(indices, len(labels))
        if len(labels) > len(array):  # a dictionary of a whole file: look at what is used of it
            used, places = np.unique(places, return_inverse=True)
            there = used[used < len(labels)]
            labels, places = labels.take(from_numpy(there)), np.minimum(places, len(there))
        if counted is not None:
            counted.count_nulls(array.indices.null_count, column)

        def used_so_often() -> NDArray[np.int64]:
            return np.bincount(places, minlength=len(labels) + 1)[:-1]

        known = np.append(encode_arrow(labels, column, counted, used_so_often), missing_code(column))
        return np.asarray(known.take(places), np.int32)
    values = from_arrow(array, column)
    if counted is not None:
        counted.count_cells(array, values, column, weigh)
    return codes(values, column)


def missing_code(column: Column) -> int:
    """The code of a missing cell: missing, else the other category, else the lowest."""
    if column.nullable:
        return column.size
    return column.categories.index(column.other) if column.other else 0


def unlisted_code(column: Column) -> int:
    """The code of a category that was not declared: the other category, else missing, else the first."""
    return column.categories.index(column.other) if column.other else missing_code(column)


def codes(values: Values, column: Column) -> Codes:
    """The codes of values read by `from_text` or `from_arrow`: always one of the column's codes."""
    with np.errstate(all="ignore"):
        if column.categorical:
            result = values.astype(np.int32)
            result[values == UNLISTED] = unlisted_code(column)
            result[values == MISSING] = missing_code(column)
        else:
            if column.octaves:
                result = _in_octaves(values, column)
            elif column.rounding:
                result = _in_steps(values)
            elif column.grid is not None:
                result = _on_multiples(values, column)
            elif column.scale != "linear" and column.size > 1:
                result = to_codes(values, column)
            elif column.type == "continuous":
                result = _on_grid(values, float(column.lower), float(column.upper))
            else:
                result = _on_steps(values, column)
            if column.nullable:
                result[is_missing(values)] = column.size
        return np.clip(result, 0, column.codes - 1, out=result)


def _on_grid(x: Values, lower: float, upper: float) -> Codes:
    """floor((x - lower) / (upper - lower) 2^30), clamped; NaN as the lower bound."""
    if not upper > lower:
        return np.zeros(len(x), np.int32)
    span = upper - lower
    x = np.fmax(x, lower)
    np.minimum(x, upper, out=x)
    if math.isinf(span):  # halve everything, so that no difference overflows
        x, lower, span = x / 2, lower / 2, upper / 2 - lower / 2
    x -= lower
    x /= span
    x *= GRID
    result = x.astype(np.int32)
    return np.minimum(result, GRID - 1, out=result)


def _in_octaves(values: Values, column: Column) -> Codes:
    """The power of two below |x|, counted from the middle, which is for less than the smallest; larger than
    the largest as that. NaN as 0."""
    first, end = OCTAVES[column.type]
    x = np.asarray(values, np.float64)
    x = np.rint(x) if column.type == "integer" else x
    octave = np.frexp(np.minimum(np.abs(x), 2.0**end))[1].astype(np.int32) - 1  # exact; NaN is 0 below
    step = np.where(np.abs(x) >= 2.0**first, np.minimum(octave, end - 1) - first + 1, 0)
    return np.asarray(end - first + np.where(x < 0, -step, step), np.int32)


def _in_steps(values: Values) -> Codes:
    """The first of the steps, from thousands down, that a number is a multiple of, as its shortest decimal
    says it. None of them, and NaN, as the code after these; zero, which is a multiple of all, as the last."""
    x = np.asarray(values, np.float64)
    result = np.full(len(x), len(STEPS), np.int32)
    whole = np.rint(x) == x
    result[whole] = ONE
    for codes, rows in (
        (range(ONE), np.flatnonzero(whole)),
        (range(ONE + 1, len(STEPS)), np.flatnonzero(~whole)),
    ):
        for code in codes:
            # Every other step is half of a power of ten. These, and doubling, are exact.
            y, step = (2 * x[rows], 2 * STEPS[code]) if code % 2 else (x[rows], STEPS[code])
            up, down = step.as_integer_ratio()
            fits = np.rint(y * float(down)) / float(down) == y if up == 1 else np.rint(y / up) * up == y
            result[rows[fits]] = code
            rows = rows[~fits]
    result[x == 0] = len(STEPS) + 1
    return result


def _on_multiples(x: Values, column: Column) -> Codes:
    """The nearest multiple of the step (half of one to the even), less the lower bound's; NaN as that.

    Exact for every value that is written on the grid: a bound is at most 2^50 steps from 0, and rounding
    moves x / step by less than half there.
    """
    assert column.grid is not None
    x = np.minimum(np.fmax(x, float(column.lower)), float(column.upper))
    x *= column.grid.denominator
    x /= column.grid.numerator
    return (np.rint(x, out=x).astype(np.int64) - column.first).astype(np.int32)


def _on_steps(values: Values, column: Column) -> Codes:
    """(v - lower) // unit, clamped; NaN and NAT as the lower bound. With a step integers go to the nearest
    code (half to the upper), times to the one before."""
    lower, upper = int(column.lower), int(column.upper)
    if values.dtype == np.float64:
        values = np.rint(values)
        values = np.fmin(np.fmax(values, lower, out=values), upper, out=values).astype(np.int64)
    else:
        values = np.clip(values, lower, upper)
    values -= lower
    if column.step is not None and column.type == "integer":
        values += column.unit // 2
    if column.unit > 1:
        values //= column.unit
    if column.step is not None:
        np.minimum(values, column.size - 1, out=values)
    return values.astype(np.int32)
