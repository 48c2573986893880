"""The rule that combines what other people's code says of replicates: one number with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist, fmean, variance


def combine(
    estimates: Sequence[float], variances: Sequence[float], level: float = 0.95, population: bool = False
) -> tuple[float, float, float]:
    """Estimate, low and high of a number from its estimates in replicates and their squared standard errors.

    T. Raghunathan, J. Reiter, D. Rubin: Multiple Imputation for Statistical Disclosure Limitation, Journal of
    Official Statistics 19, 2003: (1 + 1/m) B - U is the variance of what replicates are drawn from, here of
    the table that was released; about its `population`, the sampling error U of that table comes on top.

    >>> [round(x, 3) for x in combine([1.0, 2.0, 3.0], [0.1, 0.1, 0.1])]
    [2.0, -0.178, 4.178]
    """
    between, within, m = variance(estimates), fmean(variances), len(estimates)
    of_table = max((1 + 1 / m) * between - within, between / m)  # a variance is not negative
    half = NormalDist().inv_cdf((1 + level) / 2) * (of_table + (within if population else 0.0)) ** 0.5
    centre = fmean(estimates)
    return centre, centre - half, centre + half
