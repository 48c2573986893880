"""The columns of a table as attributes, and every pair of them: what private marginals and rules say of it.

Masses are by class and attribute; a pair is expected to be independent until its own table says more. Rules
(structural zeros) are kept here: in the masses of a class, in every table, and in the rows at last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.shared.attributes import Attribute
from dpsynth_cli.mechanisms.shared.rules import Rules
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.numeric.forest import Pair
from dpsynth_cli.numeric.ratios import raked, shrunk_by_class
from dpsynth_cli.questions import Ask, Floats, Gram, Halves, Question

Tables = dict[Pair, list[Floats]]  # of each pair, a table a class


class Crossed:
    """Attributes, with their masses by class and their pairs."""

    def __init__(self, omega: Domain, attributes: list[Attribute], rules: Rules) -> None:
        self.omega, self.attributes, self.rules = omega, attributes, rules
        self.sizes = [own.cells for own in attributes]
        self.totals = np.array([mass.sum() for mass in attributes[0].marginal.masses])
        self.pairs = list(combinations(range(len(attributes)), 2))
        self._first = [np.array(own.axis.edges[:-1]) for own in attributes]
        self.masses = [
            [self._possible_masses(k, i) for i in range(len(attributes))] for k in range(omega.classes)
        ]
        self.impossible = {
            (i, j): found for i, j in self.pairs if rules and (found := self._impossible(i, j)).any()
        }
        self.expected: Tables = {
            (i, j): [
                np.outer(own[i], own[j]) / max(total, 1e-9) * self.possible((i, j))
                for own, total in zip(self.masses, self.totals, strict=True)
            ]
            for i, j in self.pairs
        }

    def possible(self, pair: Pair) -> Floats:
        """1, or a table that is 0 where no row can be."""
        if pair in self.impossible:
            return np.asarray(~self.impossible[pair], np.float64)
        return np.ones(())

    def most(self, pair: Pair) -> list[Floats]:
        """No cell has more rows than the smaller of its row and its column."""
        i, j = pair
        return [np.minimum.outer(own[i], own[j]) * self.possible(pair) for own in self.masses]

    def fitted(
        self, pair: Pair, noisy: list[Floats], variance: float, expected: list[Floats]
    ) -> list[Floats]:
        """A pair's tables by what was counted and what is expected, with the right marginals."""
        i, j = pair
        estimates = shrunk_by_class(noisy, variance, expected, self.most(pair))
        possible = self.possible(pair)
        return [
            raked(estimate, own[i], own[j], possible)
            for estimate, own in zip(estimates, self.masses, strict=True)
        ]

    def _impossible(self, i: int, j: int) -> NDArray[np.bool_]:
        one, other = (self.attributes[at].column.name for at in (i, j))
        return self.rules.impossible(one, other, self._first[i], self._first[j])

    def _possible_masses(self, k: int, i: int) -> Floats:
        """The masses of a class in an attribute's cells, without those that a rule forbids the class."""
        mass, label = self.attributes[i].masses(k), self.omega.strata
        if not self.rules or label is None:
            return mass
        name = self.attributes[i].column.name
        never = self.rules.impossible(label, name, np.array([k]), self._first[i])[0]
        left = np.where(never, 0.0, mass)
        if not left.any():
            left = np.where(never, 0.0, 1.0)
        return np.asarray(left * (max(float(mass.sum()), 1e-9) / left.sum()))  # never 0 everywhere


def pair_cells(widths: Sequence[int], classes: int) -> int:
    """The cells of all pair tables and classes.

    >>> pair_cells([2, 3, 4], 2)
    52
    """
    return (sum(widths) ** 2 - sum(width**2 for width in widths)) // 2 * classes


def pair_noise(ask: Ask, omega: Domain, widths: Sequence[int], sizes: Sizes, share: Fraction) -> float:
    """The noise of an average pair table (its L2 norm) as a part of the rows, if a share buys all pairs of
    columns in so many cells; infinite without pairs. Public but for the rows, which may be private."""
    columns = omega.modelled
    if len(columns) < 2:
        return math.inf
    sd = ask.sd(Question("pairs", Gram(tuple(Halves(c.name, 0) for c in columns)), share, omega.strata))
    pairs = len(columns) * (len(columns) - 1) / 2
    n = max(1.0, float(sizes.rows.sum()))
    return sd * math.sqrt(pair_cells(widths, omega.classes) / pairs) / n
