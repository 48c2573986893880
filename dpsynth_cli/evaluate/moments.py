"""Errors of means and covariances, as the low-dimensional papers judge them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.scales import ordered
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Floats, Ints, Moments, Question

BITS = 16


def moments_question(domain: Domain, degree: int, share: Fraction = Fraction(0)) -> Question:
    """Sums of the ordered columns' centred values, or of their products."""
    return Question("evaluate", Moments(tuple(c.name for c in ordered(domain)), BITS, degree), share)


def means(sums: Ints, rows: float) -> Floats:
    """Means on the unit scale, about its middle, from the answer of degree 1."""
    return np.asarray(sums / (2 * (2**BITS - 1) * max(1.0, rows)))


def moment_errors(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """Euclidean norm of the difference of the means; Frobenius and spectral norm of that of the covariances.

    Ordered columns on the unit scale; missing counts as the middle.
    """
    (mean_p, cov_p), (mean_q, cov_q) = (_moments(table, domain) for table in (real, other))
    gap = cov_p - cov_q
    return {
        "mean": float(np.linalg.norm(mean_p - mean_q)),
        "covariance_frobenius": float(np.linalg.norm(gap)),
        "covariance_spectral": float(np.abs(np.linalg.eigvalsh(gap)).max()),
        "columns": len(mean_p),
    }


def _moments(table: Table, domain: Domain) -> tuple[Floats, Floats]:
    first, second = table.sums([moments_question(domain, 1), moments_question(domain, 2)], domain)
    d, n = len(first), max(1, len(table))
    mean = means(first, n)
    products = np.zeros((d, d))
    products[np.triu_indices(d)] = second / (4 * (2**BITS - 1) ** 2 * n)
    products += np.triu(products, 1).T
    return mean, products - np.outer(mean, mean)
