"""Noisy histograms to masses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import exp, log

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


def best_variance(variances: Sequence[float]) -> float:
    """That of `best_total`.

    >>> best_variance([1.0, 3.0])
    0.75
    """
    return 0.0 if 0 in variances else 1 / sum(1 / variance for variance in variances)


def nearer(counts: NDArray[np.generic], totals: Floats, variance: float) -> Floats:
    """Noisy counts, a row a class, drawn nearer to what they would be if classes differed in size only.

    Of the difference that part is kept which its square has of itself and of noise's.

    >>> counts = np.array([[40, 10], [60, 90]])
    >>> [nearer(counts, np.array([50.0, 150.0]), v).round().tolist() for v in (1e-9, 300.0)]
    [[[40.0, 10.0], [60.0, 90.0]], [[36.0, 14.0], [64.0, 86.0]]]
    """
    table = counts.astype(np.float64)
    classes, cells = table.shape
    part = totals / totals.sum() if totals.any() else np.full(classes, 1 / classes)
    expected = np.outer(part, table.sum(axis=0))
    rest = table - expected
    rest -= rest.mean(axis=1)[:, None]  # sizes are known better than by these counts
    noise = variance * (cells - 1) * (classes - 2 + classes * float((part**2).sum()))
    square = float((rest**2).sum())
    return np.asarray(expected + rest * (square / max(square + noise, 1e-9)))


SPREADS = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6])  # of masses by what all classes together have
LEFT = 0.25  # of the variance of noisy counts, in masses that were made non-negative (measured)


def alike(masses: Floats, variance: float) -> Floats:
    """Masses, a row a class, drawn nearer to what they would be if classes differed in size only: the more,
    the fewer rows a cell has. How far classes differ is learnt from all cells (empirical Bayes).

    >>> masses = np.array([[900.0, 95.0, 5.0], [480.0, 500.0, 20.0]])
    >>> alike(masses, 400.0).round().tolist()
    [[897.0, 95.0, 8.0], [482.0, 502.0, 17.0]]
    """
    totals, pooled = masses.sum(axis=1, keepdims=True), masses.sum(axis=0)
    part = totals / max(float(totals.sum()), 1e-9)
    expected = part * pooled
    away = masses - expected
    noise = LEFT * max(variance, 1e-9) * (1 - 2 * part + len(part) * part**2)
    square = (SPREADS[:, None, None] * expected) ** 2 + noise
    likely = -0.5 * (away**2 / square + log(square))[:, :, pooled > 0].sum(axis=(1, 2))
    weights = exp(likely - likely.max())
    signal = (weights / weights.sum() * SPREADS**2).sum() * (expected**2).sum(axis=0)
    found = expected + signal / (signal + noise.sum()) * away
    return np.asarray(found * totals / np.maximum(found.sum(axis=1, keepdims=True), 1e-300))
