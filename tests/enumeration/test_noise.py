"""The noise has its stated distribution exactly: every path of coins is followed, in fractions.

First a coin: its words are enumerated. Then the samplers, whose paths are enumerated over coins.
"""

from __future__ import annotations

from fractions import Fraction as F
from itertools import permutations, product
from math import floor

import numpy as np
import pytest

from dpsynth_cli.trusted.core.curator import shuffled
from dpsynth_cli.trusted.noise import coins, samplers
from dpsynth_cli.trusted.noise.coins import FIRST, MORE, Coin
from dpsynth_cli.trusted.noise.rounded import rounded_gaussian
from dpsynth_cli.trusted.noise.samplers import discrete_cube, discrete_gaussian, discrete_laplace
from tests.enumeration.bases import Enclosed, Rational, coin_chance
from tests.enumeration.coin_tree import CUT, distribution, driven
from tests.trusted.seeded import ScriptedSource

TINY = F(1, 2**200)


# --- a coin, by its words -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["exp", "digit", "zero"])
@pytest.mark.parametrize("x", [F(1, 100), F(1, 3), F(1), F(5, 2)])
def test_of_all_words_a_coin_is_hit_by_exactly_its_digits(monkeypatch, kind, x):
    """Words of 3 and then of 2 bits, all sequences of them: of 2^n, floor(2^n p) hit, one is not yet
    decided."""
    monkeypatch.setattr(coins, "FIRST", 3)
    monkeypatch.setattr(coins, "MORE", 2)
    low, high = coin_chance(kind, x, Enclosed())
    for more in range(4):
        n = 3 + 2 * more
        outcomes = []
        for words in product(range(8), *[range(4)] * more):
            coin = getattr(Coin, kind)(x)
            source = ScriptedSource([words[0]], _then_stop(words[1:]))
            try:
                outcomes.append(bool(coin.flips(1, source)[0]))
            except _Ended:
                outcomes.append(None)
        assert outcomes.count(True) == floor(low * 2**n) == floor(high * 2**n)
        assert outcomes.count(None) == 1


def _then_stop(words):
    yield from words
    raise _Ended


class _Ended(Exception):
    pass


@pytest.mark.parametrize("kind", ["exp", "digit", "zero"])
def test_the_digits_of_a_coin_are_those_of_its_probability(kind):
    """The comparison with more words is the same at every width: here at the width that is used."""
    for x in (F(1, 10**6), F(1, 12), F(1, 3), F(1), F(16), F(64, 3)):
        low, high = coin_chance(kind, x, Enclosed())
        for n in (FIRST, FIRST + MORE, FIRST + 2 * MORE):
            assert getattr(Coin, kind)(x).digits(n) == floor(low * 2**n) == floor(high * 2**n)


def test_integers_below_a_bound_are_all_alike():
    """One round, all words: each value below the bound once, and what is not below it is drawn again."""
    for bounds in ([1, 1], [3, 5], [4, 7]):
        mask = (1 << max(bounds).bit_length()) - 1
        seen = []
        for words in product(range(mask + 1), repeat=2):
            source = ScriptedSource(0, _then_stop([w + 8 * (mask + 1) for w in words]))
            try:
                seen.append(tuple(samplers._uniform(np.array(bounds, np.uint64), source).tolist()))
            except _Ended:
                continue
        assert sorted(seen) == list(product(*map(range, bounds)))


# --- samplers, by their coins -------------------------------------------------------------------------


def laplace_paths(scale: F, base, size: int = 1):
    with driven(base):
        return distribution(lambda path: tuple(discrete_laplace(scale, size, path).tolist()), base)


@pytest.mark.parametrize("scale", [F(1, 3), F(1), F(7, 2), F(12)])
@pytest.mark.parametrize("r", [F(2, 5), F(5, 6)])
def test_laplace_noise_is_exactly_its_formula(scale, r):
    base = Rational(r, 1 / scale)
    found = laplace_paths(scale, base)
    largest = max(x for (x,) in found) - 1  # all beyond is one value
    assert sum(low for low, _ in found.values()) == 1
    assert largest >= 8 * scale
    for x in range(-largest, largest + 1):
        assert found[(x,)] == ((1 - r) / (1 + r) * r ** abs(x),) * 2


@pytest.mark.parametrize("scale", [F(1, 3), F(1), F(3)])
def test_with_e_itself_the_probabilities_are_within_2_to_the_minus_200(scale):
    base = Enclosed()
    found = laplace_paths(scale, base)
    largest = max(x for (x,) in found) - 1
    r_low, r_high = base.exp_minus(1 / scale)
    for x in range(-largest, largest + 1):
        low, high = found[(x,)]
        stated = (1 - r_high) / (1 + r_high) * r_low ** abs(x), (1 - r_low) / (1 + r_low) * r_high ** abs(x)
        assert max(low, stated[0]) <= min(high, stated[1])
        assert high - low < TINY


