"""A judgement as lines for people: what is measured, and the numbers of the table and its references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = {"synthetic": "synthetic", "real_split": "real/real", "independent": "independent"}
_LINES: list[tuple[str, str, tuple[str, ...]]] = [
    *(
        (f"{ways}-way TVD, {key}", "marginals", (f"tvd{ways}", key))
        for ways in (1, 2, 3, 4, 5)
        for key in ("mean", "worst")
    ),
    ("W1 of columns in their spread, mean", "w1", ("mean",)),
    ("W1 of columns in their spread, worst", "w1", ("worst",)),
    ("W1 of columns in their range, mean", "w1", ("range", "mean")),
    ("W1 in the plane, mean", "w1_2d", ("mean",)),
    ("W1 in the plane, worst", "w1_2d", ("worst",)),
    ("joint W1 of 3 and more, worst", "w1_joint", ("worst",)),
    ("joint W1 of all columns", "w1_joint", ("all",)),
    ("sliced W1", "sliced", ("mean",)),
    ("quantiles, in spreads, mean", "quantiles", ("mean",)),
    ("quantiles, in spreads, worst", "quantiles", ("worst",)),
    ("distinct values, log10", "quantiles", ("distinct",)),
    ("rank correlations, mean", "regressions", ("ranks", "mean")),
    ("rank correlations, worst", "regressions", ("ranks", "worst")),
    ("R^2, mean", "regressions", ("r2", "mean")),
    ("R^2, worst", "regressions", ("r2", "worst")),
    ("group means, in sd, mean", "groups", ("mean",)),
    ("group means, in sd, worst", "groups", ("worst",)),
    ("what follows, left open", "relations", ("determined",)),
    ("rows that never occur", "relations", ("impossible",)),
    ("missing together, worst", "relations", ("together",)),
    ("error of the means, in sd", "moments", ("mean",)),
    ("covariance, Frobenius", "moments", ("covariance_frobenius",)),
    ("covariance, spectral", "moments", ("covariance_spectral",)),
    ("propensity pMSE", "propensity", ("pmse",)),
    ("propensity pMSE, ratio", "propensity", ("ratio",)),
    ("rows that are real", "matches", ("share",)),
    ("unique rows that are real", "matches", ("unique_share",)),
]
_SCORES = ("accuracy", "auc", "f1")


TARGETS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "w1": ("W1 of a column (mean), in its spread", "w1", ("mean",)),
    "w1_2d": ("W1 in the plane, in parts of the range", "w1_2d", ("mean",)),
    "tvd1": ("1-way tables, mean total variation distance", "marginals", ("tvd1", "mean")),
    "tvd2": ("2-way tables, mean total variation distance", "marginals", ("tvd2", "mean")),
    "tvd3": ("3-way tables, mean total variation distance", "marginals", ("tvd3", "mean")),
    "mean": ("norm of the error of the means, in standard deviations", "moments", ("mean",)),
    "covariance": (
        "Frobenius norm of the error of the covariances, in sd",
        "moments",
        ("covariance_frobenius",),
    ),
}


def targets(compared: Mapping[str, Any]) -> dict[str, float]:
    """The errors that can be predicted and planned for, as far as these metrics were compared."""
    found = {name: at(compared.get(metric), path) for name, (_, metric, path) in TARGETS.items()}
    return {name: value for name, value in found.items() if value is not None}


def lines(judged: Mapping[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """(what, {synthetic: number, real_split: number, ...}) for every metric that was computed."""
    metrics = judged["metrics"]
    found = []
    for label, name, path in _LINES:
        values = {key: at(metrics.get(name, {}).get(key), path) for key in COLUMNS}
        there = {key: value for key, value in values.items() if value is not None}
        if there:
            found.append((label, there))
    return found + _scores(metrics.get("classifiers", {}))


def used(judged: Mapping[str, Any]) -> dict[str, str]:
    """The columns of numbers that there are, with their headings."""
    there = {key for _, values in lines(judged) for key in values}
    return {key: heading for key, heading in COLUMNS.items() if key in there}


def _scores(line: Mapping[str, Any]) -> list[tuple[str, dict[str, float]]]:
    found = []
    trained = {key: line[key] for key in COLUMNS if key in line}
    for model in next(iter(trained.values()), {}):
        if model.startswith("mean_"):
            continue
        for score in _SCORES:
            shown = {"accuracy": "accuracy", "auc": "ROC AUC", "f1": "F1"}[score]
            found.append((f"{model}, {shown}", {key: s[model][score] for key, s in trained.items()}))
    return found


def at(values: Any, path: tuple[str, ...]) -> float | None:
    """The number at this path, if there is one."""
    for key in path:
        if not isinstance(values, Mapping) or key not in values:
            return None
        values = values[key]
    return float(values)
