"""What follows from counts by linear algebra alone: no model, and the noise is known exactly.

The unknowns are the rows of each combination of codes of the columns of a query. Every count that the
transcript has of these columns (tables with more columns are added up over them) is a sum of unknowns and
noise of known variance. A linear function of the unknowns that these sums determine has a best linear
unbiased estimate (generalised least squares: Gauss-Markov), which combines all tables that say something
of it by their variances, and its error is a known combination of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.inference.tables import Counted, Signed
from dpsynth_cli.questions import Floats

MOST_UNKNOWNS = 1024
EXACT_SD = 1e-3  # what an answer without noise counts as
DETERMINED = 1e-6  # of a function's length, that sums may leave open
RANK = 1e-10

KURTOSIS = {"discrete_laplace": 3.0, "discrete_cube": 0.0, "rounded_gaussian": 0.0, "none": 0.0}


@dataclass(frozen=True)
class Estimate:
    """A number, the standard deviation of its noise, and the excess kurtosis of that."""

    value: float
    sd: float
    kurtosis: float

    def width(self, level: float) -> float:
        """Half of the interval that holds the error with this probability."""
        z = normal_quantile((1 + level) / 2)
        # Cornish and Fisher: a lone Laplace count has 2.17 sd to each side (exactly 2.12), many have 1.96.
        return self.sd * (z + (z**3 - 3 * z) * self.kurtosis / 24)


def normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


@dataclass(frozen=True, eq=False)
class System:
    """All that counts say about combinations of codes of some columns; `codes` has one row for each."""

    codes: dict[str, np.ndarray]
    sums: Floats  # one row for each count: which unknowns it is the sum of
    values: Floats
    sd: Floats
    kurtosis: Floats

    @cached_property
    def _inverse(self) -> Floats:
        weighted = self.sums / self.sd[:, None]
        values, vectors = np.linalg.eigh(weighted.T @ weighted)
        keep = values > RANK * max(float(values.max(initial=0.0)), 1e-300)
        return np.asarray((vectors[:, keep] / values[keep]) @ vectors[:, keep].T)

    def weights(self, function: Floats) -> Floats | None:
        """How much of each count the best estimate of a function takes; None if they do not determine it."""
        weights: Floats = (self.sums / (self.sd**2)[:, None]) @ (self._inverse @ function)
        left = self.sums.T @ weights - function
        if np.linalg.norm(left) > DETERMINED * max(1e-300, float(np.linalg.norm(function))):
            return None
        return weights

    def linear(self, function: Floats) -> Estimate | None:
        weights = self.weights(function)
        return None if weights is None else self._estimate(weights, float(weights @ self.values))

    def ratio(self, top: Floats, bottom: Floats) -> Estimate | None:
        """One linear function by another; its error to the first order."""
        above, below = self.weights(top), self.weights(bottom)
        if above is None or below is None:
            return None
        whole = float(below @ self.values)
        error = self._estimate(below, whole)
        if whole <= 3 * error.sd:
            return None  # nobody may be there: a ratio by noise
        value = float(above @ self.values) / whole
        return self._estimate((above - value * below) / whole, value)

    def _estimate(self, weights: Floats, value: float) -> Estimate:
        parts = (weights * self.sd) ** 2
        variance = float(parts.sum())
        kurtosis = float((parts**2 * self.kurtosis).sum()) / variance**2 if variance > 0 else 0.0
        return Estimate(value, math.sqrt(variance), kurtosis)


def system(
    columns: Sequence[str], domain: Domain, tables: Sequence[Counted], signed: Sequence[Signed]
) -> System | None:
    """What is known of these columns; None if they have too many combinations of codes."""
    sizes = [domain[name].codes for name in columns]
    if math.prod(sizes) > MOST_UNKNOWNS:
        return None
    unknowns = math.prod(sizes)
    grid = np.indices(sizes).reshape(len(sizes), unknowns)
    codes = dict(zip(columns, grid, strict=True))
    rows: list[Floats] = []
    values: list[float] = []
    sds: list[float] = []
    kurtosis: list[float] = []

    def add(row: Floats, value: float, sd: float, noise: str, summed: int = 1) -> None:
        rows.append(row)
        values.append(value)
        sds.append(max(sd, EXACT_SD))
        kurtosis.append(KURTOSIS.get(noise, 3.0) / summed)

    for table in tables:
        outside = [a for a, name in enumerate(table.columns) if name not in codes]
        if not all(table.whole(a, domain) for a in outside):
            continue  # one class only of a column that is not asked about
        kept = [a for a in range(len(table.columns)) if a not in outside]
        added = table.values.sum(axis=tuple(outside))
        many = int(np.prod([table.values.shape[a] for a in outside], initial=1))
        sd = table.sd * math.sqrt(many)
        flat, inside = np.zeros(unknowns, np.int64), np.ones(unknowns, bool)
        for place, a in enumerate(kept):
            cell = table.cell[a](codes[table.columns[a]])
            inside &= cell >= 0
            flat = flat * added.shape[place] + np.maximum(cell, 0)
        for number in np.unique(flat[inside]):
            row = (inside & (flat == number)).astype(np.float64)
            add(row, float(added.ravel()[number]), sd, table.noise, many)
    for one in signed:
        if set(one.columns) <= set(codes) and one.pooled not in codes:
            row = np.ones(unknowns)
            for name, score in zip(one.columns, one.scores, strict=True):
                row = row * score(codes[name])
            add(row, one.value, one.sd, one.noise)
    if not rows:
        return None
    return System(codes, np.stack(rows), np.array(values), np.array(sds), np.array(kurtosis))
