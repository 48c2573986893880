"""Means and covariances of several classes from noisy sums of y and y y^T, y in [-1/2, 1/2]^d.

Classes share their axes, because the pooled covariance has all rows behind it. Each has its own mean, its
own scale of every column, and a covariance of its own as far as that stands above its noise.
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
    """Noisy sums over K classes, each with the variance of its noise.

    sizes (K, at least 1); first, of y (K x d); second, of y y^T over all rows (d x d); by_class, of y y^T
    (K x d x d), where it was asked for. Coordinates lie between `low` and 1/2. With `about` (K x d) all sums
    are of y - about, of each row's class.
    """

    sizes: Floats
    size_noise: float
    first: Floats
    first_noise: float
    second: Floats
    second_noise: float
    by_class: Floats | None = None
    class_noise: float = 0.0
    low: Floats | float = -0.5
    about: Floats | None = None

    @property
    def weights(self) -> Floats:
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def off(self) -> Floats:
        """The mean of what was added up."""
        return np.asarray(self.first / self.sizes[:, None])

    @property
    def mean(self) -> Floats:
        return self.off if self.about is None else np.asarray(self.about + self.off)

    @property
    def mean_noise(self) -> Floats:
        return np.asarray(self.first_noise / self.sizes**2)


@dataclass(frozen=True, eq=False)
class Spread:
    """How rows lie about their mean: F with F F^T the covariance along the axes, the variance that each
    column has left, and the axes' part of all variance (in all classes that share them)."""

    found: Axes
    factor: Floats
    left: Floats
    explained: float


def centred(sums: Sums) -> Floats:
    """The mean of each class, drawn towards that of all classes as far as its noise says; inside the box.

    Classes differ in a column by an amount with variance in proportion to the column's room: near a bound
    all means are near it. The one unknown factor is taught by all classes and columns together.
    """
    mean, noise, weights = sums.mean, sums.mean_noise, sums.weights
    pooled = np.clip(weights @ mean, sums.low, 0.5)
    if len(mean) == 1:
        return np.asarray(pooled[None])
    away = mean - pooled
    expected = float(weights @ noise) * mean.shape[1] * (1 - 1 / len(mean))
    between = max(float(weights @ (away**2).sum(axis=1)) - expected, 0.0)
    free = room(pooled, sums.low)
    prior = free * (between / max(float(free.sum()), 1e-12))
    keep = prior / np.maximum(prior + noise[:, None], 1e-300)
    return np.asarray(np.clip(pooled + keep * away, sums.low, 0.5))


def fitted(sums: Sums, keep: int | None = None) -> tuple[Floats, list[Spread]]:
    """The centre and the spread of each class, with axes of all classes together.

    Twice: when the covariances are known, the second moments say something about the means as well; but not
    those about a first mean.
    """
    sums = _reconciled(sums)
    if sums.about is not None:
        pass
    elif sums.by_class is not None:
        sums = _sharpened(sums, sums.by_class, sums.class_noise, _spreads(sums, keep))
    elif len(sums.sizes) == 1:
        sums = _sharpened(sums, sums.second[None], sums.second_noise, _spreads(sums, keep))
    return centred(sums), _spreads(sums, keep)


def fitted_alone(sums: Sums, keep: int | None = None) -> tuple[Floats, list[Spread]]:
    """The centre and the spread of each class, with axes of its own, from its own sums alone."""
    assert sums.by_class is not None
    each = [
        fitted(
            replace(
                sums,
                sizes=sums.sizes[k : k + 1],
                about=None if sums.about is None else sums.about[k : k + 1],
                first=sums.first[k : k + 1],
                second=second,
                second_noise=sums.class_noise,
                by_class=None,
            ),
            keep,
        )
        for k, second in enumerate(sums.by_class)
    ]
    return np.concatenate([centre for centre, _ in each]), [spread for _, (spread,) in each]


def pooled_covariance(sums: Sums) -> tuple[Floats, float]:
    """The covariance inside the classes, all together, and the noise of an entry (standard deviation)."""
    mean, weights = sums.off, sums.weights
    inside = sums.second / sums.sizes.sum() - (mean * weights[:, None]).T @ mean
    # A noisy mean makes its own square too large by its variance.
    inside += np.eye(len(inside)) * float(weights @ sums.mean_noise)
    noise = sums.second_noise / sums.sizes.sum() ** 2 + float(weights**2 @ _noise_of_squares(sums, mean))
    return inside, math.sqrt(noise)


def _spreads(sums: Sums, keep: int | None) -> list[Spread]:
    centres, weights = centred(sums), sums.weights
    inside, tau = pooled_covariance(sums)
    found = axes(inside, tau, keep)
    free = room(centres, sums.low)
    left = _left_over(inside, found, tau, weights @ free)
    along = float(found.values.sum())
    explained = along / max(float(np.trace(inside)), along) if along else 0.0

    # Inside a class a column varies as far as the class's mean leaves room for.
    scale = np.sqrt(free / np.maximum(weights @ free, 1e-4))
    spreads = []
    for k, own in enumerate(scale):
        factor = own[:, None] * found.vectors * np.sqrt(found.values)
        if sums.by_class is not None and len(found):
            factor = root(factor @ factor.T + _own_part(sums, k, found, factor, left * own**2))
        spreads.append(Spread(found, factor, left * own**2, explained))
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


def _sharpened(sums: Sums, moments: Floats, noise: float, spreads: list[Spread]) -> Sums:
    """Sums of y that also listen to the second moments.

    E y y^T - C = m m^T: if the mean is off by e, it shows there as m e^T + e m^T, so (E y y^T - C - m m^T) m
    over |m|^2 is e, with noise tau / |m|: little where the mean is far from the centre. Only the part at
    right angles to m is taken; along m sizes and covariances would be mistaken for it.
    """
    first, noises = sums.first.copy(), []
    for k, (n, mean, spread) in enumerate(zip(sums.sizes, sums.mean, spreads, strict=True)):
        square = max(float(mean @ mean) - len(mean) * float(sums.mean_noise[k]), 1e-12)
        rest = moments[k] / n - np.outer(mean, mean) - spread.factor @ spread.factor.T - np.diag(spread.left)
        e = rest @ mean / square
        e -= mean * (mean @ e) / max(float(mean @ mean), 1e-12)
        variance = max(float((rest**2).mean()), noise / n**2) / square
        trust = sums.mean_noise[k] / (sums.mean_noise[k] + variance)
        first[k] += n * trust * e
        noises.append(float(trust * variance * n**2))
    return replace(sums, first=first, first_noise=float(np.mean(noises)))


def _own_part(sums: Sums, k: int, found: Axes, factor: Floats, left: Floats) -> Floats:
    """How a class's covariance in the subspace differs from what is expected of it, beyond its noise."""
    assert sums.by_class is not None
    n, v, mean = sums.sizes[k], found.vectors, sums.off[k]
    seen = sums.by_class[k] / n - np.outer(mean, mean) + np.eye(len(mean)) * sums.mean_noise[k]
    difference = v.T @ (seen - factor @ factor.T - np.diag(left)) @ v
    noise = sums.class_noise / n**2 + _noise_of_squares(sums, sums.off @ v)[k]
    size = float(found.values.sum())
    return np.asarray(v @ beyond_noise(difference, math.sqrt(noise), size) @ v.T)


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
    keep = max(0.0, 1 - max(1, len(left) - 2) * tau**2 / max(float(away @ away), 1e-300))
    return np.asarray(np.clip(expected + keep * away, 0.0, most))
