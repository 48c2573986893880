"""Released rows with weights, so that they have the counts that were measured: an estimate without shrinkage.

Mechanisms draw noisy tables toward what they expect, which makes rows plausible and relations too weak. The
noisy counts themselves are unbiased. So each row gets a weight such that the cells of every table about the
columns of a query have their counts again, as nearly as the noise of each table asks for: the generalised
regression estimator of survey sampling (J.-C. Deville, C.-E. Särndal: Calibration Estimators in Survey
Sampling, JASA 87, 1992). Any statistic that takes weights then is one of the answers, and other noise in
the answers gives other weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsynth_cli.inference.relations import Known
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.sums import (
    Sums,
    features,
    noisy_sums,
    other_noise,
    products,
    sums_about,
    variances,
)
from dpsynth_cli.inference.tables import CellOf
from dpsynth_cli.questions import Floats

FREE = 1000.0  # variance of a row's weight: so much that counts decide


class Calibration:
    """The weights of released rows for noisy sums over them."""

    def __init__(self, sums: Sequence[Sums], released: Drawn) -> None:
        self.start, self.free = released.weight, FREE * released.scale**2
        self.sums = sums
        self.features = features(self.sums, len(self.start))
        self.noisy, self.variances = noisy_sums(self.sums), variances(self.sums)
        together = self.free * products(self.features)
        together[np.diag_indices_from(together)] += self.variances
        self._inverse = np.linalg.inv(together) if len(together) else together

    @classmethod
    def about(cls, columns: Sequence[str], released: Drawn, known: Known) -> Calibration:
        """For all tables about some columns."""
        return cls(sums_about(columns, released, known), released)

    def weights(self, rng: np.random.Generator | None = None) -> Floats:
        """A weight for each row, the nearest ones that have the sums, as nearly as their noise asks for; with
        a generator, those that other noise would have given. Some may be negative."""
        noisy = self.noisy if rng is None else self.noisy + other_noise(self.sums, rng)
        left = noisy - self.features.T @ self.start
        return np.asarray(self.start + self.free * (self.features @ (self._inverse @ left)))

    def spread(self, adds: Floats) -> Floats:
        """The standard deviations of weighted sums of these (a row for each row), as noise is another."""
        of_each = self.free * (self._inverse @ (self.features.T @ adds))
        return np.asarray(np.sqrt(self.variances @ of_each**2))

    def cells(self, name: str) -> list[CellOf]:
        """The cells that a column was counted in."""
        return [one.axes[name] for one in self.sums if name in one.axes]
