"""Gaussian differential privacy: every epsilon rounded up, every rho down, and hardly."""

import math
from decimal import Decimal
from fractions import Fraction as F
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from dpsynth_cli.trusted.core import gaussian
from dpsynth_cli.trusted.core.gaussian import (
    delta_above,
    epsilon_of_rho,
    implies,
    mu_of_rho,
    power,
    rho_of_epsilon,
    rho_of_pure,
)
from dpsynth_cli.trusted.noise import rounded

RHOS = [F(1, 10**6), F(1, 1000), F(1, 20), F(1), F(40)]
DELTAS = [F(1, 10**12), F(1, 10**6), F(1, 20), F(9, 10)]


def mp(x):
    return mpmath.mpf(x.numerator) / x.denominator


def true_delta(rho, epsilon):
    mu, epsilon = mpmath.sqrt(2 * mp(rho)), mp(epsilon)
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return mpmath.erfc(a / mpmath.sqrt(2)) / 2 - mpmath.exp(epsilon) * mpmath.erfc(b / mpmath.sqrt(2)) / 2


@pytest.mark.parametrize("rho", [F(1, 10**20), *RHOS, F(10**5)])
@pytest.mark.parametrize("epsilon", [F(1, 10**10), F(1, 100), F(1), F(5), F(30), F(1000), F(10**6)])
def test_delta_is_rounded_up_and_by_less_than_40_digits(rho, epsilon):
    with mpmath.workdps(150):
        exact, above = true_delta(rho, epsilon), mpmath.mpf(str(delta_above(rho, epsilon)))
        assert above >= exact
        if exact > mpmath.mpf("1e-1000000"):
            assert above <= exact * (1 + mpmath.mpf("1e-40"))


@pytest.mark.parametrize("x", ["0", "0.001", "1", "4.999999", "5", "5.5", "40", "9999", "10001"])
def test_the_normal_tail_lies_between_its_bounds(x):
    low, high = gaussian._mills(Decimal(x))
    with mpmath.workdps(150):
        t = mpmath.mpf(x)
        exact = mpmath.erfc(t / mpmath.sqrt(2)) / 2 * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(t * t / 2)
        assert mpmath.mpf(str(low)) <= exact <= mpmath.mpf(str(high))
    if Decimal(x) < 10**4:
        assert high - low < Decimal("1e-50") * high


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_the_exact_one_rounded_up_to_12_decimals(rho, delta):
    epsilon = epsilon_of_rho(rho, delta)
    assert (epsilon * 10**12).denominator == 1
    with mpmath.workdps(80):
        assert true_delta(rho, epsilon) < mp(delta)
        if epsilon > F(4, 10**12):
            assert true_delta(rho, epsilon - F(3, 10**12)) > mp(delta)


@pytest.mark.parametrize("epsilon", [F(1, 1000), F(1, 10), F(1, 3), F(1), F(10), F(1000)])
@pytest.mark.parametrize("delta", [F(1, 10**300), F(1, 10**9), F(1, 2), 1 - F(1, 10**30)])
def test_rho_is_the_largest_of_13_digits_that_stays_within_epsilon(epsilon, delta):
    rho = rho_of_epsilon(epsilon, delta)
    assert implies(rho, epsilon, delta)
    assert not implies(rho * (1 + F(2, 10**12)), epsilon, delta)
    assert epsilon_of_rho(rho, delta) < epsilon + F(1, 10**12)
    digits = Decimal(rho.numerator) / Decimal(rho.denominator)
    assert F(digits) == rho  # a finite decimal
    assert len(digits.normalize().as_tuple().digits) <= 13


def zcdp_epsilon(rho, delta):
    """What the conversion of zCDP would say (Canonne, Kamath, Steinke 2020)."""

    def at(t):
        alpha = 1 + mpmath.exp(t)
        inner = mpmath.log(1 / mp(delta)) + (alpha - 1) * mpmath.log(1 - 1 / alpha) - mpmath.log(alpha)
        return mp(rho) * alpha + inner / (alpha - 1)

    return min(at(mpmath.mpf(i) / 50) for i in range(-300, 600))


