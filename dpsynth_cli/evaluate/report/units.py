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

CELLS, WHOLE = 40, 80  # of a drawing, at most; of whole numbers one by one
DAYS = (1, 7, 14, 28, 91, 182, 365, 730, 1826, 3652, 7305, 18262, 36525)
SECONDS = (1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, *(86_400 * days for days in DAYS))
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
    from dpsynth_cli.release.write import decode

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
        stamp = str(np.datetime64(math.floor(value / SECOND), "s")).replace("T", " ")
        return stamp.removesuffix(":00").removesuffix(" 00:00")
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
    """Cells [edge, next edge) in a column's own units; `below` and `above` may hold rows beyond them."""

    edges: Floats

    def shares(self, own: Floats, rows: int) -> tuple[Floats, float, float]:
        """The part of all rows in each cell, below the first, and above the last."""
        place = np.searchsorted(self.edges, own, side="right") - 1
        counted = np.bincount(np.clip(place + 1, 0, len(self.edges)), minlength=len(self.edges) + 1)
        parts = counted / max(1, rows)
        return parts[1:-1], float(parts[0]), float(parts[-1])


def even_cut(tables: Sequence[Floats], column: Column) -> Cut:
    """Even cells with round edges over the values of some tables, but for tails that are very far out."""
    known = np.concatenate([*tables, np.zeros(0)])
    known = known[np.isfinite(known)]
    if not len(known):
        known = np.array([float(column.lower)])
    low, high = float(known.min()), float(known.max())
    near, far = (float(v) for v in np.quantile(known, [TAIL, 1 - TAIL], method="inverted_cdf"))
    if 0 < FAR * (far - near) < high - low:
        low, high = near, far
    whole = column.type == "integer" and high - low < WHOLE
    step = 1.0 if whole else _step((high - low) / CELLS, column)
    first = math.floor(low / step)
    count = math.floor(high / step) - first + 1
    # A value of a grid of codes is known to half a code: what lies on an edge belongs above it.
    grid = (float(column.upper) - float(column.lower)) / GRID if column.type == "continuous" else 0.0
    edges = np.arange(first, first + count + 1, dtype=np.float64) * step
    return Cut(edges - min(grid, step / 4))


def _step(least: float, column: Column) -> float:
    """The smallest round step that is not below `least`, in the column's units."""
    if column.type in ("date", "datetime"):
        unit = 1 if column.type == "date" else SECOND
        steps = DAYS if column.type == "date" else SECONDS
        whole = next((s for s in steps if s * unit >= least), steps[-1])
        return float(whole * unit * max(1, math.ceil(least / (whole * unit))))
    if not least > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))
    return max(1.0, step) if column.type == "integer" else step


def ends(cut: Cut, column: Column) -> tuple[str, str, str]:
    """Words for the two ends of a drawing and its middle."""
    edges = cut.edges
    last = edges[-1] - 1 if column.type in ("integer", "date") else edges[-1]
    middle = (edges[0] + last) / 2
    if column.type in ("integer", "date"):
        middle = math.floor(middle)
    return (
        said(_tidy(edges[0], edges), column),
        said(_tidy(middle, edges), column),
        said(_tidy(last, edges), column),
    )


def width(cut: Cut, column: Column) -> str:
    """How wide a cell is, in words.

    >>> width(Cut(np.array([0.0, 7.0])), Column("seen", "date", lower=0, upper=9)), width(
    ...     Cut(np.array([0.0, 1.0])), Column("n", "integer", lower=0, upper=9))
    ('7 days', '1')
    """
    step = float(cut.edges[1] - cut.edges[0])
    if column.type == "date":
        return f"{step:,.0f} day{'s' if step > 1 else ''}"
    if column.type == "datetime":
        seconds = step / SECOND
        for name, size in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
            if seconds >= size:
                return f"{seconds / size:,.4g} {name}{'s' if seconds > size else ''}"
    return number(float(f"{step:.6g}"))


def _tidy(value: float, edges: Floats) -> float:
    """Without what a grid of codes moved an edge by."""
    step = float(edges[1] - edges[0])
    nearest = round(value / step * 2) * step / 2
    return nearest if abs(nearest - value) < step / 3 else value


def quantile_cut(known: Floats, parts: int) -> Floats:
    """Where at most so many cells begin, at quantiles: equal values stay together."""
    if not len(known):
        return np.zeros(1)
    at = np.quantile(known, np.arange(parts) / parts, method="inverted_cdf")
    return np.unique(at)


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
