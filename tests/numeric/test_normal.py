"""The normal distribution function is scipy's."""

import numpy as np
from scipy.special import ndtr

from dpsynth_cli.numeric.normal import normal_cdf


def test_the_normal_distribution_function_is_scipys_in_the_tails_too():
    edges = 0.46875 * np.sqrt(2), 4 * np.sqrt(2), 0.0
    x = np.concatenate([np.linspace(-37, 10, 20_001), *(np.nextafter(e, [e - 1, e, e + 1]) for e in edges)])
    np.testing.assert_allclose(normal_cdf(x), ndtr(x), rtol=2e-13)
    np.testing.assert_allclose(normal_cdf(-x), ndtr(-x), rtol=2e-13)
    assert normal_cdf(np.array([-np.inf, -1e300, 1e300, np.inf])).tolist() == [0, 0, 1, 1]
    assert np.isnan(normal_cdf(np.array([np.nan]))).all()