@pytest.mark.parametrize("rho", [F(1, 1000), F(1, 20), F(1)])
@pytest.mark.parametrize("delta", [F(1, 10**9), F(1, 10**6)])
def test_the_same_noise_promises_more_than_by_zcdp(rho, delta):
    assert 0.85 < float(epsilon_of_rho(rho, delta)) / float(zcdp_epsilon(rho, delta)) < 0.97


# ---- integers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("q", [0, 1])
def test_a_discrete_gaussian_is_a_rounded_one_but_for_the_stated_factor(smoothing, q):
    """N(q, variance) put on the integers by a discrete Gaussian of variance `smoothing` around it."""
    variance = 1.5
    y, step = np.linspace(-20, 20, 4001, retstep=True)  # the trapezium rule: exact for such functions
    z = np.arange(-40, 41)[:, None]
    weights = np.exp(-((z - y) ** 2) / (2 * smoothing))
    density = np.exp(-((y - q) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    ours = (weights / weights.sum(axis=0) * density).sum(axis=1) * step
    discrete = np.exp(-((z[:, 0] - q) ** 2) / (2 * (variance + smoothing)))
    near = np.abs(z[:, 0]) < 8
    factor = np.abs(np.log((discrete / discrete.sum())[near] / ours[near])).max()
    k = 2 * sum(math.exp(-2 * math.pi**2 * smoothing * j * j) for j in range(1, 9))
    assert factor <= math.log((1 + k) / (1 - k)) + 1e-12
    assert factor > k / 10**4 or smoothing == 1  # it is there, and falls with the smoothing


def test_the_slack_covers_2_to_the_64_numbers():
    with mpmath.workdps(60):
        k = 2 * mpmath.nsum(
            lambda j: mpmath.exp(-2 * mpmath.pi**2 * rounded.SMOOTHING * j * j), [1, mpmath.inf]
        )
        assert 2**64 * 2 * mpmath.log((1 + k) / (1 - k)) < mp(gaussian.SLACK)
    assert not implies(F(1, 10**30), gaussian.SLACK, F(1, 2))


@pytest.mark.parametrize("rho", [F(1, 1000), F(1, 10), F(2)])
def test_every_conversion_pays_the_slack_in_epsilon_and_in_delta(rho):
    """At the delta that real-valued noise has exactly, an epsilon is larger by the slack at least; and so at
    that epsilon a delta is: `implies` is refused within it and holds beyond it."""
    epsilon, slack = F(1, 2), gaussian.SLACK
    with mpmath.workdps(100):
        delta = F(str(true_delta(rho, epsilon)))
        falls = mpmath.diff(lambda e: true_delta(rho, F(str(e))), mp(epsilon), h=mpmath.mpf("1e-30")) / mp(
            delta
        )
    assert not implies(rho, epsilon, delta)
    assert not implies(rho, epsilon + slack, delta)
    assert not implies(rho, epsilon, delta * (1 + 2 * slack))
    both = 1 - F(str(falls)) * slack + 2 * slack  # what the shift costs, and the factor
    assert not implies(rho, epsilon, delta * (both - slack / 10))
    assert implies(rho, epsilon, delta * (both + slack / 10))


def rounded_delta(sigma2, moves, epsilon):
    """The delta of telling q from q + moves by independently rounded Gaussian answers, summed exactly."""
    with mpmath.workdps(40):
        sigma = mpmath.sqrt(mp(sigma2))
        reach = int(15 * sigma) + 12

        def weights(q):
            edges = [mpmath.erfc((q - j + mpmath.mpf(1) / 2) / (sigma * mpmath.sqrt(2))) / 2
                     for j in range(-reach, reach + 2)]  # fmt: skip
            return [high - low for low, high in pairwise(edges)]

        pairs = [(mpmath.mpf(1), mpmath.mpf(1))]
        for move in moves:
            p, r = weights(0), weights(move)
            pairs = [(x * a, y * b) for x, y in pairs for a, b in zip(p, r, strict=True)]
        return mpmath.fsum(max(0, x - mpmath.exp(mp(epsilon)) * y) for x, y in pairs)


@pytest.mark.parametrize("moves", [(1,), (2,), (1, 1)])
@pytest.mark.parametrize("sigma2", [F(1, 4), F(2), F(9)])
@pytest.mark.parametrize("delta", [F(1, 10**6), F(1, 100)])
def test_the_promise_holds_for_real_answers(moves, sigma2, delta):
    rho = F(sum(m * m for m in moves)) / (2 * sigma2)
    epsilon = epsilon_of_rho(rho, delta)
    assert rounded_delta(sigma2, moves, epsilon) <= mp(delta)
    if sigma2 == 9:  # and is no empty one: rounding costs little where there is noise
        assert rounded_delta(sigma2, moves, epsilon * F(17, 20)) > mp(delta)


def test_a_discrete_gaussian_on_the_integers_does_not_have_the_gaussian_profile():
    """Which is why answers get the rounded one."""
    sigma2, delta = 400, F(1, 10**5)
    epsilon = epsilon_of_rho(F(1, 2 * sigma2), delta)
    with mpmath.workdps(30):
        weights = [mpmath.exp(-mpmath.mpf(x * x) / (2 * sigma2)) for x in range(-400, 401)]
        shifted = zip(weights[1:], weights, strict=False)
        found = mpmath.fsum(max(0, p - mpmath.exp(mp(epsilon)) * q) for p, q in shifted) / mpmath.fsum(
            weights
        )
    assert float(found / mp(delta)) == pytest.approx(1.00134, abs=1e-5)


# ---- pure epsilon as a rho ---------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [F(1, 1000), F(1, 3), F(1), F(8), F(1000)])
def test_a_pure_release_is_charged_the_rho_of_randomised_response(epsilon):
    rho = rho_of_pure(epsilon)
    with mpmath.workdps(60):

        def error_rate(rho):
            return mpmath.erfc(mpmath.sqrt(mp(rho) / 4)) / 2

        target = 1 / (1 + mpmath.exp(mp(epsilon)))
        assert error_rate(rho) <= target < error_rate(rho * (1 - F(1, 10**11)))


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(5)])
@pytest.mark.parametrize("at", [F(1, 20), F(1, 2), F(2)])
def test_randomised_response_is_covered_at_every_epsilon(epsilon, at):
    """delta(at) of randomised response is (e^epsilon - e^at)/(1 + e^epsilon), or 0."""
    with mpmath.workdps(40):
        e = mpmath.exp(mp(epsilon))
        response = max(0, (e - mpmath.exp(mp(at))) / (1 + e))
        assert response <= true_delta(rho_of_pure(epsilon), at)


