"""Codes on scales that are the column's own: its spread, its quantiles, its units."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.arrow import to_numpy
from dpsynth_cli.domain import GRID, SECOND, Column, Domain
from dpsynth_cli.numbers import day_text, moment_text
from dpsynth_cli.numeric.partition import even_edges
from dpsynth_cli.questions import Bins, Floats
from dpsynth_cli.release.files.write import decode


def ordered(domain: Domain) -> tuple[Column, ...]:
    """The columns whose values lie on a line: numbers, times, ordinal categories."""
    return tuple(c for c in domain if c.type not in ("nominal", "boolean"))


def missing(codes: NDArray[Any], column: Column) -> NDArray[np.bool_]:
    return np.asarray(codes == column.size if column.nullable else np.zeros(len(codes), bool))


def known(codes: NDArray[Any], column: Column) -> NDArray[Any]:
    """The codes that are not missing."""
    return codes[codes < column.size] if column.nullable else codes


def share(flags: NDArray[np.bool_]) -> float:
    """The part of the rows that are flagged; of no rows, none."""
    return float(flags.mean()) if len(flags) else 0.0


def cells(column: Column, numeric: int, categories: int) -> Bins:
    """A column in at most so many even cells; missing has one of its own."""
    count = min(column.size, categories if column.categorical else numeric)
    return Bins(column.name, tuple(even_edges((column.size, column.nullable), count).tolist()))


def spread(codes: NDArray[Any], column: Column) -> float:
    """The interquartile range of a column, in its units; where that is 0 its standard deviation, and where it
    is constant (or empty) its declared range.

    >>> spread(np.array([0, 10, 20, 30, 40]), Column("x", "integer", lower=0, upper=99))
    20.0
    """
    there = values(known(codes, column), column)
    if len(there):
        low, high = np.quantile(there, (0.25, 0.75))
        if wide := float(high - low) or float(np.std(there)):
            return wide
    first, last = values(np.array([0, column.size - 1]), column)
    return float(last - first) or 1.0


def ranks(codes: NDArray[Any], real: NDArray[Any], column: Column) -> Floats:
    """The place of each code among the real ones that are not missing, from 0 to 1: its mid-rank. Missing is
    in the middle.

    >>> ranks(np.array([0, 5, 9]), np.array([0, 0, 5, 5]), Column("x", "integer", lower=0, upper=9)).tolist()
    [0.25, 0.75, 1.0]
    """
    there = np.sort(known(real, column))
    if not len(there):
        return np.full(len(codes), 0.5)
    below, upto = (np.searchsorted(there, codes, side=side) for side in ("left", "right"))
    place = (below + upto) / (2 * len(there))
    return np.asarray(np.where(codes == column.size, 0.5, place) if column.nullable else place)


# --- the column's own units -------------------------------------------------------------------------------


def unit_name(column: Column) -> str:
    """What differences of its values are counted in."""
    return {"date": "days", "datetime": "seconds"}.get(column.type, "")


def values(codes: NDArray[Any], column: Column) -> Floats:
    """The values of codes that are not missing, in the column's units, as a file has them: numbers; days and
    seconds since 1970; categories by their place."""
    if column.categorical:
        return np.asarray(codes, np.float64)
    written = decode(np.asarray(codes, np.int64), column)
    if column.type == "date":
        written = written.cast(pa.int32())
    elif column.type == "datetime":
        written = written.cast(pa.int64())
    found = to_numpy(written).astype(np.float64)
    return found / SECOND if column.type == "datetime" else found


def shown(value: float, column: Column) -> float | str:
    """A value as a report has it: a number to six digits, or a date or time as text.

    >>> shown(1.4, Column("day", "date", lower=0, upper=9))
    '1970-01-02'
    >>> shown(4.6e-8, Column("x", "continuous", lower=0.0, upper=100.0))  # the lowest code
    0.0
    """
    if not math.isfinite(value):
        return 0.0
    if column.type == "date":
        return day_text(round(value))
    if column.type == "datetime":
        return moment_text(round(value) * SECOND)
    if column.type == "continuous" and column.grid is None and column.scale == "linear":
        apart = (float(column.upper) - float(column.lower)) / GRID  # finer than this nothing is known
        if 0 < apart < math.inf:
            value = round(value, max(0, -math.ceil(math.log10(apart)))) + 0.0
    return float(f"{value:.6g}")


def decimals(codes: NDArray[Any], column: Column, of: float = 0.95, most: int = 9) -> int | None:
    """The fewest decimals that such a part of the values can be written with; None where the grid of codes is
    too coarse to tell, or it is no column of numbers.

    >>> decimals(np.array([2**29, 2**28]), Column("x", "continuous", lower=0.0, upper=1.0))
    2
    """
    if column.type != "continuous" or not len(codes):
        return 0 if column.type == "integer" else None
    x = values(codes, column)
    above, below = (values(np.clip(codes + by, 0, column.size - 1), column) for by in (1, -1))
    apart = (above - below) / 2  # a value was somewhere in its cell
    for digits in range(most + 1):
        gap = np.abs(np.round(x, digits) - x)
        if np.mean(gap <= 1e-12 * np.maximum(1, np.abs(x))) >= of:
            return digits
        if 10.0**-digits < 20 * float(np.median(apart)):
            return None
        if np.mean(gap <= 0.51 * apart) >= of:
            return digits
    return None
