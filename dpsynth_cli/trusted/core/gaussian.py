"""Gaussian differential privacy in certified numbers: rho, and the (epsilon, delta) that it implies.

A release is mu-Gaussian private if telling two neighbours apart by it is never easier than telling N(0, 1)
from N(mu, 1) (Dong, Roth and Su 2022). rho = mu^2 / 2 adds up over questions, as in zCDP, also where each is
chosen from earlier answers, and the least delta for an epsilon is known exactly:

    delta = Phi(-a) - e^epsilon Phi(-b),    a = epsilon/mu - mu/2,  b = epsilon/mu + mu/2,

Phi being the normal distribution function (Balle and Wang 2018).

Claim. Every epsilon that is given here is rounded up and every rho down, in decimals of known error. That
answers are integers is paid for: `SLACK` is above what 2^64 numbers of rounded Gaussian noise can add.
docs/privacy.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, isqrt, log10
from statistics import NormalDist

SLACK = Fraction(1, 10**14)  # above 2^64 * 2 log((1 + k)/(1 - k)), k = 2 sum of exp(-8 (pi j)^2) over j > 0
DECIMALS = 12  # of an epsilon
_UNIT = Fraction(1, 10**DECIMALS)
_FAR = 10**4  # beyond that many standard deviations a tail is bounded roughly

# Operations go through this context only: an operator of Decimal rounds to 28 digits.
# Every operation has a relative error below 1e-119, and no result below takes more than 1e5 of them or
# cancels more than 40 of its digits: 1e-60 of the largest term covers everything.
_C = Context(prec=120, Emin=MIN_EMIN, Emax=MAX_EMAX)
_ERROR = Decimal("1e-60")
_PI = Decimal(
    "3.141592653589793238462643383279502884197169399375105820974944592307816406286208998628034825"
    "342117067982148086513282306647093844609"
)
_ROOT_2_PI = _C.sqrt(_C.multiply(2, _PI))


@lru_cache(maxsize=1024, typed=True)
def epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """The least epsilon of 12 decimals, above 0, such that rho implies (epsilon, delta).

    >>> float(epsilon_of_rho(Fraction(1, 100), Fraction(1, 10**6)))
    0.575055185781
    """
    rho, delta = positive(rho, "rho"), _between_0_and_1(delta)
    enough = ceil((rho + 2 * _root_above(rho * _log_above(1 / delta))) / _UNIT) + 1  # by zCDP
    return _UNIT * _least(lambda units: excess(rho, units * _UNIT, delta), enough)


@lru_cache(maxsize=1024, typed=True)  # a stream converts at every block, a ledger at every grant
def rho_of_epsilon(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho of 13 decimal digits that implies (epsilon, delta).

    >>> float(rho_of_epsilon(Fraction(1), Fraction(1, 10**6)))
    0.02801448191262
    """
    epsilon, delta = positive(epsilon, "epsilon"), _between_0_and_1(delta)
    if epsilon < _UNIT:
        raise ValueError("epsilon is too small to be converted to rho")
    # By zCDP no less than this, in units of 13 digits or one more.
    least = (epsilon / (2 * _root_above(_log_above(1 / delta) + epsilon))) ** 2
    unit = Fraction(10) ** (floor(log10(least)) - 13)
    too_much = floor(least / unit)
    while excess(too_much * unit, epsilon, delta) <= 0:
        too_much *= 2
    first = _least(lambda units: -excess(units * unit, epsilon, delta), too_much)
    return _of_13_digits((first - 1) * unit, floor)


