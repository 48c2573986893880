"""Means and covariances of several classes from noisy sums of y and y y^T.

Classes share their axes (the pooled covariance has all the rows behind it), and each has its own mean, its
own scale of every column, and as much of a covariance of its own as stands above its noise. y lies in
[-1/2, 1/2]^d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.projection import room
from dpsynth_cli.numeric.spectrum import Axes, axes, beyond_noise, root

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sums:
    """Noisy sums over K classes, each with the variance of its noise (`noise` of an entry).

    sizes (K, at least 1); first, of y (K x d); second, of y y^T over all rows (d x d); by_class, of y y^T
    (K x d x d), where it was asked for.
    """

    sizes: Floats
    size_noise: float
    first: Floats
    first_noise: float
    second: Floats
    second_noise: float
    by_class: Floats | None = None
    class_noise: float = 0.0

    @property
    def weights(self) -> Floats:
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def mean(self) -> Floats:
        return np.asarray(self.first / self.sizes[:, None])

    @property
    def mean_noise(self) -> Floats:
        return self.first_noise / self.sizes**2


@dataclass(frozen=True, eq=False)
class Spread:
    """How rows lie about their mean: F with F F^T the covariance along the axes, the variance that each
    column has left, and which part of all variance is along the axes (of all classes that share them)."""

    found: Axes
    factor: Floats
    left: Floats
    explained: float


def pooled_covariance(sums: Sums) -> tuple[Floats, float]:
    """The covariance inside the classes, all together, and the noise of an entry (standard deviation)."""
    mean, weights = sums.mean, sums.weights
    inside = sums.second / sums.sizes.sum() - (mean * weights[:, None]).T @ mean
    # A noisy mean makes its own square too large by its variance.
    inside += np.eye(len(inside)) * float(weights @ sums.mean_noise)
    noise = sums.second_noise / sums.sizes.sum() ** 2 + float(weights**2 @ _noise_of_squares(sums, mean))
    return inside, math.sqrt(noise)


def pooled_spreads(sums: Sums, centres: Floats, keep: int | None = None) -> list[Spread]:
    """One spread a class about its centre, the axes being those of all classes together."""
    sums = _reconciled(sums)
    inside, tau = pooled_covariance(sums)
    found = axes(inside, tau, keep)
    left = _left_over(inside, found, tau, sums.weights @ room(centres))
    along = float(found.values.sum())
    explained = along / max(float(np.trace(inside)), along) if along else 0.0

    # Inside a class a column varies as far as the class's mean leaves room for.
    scale = np.sqrt(room(centres) / np.maximum(sums.weights @ room(centres), 1e-4))
    spreads = []
    for k, own in enumerate(scale):
        factor = own[:, None] * found.vectors * np.sqrt(found.values)
        if sums.by_class is not None and len(found):
            factor = root(factor @ factor.T + _own_part(sums, k, found, factor, left * own**2))
        spreads.append(Spread(found, factor, left * own**2, explained))
    return spreads


def separate_spreads(sums: Sums, keep: int | None = None) -> list[Spread]:
    """One spread a class with axes of its own, from its own second moments alone."""
    assert sums.by_class is not None
    spreads = []
    for k in range(len(sums.sizes)):
        own = replace(
            sums,
            sizes=sums.sizes[k : k + 1],
            first=sums.first[k : k + 1],
            second=sums.by_class[k],
            second_noise=sums.class_noise,
            by_class=None,
        )
        spreads += pooled_spreads(own, np.clip(own.mean, -0.5, 0.5), keep)
    return spreads


def _reconciled(sums: Sums) -> Sums:
    """The classes' second moments add up to those of all rows; what they differ by is divided alike."""
    if sums.by_class is None:
        return sums
    added, noise = sums.by_class.sum(axis=0), sums.class_noise * len(sums.sizes)
    trust = noise / (noise + sums.second_noise)
    second = added + trust * (sums.second - added)
    by_class = sums.by_class + (second - added) / len(sums.sizes)
    return replace(sums, second=second, second_noise=trust * sums.second_noise, by_class=by_class)


def _own_part(sums: Sums, k: int, found: Axes, factor: Floats, left: Floats) -> Floats:
    """How a class's covariance in the subspace differs from what is expected of it, beyond its noise."""
    assert sums.by_class is not None
    n, v, mean = sums.sizes[k], found.vectors, sums.mean[k]
    seen = sums.by_class[k] / n - np.outer(mean, mean) + np.eye(len(mean)) * sums.mean_noise[k]
    difference = v.T @ (seen - factor @ factor.T - np.diag(left)) @ v
    noise = sums.class_noise / n**2 + _noise_of_squares(sums, sums.mean @ v)[k]
    return np.asarray(v @ beyond_noise(difference, math.sqrt(noise)) @ v.T)


def _noise_of_squares(sums: Sums, mean: Floats) -> Floats:
    """The variance that m m^T of each class brings, averaged over its entries.

    The means' noise e enters as m e^T + e m^T; that of the sizes scales m m^T.
    """
    d = mean.shape[1]
    square = np.maximum((mean**2).sum(axis=1) - d * sums.mean_noise, 0.0)
    of_sizes = sums.size_noise / sums.sizes**2 * (square / d) ** 2
    return np.asarray(2 * sums.mean_noise * square / d + of_sizes)


def _left_over(inside: Floats, found: Axes, tau: float, most: Floats) -> Floats:
    """The variance of each column that is not along the axes: none, unless all together are beyond noise.

    Column by column it is noisy, so it is drawn towards shares in proportion to `most`, what a column can
    have (James and Stein, positive part).
    """
    left = np.diag(inside) - (found.vectors**2) @ found.values
    total = float(left.sum())
    if total <= 3 * tau * math.sqrt(len(left)):
        return np.zeros(len(left))
    expected = most * (total / max(float(most.sum()), 1e-12))
    away = left - expected
    square = max(float(away @ away), 1e-300)
    keep = max(0.0, 1 - max(1, len(left) - 2) * tau**2 / square)
    return np.asarray(np.clip(expected + keep * away, 0.0, most))
