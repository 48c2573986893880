"""Weights of released rows, drawn from their posterior given the noisy counts.

A log-linear model: the weight of a row is that of the released one times a factor for each cell of each table
that it is in. Factors have a prior about 1, and the noisy counts have their exact noise: the noise-aware
posterior of O. Räisä, J. Jälkö, S. Kaski, A. Honkela (Noise-Aware Statistical Inference with Differentially
Private Synthetic Data, AISTATS 2023), here about what the mechanism released. Weights are never negative.
Draws are by randomised optimisation: the factors that fit counts with other noise and another prior mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpsynth_cli.inference.sums import Sums, features, noisy_sums, other_noise, variances
from dpsynth_cli.questions import Floats

FACTOR = 1.0  # prior standard deviation of the logarithm of a factor
STEPS, AFRESH = 30, 6  # of fitting; of those, with a matrix of their own
LONGEST = 1.0  # of the logarithm of a factor, in one step
ENOUGH = 1e-3  # a step that changes nothing any more


class Posterior:
    """What `sums` tell of the weights of rows that weigh `start` in the release."""

    def __init__(self, sums: Sequence[Sums], start: Floats) -> None:
        self.sums, self.start = sums, start
        size = np.concatenate([np.full(one.size, _size(one.adds)) for one in sums])
        self.features = features(sums, len(start)) / size  # so that a factor is one of an ordinary row
        self.noisy, self.precision, self.size = noisy_sums(sums) / size, size**2 / variances(sums), size
        self._best = self._fitted(self.noisy, self._prior(), np.zeros(len(size)), True)

    def draw(self, rng: np.random.Generator) -> Floats:
        """A weight for each row."""
        other = other_noise(self.sums, rng) / self.size
        prior = self._prior() + rng.normal(0.0, FACTOR, len(self.noisy))
        return self._weights(self._fitted(self.noisy + other, prior, self._best, False))

    def _prior(self) -> Floats:
        """So that the mean of a factor is 1."""
        return np.full(len(self.noisy), -(FACTOR**2) / 2)

    def _weights(self, theta: Floats) -> Floats:
        return np.asarray(self.start * np.exp(np.clip(self.features @ theta, -30.0, 30.0)))

    def _fitted(self, noisy: Floats, prior: Floats, theta: Floats, afresh: bool) -> Floats:
        """The logarithms of factors that fit best: Gauss and Newton, with the matrix of the best fit to the
        released answers where that is known."""
        for number in range(STEPS):
            weight = self._weights(theta)
            if afresh and number < AFRESH:
                self._matrix = (self.features.T @ (self.features * weight[:, None])).toarray()
                curved = (self._matrix * self.precision) @ self._matrix
                curved[np.diag_indices_from(curved)] += 1 / FACTOR**2
                self._inverse = np.linalg.inv(curved)
            left = self.precision * (noisy - self.features.T @ weight)
            step = self._inverse @ (self._matrix @ left - (theta - prior) / FACTOR**2)
            longest = float(np.abs(step).max(initial=0.0))
            theta = theta + step * min(1.0, LONGEST / max(longest, 1e-300))
            if longest < ENOUGH:
                break
        return theta


def _size(adds: Floats) -> float:
    return max(1e-300, math.sqrt(float((adds**2).mean())))
