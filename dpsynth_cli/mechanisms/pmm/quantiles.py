"""A distribution over codes by its cells, and its quantiles: ranks to codes and back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.shared.oneway import ask_marginals
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.questions import Ask

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Quantiles:
    """A distribution on the codes 0 .. size-1 (and `size`, missing): cells that rise, with their masses."""

    first: Ints  # the first code of each cell that holds any
    reached: Floats  # the mass below each cell, and at last 1
    size: int
    nullable: bool

    @classmethod
    def of(cls, first: Ints, width: Ints, masses: Floats, size: int, nullable: bool) -> Quantiles:
        """From cells of codes; every cell gets a little, so that nothing declared is impossible."""
        there = width > 0
        part = masses[there] / max(masses.sum(), 1e-300) + 1e-9
        reached = np.concatenate([[0.0], np.cumsum(part / part.sum())])
        reached[-1] = 1.0
        return cls(np.append(first[there], size + nullable), reached, size, nullable)

    @property
    def missing(self) -> float:
        """The mass of missing."""
        return 1.0 - self.below(np.array([self.size]))[0] if self.nullable else 0.0

    def below(self, codes: Ints) -> Floats:
        """The mass of all smaller codes, even inside a cell."""
        return np.interp(codes, self.first, self.reached)

    def codes(self, ranks: Floats) -> Ints:
        """The code at each rank in [0, 1)."""
        at = np.interp(ranks, self.reached, self.first)
        return np.minimum(at.astype(np.int64), self.size + self.nullable - 1)

    def edges(self, bits: int) -> tuple[int, ...]:
        """2^bits cells of about equal mass; in a nullable column those of its values, and missing on top."""
        if self.nullable and bits == 0:
            return (0, self.size + 1)
        count = 1 << (bits - self.nullable)
        share = (1.0 - self.missing) * np.arange(1, count) / count
        inner = np.clip(np.rint(np.interp(share, self.reached, self.first)), 0, self.size).astype(np.int64)
        edges = [0, *inner.tolist(), self.size]
        return tuple(edges + [self.size + 1] * count) if self.nullable else tuple(edges)

    def masses(self, bits: int) -> Floats:
        """The mass of each of these cells; 0 where two edges are the same."""
        return np.diff(self.below(np.array(self.edges(bits))))


def uniform_ranks(cells: NDArray[np.generic], rng: np.random.Generator) -> Floats:
    """Ranks in [0, 1), one each in [i/n, (i+1)/n), in the order of the cells; ties in random order."""
    n = len(cells)
    order = np.lexsort((rng.random(n), cells))
    ranks = np.empty(n)
    ranks[order] = (np.arange(n) + rng.random(n)) / max(1, n)
    return ranks


def ask_quantiles(ask: Ask, omega: Domain, sizes: Sizes, share: Fraction) -> list[list[Quantiles]]:
    """Of each class and column, by private marginals."""
    marginals = ask_marginals(ask, omega, omega.modelled, sizes, share)
    return [
        [
            Quantiles.of(m.first, m.width, m.masses[k], column.size, column.nullable)
            for column, m in zip(omega.modelled, marginals.values(), strict=True)
        ]
        for k in range(omega.classes)
    ]
