"""Numbers with intervals, inside of what they can be."""

import math

import numpy as np
import pytest

from dpsynth_cli.inference.answers import MEASURED, within
from dpsynth_cli.inference.measured import normal_quantile

HALF = 1.96


def _count(noisy: float, half: float = HALF, level: float = 0.95) -> tuple[float, float]:
    one = within((), (0.0, math.inf), noisy, noisy - half, noisy + half, MEASURED, level)
    assert one.low <= one.estimate <= one.high
    return one.low, one.high


@pytest.mark.parametrize("noisy", [-2.0, -4.0, -30.0])
def test_a_count_that_noise_puts_below_nothing_is_not_certainly_nothing(noisy):
    low, high = _count(noisy)
    assert low == 0
    assert 0 < high < 1.96


def test_what_noise_may_hide_is_that_of_a_normal_distribution_cut_off_at_nothing():
    """By drawing: 95 of 100 draws of noise -1 and sd 1 that are above nothing are below the end."""
    drawn = np.random.default_rng(0).normal(-1, 1, 400_000)
    assert _count(-1.0)[1] == pytest.approx(np.quantile(drawn[drawn > 0], 0.95), rel=0.02)
    high = _count(-1.0, normal_quantile(0.9), 0.8)[1]
    assert high == pytest.approx(np.quantile(drawn[drawn > 0], 0.8), rel=0.02)


def test_a_count_above_its_noise_has_the_ends_of_the_noise():
    assert _count(1.0) == pytest.approx((0, 2.96))
    assert _count(50.0) == pytest.approx((48.04, 51.96))


def test_what_is_known_exactly_has_no_width():
    assert _count(0.0, 0.0) == (0, 0)


def test_a_share_above_one_is_not_certainly_all():
    one = within((), (0.0, 1.0), 1.3, 1.2, 1.4, MEASURED, 0.95)
    assert (one.high, one.estimate) == (1, one.low if one.low > 1 else 1)
    assert 0.9 < one.low < 1
