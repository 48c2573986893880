"""Probabilities of coins in exact fractions: e enclosed by fractions, or a rational number in its place.

Every coin of the noise has a probability made of exp(-x). What a sampler needs of it is that powers multiply:
its distribution is a rational function of r = exp(-unit). So there are two ways to be exact. `Enclosed`
keeps e, and every probability is an interval of fractions. `Rational` takes a fraction for r, and every
probability is a fraction: that a distribution has the right form is then an identity that can be tested
with `==`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

Chance = tuple[Fraction, Fraction]  # not above and not below the probability

BITS = 400


@lru_cache(maxsize=4096)
def exp_enclosed(x: Fraction, bits: int = BITS) -> Chance:
    """Fractions around e^x, for any fraction x; by the series, not by the code under test.

    >>> low, high = exp_enclosed(Fraction(1))
    >>> low < high < low * (1 + Fraction(1, 2**390)), float(low)
    (True, 2.718281828459045)
    """
    if x < 0:
        low, high = exp_enclosed(-x, bits)
        return rounded(1 / high, 1 / low, bits + 2 * ceil(-x) + 8)
    halvings = max(0, ceil(x).bit_length())
    small, work = x / 2**halvings, bits + 4 * halvings + 32
    low = high = term = Fraction(1)
    for j in range(1, 10_000):
        term = Fraction(ceil(term * small / j * 2**work), 2**work)
        high += term
        low += max(
            term - Fraction(j + 1, 2**work), 0
        )  # every rounding up so far, and none grows since small < 1
        if term * 2**work <= 1:
            break
    high += 2 * term  # the rest is below a geometric series of ratio 1/2
    for _ in range(halvings):
        low, high = rounded(low * low, high * high, work)
    return low, high


def rounded(low: Fraction, high: Fraction, bits: int) -> Chance:
    """The interval with ends of so many binary places, outward."""
    return Fraction(floor(low * 2**bits), 2**bits), Fraction(ceil(high * 2**bits), 2**bits)


class Enclosed:
    """e itself."""

    def exp_minus(self, x: Fraction) -> Chance:
        return exp_enclosed(-x)


class Rational:
    """exp(-x) stands for r^(x/unit); every x that is asked for is a whole number of units."""

    def __init__(self, r: Fraction, unit: Fraction) -> None:
        self.r, self.unit = r, unit

    def exp_minus(self, x: Fraction) -> Chance:
        power = x / self.unit
        assert power.denominator == 1, "not a whole number of units"
        return self.r**power, self.r**power

    def digits(self, x: Fraction, bits: int) -> tuple[int, int]:
        """What `coins.exp_minus` gives: integers around 2^bits exp(-x)."""
        exact = self.exp_minus(x)[0] * 2**bits
        return floor(exact), ceil(exact)


def coin_chance(kind: str, x: Fraction, base: Enclosed | Rational) -> Chance:
    """The probability of a coin, by its definition."""
    low, high = base.exp_minus(x)
    if kind == "exp":
        return low, high
    if kind == "digit":
        return low / (1 + low), high / (1 + high)
    return (1 - high) / (1 + high), (1 - low) / (1 + low)
