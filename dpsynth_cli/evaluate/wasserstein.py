"""Wasserstein distances W1 on the unit scale: exact on a line and in the plane, sliced in more dimensions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.scales import missing, ordered, share, unit
from dpsynth_cli.evaluate.tables import CodesByColumn, Table
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
    """W1 of each column. Of a nominal or boolean one, where all values are equally far apart, that is the
    total variation distance. Only values that are there count; `missing` is by how much their share differs.
    """
    found, lost = {}, {}
    for column in domain:
        x, y = real.codes[column.name], other.codes[column.name]
        gone = [missing(codes, column) for codes in (x, y)]
        if column.nullable:
            lost[column.name] = abs(share(gone[0]) - share(gone[1]))
        found[column.name] = _column_w1(x[~gone[0]], y[~gone[1]], column)
    values = list(found.values())
    result = {"mean": float(np.mean(values)), "worst": max(values), "columns": found}
    return result | ({"missing": lost} if lost else {})


def _column_w1(x: NDArray[Any], y: NDArray[Any], column: Column) -> float:
    if not len(x) or not len(y):
        return 0.0 if len(x) == len(y) else 1.0  # nothing there: as far as can be
    if column.type in ("nominal", "boolean"):
        p, q = (np.bincount(codes, minlength=column.size) / len(codes) for codes in (x, y))
        return float(np.abs(p - q).sum() / 2)
    return w1_line(x.astype(np.int64), y.astype(np.int64)) / max(1, column.size - 1)


def planes(domain: Domain) -> list[tuple[Column, Column]]:
    """The pairs of ordered columns to look at in the plane: all, if they are few, else the first ones."""
    return list(combinations(ordered(domain), 2))[:PAIRS]


def plane_w1(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """Exact W1 of pairs of columns, both tables counted on the same grid; rows are as far apart as in the
    column where they differ most (l_inf), and missing is at distance 1 from all else.
    """
    found = {f"{a.name}, {b.name}": w1_plane(real, other, a, b) for a, b in planes(domain)}
    return {"mean": float(np.mean(list(found.values()))), "worst": max(found.values()), "pairs": found}


def w1_plane(real: Table, other: Table, a: Column, b: Column, grid: int = GRID) -> float:
    """By an exact flow of least cost on the grid's graph (`numeric/transport.py`)."""
    scales = [Scale(min(c.size, grid), nullable=c.nullable) for c in (a, b)]
    lattice = divided(scales, (grid + 1) ** 2)
    if not len(real) or not len(other):
        return 0.0 if len(real) == len(other) else 1.0
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

    The space has a coordinate for each ordered column (its unit scale), one for each category, and one for
    missing; both tables are cut to the same number of rows.
    """
    rows = min(len(real), len(other))
    if rows == 0:
        return {"mean": 0.0 if len(real) == len(other) else 1.0, "worst": 0.0}
    tables = [table.at_most(rows) for table in (real, other)]
    rng = np.random.default_rng([0, len(domain.columns)])
    coordinates = [column.codes if column.categorical else 1 + column.nullable for column in domain]
    directions = rng.standard_normal((SLICES, sum(coordinates)))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    found = []
    for direction in directions:
        parts = np.split(direction, np.cumsum(coordinates)[:-1])
        x, y = (np.sort(_projected(table.codes, domain, parts)) for table in tables)
        found.append(float(np.abs(x - y).mean()))
    return {"mean": float(np.mean(found)), "worst": max(found)}


def _projected(codes: CodesByColumn, domain: Domain, parts: list[Floats]) -> Floats:
    total = np.zeros(len(next(iter(codes.values()))))
    for column, part in zip(domain, parts, strict=True):
        values = codes[column.name]
        if column.categorical:
            total += part[values]
        else:
            total += part[0] * unit(values, column)
            if column.nullable:
                total += part[1] * missing(values, column)
    return total