def test_numbers_of_one_answer_are_independent():
    scale, base = F(1, 3), Rational(F(2, 5), F(3))
    one, two = laplace_paths(scale, base), laplace_paths(scale, base, 2)
    assert len(two) == len(one) ** 2
    assert all(two[(x, y)][0] == one[(x,)][0] * one[(y,)][0] for x, y in two)


@pytest.mark.parametrize("sigma2", [F(1), F(1, 4)])
def test_gaussian_noise_is_exactly_its_formula(sigma2):
    base = Rational(F(3, 5), F(1, 2))
    with driven(base):
        found = distribution(lambda path: int(discrete_gaussian(sigma2, 1, path)[0]), base)
    is_gaussian(found, sigma2, base)


def is_gaussian(found, sigma2, base):
    """r stands for exp(-unit), a little less: then what is far is as rare as the sampler says."""
    assert sum(low for low, _ in found.values()) == 1
    largest = max(x for x in found if x != CUT) - 1
    assert found[CUT][0] < F(1, 2)
    for x in range(-largest, largest + 1):
        assert found[x][0] == found[0][0] * base.exp_minus(F(x * x) / (2 * sigma2))[0]


@pytest.mark.slow
def test_rounded_noise_is_that_of_a_finer_grid_to_the_nearest_integer():
    sigma2, base = F(1, 2), Rational(F(9, 10), F(1, 12))  # on halves: a variance of 4 sigma2 + 4 = 6
    with driven(base, bits=1):
        found = distribution(lambda path: int(rounded_gaussian(sigma2, 1, path)[0]), base)
        fine = distribution(lambda path: int(discrete_gaussian(F(6), 1, path)[0]), base)
    largest = max(x for x in found if x != CUT) - 2
    is_gaussian(fine, F(6), base)
    assert found[CUT] == fine[CUT]
    for x in range(-largest, largest + 1):
        assert found[x][0] == fine[2 * x - 1][0] + fine[2 * x][0]


@pytest.mark.parametrize(("scale", "size"), [(F(1), 1), (F(1, 2), 2)])
def test_cube_noise_is_exactly_its_formula(scale, size):
    """With half-width m it is kept with a weight t^m for each of its points: added up over m >= max|x| that
    is t^max|x| / (1 - t)."""
    t = F(2, 5)
    base = Rational(t, 1 / scale)

    def sample(path):
        x = discrete_cube(scale, size, path)
        return ((path.seen[0] - 1) // 2, *x.tolist())

    with driven(base):
        found = distribution(sample, base)
    assert sum(low for low, _ in found.values()) == 1
    one = found[(0,) * (size + 1)][0]
    for m in (0, 1, 2):
        for x in product(range(-3, 4), repeat=size):
            inside = max(map(abs, x)) <= m
            assert found.get((m, *x), (F(0),))[0] == (one * t**m if inside else 0)


def test_rows_in_a_secret_order_are_in_every_order_alike():
    rows = np.array([1, 2, 3])
    for first in ([5, 5, 5], [1, 2, 3]):  # whatever the other words are, where they do not decide a tie
        orders = []
        for words in permutations([10, 20, 30]):
            source = ScriptedSource(0, [*first, *words])
            orders.append(tuple(shuffled(rows, 1, source).tolist()))
        assert sorted(orders) == sorted(permutations([1, 2, 3]))


# --- the enumeration can fail ---------------------------------------------------------------------------


def test_a_sign_that_counts_zero_twice_would_be_seen(monkeypatch):
    """The mistake of many first attempts: two signs of a geometric variable, and 0 has both."""
    right = samplers._laplace_chunk

    def wrong(laplace, n, source):
        x = samplers._geometric_chunk(laplace, n, source)
        return x * (1 - 2 * (source.words16(n) & np.uint16(1)).astype(np.int64))

    r = F(2, 5)
    base = Rational(r, F(1))
    monkeypatch.setattr(samplers, "_laplace_chunk", wrong)
    assert laplace_paths(F(1), base)[(0,)][0] != (1 - r) / (1 + r)
    monkeypatch.setattr(samplers, "_laplace_chunk", right)
    assert laplace_paths(F(1), base)[(0,)][0] == (1 - r) / (1 + r)


def test_a_coin_of_another_digit_would_be_seen(monkeypatch):
    """Digit i of the geometric variable with the probability of digit i + 1."""
    r = F(2, 5)
    base = Rational(r, F(1))
    with driven(base):
        right = Coin.digit
        monkeypatch.setattr(Coin, "digit", lambda x: right(2 * x))
        found = distribution(lambda path: int(discrete_laplace(F(1), 1, path)[0]), base)
    assert found[1][0] != (1 - r) / (1 + r) * r
