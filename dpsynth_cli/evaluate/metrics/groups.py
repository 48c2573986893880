"""Means of numbers by the groups of a category: what a group-by says."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.cuts import Cut, cut, kinds
from dpsynth_cli.evaluate.metrics.marginals import paired
from dpsynth_cli.evaluate.metrics.scales import known, missing, shown, unit_name, values
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Floats

FARTHEST = 3.0  # standard deviations: a group is not further off than that
LISTED, GROUPS = 10, 12  # pairs whose means are listed, and groups of each, the largest


def group_errors(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """Errors of group means in standard deviations of the number, weighted by the size of the group; a group
    that is no more there is off by one."""
    categories, numbers = kinds(real, Domain(paired(domain)))
    numbers = tuple(column for column in numbers if _scale(real, column)[1] > 0)
    cuts = {column.name: cut(column, real.codes[column.name], 1, True) for column in categories}
    pairs = [
        _of(real, other, cuts[category.name], number) for category in categories for number in numbers
    ] if len(real) else []  # fmt: skip
    pairs.sort(key=lambda pair: -float(pair["error"]))
    for pair in pairs[LISTED:]:
        del pair["means"]
    errors = [pair["error"] for pair in pairs]
    return {
        "mean": float(np.mean(errors)) if errors else 0.0,
        "worst": max(errors, default=0.0),
        "worst_columns": pairs[0]["columns"] if pairs else [],
        "pairs": pairs,
    }


def _scale(real: Table, number: Column) -> tuple[float, float]:
    """Mean and standard deviation of the real number, in its units."""
    there = values(known(real.codes[number.name], number), number)
    return (float(there.mean()), float(there.std())) if len(there) else (0.0, 0.0)


def _of(real: Table, other: Table, groups: Cut, number: Column) -> dict[str, Any]:
    mean, sd = _scale(real, number)
    (u, sizes, rows), (v, _, there) = (_means(table, groups, number, mean, sd) for table in (real, other))
    used = rows > 0
    share = sizes[used] / max(1.0, float(sizes.sum()))
    gap = np.where(there[used] > 0, np.minimum(np.abs(u - v)[used], FARTHEST), 1.0)
    return {
        "columns": [groups.column.name, number.name],
        "error": float((gap * share).sum()),
        "explained": {"real": _explained(u, rows), "synthetic": _explained(v, there)},
        "unit": unit_name(number),
        "means": _listed(groups, number, sizes, [u * sd + mean, v * sd + mean], [rows, there]),
    }


def _means(
    table: Table, groups: Cut, number: Column, mean: float, sd: float
) -> tuple[Floats, Floats, Floats]:
    """By group: the mean of the standardised number, all rows, and those with a value; missing is no
    group."""
    cells, codes = groups.cells(table.codes[groups.column.name]), table.codes[number.name]
    size = groups.size - 2  # neither values that no real row has, nor missing
    there = ~missing(codes, number)
    z = np.zeros(len(codes))
    z[there] = (values(codes[there], number) - mean) / sd
    rows = np.bincount(cells, there.astype(np.float64), minlength=groups.size)[:size]
    sums = np.bincount(cells, z, minlength=groups.size)[:size]
    whole = np.bincount(cells, np.ones(len(cells)), minlength=groups.size)[:size]
    return sums / np.maximum(rows, 1), whole.astype(np.float64), rows.astype(np.float64)


def _explained(means: Floats, rows: Floats) -> float:
    """The part of the variance that lies between groups: of a number with variance 1 in the real table."""
    total = max(1.0, float(rows.sum()))
    middle = float((means * rows).sum()) / total
    return float((rows * (means - middle) ** 2).sum() / total)


def _listed(
    groups: Cut, number: Column, sizes: Floats, means: list[Floats], rows: list[Floats]
) -> list[dict[str, Any]]:
    """The largest groups, in the number's units."""
    found = []
    for k in np.argsort(-sizes, kind="stable")[:GROUPS].tolist():
        both = [
            shown(float(own[k]), number) if count[k] else None for own, count in zip(means, rows, strict=True)
        ]
        part = float(sizes[k] / max(1.0, float(sizes.sum())))
        found.append({"group": label(groups, k), "share": part, "real": both[0], "synthetic": both[1]})
    return found


def label(groups: Cut, cell: int) -> str:
    """What a group is called: its category, or its number."""
    column, code = groups.column, int(groups.at[cell])
    if column.type == "boolean":
        return ("false", "true")[code]
    if column.categorical:
        return column.categories[code]
    return f"{float(values(np.array([code]), column)[0]):g}"
