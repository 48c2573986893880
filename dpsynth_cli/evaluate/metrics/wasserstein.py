"""Wasserstein distances W1: exact on a line and in the plane, sliced in more dimensions (`joint.py`:
exact)."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.marginals import paired
from dpsynth_cli.evaluate.metrics.scales import missing, ordered, ranks, share, spread, values
from dpsynth_cli.evaluate.metrics.search import differ_most
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.numeric.lattice import Lattice, Scale, divided
from dpsynth_cli.numeric.partition import even_edges
from dpsynth_cli.numeric.transport import closest
from dpsynth_cli.questions import Bins, CellCounts, Cells, Floats, Ints, Question

GRID = 64  # cells of each side in the plane
PAIRS = 6  # of columns in the plane, at most
SLICES = 100


def w1_line(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Exact W1 between two samples on a line: the integral of |F - G|.

    >>> w1_line(np.array([0, 4]), np.array([1, 1, 1, 1]))
    2.0
    """
    if not len(x) or not len(y):
        return 0.0 if len(x) == len(y) else math.nan
    x, y = np.sort(x), np.sort(y)
    if len(x) == len(y):
        return float(np.abs(x - y).mean())
    both = np.concatenate([x, y])
    both.sort()
    f = np.searchsorted(x, both[:-1], side="right") / len(x)
    g = np.searchsorted(y, both[:-1], side="right") / len(y)
    return float((np.abs(f - g) * np.diff(both)).sum())


