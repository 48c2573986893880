"""The threshold of labels: what a label that one row alone has does not reach, but with probability delta.

Claim. Let x be drawn by `rounded_gaussian(sigma2)`. Then P(1 + x >= threshold(sigma2, delta)) <= delta.

Proof. In units of its grid, of step 1/g, x is a discrete Gaussian z of variance parameter w = g^2 sigma2 + 4,
rounded: 1 + x >= T only if z >= g (T - 3/2) = a. For z >= sqrt(w) the density f of N(0, w) is convex between
z - 1/2 and z + 1/2 where z - 1/2 >= sqrt(w), so f(z) is at most its integral there; and the sum of f over all
integers is at least 1 (Poisson's summation formula: every term is positive). So P(z >= a) <=
Phi(-(a - 1/2)/sqrt(w)) where a - 1/2 >= sqrt(w). From the variance on where the grid is that of the
integers, g = 1 and nothing is rounded; the same bound holds. Phi is bounded in certified decimals.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import sqrt
from statistics import NormalDist

from dpsynth_cli.trusted.core.gaussian import tail_below
from dpsynth_cli.trusted.core.scales import COARSE, GRID, SMOOTHING


@lru_cache(maxsize=128)
def threshold(sigma2: Fraction, delta: Fraction) -> int:
    """The least whole number for which the claim is proved.

    >>> threshold(Fraction(100), Fraction(1, 10**9))
    62
    """
    if not 0 < delta <= Fraction(1, 10):
        raise ValueError("the delta of a threshold is above 0 and at most 0.1")
    found = max(2, round(1.5 + sqrt(sigma2) * -NormalDist().inv_cdf(float(max(delta, Fraction(1, 10**300))))))
    while not _enough(found, sigma2, delta):
        found += max(1, found // 10**6)
    while _enough(found - 1, sigma2, delta):
        found -= 1
    return found


def _enough(reached: int, sigma2: Fraction, delta: Fraction) -> bool:
    g = 1 if sigma2 >= COARSE else GRID
    variance, least = g * g * sigma2 + SMOOTHING, g * (reached - Fraction(3, 2)) - Fraction(1, 2)
    return least > 0 and least**2 >= variance and tail_below(least**2 / variance, delta)
