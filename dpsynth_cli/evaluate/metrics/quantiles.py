"""Numbers by themselves: quantiles and means in their units and their spread, distinct values, decimals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.cuts import kinds
from dpsynth_cli.evaluate.metrics.scales import decimals, known, shown, spread, unit_name, values
from dpsynth_cli.evaluate.tables import Table

LEVELS = tuple(i / 20 for i in range(1, 20))
LOST = 10.0  # spreads: the error of a column that has no value any more
DISTINCT_ROWS = 10_000


def quantile_errors(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """Of each number the mean of |synthetic - real quantile| over 5 .. 95 %, in the real column's spread."""
    rows = min(DISTINCT_ROWS, len(real), len(other))
    few = [table.at_most(rows) for table in (real, other)]
    columns = {}
    for column in kinds(real, domain)[1]:
        many = [len(np.unique(known(table.codes[column.name], column))) for table in few]
        columns[column.name] = _of(real, other, column) | {"distinct": _ratio(*many)}
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
    codes = [known(table.codes[column.name], column) for table in (real, other)]
    x, y = (values(own, column) for own in codes)
    wide = spread(real.codes[column.name], column)
    found: dict[str, Any] = {"spread": wide, "unit": unit_name(column)}
    if not len(x) or not len(y):
        gap = 0.0 if len(x) == len(y) else LOST
        found |= {"error": gap, "real": [], "synthetic": [], "means": {"error": gap}}
    else:
        at, means = [np.quantile(part, LEVELS) for part in (x, y)], (float(x.mean()), float(y.mean()))
        found |= {
            "error": float(np.abs(at[0] - at[1]).mean() / wide),
            "real": [shown(value, column) for value in at[0].tolist()],
            "synthetic": [shown(value, column) for value in at[1].tolist()],
            "means": {
                "real": shown(means[0], column),
                "synthetic": shown(means[1], column),
                "error": abs(means[0] - means[1]) / wide,
            },
        }
    digits = [decimals(own[:DISTINCT_ROWS], column) for own in codes]
    return found | {"decimals": {"real": digits[0], "synthetic": digits[1]}}


def _ratio(real: int, made: int) -> dict[str, float]:
    return {"real": real, "synthetic": made, "log10_ratio": math.log10(max(1, made) / max(1, real))}
