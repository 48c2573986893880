"""What frequencies prove about a privacy guarantee: bounds that hold with high confidence.

If a release is (epsilon, delta)-differentially private, any event E has P(E) <= e^epsilon P'(E) + delta on
neighbouring tables. So counts of E in independent runs on both bound epsilon from below: Clopper-Pearson says
how small P and how large P' may be. Where the noise is Gaussian, the same two bounds give the mu of Gaussian
differential privacy (Dong, Roth, Su 2022), and mu gives epsilon at any delta: a tighter bound, under
that assumption.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from dpsynth_cli.questions import Floats

CANDIDATES = 200  # thresholds that are tried for a statistic


@dataclass(frozen=True)
class Event:
    """`statistic >= threshold` (or <=); `swapped`: it is the second table that makes it likelier."""

    statistic: str
    threshold: float
    above: bool
    swapped: bool

    def counts(self, first: Floats, second: Floats) -> tuple[int, int]:
        """How often it happened in the likelier and in the other table's runs."""
        likelier, other = (second, first) if self.swapped else (first, second)
        return int(self._hits(likelier).sum()), int(self._hits(other).sum())

    def _hits(self, values: Floats) -> np.ndarray:
        return values >= self.threshold if self.above else values <= self.threshold


def at_least(hits: Floats, runs: int, alpha: float) -> Floats:
    """Clopper-Pearson: a probability below the true one, except with probability alpha.

    >>> float(at_least(np.array([10.0]), 10, 0.05)[0].round(3))
    0.741
    """
    low = betaincinv(np.maximum(hits, 1), runs - hits + 1, alpha)
    return np.asarray(np.where(hits > 0, low, 0.0))


def at_most(hits: Floats, runs: int, alpha: float) -> Floats:
    """Clopper-Pearson: a probability above the true one, except with probability alpha.

    >>> float(at_most(np.array([0.0]), 10, 0.05)[0].round(3))
    0.259
    """
    high = betaincinv(hits + 1, np.maximum(runs - hits, 1), 1 - alpha)
    return np.asarray(np.where(hits < runs, high, 1.0))


def epsilon_bound(hits: Floats, others: Floats, runs: int, delta: float, alpha: float) -> Floats:
    """The epsilon that counts of an event prove, except with probability alpha; never below 0."""
    p, q = at_least(hits, runs, alpha / 2), at_most(others, runs, alpha / 2)
    return np.asarray(np.log(np.maximum((p - delta) / q, 1.0)))


def mu_bound(hits: Floats, others: Floats, runs: int, alpha: float) -> Floats:
    """The mu of Gaussian differential privacy that they prove: quantiles move by at most mu."""
    p, q = at_least(hits, runs, alpha / 2), at_most(others, runs, alpha / 2)
    inside = (p > 0) & (q < 1)
    moved = ndtri(np.where(inside, p, 0.5)) - ndtri(np.where(inside, q, 0.5))
    return np.asarray(np.maximum(moved, 0.0))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The epsilon at delta of mu-Gaussian differential privacy.

    >>> round(epsilon_of_mu(1.0, 1e-5), 3)
    4.377
    """
    if mu <= 0:
        return 0.0

    def spent(epsilon: float) -> float:
        return float(ndtr(mu / 2 - epsilon / mu) - exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))

    low, high = 0.0, 1.0
    while spent(high) > delta and high < 500:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > delta else (low, middle)
    return low


def best_event(
    statistic: str, first: Floats, second: Floats, delta: float, alpha: float, gaussian: bool = False
) -> tuple[float, Event]:
    """The event of one statistic that proves most, and what it proves (mu, if `gaussian`).

    To be used on runs that are then thrown away: bounds count only for events chosen beforehand.
    """
    both = np.unique(np.concatenate([first, second]))
    if len(both) > CANDIDATES:
        both = np.unique(np.quantile(both, np.linspace(0, 1, CANDIDATES), method="nearest"))
    best, found = -1.0, Event(statistic, 0.0, True, False)
    for above in (True, False):
        counted = [_counts(values, both, above) for values in (first, second)]
        for swapped in (False, True):
            hits, others = counted[::-1] if swapped else counted
            if gaussian:
                proved = mu_bound(hits, others, len(first), alpha)
            else:
                proved = epsilon_bound(hits, others, len(first), delta, alpha)
            top = int(np.argmax(proved))
            if proved[top] > best:
                best, found = float(proved[top]), Event(statistic, float(both[top]), above, swapped)
    return best, found


def _counts(values: Floats, thresholds: Floats, above: bool) -> Floats:
    """How many values lie at or above (at or below) each threshold."""
    ordered = np.sort(values)
    if above:
        return (len(ordered) - np.searchsorted(ordered, thresholds, "left")).astype(np.float64)
    return np.searchsorted(ordered, thresholds, "right").astype(np.float64)