def columns_w1(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """W1 of each column in its own spread, in its units, and in parts of its declared range. Of a nominal or
    boolean one, where all values are equally far apart, all of these are the total variation distance. Only
    values that are there count; `missing` is by how much their share differs.
    """
    own, units, ranged, lost = {}, {}, {}, {}
    for column in domain:
        x, y = real.codes[column.name], other.codes[column.name]
        gone = [missing(codes, column) for codes in (x, y)]
        if column.nullable:
            lost[column.name] = abs(share(gone[0]) - share(gone[1]))
        there = x[~gone[0]], y[~gone[1]]
        ranged[column.name] = far = _in_range(*there, column)
        if column.type not in ("nominal", "boolean"):
            units[column.name] = _in_units(*there, column)
            far = units[column.name] / spread(x, column)
        own[column.name] = far
    found = _mean_and_worst(own) | {"units": units, "range": _mean_and_worst(ranged)}
    return found | ({"missing": lost} if lost else {})


def _mean_and_worst(columns: dict[str, float]) -> dict[str, Any]:
    worst = max(columns, key=lambda name: columns[name])
    return {
        "mean": float(np.mean(list(columns.values()))),
        "worst": columns[worst],
        "worst_column": worst,
        "columns": columns,
    }


def _in_range(x: NDArray[Any], y: NDArray[Any], column: Column) -> float:
    """In parts of the declared range, or as a total variation distance."""
    if not len(x) or not len(y):  # nothing there: as far as can be
        return 0.0 if len(x) == len(y) else 1.0
    if column.type in ("nominal", "boolean"):
        p, q = (np.bincount(codes, minlength=column.size) / len(codes) for codes in (x, y))
        return float(np.abs(p - q).sum() / 2)
    return w1_line(x.astype(np.int64), y.astype(np.int64)) / max(1, column.size - 1)


def _in_units(x: NDArray[Any], y: NDArray[Any], column: Column) -> float:
    if len(x) and len(y):
        return w1_line(values(x, column), values(y, column))
    first, last = values(np.array([0, column.size - 1]), column)
    return 0.0 if len(x) == len(y) else float(last - first)


def planes(domain: Domain) -> list[tuple[str, ...]]:
    """The pairs of ordered columns that may be looked at in the plane."""
    return list(combinations([column.name for column in ordered(domain)], 2))


def plane_w1(real: Table, other: Table, domain: Domain, metric: str = "linf") -> dict[str, Any]:
    """W1 of the pairs of ordered columns that differ most, both tables counted on the same grid of the
    declared range; rows are apart by this metric, and missing is at distance 1 from all else. In the plane of
    one pair, that is it.
    """
    pairs = planes(domain)
    if len(pairs) > 1:
        few = Domain(tuple(column for column in paired(domain) if column in ordered(domain)))
        pairs = differ_most(real, other, few, PAIRS)
    found = {f"{a}, {b}": w1_plane(real, other, domain[a], domain[b], metric=metric) for a, b in pairs}
    far = list(found.values()) or [0.0]
    return {"mean": float(np.mean(far)), "worst": max(far), "pairs": found}


def w1_plane(
    real: Table, other: Table, a: Column, b: Column, grid: int = GRID, metric: str = "linf"
) -> float:
    """By an exact flow of least cost on the grid's graph (`numeric/transport.py`), whose paths are under l2 a
    little longer than distances."""
    scales = [Scale(min(c.size, grid), nullable=c.nullable) for c in (a, b)]
    lattice = divided(scales, (grid + 1) ** 2, metric)
    if not len(real) or not len(other):
        return 0.0 if len(real) == len(other) else lattice.diameter / lattice.side
    p, q = (_counts(table, (a, b), lattice) for table in (real, other))
    # In whole numbers, both with the same total: the flow moves p onto q, and its cost is exact.
    n, m = len(real), len(other)
    whole = n * m // math.gcd(n, m)
    moved = closest(p * (whole // n) - q * (whole // m), 0, lattice).distance
    return moved / whole / max(1, lattice.side)


def _counts(table: Table, columns: tuple[Column, Column], lattice: Lattice) -> Ints:
    axes = [
        Bins(c.name, tuple(even_edges((c.size, c.nullable), axis.length - c.nullable).tolist()))
        for c, axis in zip(columns, lattice.axes, strict=True)
    ]
    question = Question("evaluate", CellCounts(Cells(tuple(axes))), Fraction(0))
    return table.sums([question], Domain(columns))[0]


def sliced_w1(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """The mean and the largest W1 of projections on random directions, the same for all tables.

    The space has a coordinate for each ordered column (its place among the real ones, from 0 to 1), one for
    each category, and one for missing; both tables are cut to the same number of rows.
    """
    rows = min(len(real), len(other))
    if rows == 0:
        return {"mean": 0.0 if len(real) == len(other) else 1.0, "worst": 0.0}
    tables = [_placed(table.at_most(rows), real, domain) for table in (real, other)]
    rng = np.random.default_rng([0, len(domain.columns)])
    coordinates = [column.codes if column.categorical else 1 + column.nullable for column in domain]
    directions = rng.standard_normal((SLICES, sum(coordinates)))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    found = []
    for direction in directions:
        parts = np.split(direction, np.cumsum(coordinates)[:-1])
        x, y = (np.sort(_projected(table, rows, parts)) for table in tables)
        found.append(float(np.abs(x - y).mean()))
    return {"mean": float(np.mean(found)), "worst": max(found)}


def _placed(table: Table, real: Table, domain: Domain) -> list[tuple[NDArray[Any], NDArray[Any] | None]]:
    """By column: codes of categories; or places, and what is missing."""
    found: list[tuple[NDArray[Any], NDArray[Any] | None]] = []
    for column in domain:
        codes = table.codes[column.name]
        if column.categorical:
            found.append((codes, None))
        else:
            found.append((ranks(codes, real.codes[column.name], column), missing(codes, column)))
    return found


def _projected(
    placed: list[tuple[NDArray[Any], NDArray[Any] | None]], rows: int, parts: list[Floats]
) -> Floats:
    total = np.zeros(rows)
    for (place, gone), part in zip(placed, parts, strict=True):
        if gone is None:
            total += part[place]
        else:
            total += part[0] * place
            if len(part) > 1:
                total += part[1] * gone
    return total
