"""The rule that combines what other people's code says of replicates: one number with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance


def combine(
    estimates: Sequence[float], variances: Sequence[float], level: float = 0.95, population: bool = False
) -> tuple[float, float, float]:
    """Estimate, low and high of a number from its estimates in replicates and their squared standard errors.

    D. Rubin: Multiple Imputation for Nonresponse in Surveys, 1987. Replicates impute the real table, so that
    (1 + 1/m) B is the variance about that table's number, with m - 1 degrees of freedom, where B is the
    variance between replicates. About its `population` the mean U of the squared errors comes on top, and
    there are (m - 1) (1 + U / ((1 + 1/m) B))^2 degrees of freedom.

    >>> [round(x, 2) for x in combine([1.0, 2.0, 3.0, 4.0], [0.1] * 4)]
    [2.5, -2.09, 7.09]
    """
    from scipy.special import stdtrit

    if len(estimates) != len(variances):
        raise ValueError(f"there are {len(estimates)} estimates and {len(variances)} squared standard errors")
    if len(estimates) < 2:
        raise ValueError("estimates of at least two replicates are combined")
    m, centre = len(estimates), fmean(estimates)
    between, within = (1 + 1 / m) * variance(estimates), fmean(variances) if population else 0.0
    freedom = (m - 1) * (1 + within / between) ** 2 if between > 0 else math.inf
    half = float(stdtrit(min(freedom, 1e6), (1 + level) / 2)) * (between + within) ** 0.5
    return centre, centre - half, centre + half
