"""Numbers by themselves: quantiles and means in their units and their spread, distinct values, decimals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.cuts import kinds
from dpsynth_cli.evaluate.scales import decimals, known, shown, spread, step, unit_name, values
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Ints

LEVELS = tuple(i / 20 for i in range(1, 20))
LOST = 10.0  # spreads: the error of a column that has no value any more
DISTINCT_ROWS = 10_000


def quantile_errors(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """Of each number the mean of |synthetic - real quantile| over 5 .. 95 %, in the real column's spread."""
    columns = {column.name: _of(real, other, column) for column in kinds(real, domain)[1]}
    errors = {name: own["error"] for name, own in columns.items()}
    distinct = [abs(own["distinct"]["log10_ratio"]) for own in columns.values()]
    return {
        "mean": float(np.mean(list(errors.values()))) if errors else 0.0,
        "worst": max(errors.values(), default=0.0),
        "worst_column": max(errors, key=lambda name: errors[name], default=None),
        "distinct": float(np.mean(distinct)) if distinct else 0.0,
        "levels": list(LEVELS),
        "columns": columns,
    }


def _of(real: Table, other: Table, column: Column) -> dict[str, Any]:
    both = [table.codes[column.name] for table in (real, other)]
    x, y = (known(codes, column).astype(np.int64) for codes in both)
    wide = spread(both[0], column)
    found: dict[str, Any] = {"spread": wide * step(column), "unit": unit_name(column)}
    if not len(x) or not len(y):
        gap = 0.0 if len(x) == len(y) else LOST
        found |= {"error": gap, "real": [], "synthetic": [], "means": {"error": gap}}
    else:
        at, means = [np.quantile(part, LEVELS) for part in (x, y)], (float(x.mean()), float(y.mean()))
        found |= {
            "error": float(np.abs(at[0] - at[1]).mean() / wide),
            "real": [shown(value, column) for value in values(at[0], column).tolist()],
            "synthetic": [shown(value, column) for value in values(at[1], column).tolist()],
            "means": {
                "real": shown(float(values(np.array(means[0]), column)), column),
                "synthetic": shown(float(values(np.array(means[1]), column)), column),
                "error": abs(means[0] - means[1]) / wide,
            },
        }
    rows = min(DISTINCT_ROWS, len(real), len(other))
    many = [_distinct(table.at_most(rows).codes[column.name], column) for table in (real, other)]
    found["distinct"] = {
        "real": many[0],
        "synthetic": many[1],
        "log10_ratio": math.log10(max(1, many[1]) / max(1, many[0])),
    }
    found["decimals"] = {"real": decimals(x, column), "synthetic": decimals(y, column)}
    return found


def _distinct(codes: Ints, column: Column) -> int:
    return len(np.unique(known(codes, column)))
