"""Exact discrete Laplace, Gaussian and cube noise: the only code that makes privacy noise.

Claim. Given uniform random words, every integer x comes out with probability *exactly* proportional
to exp(-|x|/scale) or exp(-x^2/(2 sigma^2)), and every vector of integers to exp(-max |x_i|/scale): no
floating point, no truncated tail, no "up to 2^-k".
The words (`words.py`) are pseudo-random, so the privacy guarantee is computational. The run time depends
on the noise drawn, never on data: nothing here ever sees data.

How. Binary digits of a geometric variable are independent, and each is an exact coin (`coins.py`).
The Gaussian is rejection from the Laplace (Canonne, Kamath, Steinke, "The Discrete Gaussian for
Differential Privacy", 2020), with our own choice of proposal that keeps the exponent an integer square.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, isqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.trusted.core.scales import LARGEST_SIGMA2, SMALLEST_SIGMA2, check_scale, exact
from dpsynth_cli.trusted.noise.coins import FIRST, Coin, ceil_div, exp_minus
from dpsynth_cli.trusted.noise.words import CHUNK, Words

# ---- discrete Laplace ------------------------------------------------------------------------------


def discrete_laplace(scale: Fraction | int, size: int, source: Words) -> NDArray[np.int64]:
    """Independent integers with P(x) = (1-r)/(1+r) r^|x|, r = exp(-1/scale), exactly.

    Added to an integer statistic of L1 sensitivity at most D it gives (D/scale)-differential privacy.

    A scale above 2^56 is refused: up to there a value that does not fit in 64 bits has probability
    below exp(-127) and raises OverflowError, an event that has nothing to do with data.
    """
    coins = _laplace_coins(check_scale(scale))
    _check_size(size)
    noise = np.empty(size, np.int64)
    for start in range(0, size, CHUNK):
        part = noise[start : start + CHUNK]
        part[:] = _laplace_chunk(coins, len(part), source)
    return noise


@dataclass(frozen=True)
class LaplaceCoins:
    """A geometric G (P(G = g) proportional to r^g) by its binary digits, and whether X is 0.

    The digits of a geometric variable are independent: digit k is 1 with probability e/(1+e),
    e = exp(-2^k/scale), and what stands above digit K is again geometric, of ratio exp(-2^K/scale).
    """

    zero: Coin
    low: tuple[Coin, ...]  # digits 0..K-1
    high: Coin  # G >> K is at least 1: with probability below 2^-FIRST, so a scalar path will do


@lru_cache(maxsize=256)
def _laplace_coins(scale: Fraction) -> LaplaceCoins:
    # exp(-2^K/scale) < 2^-FIRST, because log 2 < 7/10.
    k = (ceil(scale * FIRST * 7 / 10) - 1).bit_length()
    low = tuple(Coin.digit((1 << i) / scale) for i in range(k))
    return LaplaceCoins(Coin.zero(1 / scale), low, Coin.exp((1 << k) / scale))


def _laplace_chunk(coins: LaplaceCoins, n: int, source: Words) -> NDArray[np.int64]:
    # X = 0 if Z, else sign (1 + G), Z ~ Bernoulli((1-r)/(1+r)): two-sided without rejection.
    x = _geometric_chunk(coins, n, source)
    x += 1
    sign = 1 - 2 * (source.words16(n) & np.uint16(1)).astype(np.int8)
    sign *= ~coins.zero.flips(n, source)
    x *= sign
    return x


def _geometric_chunk(coins: LaplaceCoins, n: int, source: Words) -> NDArray[np.int64]:
    # G, from its highest digits down, eight at a time: adding bytes is faster than adding integers.
    x = np.zeros(n, np.int64)
    for start in reversed(range(0, len(coins.low), 8)):
        byte = np.zeros(n, np.uint8)
        for coin in reversed(coins.low[start : start + 8]):
            byte += byte
            byte |= coin.flips(n, source).view(np.uint8)
        x <<= 8
        x |= byte
    for i in coins.high.flips(n, source).nonzero()[0]:
        x[i] = _with_high_part(int(x[i]), coins, source)
    return x


def _with_high_part(low: int, coins: LaplaceCoins, source: Words) -> int:
    """G, once it is known that G >> K is at least 1."""
    high = 1
    while coins.high.flip(source):
        high += 1
    g = low + (high << len(coins.low))
    if g + 1 >= 1 << 63:
        raise OverflowError("a noise value does not fit in 64 bits")
    return g


# ---- discrete cube ---------------------------------------------------------------------------------


def discrete_cube(scale: Fraction | int, size: int, source: Words) -> NDArray[np.int64]:
    """One vector of `size` integers with P(x) proportional to t^max|x_i|, t = exp(-1/scale), exactly.

    Added to an integer statistic that one row moves by at most D in *every* integer it gives
    (D/scale)-differential privacy (the K-norm mechanism of Hardt and Talwar, 2010, for the cube).

    t^k is (1-t) times the sum of t^m over m >= k. So m is drawn with weight t^m (2m+1)^size, and x uniformly
    in {-m..m}^size. m itself by rejection: the sum of size + 1 geometric variables has weight
    t^m (m+1)(m+2)...(m+size)/size!, and is kept with probability prod of (2m+1)/(2m+2i), i = 1..size. That is
    about exp(-size/(2 scale)), so a scale below a quarter of the size is refused.
    """
    scale = check_scale(scale)
    _check_size(size)
    if 4 * scale < size:
        raise ValueError("the scale of discrete cube noise must be at least a quarter of its size")
    if size == 0:
        return np.empty(0, np.int64)
    coins = _laplace_coins(scale)
    while True:
        parts = [min(CHUNK, size + 1 - start) for start in range(0, size + 1, CHUNK)]
        m = sum(sum(_geometric_chunk(coins, n, source).tolist()) for n in parts)
        if m >= 1 << 61:
            raise OverflowError("a noise value does not fit in 64 bits")
        bounds = 2 * (np.uint64(m) + np.arange(1, size + 1, dtype=np.uint64))
        if (_uniform(bounds, source) <= np.uint64(2 * m)).all():
            x = _uniform(np.full(size, 2 * m + 1, np.uint64), source).astype(np.int64)
            return np.asarray(x - m)


def _uniform(bounds: NDArray[np.uint64], source: Words) -> NDArray[np.uint64]:
    """Independent integers, each uniform in 0 .. bound-1 (bounds up to 2^63): words of as many bits as the
    largest bound has, drawn again where they are not below their own."""
    mask = np.uint64((1 << int(bounds.max()).bit_length()) - 1)
    values: NDArray[np.uint64] = source.words64(len(bounds)) & mask
    while len(again := (values >= bounds).nonzero()[0]):
        values[again] = source.words64(len(again)) & mask
    return values


# ---- discrete Gaussian -----------------------------------------------------------------------------


def discrete_gaussian(sigma2: Fraction | int, size: int, source: Words) -> NDArray[np.int64]:
    """Independent integers with P(x) proportional to exp(-x^2/(2 sigma2)), exactly.

    Answers get it on a finer grid and rounded: see `rounded.py`.

    Proposal: y ~ discrete Laplace of scale sigma2/c, accepted with probability
    exp(-(|y| - c)^2/(2 sigma2)); the two exponents add up to -y^2/(2 sigma2) and a constant, for any c > 0.
    c near sigma accepts most often (76 % of large proposals), and c = p/q makes the exponent an integer
    square over a constant: (|y| q - p)^2 / D, D = 2 sigma2 q^2.
    """
    sigma2 = exact(sigma2, "sigma2")
    if not SMALLEST_SIGMA2 <= sigma2 <= LARGEST_SIGMA2:
        raise ValueError("the variance of discrete Gaussian noise must be from 2^-20 to 2^110")
    _check_size(size)
    plan = _gaussian_plan(sigma2)
    noise = np.empty(size, np.int64)
    done = 0
    while done < size:
        missing = size - done
        y = _laplace_chunk(plan.proposal, min(CHUNK, missing + missing // 2 + 8), source)
        y = y[_accepted(plan, y, source)][:missing]
        noise[done : done + len(y)] = y
        done += len(y)
    return noise


@dataclass(frozen=True)
class GaussianProposal:
    """How to accept with probability exp(-v^2/D), v = | |y| q - p |, by coins of one 16-bit word each.

    v^2 is written as A 2^unit + R, with A = ((v >> m)^2 >> l) below 2^24 and R the rest. A is
    split into base-256 digits, so that exp(-v^2/D) is a product of at most three table entries and
    exp(-R/D), each flipped as a coin of its own. R/D < 2^-17, so only a word of all ones asks for R.
    v^2 > 12 D is `far`: exp(-12) < 2^-17, so only a word of all zeros asks for more.
    """

    proposal: LaplaceCoins
    p: int
    q: int
    d: Fraction
    near: int  # |y| <= near exactly if v^2 <= 12 D
    m: int
    l: int  # noqa: E741
    tables: tuple[NDArray[np.uint16], ...]  # first[digit], for each base-256 digit of A

    def square_over_unit(self, v: NDArray[np.int64]) -> NDArray[np.int64]:
        """A, for v with v^2 <= 12 D."""
        a = v >> self.m
        a *= a
        a >>= self.l
        return a

    @property
    def unit(self) -> int:
        return 2 * self.m + self.l


@lru_cache(maxsize=256)
def _gaussian_plan(sigma2: Fraction) -> GaussianProposal:
    # c = p/q: sigma rounded to an integer, or to one over an integer.
    p, q = (_root(sigma2), 1) if sigma2 >= 1 else (1, _root(1 / sigma2))
    d = 2 * sigma2 * q * q
    far = isqrt(floor(12 * d))  # v <= far exactly if v^2 <= 12 D, v being an integer
    # R = (v^2 - (v0 2^m)^2) + (v0^2 mod 2^l) 2^(2m), v0 = v >> m. The first part is below 2^m 2v, and 0
    # if m = 0; the second is below 2^(2m+l), and 0 if l = 0. m and l are the largest that keep each
    # bound within D/2^18.
    m = max(0, floor(d / (far << 18)).bit_length() - 2)
    l = max(0, floor(d / (1 << 18 + 2 * m)).bit_length() - 1)  # noqa: E741
    # No overflow: p <= far, so |y| <= near (both ways: v <= far) keeps |y| q <= far + p < 2^59, since
    # far <= sqrt(24) sigma q, sigma <= 2^55, and q > 1 only for sigma < 1. m being the largest,
    # far / 2^m < 2^20 far^2/D <= 12 * 2^20 (and far < 12 * 2^19 if m = 0), so (v >> m)^2 < 2^48.
    # l being the largest, A <= 12 D/2^(2m+l) < 12 * 2^19 < 2^24: three digits.
    largest = (far >> m) ** 2 >> l
    assert p <= far < 1 << 58
    assert far >> m < 1 << 24
    assert largest < 1 << 24
    shifts = range(0, largest.bit_length(), 8)
    tables = tuple(_powers((1 << 2 * m + l + j) / d, min(256, (largest >> j) + 1)) for j in shifts)
    return GaussianProposal(_laplace_coins(sigma2 * q / p), p, q, d, (far + p) // q, m, l, tables)


def _root(a: Fraction) -> int:
    """The square root of a >= 1, rounded to an integer (a half goes up)."""
    return (isqrt(floor(4 * a)) + 1) // 2


def _powers(x: Fraction, n: int) -> NDArray[np.uint16]:
    """Thresholds `first` of the coins exp(-i x), i < n: by interval products, certified like any coin."""
    bits = 64
    one, (lo, hi) = 1 << bits, exp_minus(x, bits)
    first = np.empty(n, np.uint16)
    low = high = one
    for i in range(n):
        # Where the ends disagree (or p = 1), ask a coin.
        certain = low >> (bits - FIRST) == high >> (bits - FIRST) < 1 << FIRST
        first[i] = low >> (bits - FIRST) if certain else Coin.exp(i * x).first
        low, high = low * lo >> bits, ceil_div(high * hi, one)
    return first


def _accepted(plan: GaussianProposal, y: NDArray[np.int64], source: Words) -> NDArray[np.bool_]:
    """For each proposal, whether it is kept: with probability exp(-v^2/D), exactly."""
    n, d = len(y), plan.d
    u = np.abs(y)
    v = np.minimum(u, plan.near)
    if plan.q != 1:
        v *= plan.q
    v -= plan.p
    np.abs(v, out=v)
    a = plan.square_over_unit(v)

    kept = np.ones(n, np.bool_)
    if plan.unit:
        words = source.words16(n)
        ones = (1 << FIRST) - 1
        for i in (words == ones).nonzero()[0]:
            rest = int(v[i]) ** 2 - (int(a[i]) << plan.unit)
            kept[i] = Coin.exp(rest / d).settle(ones, source)
    for j, table in enumerate(plan.tables):
        digit = a & 255
        a >>= 8
        words = source.words16(n)
        first = table.take(digit)
        hits = words < first
        for i in (words == first).nonzero()[0]:
            hits[i] = Coin.exp((int(digit[i]) << plan.unit + 8 * j) / d).settle(int(words[i]), source)
        kept &= hits
    # Far out, where v may not fit in 64 bits: what was flipped above is void.
    far = (u > plan.near).nonzero()[0]
    words = source.words16(len(far))
    kept[far] = False
    for i in far[words == 0]:
        exponent = (int(u[i]) * plan.q - plan.p) ** 2 / d
        kept[i] = Coin.exp(exponent).settle(0, source)
    return kept


# ---- arguments -------------------------------------------------------------------------------------


def _check_size(size: int) -> None:
    if size < 0:
        raise ValueError("size must not be negative")
