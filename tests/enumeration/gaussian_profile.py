"""The exact probabilities of rounded Gaussian noise, between fractions, and what they tell about privacy."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, product
from math import ceil, prod

import mpmath

from dpsynth_cli.trusted.noise.rounded import BITS, SMOOTHING
from tests.enumeration.bases import Chance, exp_enclosed

PLACES = 256  # binary places of a weight
REACH = 13  # standard deviations: beyond, a bound

Pmf = tuple[dict[int, Chance], Fraction]  # and what lies beyond all of these integers, at most


@lru_cache(maxsize=64)
def rounded_pmf(sigma2: Fraction, bits: int = BITS, smoothing: int = SMOOTHING) -> Pmf:
    """By the definition of the sampler: a discrete Gaussian on a grid of step 2^-bits, to the nearest
    integer, a half going up. That the sampler draws just this is `test_noise.py`."""
    g = 1 << bits
    w = sigma2 * g * g + smoothing  # in steps of the grid
    last = ceil(REACH * float(sigma2) ** 0.5) + 2
    end = last * g + g
    low, high = (_weights(w, end, side) for side in (0, 1))
    # Beyond the end each weight is less than the one before it, by this factor or more.
    step = exp_enclosed(-(2 * end + 1) / (2 * w))[1]
    tail = high[-1] * step / (1 - step)
    whole = 2 * sum(low) - low[0], 2 * sum(high) - high[0] + 2 * tail
    from_0 = [list(accumulate(side, initial=0)) for side in (low, high)]  # of z = 0 .. up to here

    def between(side: int, first: int, past: int) -> int:
        if first >= 0:
            return from_0[side][past] - from_0[side][first]
        if past <= 1:
            return from_0[side][1 - first] - from_0[side][1 - past]
        return between(side, first, 0) + between(side, 0, past)

    found = {}
    for x in range(-last, last + 1):
        ends = x * g - g // 2, x * g + (g + 1) // 2
        found[x] = between(0, *ends) / whole[1], Fraction(between(1, *ends)) / whole[0]
    return found, 1 - sum(chance for chance, _ in found.values())


def _weights(w: Fraction, end: int, up: int) -> list[int]:
    """2^PLACES exp(-z^2 / (2 w)), z = 0 .. end, by multiplication: all rounded down, or all up."""
    ratio, square = (int(exp_enclosed(exponent)[up] * 2**PLACES) + up for exponent in (-1 / (2 * w), -1 / w))
    weights = [1 << PLACES]
    for _ in range(end):
        weights.append((weights[-1] * ratio >> PLACES) + up)
        ratio = (ratio * square >> PLACES) + up
    return weights


def delta_at_most(
    epsilon: Fraction, moved: Sequence[int], sigma2: Sequence[Fraction], pmf=rounded_pmf
) -> Fraction:
    """Not less than the delta at this epsilon of answers that differ by `moved`: the sum over all outputs
    of what P has more than e^epsilon Q. Integers that do not move say nothing."""
    places = [i for i, d in enumerate(moved) if d]
    factor = exp_enclosed(epsilon)[0]
    known = [pmf(sigma2[i]) for i in places]
    ranges = [
        [x for x in found if x + moved[i] in found] for i, (found, _) in zip(places, known, strict=True)
    ]
    excess = inside = Fraction(0)
    for noise in product(*ranges):
        p = prod(known[j][0][x][1] for j, x in enumerate(noise))
        q = prod(known[j][0][x + moved[i]][0] for j, (i, x) in enumerate(zip(places, noise, strict=True)))
        excess += max(p - factor * q, Fraction(0))
        inside += prod(known[j][0][x][0] for j, x in enumerate(noise))
    return excess + 1 - inside


def renyi_at_most(alpha: int, moved: int, sigma2: Fraction) -> Fraction:
    """Not less than the sum over the integers listed of P^alpha Q^(1 - alpha), P and Q one number's noise
    apart."""
    found, _ = rounded_pmf(sigma2)
    return sum(
        (found[x][1] ** alpha / found[x + moved][0] ** (alpha - 1) for x in found if x + moved in found),
        Fraction(0),
    )


def gaussian_delta(epsilon: Fraction, mu_squared: Fraction) -> Fraction:
    """Phi(-a) - e^epsilon Phi(-b) to 60 digits, rounded down: by another library than the code under test."""
    with mpmath.workdps(80):
        mu = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator)
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        a, b = e / mu - mu / 2, e / mu + mu / 2
        delta = mpmath.erfc(a / mpmath.sqrt(2)) / 2 - mpmath.exp(e) * mpmath.erfc(b / mpmath.sqrt(2)) / 2
        return Fraction(int(mpmath.floor(delta * mpmath.mpf(10) ** 60)), 10**60)
