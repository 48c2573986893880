"""Gaussian noise for integers that is as private as the real-valued one, to 33 digits.

Claim. With x drawn here, an integer q plus x is a random function of q + N(0, sigma2), but for a factor
between e^-h and e^h on the probability of every integer, h = log((1 + k)/(1 - k)) < 2.1e-34, k = 2 sum over
j > 0 of exp(-8 (pi j)^2). So a vector of n answers has the privacy of real-valued Gaussian noise but for that
factor to the n-th power (`gaussian.SLACK`).

How. On a grid of step 1/g a discrete Gaussian of variance sigma2 + 4/g^2 is the real-valued one of variance
sigma2, put on the grid by a discrete Gaussian of variance 4/g^2 around it: variances add up, and the sum of
the weights on the grid hardly depends on where between its points the centre lies (Poisson's summation
formula). Rounding to an integer afterwards sees nothing but the noisy number. docs/privacy.md has the proof.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.trusted.core.scales import BITS, COARSE, SMOOTHING, exact
from dpsynth_cli.trusted.noise.samplers import discrete_gaussian
from dpsynth_cli.trusted.noise.words import Words


def rounded_gaussian(sigma2: Fraction | int, size: int, source: Words) -> NDArray[np.int64]:
    """Independent N(0, sigma2) numbers, rounded to integers (a half goes up).

    Added to an integer statistic of L2 sensitivity at most D: (D/sigma)-Gaussian differential privacy,
    but for the factor above.
    """
    sigma2 = exact(sigma2, "sigma2")
    if sigma2 >= COARSE:
        return discrete_gaussian(sigma2 + SMOOTHING, size, source)
    fine = discrete_gaussian(sigma2 * 4**BITS + SMOOTHING, size, source)
    fine += 1 << BITS - 1
    fine >>= BITS
    return fine
