"""The private means and covariances of `lowdim`, as an output of their own: what rows are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.lowdim.classes import Spread
from dpsynth_cli.questions import Floats

UNITS = {"date": "days since 1970-01-01", "datetime": "microseconds since 1970-01-01 00:00"}


def moments(omega: Domain, rows: Floats, centres: Floats, spreads: Sequence[Spread]) -> dict[str, Any]:
    """One mean a class, and one covariance where second moments were asked for; in units of the columns.

    A nominal column has one coordinate for each category, 1 in rows that have it: its means are shares.
    """
    coordinates, at, scale = [], [], []
    for column in omega.modelled:
        for words, first, step in _coordinates(column):
            coordinates.append({"column": column.name} | words)
            at.append(first)
            scale.append(step)
    start, unit = np.array(at), np.array(scale)
    label = omega[omega.strata] if omega.strata else None
    classes = []
    for k, (n, centre) in enumerate(zip(rows.tolist(), centres, strict=True)):
        one: dict[str, Any] = {} if label is None else {"class": _category(label, k)}
        one |= {"rows": round(max(0.0, n)), "mean": (start + unit * centre).tolist()}
        if spreads:
            own = spreads[k]
            covariance = own.factor @ own.factor.T + np.diag(own.left)
            one["covariance"] = (np.outer(unit, unit) * covariance).tolist()
        classes.append(one)
    return {"coordinates": coordinates, "classes": classes}


def _coordinates(column: Column) -> list[tuple[dict[str, str], float, float]]:
    """Of each coordinate y of a column: its words, and value = first + step y."""
    if column.type == "nominal":  # y is 1/2 at the row's own category, else 0
        return [({"category": str(_category(column, k))}, 0.0, 2.0) for k in range(column.codes)]
    last = column.size - 1
    if column.categorical:
        low, high, unit = 0.0, float(last), "number of the category, from 0"
    elif column.scale != "linear":
        low, high, unit = 0.0, 1.0, f"place between the bounds on their {column.scale} scale, from 0 to 1"
    else:
        low, unit = float(column.lower), UNITS.get(column.type, "as declared")
        high = float(column.upper) if column.type == "continuous" else low + column.unit * last
    return [({"unit": unit}, (low + high) / 2, high - low)]


def _category(column: Column, code: int) -> str | None:
    return column.categories[code] if code < column.size else None
