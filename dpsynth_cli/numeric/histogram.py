"""Noisy histograms to masses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def on_simplex(noisy: NDArray[np.generic], total: float) -> Floats:
    """The nearest non-negative masses that add up to total (Euclidean projection).

    >>> on_simplex(np.array([5, 4, -3]), 8.0).tolist()
    [4.5, 3.5, 0.0]
    """
    values = noisy.astype(np.float64)
    if total <= 0:
        return np.zeros(len(values))
    falling = -np.sort(-values)
    excess = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - excess.max(), 0.0))


def best_total(estimates: Sequence[tuple[float, float]]) -> float:
    """Several noisy (value, variance) of one number, combined by inverse variance.

    >>> best_total([(10.0, 1.0), (14.0, 3.0)])
    11.0
    """
    exact = [value for value, variance in estimates if variance == 0]
    if exact:
        return exact[0]
    weights = [1 / variance for _, variance in estimates]
    return sum(v * w for (v, _), w in zip(estimates, weights, strict=True)) / sum(weights)
