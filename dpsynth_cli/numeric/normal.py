"""The normal distribution function in numpy alone: scipy's takes longer to import than most releases to fit.

W. J. Cody: Rational Chebyshev approximations for the error function. Mathematics of Computation 23, 1969.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

# erf(x) = x P(x^2) / Q(x^2) up to 0.46875; erfc(x) = exp(-x^2) P(x) / Q(x) up to 4, and above it
# exp(-x^2) / x (1 / sqrt(pi) - P(1 / x^2) / (x^2 Q(1 / x^2))). Coefficients of the highest power first.
# fmt: off
SMALL = (
    (
        1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
        3.20937758913846947e3,
    ),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
MIDDLE = (
    (
        2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
        2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
        1.23033935479799725e3,
    ),
    (
        1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
        3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
    ),
)
LARGE = (
    (
        1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
        1.60837851487422766e-2, 6.58749161529837803e-4,
    ),
    (
        1.0, 2.56852019228982242, 1.87295284992346047, 5.27905102951428412e-1, 6.05183413124413191e-2,
        2.33520497626869185e-3,
    ),
)
# fmt: on


def normal_cdf(x: Floats) -> Floats:
    """P(Z <= x) of a standard normal Z, to a relative error of 1e-13 or less, in the lower tail too.

    >>> normal_cdf(np.array([-40.0, -1.0, 0.0, 1.0])).round(6).tolist()
    [0.0, 0.158655, 0.5, 0.841345]
    """
    y = np.abs(x) * sqrt(0.5)
    tail = np.zeros_like(y)  # erfc(y) / 2; beyond 27 there is nothing
    at = np.flatnonzero(y <= 0.46875)
    z = y[at]
    tail[at] = 0.5 - 0.5 * z * _ratio(SMALL, z * z)
    at = np.flatnonzero(~((y <= 0.46875) | (y > 4.0)))
    z = y[at]
    tail[at] = 0.5 * _bell(z) * _ratio(MIDDLE, z)
    at = np.flatnonzero((y > 4.0) & (y < 27.3))
    z = y[at]
    w = 1 / (z * z)
    tail[at] = 0.5 * _bell(z) / z * (1 / sqrt(pi) - w * _ratio(LARGE, w))
    return np.asarray(np.where(x < 0, tail, 1 - tail))


def _ratio(polynomials: tuple[Sequence[float], Sequence[float]], x: Floats) -> Floats:
    over, under = (_horner(own, x) for own in polynomials)
    return over / under


def _horner(coefficients: Sequence[float], x: Floats) -> Floats:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value *= x
        value += coefficient
    return value


def _bell(x: Floats) -> Floats:
    """exp(-x^2), where rounding x^2 would cost digits: the square of x to sixteenths is exact."""
    near = np.trunc(x * 16) / 16
    return np.asarray(np.exp(-near * near) * np.exp(-(x - near) * (x + near)))
