"""Errors of means and covariances, as the low-dimensional papers judge them, in standard deviations; and the
question that asks for means."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.metrics.scales import known, missing, ordered, spread, values
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

    Ordered columns, about their real mean and in their real standard deviation, so that bounds do not matter;
    missing counts as the real mean. A constant column is in parts of its declared range.
    """
    columns = ordered(domain)
    if not len(real) or not len(other):
        gap = 0.0 if len(real) == len(other) else 1.0
        return {"mean": gap, "covariance_frobenius": gap, "covariance_spectral": gap, "columns": len(columns)}
    scales = {}
    for column in columns:
        there = values(known(real.codes[column.name], column), column)
        middle, wide = (float(there.mean()), float(there.std())) if len(there) else (0.0, 0.0)
        scales[column.name] = (middle, wide or spread(real.codes[column.name], column))
    (mean_p, cov_p), (mean_q, cov_q) = (_moments(table, domain, scales) for table in (real, other))
    apart = cov_p - cov_q
    return {
        "mean": float(np.linalg.norm(mean_p - mean_q)),
        "covariance_frobenius": float(np.linalg.norm(apart)),
        "covariance_spectral": float(np.abs(np.linalg.eigvalsh(apart)).max()),
        "columns": len(columns),
    }


def _moments(table: Table, domain: Domain, scales: dict[str, tuple[float, float]]) -> tuple[Floats, Floats]:
    x = np.zeros((len(scales), len(table)))
    for row, column in zip(x, ordered(domain), strict=True):
        codes, (middle, wide) = table.codes[column.name], scales[column.name]
        there = ~missing(codes, column)
        row[there] = (values(codes[there], column) - middle) / wide
    mean = x.mean(axis=1)
    x -= mean[:, None]
    return mean, x @ x.T / x.shape[1]