@lru_cache(maxsize=1024, typed=True)
def rho_of_pure(epsilon: Fraction) -> Fraction:
    """The least rho of 13 decimal digits that every epsilon-differentially private release has.

    The hardest such release to hide in is randomised response, whose two error rates 1/(1 + e^epsilon) are
    those of N(0, 1) and N(mu, 1) where Phi(-mu/2) is as much; elsewhere its trade-off lies above theirs.

    >>> float(rho_of_pure(Fraction(1))), float(rho_of_pure(Fraction(1, 100)))
    (0.758955595371, 7.853953542837e-05)
    """
    epsilon = positive(epsilon, "epsilon")
    odds = _C.add(1, _C.exp(_decimal(epsilon)))
    unit = Fraction(10) ** (floor(log10(epsilon**2)) - 14)

    def missing(units: int) -> float:
        half_mu = _C.sqrt(_decimal(units * unit / 2))
        error_rate = _C.multiply(_density(half_mu), _mills(half_mu)[1])
        return _log_of(_C.multiply(error_rate, _C.multiply(odds, _C.add(1, _ERROR))))

    enough = ceil(epsilon**2 * Fraction(4, 5) / unit)  # pi/4 epsilon^2 is
    return _of_13_digits(_least(missing, enough) * unit, ceil)


