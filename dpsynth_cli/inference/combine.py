"""The rule that combines what other people's code says of replicates: one number with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, variance


def combine(
    estimates: Sequence[float], variances: Sequence[float], level: float = 0.95, population: bool = False
) -> tuple[float, float, float]:
    """Estimate, low and high of a number from its estimates in replicates and their squared standard errors.

    T. Raghunathan, J. Reiter, D. Rubin: Multiple Imputation for Statistical Disclosure Limitation, Journal of
    Official Statistics 19, 2003: (1 + 1/m) B - U is the variance of what replicates are drawn from, here of
    the table that was released, with (m - 1) (1 - U / ((1 + 1/m) B))^2 degrees of freedom. About its
    `population`, the sampling error U of that table comes on top.

    >>> [round(x, 2) for x in combine([1.0, 2.0, 3.0, 4.0], [0.1] * 4)]
    [2.5, -2.26, 7.26]
    """
    from scipy.special import stdtrit

    if len(estimates) != len(variances):
        raise ValueError(f"there are {len(estimates)} estimates and {len(variances)} squared standard errors")
    if len(estimates) < 2:
        raise ValueError("estimates of at least two replicates are combined")
    m, centre, within = len(estimates), fmean(estimates), fmean(variances)
    between = (1 + 1 / m) * variance(estimates)
    of_table = max(between - within, between / m)  # a variance is not negative
    freedom = max(2.0, (m - 1) * (of_table / between) ** 2) if between > 0 else 2.0
    whole = of_table + (within if population else 0.0)
    half = float(stdtrit(freedom, (1 + level) / 2)) * whole**0.5
    return centre, centre - half, centre + half
