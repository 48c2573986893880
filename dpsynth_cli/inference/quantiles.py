"""Weighted quantiles of groups."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.questions import Floats, Ints


def quantiles(group: Ints, x: Floats, weight: Floats, many: int, level: float) -> Floats:
    """The least value of each group that so much of its weight is at or below."""
    order = np.lexsort((x, group))
    group, x = group[order], x[order]
    starts = np.searchsorted(group, np.arange(many + 1))
    found = np.full(many, np.nan)
    for k in range(many):
        first, end = starts[k], starts[k + 1]
        below = np.cumsum(weight[order[first:end]])
        if end > first and below[-1] > 0:
            rising = np.maximum.accumulate(below)  # weights may be negative
            found[k] = x[first + int(np.searchsorted(rising, level * below[-1] * (1 - 1e-12)))]
    return found
