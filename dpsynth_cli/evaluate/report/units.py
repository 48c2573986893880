"""A column in its own units: the values of its codes, cells that people can read, and words for both.

Cells of a drawing begin at round numbers and hold whole numbers of units, so that whole numbers and values
that were rounded make no comb. Cells of a cross-table are cut at quantiles. Missing is always apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import GRID, SECOND, Column
from dpsynth_cli.questions import Floats

CELLS, WHOLE = 40, 120  # of a drawing, at most; of whole numbers one by one
TIMES = {  # seconds: what they are
    1: "1 second",
    5: "5 seconds",
    15: "15 seconds",
    60: "1 minute",
    300: "5 minutes",
    900: "15 minutes",
    3600: "1 hour",
    10_800: "3 hours",
    21_600: "6 hours",
    86_400: "1 day",
    604_800: "7 days",
}
MONTHS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12_000, 60_000, 120_000)
DAYS = 2  # in columns that span more, times are told to the minute
EXACT, SMALLEST, LARGEST = 2.0**50, 1e-290, 1e307  # where steps are still steps
TAIL, FAR = 0.005, 3.0  # parts of the rows at the ends that may be cut off where they are so much farther out
KINDS = {
    "continuous": "number",
    "integer": "whole number",
    "ordinal": "ordered categories",
    "nominal": "categories",
    "boolean": "yes or no",
    "date": "date",
    "datetime": "date and time",
}


def values(codes: NDArray[Any], column: Column) -> Floats:
    """What codes of a column of numbers or times stand for, without those that are missing.

    Times are days, or microseconds, since 1970.

    >>> values(np.array([0, 41, 121]), Column("age", "integer", lower=0, upper=120, nullable=True)).tolist()
    [0.0, 41.0]
    """
    from dpsynth_cli.release.files.write import decode

    known = decode(np.asarray(codes)[np.asarray(codes) < column.size], column)
    if column.type in ("date", "datetime"):
        known = known.cast("int32").cast("int64") if column.type == "date" else known.cast("int64")
    return np.asarray(known.to_numpy(zero_copy_only=False), dtype=np.float64)


def said(value: float, column: Column) -> str:
    """A value as people write it.

    >>> said(12345.678, Column("price", "continuous", lower=0, upper=1e6))
    '12,346'
    >>> said(18000, Column("seen", "date", lower=0, upper=20000))
    '2019-04-14'
    """
    if not math.isfinite(value):
        return "" if math.isnan(value) else "∞"
    if column.type == "date":
        return str(np.datetime64(math.floor(value), "D"))
    if column.type == "datetime":
        fine = float(column.upper) - float(column.lower) < DAYS * 86_400 * SECOND
        second = np.datetime64(math.floor(value / SECOND), "s")
        stamp = str(second if fine else second.astype("datetime64[m]")).replace("T", " ")
        return stamp.removesuffix(" 00:00:00").removesuffix(" 00:00")
    if column.type == "integer" and value == round(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return number(value)


def number(value: float) -> str:
    """Four significant digits, or all before the point.

    >>> number(0.000123456), number(1234567.0), number(-0.5), number(2.5e20), number(0)
    ('0.0001235', '1,234,567', '-0.5', '2.5e+20', '0')
    """
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -5 <= size < 15:
        return f"{value:.4g}"
    shown = f"{value:,.{max(0, 3 - size)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


@dataclass(frozen=True)
class Cut:
    """Cells [edge, next edge) in a column's own units, and how wide they are, in words.

    A value of a grid of codes is known to half a code: less than `slack` below an edge is above it.
    """

    edges: Floats
    width: str
    slack: float = 0.0

    def shares(self, own: Floats, rows: int) -> tuple[Floats, float, float]:
        """The part of all rows in each cell, below the first, and above the last."""
        place = np.searchsorted(self.edges - self.slack, own, side="right")
        parts = np.bincount(place, minlength=len(self.edges) + 1) / max(1, rows)
        return parts[1:-1], float(parts[0]), float(parts[-1])


def even_cut(tables: Sequence[Floats], column: Column) -> Cut:
    """Cells with round edges over the values of some tables, but for tails that are very far out.

    >>> cut = even_cut([np.array([17.0, 90.0])], Column("age", "integer", lower=0, upper=120))
    >>> cut.edges[[0, 1, -1]].tolist(), cut.width
    ([17.0, 18.0, 91.0], '1')
    >>> even_cut([np.array([0.0, 7305.0])], Column("seen", "date", lower=0, upper=9999)).width
    '1 year'
    """
    known = np.concatenate([*tables, np.zeros(0)])
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (float(column.lower),) * 2
    if len(known):
        near, far = (float(v) for v in np.quantile(known, [TAIL, 1 - TAIL], method="inverted_cdf"))
        if 0 < FAR * (far / 8 - near / 8) < high / 8 - low / 8:  # a difference may be beyond floats
            low, high = near, far
    if column.type in ("date", "datetime"):
        return _times(low, high, column)
    whole = column.type == "integer"
    step = 1.0 if whole and high - low < WHOLE else _step(high / CELLS - low / CELLS)
    grid = float(column.upper) / GRID - float(column.lower) / GRID if column.type == "continuous" else 0.0
    return Cut(_multiples(low, high, step), number(step), min(grid, step / 4))


def _multiples(low: float, high: float, step: float) -> Floats:
    """The multiples of a step around two numbers; where floats are too coarse for that, others."""
    first, last = low / step, high / step
    if max(abs(first), abs(last)) < EXACT and abs(high) < LARGEST:
        return np.arange(math.floor(first), math.floor(last) + 2, dtype=np.float64) * step
    above = min(np.nextafter(high, math.inf), np.finfo(np.float64).max)
    return np.unique(np.append(low / 2 + np.linspace(0, 1, CELLS) * (high / 2 - low / 2) + low / 2, above))


def _step(least: float) -> float:
    """The smallest round step that is not below `least`."""
    if not least > SMALLEST:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(float(f"{m * power:.12g}") for m in (1, 2, 5, 10, 20) if m * power >= least * (1 - 1e-9))


def _times(low: float, high: float, column: Column) -> Cut:
    """Cells of whole seconds, minutes, hours, days or weeks, or of whole months and years of the calendar."""
    unit = 86_400 if column.type == "date" else 1 / SECOND  # seconds in one
    least = (high - low) * unit / CELLS
    for size, words in TIMES.items():
        if size >= least and (column.type == "datetime" or size >= 86_400):
            return Cut(_multiples(low, high, size / unit), words)
    months = next((m for m in MONTHS if m * 28 * 86_400 >= least), MONTHS[-1])
    code = "D" if column.type == "date" else "us"
    ends = np.array([math.floor(low), math.floor(high)], "int64").astype(f"datetime64[{code}]")
    first, last = ends.astype("datetime64[M]").astype(np.int64) // months
    edges = (np.arange(first, last + 2) * months).astype("datetime64[M]").astype(f"datetime64[{code}]")
    years = months // 12
    words = (
        f"{years} year{'s' if years > 1 else ''}" if years else f"{months} month{'s' if months > 1 else ''}"
    )
    return Cut(edges.astype(np.int64).astype(np.float64), words)


def ends(cut: Cut, column: Column) -> tuple[str, str, str]:
    """Words for the two ends of a drawing and its middle."""
    whole = column.type in ("integer", "date")
    first, last = float(cut.edges[0]), float(cut.edges[-1]) - whole
    middle = math.floor((first + last) / 2) if whole else first / 2 + last / 2
    return said(first, column), said(middle, column), said(last, column)


def quantile_cut(known: Floats, parts: int) -> Floats:
    """Where at most so many cells begin, at quantiles: a value that many rows have is a cell of its own."""
    if not len(known):
        return np.zeros(1)
    own, times = np.unique(
        np.quantile(known, np.arange(parts) / parts, method="inverted_cdf"), return_counts=True
    )
    distinct = np.unique(known)
    after = np.searchsorted(distinct, own[times > 1], side="right")
    return np.union1d(own, distinct[after[after < len(distinct)]])


def cell_words(starts: Floats, column: Column) -> list[str]:
    """Words for cells that begin at such values, in their order."""
    whole = column.type in ("integer", "date")
    found = []
    for i, start in enumerate(starts.tolist()):
        if i + 1 == len(starts):
            found.append(f"{said(start, column)} or more")
            continue
        after = float(starts[i + 1])
        last = after - 1 if whole else after
        if i == 0:
            found.append(f"up to {said(last, column)}" if whole else f"below {said(after, column)}")
        elif whole and last == start:
            found.append(said(start, column))
        else:
            found.append(f"{said(start, column)} to {said(last, column)}")
    return found
