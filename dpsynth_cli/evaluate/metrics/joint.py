"""Exact joint W1 of three and more columns, on scales of quantiles: how far rows have to be moved.

A number's place is its mid-rank in the real column, from 0 to 1, so that no bound and no outlier matters. Of
three, four or five columns both tables are counted on one grid of such places, and the transport is an exact
flow of least cost (`numeric/transport.py`). Of all columns it is the best assignment of two samples to each
other. In many dimensions two samples of one table are far apart too: the half of the real rows against the
other half says it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.cuts import Columns, is_category
from dpsynth_cli.evaluate.metrics.marginals import paired
from dpsynth_cli.evaluate.metrics.scales import known, ranks
from dpsynth_cli.evaluate.metrics.search import differ_most, extended
from dpsynth_cli.evaluate.tables import Table, halves, independent
from dpsynth_cli.numeric.lattice import Scale, divided
from dpsynth_cli.numeric.transport import closest
from dpsynth_cli.questions import Ints

SIDE = {3: 12, 4: 6, 5: 4}  # parts of a number on a grid of so many columns
CATEGORIES = {3: 8, 4: 5, 5: 4}  # on such a grid: the others share one
TRIPLES = 3  # the worst ones
SAMPLE = 1_000  # rows of each table where all columns are looked at
ROWS = 50_000  # of each table that are counted on a grid

REFERENCES = ("synthetic", "real_split", "independent")


def joint_w1(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """Of the triples that differ most, of one and two columns more, and of all columns: each of the synthetic
    table, of half of the real rows against the other half, and of independent columns."""
    few = Domain(paired(domain))
    chosen = _chosen(real, other, few) if len(real) and len(other) else []
    one, two = halves(real)
    compared = {
        "synthetic": (real, other),
        "real_split": (one, two),
        "independent": (real, independent(real)),
    }
    tables = [
        _line(columns, {k: grid_w1(real, *p, few, columns) for k, p in compared.items()})
        for columns in chosen
    ]
    every = {key: sample_w1(real, *pair, few) for key, pair in compared.items()}
    whole = _line(tuple(column.name for column in few), every) | {"sample_rows": SAMPLE}
    result: dict[str, Any] = {}
    for key in REFERENCES:
        found = [line["w1" if key == "synthetic" else key] for line in (*tables, whole)]
        result[key] = {"mean": float(np.mean(found)), "worst": max(found), "all": found[-1]}
    result["synthetic"] |= {"tables": tables, "all_columns": whole}
    return result


def _line(columns: Columns, found: dict[str, float]) -> dict[str, Any]:
    return {
        "columns": list(columns),
        "w1": found["synthetic"],
        "real_split": found["real_split"],
        "independent": found["independent"],
    }


def _chosen(real: Table, other: Table, domain: Domain) -> list[Columns]:
    triples = differ_most(real, other, domain, TRIPLES, 3)
    chosen = list(triples)
    if triples:
        wider = triples[0]
        for ways in (4, 5):
            if len(domain.columns) >= ways:
                wider = extended(real, other, domain, wider)
                chosen.append(wider)
    return chosen


def grid_w1(real: Table, one: Table, two: Table, domain: Domain, columns: Columns) -> float:
    """W1 of two tables on a grid of quantiles of the real one; rows are as far apart as in the column where
    they differ most, and other categories, or missing, at distance 1."""
    rows = min(len(one), len(two), ROWS)
    if not rows:
        return 0.0
    tables = [table.at_most(rows) for table in (one, two)]
    scales, places = [], []
    for name in columns:
        column, own = domain[name], real.codes[name]
        place, size, nominal = _places(column, own, [t.codes[name] for t in tables], len(columns))
        scales.append(Scale(size, nominal, column.nullable))
        places.append(place)
    lattice = divided(scales, math.prod(scale.values + scale.nullable for scale in scales))
    counts = []
    for k in range(2):
        at = np.ravel_multi_index([place[k] for place in places], lattice.shape)
        counts.append(np.bincount(at, minlength=lattice.size))
    return closest(counts[0] - counts[1], 0, lattice).distance / rows / max(1, lattice.side)


def _places(
    column: Column, real: NDArray[Any], codes: list[NDArray[Any]], ways: int
) -> tuple[list[Ints], int, bool]:
    """The place of each code along an axis, how many there are, and whether they are all equally far
    apart."""
    if is_category(column, real) and column.type in ("nominal", "boolean"):
        times = np.bincount(known(real, column), minlength=column.size)
        top = np.sort(np.argsort(-times, kind="stable")[: CATEGORIES[ways] - 1])
        where = np.full(column.codes, len(top), np.int64)
        where[top] = np.arange(len(top))
        size = min(len(top) + 1, max(2, column.size))
        where = np.minimum(where, size - 1)
        if column.nullable:
            where[column.size] = size
        return [where[own] for own in codes], size, True
    size = SIDE[ways]
    found = []
    for own in codes:
        place = np.minimum((ranks(own, real, column) * size).astype(np.int64), size - 1)
        found.append(np.where(own == column.size, size, place) if column.nullable else place)
    return found, size, False


def sample_w1(real: Table, one: Table, two: Table, domain: Domain) -> float:
    """W1 of two samples of equal size over all columns; rows are apart by the mean over their columns."""
    from scipy.optimize import linear_sum_assignment

    rows = min(len(one), len(two), SAMPLE)
    if not rows:
        return 0.0
    tables = [one.at_most(rows, seed=1), two.at_most(rows, seed=2)]
    far = np.zeros((rows, rows))
    for column in domain:
        x, y = (table.codes[column.name] for table in tables)
        if column.type in ("nominal", "boolean"):
            far += x[:, None] != y
            continue
        places = [ranks(codes, real.codes[column.name], column) for codes in (x, y)]
        gap = np.abs(places[0][:, None] - places[1])
        if column.nullable:
            gone = [codes == column.size for codes in (x, y)]
            gap[gone[0][:, None] != gone[1]] = 1.0
            gap[gone[0][:, None] & gone[1]] = 0.0
        far += gap
    far /= len(domain.columns)
    return float(far[linear_sum_assignment(far)].mean())
