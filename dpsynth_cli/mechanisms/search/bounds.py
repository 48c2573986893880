"""Bounds of a column from noisy counts: the octaves, or even cells, that surely have rows, and some beside.

Numbers are counted by sign and power of two (exponential bins, as for private scales: Karwa and Vadhan 2018),
dates and times in even cells of the years 1 to 9999. What has rows beyond the noise is kept. Where that is a
small part of what was counted, far from 0 as years are, a second look counts even cells of it.

Bounds are generous. A row outside is moved to the bound, and is lost; bounds that are too wide cost a
mechanism little (`shared/focus.py`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpsynth_cli.domain import GRID, OCTAVES, SECOND, Column, exact
from dpsynth_cli.numeric.partition import even_edges
from dpsynth_cli.questions import Bins, Floats

CELLS = 1024  # even ones
WIDER = 2  # octaves beside those that have rows
NEAR_ZERO = 16  # bounds with ends so far apart, in proportion, begin at 0
NARROW = 8  # even cells: fewer deserve a second look
DAYS = ("date", "datetime")
MOST_STEPS = 2**50  # from 0 to a bound


def even_bins(column: Column) -> Bins:
    """Even cells of a column that is nullable, and missing."""
    return Bins(column.name, tuple(even_edges((column.size, True), min(CELLS, column.size)).tolist()))


def octave_bins(column: Column) -> Bins:
    """Each octave of a column that is nullable, and missing."""
    return Bins(column.name, tuple(range(column.codes + 1)))


def kept(counts: Floats, reached: float) -> tuple[int, int, bool]:
    """The first and the last cell that stands above the noise; if none does, the highest, and False."""
    found = np.flatnonzero(counts >= reached)
    if len(found):
        return int(found[0]), int(found[-1]), True
    best = int(np.argmax(counts))
    return best, best, False


def from_octaves(column: Column, first: int, last: int) -> tuple[float, float, bool]:
    """Bounds for the octaves from first to last, and whether these are so few that a closer look is worth it.

    >>> age = Column("age", "integer", octaves=True)
    >>> from_octaves(age, 53 + 4, 53 + 7)  # 8 to 15, up to 64 to 127
    (0, 511, False)
    >>> from_octaves(age, 53 + 11, 53 + 11)  # 1024 to 2047
    (256, 8191, True)
    """
    middle = column.size // 2
    low, high = _edge(column, first - middle, False), _edge(column, last - middle, True)
    narrow = first == last or (low * high > 0 and max(abs(low), abs(high)) <= 4.01 * min(abs(low), abs(high)))
    wide = 2.0**WIDER
    if first == last == middle:
        low, high = (0.0, 1.0)
    else:
        low = low / wide if low > 0 else low * wide
        high = high * wide if high > 0 else high / wide
    if 0 < low <= high / NEAR_ZERO / wide:
        low = 0.0
    if 0 > high >= low / NEAR_ZERO / wide:
        high = 0.0
    most = 2.0 ** OCTAVES[column.type][1]
    low, high = max(low, -most), min(high, most)
    if column.type == "integer":
        return math.ceil(low), max(math.ceil(low), math.ceil(high) - (high > 0)), narrow and first != middle
    return low, high, narrow and first != middle


def _edge(column: Column, step: int, upper: bool) -> float:
    """An end of the octave so many steps from the middle."""
    first = OCTAVES[column.type][0]
    if step == 0:
        return 0.0
    out = float(2.0 ** (first + abs(step) - 1 + (upper == (step > 0))))
    return out if step > 0 else -out


def from_even(column: Column, first: int, last: int, beside: int) -> tuple[float, float]:
    """Bounds for even cells from first to last, and so many beside them on both sides."""
    edges = even_bins(column).edges
    cells = len(edges) - 2
    begin, end = edges[max(0, first - beside)], edges[min(cells, last + 1 + beside)]
    if column.type == "continuous":
        span = column.upper - column.lower
        return column.lower + begin / column.size * span, column.lower + end / column.size * span
    low = int(column.lower) + begin * column.unit
    high = min(int(column.upper), int(column.lower) + end * column.unit - 1)
    whole = SECOND if column.type == "datetime" else 1
    return low - low % whole, high - high % whole


def beside(
    counts: Floats, sd: float, first: int, last: int, rows: float, spread: float
) -> tuple[int, float] | None:
    """How many cells beside the kept ones leave nothing outside that can be seen of so many rows, known up to
    `spread`: doubled until that is so, and twice as many then. None where all cells are not enough.

    And how many rows may be outside all the same: those that were not counted inside, and three standard
    deviations more.
    """
    width = 1
    reached = np.append(0.0, np.cumsum(counts))
    while width < len(counts):
        begin, end = max(0, first - width), min(len(counts), last + 1 + width)
        doubt = 3 * math.sqrt(spread**2 + (end - begin) * sd**2)
        outside = rows - float(reached[end] - reached[begin])
        if outside <= doubt:
            return 2 * width + last - first, max(0.0, outside) + doubt
        width *= 2
    return None


def with_bounds(column: Column, low: float, high: float) -> Column:
    """The column with such bounds: on its own grid, if it has one, and without that where it would have too
    many values.

    >>> price = Column("price", "continuous", decimals=2, private=True)
    >>> found = with_bounds(price, 0.123, 64.0)
    >>> found.lower, found.upper, found.size
    (0.12, 64.0, 6389)
    """
    column = replace(column, private=False)
    step = column.step if column.grid is None else column.grid
    if step is None:
        return replace(column, lower=low, upper=high)
    first, last = math.floor(exact(low) / step), math.ceil(exact(high) / step)
    if column.type in DAYS:  # no day before the first, none after the last
        first, last = (
            math.ceil(exact(low) / step),
            max(math.floor(exact(high) / step), math.ceil(exact(low) / step)),
        )
    if last - first >= GRID or max(abs(first), abs(last)) > MOST_STEPS:
        return replace(column, lower=low, upper=high, step=None, decimals=None)
    as_bound = float if column.type == "continuous" else int
    return replace(column, lower=as_bound(first * step), upper=as_bound(last * step))


def narrowed(column: Column, low: float, high: float) -> Column:
    """The column to look at more closely."""
    return replace(column, octaves=False, lower=low, upper=high)
