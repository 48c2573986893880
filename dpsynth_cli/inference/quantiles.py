"""Weighted quantiles of groups."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.questions import Floats, Ints


def quantiles(group: Ints, x: Floats, weight: Floats, many: int, level: float) -> Floats:
    """The least value of each group that so much of its weight is at or below."""
    order = np.lexsort((x, group))
    group, x = group[order], x[order]
    below = np.maximum.accumulate(np.cumsum(weight[order]))  # weights may be negative
    starts = np.searchsorted(group, np.arange(many + 1))
    found = np.full(many, np.nan)
    for k in range(many):
        first, end = starts[k], starts[k + 1]
        before = below[first - 1] if first else 0.0
        if end > first and below[end - 1] > before:
            target = before + level * (below[end - 1] - before)
            found[k] = x[min(first + int(np.searchsorted(below[first:end], target * (1 - 1e-12))), end - 1)]
    return found
