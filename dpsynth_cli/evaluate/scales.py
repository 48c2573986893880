"""Codes on scales that are the column's own: its spread, its quantiles, its units."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import GRID, SECOND, Column, Domain
from dpsynth_cli.numbers import day_text, moment_text
from dpsynth_cli.numeric.partition import even_edges
from dpsynth_cli.questions import Bins, Floats
from dpsynth_cli.scales import to_values


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
    """The interquartile range of a column, in codes; where that is 0 its standard deviation, and where it is
    constant (or empty) its declared range.

    >>> spread(np.array([0, 10, 20, 30, 40]), Column("x", "integer", lower=0, upper=99))
    20.0
    """
    there = known(codes, column)
    if not len(there):
        return float(max(1, column.size - 1))
    low, high = np.quantile(there, (0.25, 0.75))
    return float(high - low) or float(np.std(there)) or float(max(1, column.size - 1))


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


def step(column: Column) -> float:
    """How far one code is from the next, in the column's units: numbers, days, seconds, or places."""
    if column.categorical:
        return 1.0
    if column.grid is not None:
        return float(column.grid)
    if column.type == "continuous":
        return (float(column.upper) - float(column.lower)) / GRID
    return column.unit / SECOND if column.type == "datetime" else float(column.unit)


def unit_name(column: Column) -> str:
    """What `step` is counted in."""
    return {"date": "days", "datetime": "seconds"}.get(column.type, "")


def values(codes: NDArray[Any], column: Column) -> Floats:
    """The values of codes that are not missing, in the column's units: a continuous one in the middle of its
    cell, times since 1970, categories by their place."""
    if column.categorical:
        return np.asarray(codes, np.float64)
    if column.scale != "linear":
        return to_values(np.asarray(codes), column)
    lower = float(column.lower) / (SECOND if column.type == "datetime" else 1)
    middle = 0.5 if column.type == "continuous" and column.grid is None else 0.0
    return np.asarray(lower + (np.asarray(codes, np.float64) + middle) * step(column))


def shown(value: float, column: Column) -> float | str:
    """A value as a report has it: a number to six digits, or a date or time as text.

    >>> shown(1.4, Column("day", "date", lower=0, upper=9))
    '1970-01-02'
    """
    if not math.isfinite(value):
        return 0.0
    if column.type == "date":
        return day_text(round(value))
    if column.type == "datetime":
        return moment_text(round(value) * SECOND)
    return float(f"{value:.6g}")


def decimals(codes: NDArray[Any], column: Column, of: float = 0.95, most: int = 9) -> int | None:
    """The fewest decimals that such a part of the values can be written with; None where the grid of codes is
    too coarse to tell, or it is no column of numbers.

    >>> decimals(np.array([2**29, 2**28]), Column("x", "continuous", lower=0.0, upper=1.0))
    2
    """
    if column.type != "continuous" or not len(codes):
        return 0 if column.type == "integer" else None
    x, apart = values(codes, column), step(column)
    for digits in range(most + 1):
        if 10.0**-digits < 20 * apart:
            return None
        if np.mean(np.abs(np.round(x, digits) - x) <= 0.51 * apart) >= of:
            return digits
    return None
