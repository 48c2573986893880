"""Exact coins: Bernoulli(p) for probabilities made of exp(-x), x rational.

An exact coin compares uniform bits with the binary digits of its probability p. One 16-bit word decides all
but one case in 2^16; on a tie 64 more bits are drawn and 64 more digits of p computed, without limit. Digits
come from integer enclosures of exp(-x), refined until both ends agree. Whole arrays of coins are flipped at
once, and only the ties go through Python.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.trusted.noise.words import Words

FIRST, MORE = 16, 64  # bits of a coin's first word, and of every further one after a tie

Enclosure: TypeAlias = Callable[[int], tuple[int, int]]  # bits -> integers lo <= 2^bits p <= hi


def exp_minus(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers lo <= 2^bits exp(-x) <= hi, close together, for rational x >= 0.

    >>> exp_minus(Fraction(1), 20)      # 2^20 / e = 385749.8...
    (385749, 385750)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    # exp(-x) = (1/exp(y))^(2^h) with y = x/2^h <= 1/2, in units of 2^-work.
    h = (ceil(2 * x) - 1).bit_length()
    work = bits + h + 16
    numerator, denominator = x.numerator, x.denominator << h
    term = total = 1 << work
    j = 0
    while term:
        j += 1
        term = term * numerator // (denominator * j)
        total += term
    # Rounding down leaves each of the j terms low by less than 2 (half the error before it, plus 1),
    # and so the tail after the last one, which was 0, is below 2 as well.
    lo, hi = (1 << 2 * work) // (total + 2 * j + 2), ceil_div(1 << 2 * work, total)
    for _ in range(h):
        lo, hi = lo * lo >> work, ceil_div(hi * hi, 1 << work)
    return lo >> (work - bits), ceil_div(hi, 1 << (work - bits))


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


class Coin:
    """An exact Bernoulli(p) for a p that is not a dyadic fraction, or is 1."""

    def __init__(self, enclosure: Enclosure) -> None:
        self._enclosure = enclosure
        self._digits: dict[int, int] = {}

    @classmethod
    def exp(cls, x: Fraction) -> Coin:
        """p = exp(-x)."""
        return cls(lambda bits: exp_minus(x, bits))

    @classmethod
    def digit(cls, x: Fraction) -> Coin:
        """p = e/(1+e), e = exp(-x): a binary digit of a geometric variable."""

        def enclosure(bits: int) -> tuple[int, int]:
            one, (lo, hi) = 1 << bits, exp_minus(x, bits)
            return (lo << bits) // (one + lo), ceil_div(hi << bits, one + hi)

        return cls(enclosure)

    @classmethod
    def zero(cls, x: Fraction) -> Coin:
        """p = (1-r)/(1+r), r = exp(-x): the probability that a discrete Laplace is 0."""

        def enclosure(bits: int) -> tuple[int, int]:
            one, (lo, hi) = 1 << bits, exp_minus(x, bits)
            return ((one - hi) << bits) // (one + hi), ceil_div((one - lo) << bits, one + lo)

        return cls(enclosure)

    def digits(self, n: int) -> int:
        """floor(2^n p), certified: both ends of an enclosure agree.

        p is 1, or not a dyadic fraction: then it is strictly below the upper end, which matters where p is so
        close to 0 or 1 that no reasonable number of digits tells them apart.
        """
        guard = 16
        while n not in self._digits:
            lo, hi = self._enclosure(n + guard)
            if lo >> guard == max(lo, hi - 1) >> guard:
                self._digits[n] = lo >> guard
            guard *= 2
        return self._digits[n]

    @cached_property
    def first(self) -> np.uint16:
        """The threshold of the first word: below is a hit, above is a miss, equal is not yet known."""
        first: np.uint16 = np.uint16(min(self.digits(FIRST), (1 << FIRST) - 1))  # the latter only if p = 1
        return first

    def settle(self, drawn: int, source: Words) -> bool:
        """The outcome when the first word drawn is known: as many more bits as it takes."""
        n = FIRST
        while drawn == (p := self.digits(n)):
            n += MORE
            drawn = drawn << MORE | int(source.words64(1)[0])
        return drawn < p

    def flip(self, source: Words) -> bool:
        return self.settle(int(source.words16(1)[0]), source)

    def flips(self, n: int, source: Words) -> NDArray[np.bool_]:
        """n independent outcomes."""
        words = source.words16(n)
        hits = words < self.first
        for i in (words == self.first).nonzero()[0]:
            hits[i] = self.settle(int(words[i]), source)
        return hits
