"""The names of the metrics, apart from what computes them, so that a spec is read without it."""

from __future__ import annotations

NAMES = (
    "w1", "w1_2d", "w1_joint", "sliced", "marginals", "quantiles", "regressions", "groups", "relations",
    "moments", "propensity", "matches", "classifiers",
)  # fmt: skip
QUICK = ("w1", "marginals", "quantiles", "regressions", "groups", "relations", "moments")
MOST_ROWS = 1_000_000  # of each table that are looked at
