"""How much likelier an answer is with one table's sums than with its neighbour's: the auditor knows the
noise.

Answers are exact sums plus noise of a public distribution, so the ratio of two likelihoods is known
exactly. It is the best test there is (Neyman and Pearson), if the noise is what it claims to be; and the
most that it can be is the privacy loss of the question for this pair of tables, without any statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import log_ndtr

from dpsynth_cli.questions import Answer, Floats, Ints
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.core.scales import representable_sigma2

CERTAIN = 1e6  # the logarithm of a ratio that has no end: an exact answer that differs
SMOOTH = 64  # standard deviations from which rounding to integers does not show


@dataclass(frozen=True, eq=False)
class Told:
    """One answer, its line in the bill, and the exact sums of both tables."""

    charge: Charge
    answer: Answer
    first: Ints
    second: Ints

    @property
    def moved(self) -> Ints:
        return self.first - self.second

    def loss(self) -> Fraction:
        """The most that it can tell: of epsilon, or with Gaussian noise of mu squared. Exact."""
        price, moved = self.charge.price, np.abs(self.moved).astype(object)
        if price.noise == "none":
            return Fraction(10**6 if moved.any() else 0)
        if price.noise == "discrete_laplace":
            return Fraction(moved.sum()) / price.parameter
        if price.noise == "discrete_cube":
            return Fraction(sum(max(block) for block in self.blocks(moved))) / price.parameter
        return sum((d * d / s for d, s in zip(moved, variances(self.charge), strict=True) if d), Fraction(0))

    def blocks(self, values: np.ndarray) -> list[np.ndarray]:
        return np.split(values, np.cumsum(self.charge.lengths)[:-1], axis=-1)

    def log_ratios(self, noise: Ints, first: bool) -> Floats:
        """Of n answers, whose noise is given (n x integers) and whose sums are the first table's, or the
        second's."""
        moved = self.moved
        one, other = (noise, noise + moved) if first else (noise - moved, noise)
        price = self.charge.price
        if price.noise == "none":
            told = CERTAIN if first else -CERTAIN
            return np.full(len(noise), told if moved.any() else 0.0)
        if price.noise == "discrete_cube":
            far, near = (
                sum(np.abs(block).max(axis=1) for block in self.blocks(values)) for values in (other, one)
            )
            return np.asarray((far - near) / float(price.parameter))
        differs = np.flatnonzero(moved)
        one, other = one[:, differs], other[:, differs]
        if price.noise == "discrete_laplace":
            return np.asarray((np.abs(other) - np.abs(one)).sum(axis=1) / float(price.parameter))
        own = variances(self.charge)
        sigma = np.array([float(own[i]) ** 0.5 for i in differs])
        return np.asarray((_log_rounded(one, sigma) - _log_rounded(other, sigma)).sum(axis=1))


def loss(told: Sequence[Told]) -> Fraction:
    """The most that all of these answers can tell together."""
    return sum((each.loss() for each in told), Fraction(0))


def log_ratio(told: Told) -> float:
    """Of the answer that was given."""
    return float(told.log_ratios((told.answer.values - told.first)[None], True)[0])


def variances(charge: Charge) -> list[Fraction]:
    """Of Gaussian noise before it is rounded, for each integer: by recipe F half of it above the diagonal."""
    whole = charge.price.parameter
    if not charge.sensitivity.half_above:
        return [whole] * sum(charge.lengths)
    half, found = representable_sigma2(whole / 2), []
    for length in charge.lengths:
        rows, columns = np.triu_indices(int((8 * length + 1) ** 0.5) // 2)
        found += [whole if i == j else half for i, j in zip(rows, columns, strict=True)]
    return found


def _log_rounded(x: Ints, sigma: Floats) -> Floats:
    """The logarithm of the probability of an integer, but for a constant where rounding does not show."""
    z = np.abs(x) / sigma
    if len(sigma) and sigma.min() > SMOOTH:
        return np.asarray(-0.5 * z * z)
    half = 0.5 / sigma
    upper, lower = log_ndtr(half - z), log_ndtr(-half - z)
    return np.asarray(upper + np.log(-np.expm1(lower - upper)))
