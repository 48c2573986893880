"""What answers say of residuals: averaged over all tables that a residual is part of, and how much of it is
no noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeAlias

import numpy as np

from dpsynth_cli.numeric.residual import Basis, parts
from dpsynth_cli.questions import Floats, Ints

Axes: TypeAlias = tuple[int, ...]

ROUNDS = 8  # of weighing sums of squares by how large they usually are
LEAST = 0.5  # of its noise: what is usual of an order is taken to be at least
LOW = 0.1  # of what is usual: what a residual is taken to hold at least


@dataclass
class Known:
    """Sums over rows of the functions of each residual, by its columns, and the variance of their noise;
    `size` is how large the mean squares of an order's functions are, beyond what is expected of them."""

    basis: Basis
    sums: dict[Axes, tuple[Floats, float]] = field(default_factory=dict)
    size: dict[Axes, float] = field(default_factory=dict)

    @property
    def rows(self) -> float:
        return max(1.0, float(self.sums[()][0][0]))

    def add(self, axes: Axes, values: Floats, variance: float) -> None:
        """What a table says of all parts of its columns, or (one number) a character of them together."""
        shape = [self.basis.sizes[j] for j in axes]
        if len(values) == math.prod(shape):
            every = parts(values.reshape(shape))
            for some, found in every.items():
                self._merge(tuple(axes[a] for a in some), found, variance * len(values))
        else:
            self._merge(axes, values, variance)

    def _merge(self, axes: Axes, found: Floats, variance: float) -> None:
        """With what is known already, by inverse variance."""
        variance = max(variance, 1e-9)
        if axes in self.sums:
            before, own = self.sums[axes]
            trust = own / (own + variance)
            found, variance = before + trust * (found - before), variance * trust
        self.sums[axes] = (found, variance)

    def means(self, axes: Axes) -> tuple[Floats, float]:
        """The means of a residual's functions, and their variance."""
        found, variance = self.sums[axes]
        return found / self.rows, variance / (self.rows * self.rows)

    def tells(self, axes: Axes) -> bool:
        """Whether all residuals of these columns are known."""
        return all(some in self.sums for order in range(len(axes) + 1) for some in combinations(axes, order))

    def table(self, axes: Axes) -> tuple[Floats, float]:
        """The counts of a table of columns whose residuals are all known, and the variance of their noise."""
        own = Basis([self.basis.sizes[j] for j in axes])
        sums, variance = np.zeros(own.cells), 0.0
        for order in range(len(axes) + 1):
            for some in combinations(range(len(axes)), order):
                found, noise = self.sums[tuple(axes[a] for a in some)]
                sums[own.residual(some)] = found
                variance += noise * len(found) / (own.cells * own.cells)
        return own.values(sums).reshape(own.sizes) / own.cells, variance

    def judge(self, sets: Sequence[Axes], expected: Floats) -> None:
        """How large the functions of these residuals are beyond what was expected, by what is no noise."""
        if not sets:
            return
        each = [self.means(axes) for axes in sets]
        away = [
            found - expected[self.basis.residual(axes)] for axes, (found, _) in zip(sets, each, strict=True)
        ]
        square = np.array([float((a**2 - v).sum()) for a, (_, v) in zip(away, each, strict=True)])
        many = np.array([len(a) for a in away])
        noise = np.array([v for _, v in each])
        sizes = association(square, many, noise)
        self.size |= dict(zip(sets, (sizes / many).tolist(), strict=True))


def association(square: Floats, many: Ints, noise: Floats) -> Floats:
    """How large sums of squares are, from noisy estimates: each of so many squares of numbers that had noise
    of such a variance. Drawn to what is usual among them, as far as noise could be the difference."""
    usual = 0.0
    for _ in range(ROUNDS):
        variance = 2 * many * noise**2 + 4 * noise * usual
        weights = 1 / (variance + usual * usual)
        least = LEAST / math.sqrt(float((1 / variance).sum()))
        usual = max(float((weights * square).sum() / weights.sum()), least)
    trust = usual * usual / (usual * usual + variance)
    return np.asarray(np.maximum(usual + trust * (square - usual), LOW * usual))
