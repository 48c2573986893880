"""Rounded Gaussian noise is N(0, sigma2) to the nearest integer."""

import math
from fractions import Fraction as F
from statistics import NormalDist

import numpy as np
import pytest

from dpsynth_cli.trusted.core.scales import LARGEST_SIGMA2, SMALLEST_SIGMA2, representable_sigma2
from dpsynth_cli.trusted.noise import rounded
from dpsynth_cli.trusted.noise.rounded import rounded_gaussian
from tests.trusted.noise.test_samplers import chi_square
from tests.trusted.seeded import SeededSource


def normal_cdf(sigma2):
    normal = NormalDist(0, math.sqrt(sigma2))
    return np.vectorize(lambda x: normal.cdf(math.floor(x) + 0.5))


@pytest.mark.parametrize("sigma2", [F(1, 10), F(1), F(40), F(10**7)])
def test_rounded_noise_fits_its_variance_and_rejects_a_wrong_one(sigma2):
    x = rounded_gaussian(sigma2, 200_000, SeededSource(2))
    sigma = math.sqrt(sigma2)
    assert chi_square(x, normal_cdf(sigma2), sigma) < 1
    assert chi_square(x, normal_cdf(sigma2 * F(11, 10)), sigma) > 1
    assert chi_square(x, normal_cdf(sigma2 * F(9, 10)), sigma) > 1


def test_the_variance_behind_the_rounding_is_never_below_what_is_claimed(monkeypatch):
    asked = []
    monkeypatch.setattr(
        rounded, "discrete_gaussian", lambda sigma2, size, source: asked.append(sigma2) or np.zeros(size, int)
    )
    for sigma2 in (F(1, 2**20), F(1, 3), rounded.COARSE - 1):
        rounded_gaussian(sigma2, 1, SeededSource(1))
        assert asked.pop() == 4096**2 * sigma2 + 4
    rounded_gaussian(F(rounded.COARSE), 1, SeededSource(1))
    assert asked == [rounded.COARSE + 4]


def test_the_largest_variance_that_has_a_price_can_be_drawn():
    """A failure here would come after the charge."""
    for sigma2 in (LARGEST_SIGMA2 // 2, SMALLEST_SIGMA2):
        assert len(rounded_gaussian(representable_sigma2(sigma2), 9, SeededSource(5))) == 9
    with pytest.raises(ValueError, match="variance"):
        representable_sigma2(LARGEST_SIGMA2 // 2 + 1)


def test_little_noise_leaves_counts_as_they_are():
    assert not rounded_gaussian(F(1, 200), 100_000, SeededSource(4)).any()
