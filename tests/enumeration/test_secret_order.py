"""Rows in a secret order: an answer that is no sum, and a mixture over all orders of its rows."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import permutations, product
from math import prod

import numpy as np
import pytest

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Bins, Question, RowScores
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.prices import charge_for
from tests.enumeration.bases import exp_enclosed
from tests.enumeration.gaussian_profile import gaussian_delta, rounded_pmf
from tests.enumeration.test_small_worlds import R, laplace
from tests.enumeration.worlds import NUMBER, drawn, every_table, sums

OMEGA = Domain((NUMBER,), "replace_one")
TABLES = [table for table in every_table(OMEGA, 2) if len(table) == 2]
# Both ways: tables that share one row, and differ in the other.
NEIGHBOURS = [
    (a, b)
    for (a, one), (b, other) in product(enumerate(TABLES), repeat=2)
    if a != b and set(one) & set(other)
]


def question(weights: tuple[tuple[int, ...], ...]) -> Question:
    scores = ((-1, 1, 0),)
    return Question("s", RowScores((Bins("x", (0, 1, 2, 3)),), scores, weights, len(weights), 2), F(1))


def orders(table: np.ndarray, r: int) -> list[list[int]]:
    """Every order alike: `test_rows_in_a_secret_order_are_in_every_order_alike`."""
    rows = table.reshape(2, r)
    return [rows[list(order)].ravel().tolist() for order in permutations(range(2))]


@pytest.mark.parametrize("weights", [((1,),), ((1,), (-1,))])
def test_laplace_noise_keeps_every_ratio_below_e_to_the_epsilon(weights):
    asked, r = question(weights), len(weights)
    charge = charge_for(asked, OMEGA, Accountant.pure(F(1)))
    (draw,) = drawn(charge, OMEGA)
    pmf = laplace(draw.parameter)
    outputs = list(product(range(-2, 3), repeat=2 * r))
    likelihoods = [
        [
            sum(prod(pmf[o - s] for o, s in zip(output, order, strict=True)) for order in orders(table, r))
            / 2
            for output in outputs
        ]
        for table in sums(asked, OMEGA, TABLES)
    ]
    largest = max(p / q for a, b in NEIGHBOURS for p, q in zip(likelihoods[a], likelihoods[b], strict=True))
    assert 1 < largest <= (1 / R) ** (charge.price.cost * draw.parameter)


@pytest.mark.slow
def test_gaussian_noise_has_no_larger_delta_than_its_rho():
    asked = question(((1,),))
    charge = charge_for(asked, OMEGA, Accountant.gaussian(F(4), F(1, 1000)))
    (draw,) = drawn(charge, OMEGA)
    pmf, _ = rounded_pmf(draw.parameter)
    inside = [x for x in pmf if x - 1 in pmf and x + 1 in pmf]
    outputs = list(product(inside, repeat=2))
    tables = [orders(table, 1) for table in sums(asked, OMEGA, TABLES)]
    likelihoods = [
        [
            tuple(sum(pmf[x - a][end] * pmf[y - b][end] for a, b in own) / 2 for end in (0, 1))
            for x, y in outputs
        ]
        for own in tables
    ]
    for epsilon in (F(0), F(1), F(3)):
        factor = exp_enclosed(epsilon)[0]
        for a, b in NEIGHBOURS:
            pairs = zip(likelihoods[a], likelihoods[b], strict=True)
            excess = sum(max(high - factor * low, F(0)) for (_, high), (low, _) in pairs)
            beyond = 1 - sum(low for low, _ in likelihoods[a])
            assert excess + beyond <= gaussian_delta(epsilon, 2 * charge.price.cost)
