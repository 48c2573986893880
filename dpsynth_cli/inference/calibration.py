"""Released rows with weights, so that they have the counts that were measured: an estimate without shrinkage.

Mechanisms draw noisy tables toward what they expect, which makes rows plausible and relations too weak. The
noisy counts themselves are unbiased. So each row gets a weight such that the cells of every table about the
columns of a query have their counts again, as nearly as the noise of each table asks for: the generalised
regression estimator of survey sampling (J.-C. Deville, C.-E. Särndal: Calibration Estimators in Survey
Sampling, JASA 87, 1992). Any statistic that takes weights then is one of the answers, and other noise in
the answers gives other weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsynth_cli.inference.measured import EXACT_SD
from dpsynth_cli.inference.relations import Known
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.tables import Counted, Signed
from dpsynth_cli.questions import Floats, Ints

FREE = 1000.0  # variance of a row's weight: so much that counts decide
MOST_CELLS = 2000  # of all tables together; the finest are left out beyond
ROUNDS = 20  # of making negative weights zero and fitting again
PAIR_CELLS = 256  # of a pair, where all pairs are taken together
SUMMED = 16  # cells that are added up, above which the noise of a sum is taken as normal


@dataclass(frozen=True, eq=False)
class _Sums:
    """One table along the columns of a query, or one signed sum (a table of one cell): the cell of each row,
    what the row adds to it, the noisy sums and their noise."""

    cell: Ints
    adds: Floats
    noisy: Floats
    sd: float
    noise: str
    summed: int = 1

    @property
    def size(self) -> int:
        return len(self.noisy)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Other noise of the same distribution."""
        one = self.sd / math.sqrt(self.summed)
        if self.noise == "discrete_laplace" and self.summed <= SUMMED:
            return np.asarray(rng.laplace(0.0, one / math.sqrt(2), (self.summed, self.size)).sum(axis=0))
        return rng.normal(0.0, self.sd, self.size)


class Calibration:
    """The weights of released rows for the tables about some columns; `free` is the variance of a weight
    before anything was counted. `by_pairs` takes tables of more columns as those of their pairs."""

    def __init__(
        self,
        columns: Sequence[str],
        released: Drawn,
        known: Known,
        free: float = FREE,
        by_pairs: bool = False,
    ) -> None:
        self.rows, self.base, self.start = len(released.table), released.scale, released.weight
        self.free = free
        if by_pairs:
            found = [one for table in known.tables for one in _of_pairs(table, released, known)]
        else:
            found = [one for table in known.tables if (one := _along(table, columns, released, known))]
        found += [_scored(one, released) for one in known.signed if _about(one, columns)]
        found.sort(key=lambda one: one.sd)
        sizes = np.cumsum([one.size for one in found])
        self.sums = found[: int(np.searchsorted(sizes, MOST_CELLS, side="right"))]
        self._starts = np.cumsum([0, *(one.size for one in self.sums)])
        self._inverse = self._inverted()

    def weights(self, rng: np.random.Generator | None = None) -> Floats:
        """A weight for each row; with a generator, those that other noise would have given."""
        return self._fitted(self.start, self._noisy(rng))

    def posterior(self, rng: np.random.Generator) -> Floats:
        """Weights from their posterior, none below zero: free ones, made to have the counts but for other
        noise (G. Papandreou, A. Yuille: Gaussian Sampling by Local Perturbations, NIPS 2010), and again after
        each time that negative ones became zero."""
        noisy = self._noisy(rng)
        weight = rng.normal(self.base, self.base * math.sqrt(self.free), self.rows)
        for _ in range(ROUNDS):
            weight = np.maximum(self._fitted(weight, noisy), 0.0)
        return weight

    def _noisy(self, rng: np.random.Generator | None) -> list[Floats]:
        return [one.noisy if rng is None else one.noisy + one.draw(rng) for one in self.sums]

    def _fitted(self, weight: Floats, noisy: list[Floats]) -> Floats:
        """The nearest weights that have these sums, as nearly as their noise asks for."""
        if not self.sums:
            return weight
        left = [
            own - np.bincount(one.cell, one.adds * weight, one.size)
            for own, one in zip(noisy, self.sums, strict=True)
        ]
        alpha = self._inverse @ np.concatenate(left)
        moved = np.zeros(self.rows)
        for one, start in zip(self.sums, self._starts[:-1], strict=True):
            moved += alpha[start : start + one.size][one.cell] * one.adds
        return np.asarray(weight + self.free * self.base**2 * moved)

    def _inverted(self) -> Floats:
        """The inverse of how sums vary together: by free weights of rows, and by noise."""
        together = np.zeros((int(self._starts[-1]), int(self._starts[-1])))
        for i, one in enumerate(self.sums):
            for j, other in enumerate(self.sums[: i + 1]):
                number, shape = one.cell * other.size + other.cell, (one.size, other.size)
                both = np.bincount(number, one.adds * other.adds, one.size * other.size).reshape(shape)
                rows, columns = (slice(self._starts[k], self._starts[k + 1]) for k in (i, j))
                together[rows, columns], together[columns, rows] = both, both.T
        together *= self.free * self.base**2
        noise = [np.full(one.size, max(one.sd, EXACT_SD) ** 2) for one in self.sums]
        together[np.diag_indices_from(together)] += np.concatenate([np.zeros(0), *noise])
        return np.asarray(np.linalg.inv(together)) if len(together) else together


