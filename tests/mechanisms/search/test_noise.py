"""How far noise reaches, against the exact tails of the distributions."""

import math
from fractions import Fraction

import pytest

from dpsynth_cli.mechanisms.search.noise import reach
from dpsynth_cli.trusted.core.accountant import gaussian_sd, laplace_sd


def laplace_tail(scale: float, t: int) -> float:
    """The probability that |noise| >= t: 2 r^t / (1 + r), term by term."""
    r = math.exp(-1 / scale)
    return 2 * sum((1 - r) / (1 + r) * r**k for k in range(t, t + int(60 * scale) + 60))


def gaussian_tail(sigma: float, t: int) -> float:
    """The probability that Gaussian noise, rounded, is t or more, up or down."""
    return math.erfc((t - 0.5) / sigma / math.sqrt(2))


@pytest.mark.parametrize("scale", [0.4, 3, 40])
@pytest.mark.parametrize("cells", [1, 500])
def test_laplace_noise_reaches_it_as_seldom_as_is_said_and_one_less_more_often(scale, cells):
    t = reach("discrete_laplace", laplace_sd(Fraction(str(scale))), cells, 0.01)
    assert cells * laplace_tail(scale, math.ceil(t)) <= 0.01 * (1 + 1e-6)
    assert t <= 1 or cells * laplace_tail(scale, math.floor(t) - 1) > 0.01


@pytest.mark.parametrize("sigma", [0.7, 5, 300])
@pytest.mark.parametrize("cells", [1, 500])
def test_gaussian_noise_reaches_it_as_seldom_as_is_said_and_one_less_more_often(sigma, cells):
    t = reach("rounded_gaussian", gaussian_sd(Fraction(str(sigma)) ** 2), cells, 0.01)
    assert cells * gaussian_tail(sigma, math.ceil(t)) <= 0.01 * (1 + 1e-6)
    assert t <= 1 or cells * gaussian_tail(sigma, math.floor(t) - 1) > 0.01


def test_what_has_no_noise_is_there_if_it_has_a_row():
    assert reach("none", 0.0, 100, 0.01) == 1
