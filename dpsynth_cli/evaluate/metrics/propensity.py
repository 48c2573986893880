"""How well a logistic regression tells synthetic rows from real ones: the propensity score."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.scales import missing, ranks
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Floats

FEATURES = 300
RIDGE = 1e-3
STEPS = 25


def propensity(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """pMSE = mean of (p_i - c)^2, p_i the fitted probability that row i is synthetic, c their share (Woo,
    Reiter, Oganian, Karr 2009); and its ratio to what two samples of one distribution give, which is
    c (1 - c)(k - 1) / N for k coefficients and N rows. 0 where nothing can be told; a ratio near 1 is as good
    as a fresh sample.
    """
    n, m = len(real), len(other)
    if not n or not m:
        return {"pmse": 0.0 if n == m else 0.25, "ratio": 0.0, "coefficients": 0}
    x = np.concatenate([features(table, real, domain) for table in (real, other)])
    spread = x.std(axis=0)
    x = x[:, spread > 1e-9] / spread[spread > 1e-9]
    x -= x.mean(axis=0)
    x = np.column_stack([np.ones(n + m), x])
    label = np.repeat([0.0, 1.0], [n, m])
    c = m / (n + m)
    p = fitted(x, label)
    pmse = float(np.mean((p - c) ** 2))
    expected = (x.shape[1] - 1) * c * (1 - c) / (n + m)
    return {"pmse": pmse, "ratio": pmse / expected if expected else 0.0, "coefficients": x.shape[1]}


def fitted(x: Floats, label: Floats) -> Floats:
    """Fitted probabilities of a logistic regression with a little ridge, by Newton's method."""
    c = label.mean()
    weights = np.zeros(x.shape[1])
    weights[0] = np.log(c / (1 - c))
    ridge = np.full(x.shape[1], RIDGE * len(x))
    ridge[0] = 0.0
    p = np.full(len(x), c)
    for _ in range(STEPS):
        slope = x.T @ (label - p) - ridge * weights
        if np.abs(slope).max() < 1e-8 * len(x):
            break
        curve = (x.T * (p * (1 - p))) @ x + np.diag(ridge + 1e-9)
        step = np.linalg.solve(curve, slope)
        weights += step / max(1.0, np.abs(x @ step).max() / 4)
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
    return p


def features(table: Table, real: Table, domain: Domain) -> Floats:
    """Each column's own (its place among the real values and its square, or its categories), then products of
    two columns."""
    places = [
        codes / max(1, column.size)
        if column.categorical
        else ranks(codes, real.codes[column.name], column) - 0.5
        for column, codes in ((column, table.codes[column.name]) for column in domain)
    ]
    own = [
        block
        for column, x in zip(domain, places, strict=True)
        for block in _own(table.codes[column.name], x, column)
    ]
    room = max(0, FEATURES - len(own))
    pairs = [places[i] * places[j] for i, j in list(combinations(range(len(places)), 2))[:room]]
    return np.stack([*own[:FEATURES], *pairs], axis=1)


def _own(codes: NDArray[Any], x: Floats, column: Column) -> list[Floats]:
    if column.categorical:
        return [(codes == k).astype(np.float64) for k in range(1, min(column.codes, 33))]
    blocks = [x, x * x]
    return [*blocks, missing(codes, column).astype(np.float64)] if column.nullable else blocks