def _along(
    table: Counted, columns: Sequence[str], released: Drawn, known: Known, most: int = MOST_CELLS // 2
) -> _Sums | None:
    """A table added up over all but these columns; None where it is about one class of another."""
    kept = [a for a, name in enumerate(table.columns) if name in columns]
    outside = [a for a in range(len(table.columns)) if a not in kept]
    if not all(table.whole(a, known.domain) for a in outside):
        return None
    many = math.prod(table.values.shape[a] for a in outside)
    noisy = table.values.sum(axis=tuple(outside))
    cells = [table.cell[a](released.table.codes[table.columns[a]]) for a in kept]
    numeric = [not known.domain[table.columns[a]].categorical for a in kept]
    inside = np.all([own >= 0 for own in cells], axis=0) if cells else np.ones(len(released.table), bool)
    while noisy.size > most:  # neighbours together, along the longest axis
        lengths = [size * own for size, own in zip(noisy.shape, numeric, strict=True)]
        a = int(np.argmax(lengths))
        if lengths[a] < 2:
            return None
        noisy = np.add.reduceat(noisy, np.arange(0, noisy.shape[a], 2), axis=a)
        cells[a], many = cells[a] // 2, many * 2
    cell = np.zeros(len(released.table), np.int64)
    for size, own in zip(noisy.shape, cells, strict=True):
        cell = cell * size + np.maximum(own, 0)
    return _Sums(
        cell, inside.astype(np.float64), noisy.ravel(), table.sd * math.sqrt(many), table.noise, many
    )


def _of_pairs(table: Counted, released: Drawn, known: Known) -> list[_Sums]:
    """A table of many columns as those of its columns and pairs: finer than it could be as a whole."""
    if len(table.columns) < 3:
        scopes: list[tuple[str, ...]] = [table.columns]
    else:
        scopes = [(name,) for name in table.columns] + list(combinations(table.columns, 2))
    found = [_along(table, scope, released, known, PAIR_CELLS) for scope in scopes]
    return [one for one in found if one is not None]


def _about(one: Signed, columns: Sequence[str]) -> bool:
    return set(one.columns) <= set(columns) and one.pooled not in columns


def _scored(one: Signed, released: Drawn) -> _Sums:
    adds = np.ones(len(released.table))
    for name, score in zip(one.columns, one.scores, strict=True):
        adds = adds * score(released.table.codes[name])
    return _Sums(np.zeros(len(adds), np.int64), adds, np.array([one.value]), one.sd, one.noise)
