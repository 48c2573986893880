"""Leaves of pmm's tree that are far outside the focus of a column, and empty as far as can be seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpsynth_cli.numeric.partition import along
from dpsynth_cli.numeric.scale import Scale

AXIS = 4  # halvings of a column that tell where its rows end


def tails(
    order: tuple[int, ...], scales: Sequence[Scale], measured: Sequence[tuple[int, np.ndarray, float]]
) -> np.ndarray:
    """Which leaves are taken to be empty, by the (level, counts, variance) of the measured levels."""
    empty = np.zeros(1 << len(order), bool)
    for a, scale in enumerate(scales):
        bits = order.count(a)
        if scale.plain or not bits:
            continue
        level, counts, variance = next(
            (one for one in measured if order[: one[0]].count(a) >= min(bits, AXIS)), measured[-1]
        )
        own = order[:level].count(a)
        sums = np.bincount(along(order[:level], a), counts, 1 << own).astype(np.float64)
        tail = scale.tails(own, sums, math.sqrt(variance * len(counts) / len(sums)))
        empty |= tail[along(order, a).astype(np.int64) >> (bits - own)]
    return empty