# ---- edges -------------------------------------------------------------------------------------------


def test_epsilon_is_never_0():
    assert epsilon_of_rho(F(1, 10**30), F(1, 10)) == F(1, 10**12)


@pytest.mark.parametrize("delta", [F(0), F(1), F(-1, 2), F(3, 2)])
def test_delta_must_lie_between_0_and_1(delta):
    with pytest.raises(ValueError, match="delta"):
        epsilon_of_rho(F(1), delta)


def test_an_epsilon_too_small_to_convert_is_refused():
    with pytest.raises(ValueError, match="too small"):
        rho_of_epsilon(F(1, 10**13), F(1, 10**300))


def test_floats_are_refused():
    for wrong in (lambda: epsilon_of_rho(0.1, F(1, 10)), lambda: rho_of_pure(0.5)):
        with pytest.raises(TypeError, match="float"):
            wrong()


def test_mu_is_rounded_up():
    assert mu_of_rho(F(2)) == 2
    assert mu_of_rho(F(1)) == F(1_414_213_562_374, 10**12)


def test_the_power_of_an_attack_is_that_of_two_normals():
    assert power(F(1, 2), 0.01) == pytest.approx(0.0924, abs=1e-4)
    assert power(F(1, 10**9), 0.3) == pytest.approx(0.3, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1", "1e-6"), ("0.1", "1e-5"), ("3", "1e-9"), ("8", "1e-12")]
)
def test_another_accountant_finds_the_same_epsilon(epsilon, delta):
    """dp_accounting computes with privacy loss distributions, in floats."""
    reason = "dp-accounting is not installed (it wants an old attrs: use an environment of its own)"
    others = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution", reason=reason)
    rho = gaussian.rho_of_epsilon(F(epsilon), F(delta))
    theirs = others.from_gaussian_mechanism((2 * float(rho)) ** -0.5, value_discretization_interval=1e-4)
    assert theirs.get_epsilon_for_delta(float(delta)) == pytest.approx(float(epsilon), rel=1e-9)
