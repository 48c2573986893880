"""Which scales noise can have: exact fractions that the samplers draw at and that fit in 64 bits."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter

LARGEST_SCALE = 1 << 56  # |x| >= 2^63 has probability below exp(-127): see discrete_laplace
SMALLEST_SIGMA2, LARGEST_SIGMA2 = Fraction(1, 1 << 20), 1 << 110
# Gaussian noise is drawn on a grid and then rounded (noise/rounded.py).
BITS = 12  # the grid's step is 2^-12, so that smoothing adds 2.4e-7 to the variance
GRID = 1 << BITS  # points of it between two integers
SMOOTHING = 4  # of the grid's step squared: the variance that hides where the grid lies
COARSE = 1 << 48  # from this variance on the grid is that of the integers


def check_scale(scale: Fraction | int) -> Fraction:
    """The same scale, if discrete_laplace accepts it; else ValueError."""
    scale = exact(scale, "scale")
    if not 0 < scale <= LARGEST_SCALE:
        raise ValueError("the scale of discrete Laplace noise must be above 0 and at most 2^56")
    return scale


def representable_sigma2(sigma2: Fraction | int) -> Fraction:
    """The least float64 that is at least sigma2 and 2^-20: noise is never smaller than asked for.

    The sampler is exact for any fraction; this one also survives being written to JSON and read again.
    Raises ValueError above 2^109: values might not fit in 64 bits, and rounding adds to what is drawn.

    >>> 0 < representable_sigma2(Fraction(1, 3)) - Fraction(1, 3) < Fraction(1, 2**54)
    True
    >>> representable_sigma2(10**15)
    Fraction(1000000000000000, 1)
    """
    sigma2 = exact(sigma2, "sigma2")
    if not 0 < sigma2 <= LARGEST_SIGMA2 // 2:
        raise ValueError("the variance of Gaussian noise must be above 0 and at most 2^109")
    sigma2 = max(sigma2, SMALLEST_SIGMA2)
    nearest = Fraction(float(sigma2))
    return nearest if nearest >= sigma2 else Fraction(nextafter(float(sigma2), inf))


def exact(value: Fraction | int, name: str) -> Fraction:
    """The value as a Fraction; TypeError for a float."""
    if not isinstance(value, Fraction | int):
        raise TypeError(f"{name} must be a Fraction or an int: a float is not the number that was meant")
    return Fraction(value)
