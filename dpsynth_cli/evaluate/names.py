"""The names of the metrics, apart from what computes them, so that a spec is read without it."""

from __future__ import annotations

NAMES = ("w1", "w1_2d", "sliced", "marginals", "moments", "propensity", "matches", "classifiers")
QUICK = ("w1", "marginals", "moments")
MOST_ROWS = 1_000_000  # of each table that are looked at
