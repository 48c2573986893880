"""Rounded Gaussian noise hides a move at least as well as N(0, sigma2) does, by its exact probabilities."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import product

import pytest

from tests.enumeration.bases import exp_enclosed
from tests.enumeration.gaussian_profile import delta_at_most, gaussian_delta, renyi_at_most, rounded_pmf


@pytest.mark.parametrize("moved", [(1,), (2,), (3,), (1, -1), (2, 1)])
@pytest.mark.parametrize("sigma2", [F(1, 2), F(3, 2)])
def test_the_exact_delta_is_never_above_that_of_gaussian_noise(sigma2, moved):
    mu_squared = sum(d * d for d in moved) / sigma2
    for epsilon in (F(0), F(1, 4), F(1), F(5, 2), F(6)):
        assert delta_at_most(epsilon, moved, [sigma2] * len(moved)) <= gaussian_delta(epsilon, mu_squared)


@pytest.mark.parametrize("sigma2", [F(1, 2), F(3, 2), F(9)])
def test_the_exact_renyi_divergence_is_never_above_that_of_gaussian_noise(sigma2):
    """exp(alpha (alpha - 1) d^2 / (2 sigma2)); it adds up over the numbers of an answer, so that any will
    do."""
    for alpha, d in product((2, 3, 5), (1, 2, 4)):
        assert renyi_at_most(alpha, d, sigma2) <= exp_enclosed(alpha * (alpha - 1) * d * d / (2 * sigma2))[0]


def test_a_discrete_gaussian_on_the_integers_would_be_seen():
    """What other libraries draw is no N(0, sigma2): its delta is larger."""
    on_integers = lambda sigma2: rounded_pmf(sigma2, 0, 0)  # noqa: E731
    epsilon, sigma2 = F(1), F(1)
    assert delta_at_most(epsilon, (1,), [sigma2], on_integers) > F(11, 10) * gaussian_delta(epsilon, F(1))