def implies(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether answers of at most this rho are (epsilon, delta)-differentially private: True is proved."""
    return excess(rho, epsilon, delta) <= 0


def excess(rho: Fraction, epsilon: Fraction, delta: Fraction) -> float:
    """log(delta of this rho at epsilon / delta), not above 0 only where rho implies (epsilon, delta)."""
    if epsilon <= SLACK:
        return 1.0
    above = _C.multiply(delta_above(rho, epsilon - SLACK), _C.add(1, _decimal(2 * SLACK)))
    return _log_of(_C.divide(above, _decimal(delta)))


def delta_above(rho: Fraction, epsilon: Fraction) -> Decimal:
    """Not less than the delta of Gaussian noise at this epsilon, and hardly more.

    With M(x) = Phi(-x)/phi(x) it is phi(a) (M(a) - M(b)), because phi(a) = e^epsilon phi(b).
    """
    mu = _C.sqrt(_decimal(2 * rho))
    a = _C.subtract(_C.divide(_decimal(epsilon), mu), _C.divide(mu, 2))
    b = _C.add(a, mu)
    if a > _FAR:
        return _C.exp(Decimal(-(_FAR**2) // 2))  # Phi(-a) < exp(-a^2/2)
    if a < -_FAR:
        return Decimal(1)
    if a >= 0:
        first = _mills(a)[1]
        difference = _C.add(_C.subtract(first, _mills(b)[0]), _C.multiply(first, _ERROR))
        return _C.multiply(_density(a), difference)
    # Phi(-a) = 1 - Phi(a)
    below = _C.multiply(_density(a), _C.add(_mills(a.copy_negate())[0], _mills(b)[0]))
    return _C.add(_C.subtract(1, below), _ERROR)


def tail_below(x_squared: Fraction, chance: Fraction) -> bool:
    """Whether a standard normal number is above the root of x_squared, at least 1, with probability at most
    `chance`: True is proved.

    >>> [tail_below(Fraction(square), Fraction(25, 1000)) for square in ("3.84", "3.8416")]
    [False, True]
    """
    x = _C.multiply(_C.sqrt(_decimal(x_squared)), _C.subtract(1, _ERROR))
    above = _C.multiply(_density(x), _mills(x)[1])
    return bool(_C.multiply(above, _C.add(1, _ERROR)) <= _decimal(chance))


def _mills(x: Decimal) -> tuple[Decimal, Decimal]:
    """Bounds below and above of M(x) = Phi(-x)/phi(x), x >= 0: equal in 50 digits or more."""
    if x > _FAR:
        return Decimal(0), _C.divide(1, x)
    if x < 5:
        # sqrt(pi/2) exp(x^2/2) less the sum of x^(2n+1)/(1 3 5 ... (2n+1)): 5 digits cancel at most.
        square = _C.multiply(x, x)
        term, total, n = x, x, 1
        while (
            term > Decimal("1e-100") or _C.multiply(2, square) > 2 * n + 1
        ):  # then the rest is below the last term
            term = _C.divide(_C.multiply(term, square), 2 * n + 1)
            total = _C.add(total, term)
            n += 1
        whole = _C.multiply(_C.divide(_ROOT_2_PI, 2), _C.exp(_C.divide(square, 2)))
        value, error = _C.subtract(whole, total), _C.multiply(whole, _ERROR)
        return _C.subtract(value, error), _C.add(value, error)
    # 1/(x + 1/(x + 2/(x + 3/...))): cut at a depth and one deeper it lies on both sides (Laplace).
    depth = 40 + int(4000 / (x * x))
    ends = []
    for terms in (depth, depth + 1):
        value = x
        for j in range(terms, 0, -1):
            value = _C.add(x, _C.divide(j, value))
        ends.append(_C.divide(1, value))
    return _C.multiply(min(ends), _C.subtract(1, _ERROR)), _C.multiply(max(ends), _C.add(1, _ERROR))


def _density(x: Decimal) -> Decimal:
    return _C.divide(_C.exp(_C.divide(_C.multiply(x, x), -2)), _ROOT_2_PI)


def _log_of(ratio: Decimal) -> float:
    """The logarithm, of the sign that it has in all digits; one of almost 0 counts as above it."""
    value = float(_C.ln(_C.multiply(ratio, _C.add(1, _ERROR)))) if ratio > 0 else -1.0
    return value or 1e-300


def _least(excess: Callable[[int], float], enough: int) -> int:
    """The least whole number above 0 where a falling function is not above 0; it is not at `enough`.

    By secants, and by halves where they are slow: which of the two does not change the result.
    """
    high, at_high = enough, excess(enough)
    low, at_low = high // 2, 1.0
    while low > 0 and (at_low := excess(low)) <= 0:
        high, at_high, low = low, at_low, low // 2
    halve = False
    while high - low > 1:
        middle = low + floor((high - low) * (at_low / (at_low - at_high)))
        middle = (low + high) // 2 if halve else min(max(middle, low + 1), high - 1)
        width, value = high - low, excess(middle)
        if value <= 0:
            high, at_high = middle, value
        else:
            low, at_low = middle, value
        halve = 2 * (high - low) > width
    return high


def _of_13_digits(value: Fraction, rounding: Callable[[Fraction], int]) -> Fraction:
    unit = Fraction(10) ** (len(str(floor(value * 10**1000))) - 1013)
    return rounding(value / unit) * unit


def _log_above(value: Fraction) -> Fraction:
    """A logarithm of a value above 1, a little too large."""
    return Fraction(_C.ln(_decimal(value))) * (1 + Fraction(1, 10**9)) + Fraction(1, 10**9)


def _root_above(value: Fraction) -> Fraction:
    """A square root, a little too large."""
    return Fraction(_C.sqrt(_decimal(value))) * (1 + Fraction(1, 10**9))


# ---- what it means ----------------------------------------------------------------------------------


def power(rho: Fraction, false_positives: float) -> float:
    """The most true positives of any test for one row's presence, with this rate of false ones."""
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(false_positives) + float(2 * rho) ** 0.5)


def mu_of_rho(rho: Fraction) -> Fraction:
    """sqrt(2 rho), rounded up to 12 decimals.

    >>> mu_of_rho(Fraction(1, 2))
    Fraction(1, 1)
    """
    square = ceil(2 * rho / _UNIT**2)
    return _UNIT * (isqrt(square - 1) + 1)


def _decimal(value: Fraction) -> Decimal:
    return _C.divide(Decimal(value.numerator), Decimal(value.denominator))


def positive(value: Fraction, name: str) -> Fraction:
    """The value, if it is an exact number above 0."""
    if not isinstance(value, Fraction | int):
        raise TypeError(f"{name} must be a Fraction: a float is not the number that was meant")
    if value <= 0:
        raise ValueError(f"{name} must be above 0")
    return Fraction(value)


def _between_0_and_1(delta: Fraction) -> Fraction:
    if positive(delta, "delta") >= 1:
        raise ValueError("delta must be below 1")
    return Fraction(delta)
