import copy
import math
import os
import pickle
import subprocess
import sys
from fractions import Fraction as F

import mpmath
import numpy as np
import pytest
from scipy.special import chdtri, ndtr

from dpsynth_cli.trusted.core.scales import representable_sigma2
from dpsynth_cli.trusted.noise import coins
from dpsynth_cli.trusted.noise import samplers as noise
from dpsynth_cli.trusted.noise.coins import Coin
from dpsynth_cli.trusted.noise.samplers import (
    discrete_cube,
    discrete_gaussian,
    discrete_laplace,
)
from dpsynth_cli.trusted.noise.words import CHUNK, SystemSource, system_source
from tests.trusted.seeded import ScriptedSource, SeededSource

LAPLACE_SCALES = [F(1, 3), F(1), F(7, 2), F(40), F(1000), F(2**33 + 1, 5), F(2) ** 56]
SIGMA2S = [
    F(1, 9),
    F(2, 3),
    F(1),
    F(10, 3),
    F(1000),
    F(10**6) + F(1, 7),
    F(2) ** 51,
    F(2) ** 100,
    F(2) ** 110,
]


# ---- exact coins -----------------------------------------------------------------------------------


def exactly(kind, x):
    """The probability of a coin, as precisely as mpmath is told to work."""
    e = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
    return {"exp": e, "digit": e / (1 + e), "zero": (1 - e) / (1 + e)}[kind]


@pytest.mark.parametrize("kind", ["exp", "digit", "zero"])
def test_digits_of_a_probability_agree_with_high_precision_arithmetic(kind):
    checked = 0
    with mpmath.workprec(4000):
        for k in range(-60, 12, 2):
            for base in (F(1), F(3, 7), F(10**12 + 39, 10**12)):
                x = base * F(2) ** k
                for n in (1, 16, 80, 400):
                    assert getattr(Coin, kind)(x).digits(n) == int(mpmath.floor(exactly(kind, x) * 2**n))
                    checked += 1
    assert checked == 432


def test_an_enclosure_holds_exp_and_is_narrow():
    with mpmath.workprec(700):
        for x in (F(1, 10**20), F(1, 3), F(1, 2), F(2, 3), F(1), F(355, 113), F(50), F(5000)):
            for bits in (1, 20, 100, 500):
                lo, hi = coins.exp_minus(x, bits)
                assert lo <= exactly("exp", x) * 2**bits <= hi
                assert hi - lo <= 2


def test_a_probability_near_a_dyadic_fraction_is_refined_until_it_is_certain():
    # exp(-x) is 2^-3 to 200 bits, on either side of it.
    with mpmath.workprec(700):
        x = F(int(mpmath.floor(mpmath.log(8) * 2**200)), 2**200)
    above, below = x, x + F(1, 2**200)
    assert Coin.exp(above).digits(16) == 2**13
    assert Coin.exp(below).digits(16) == 2**13 - 1
    assert noise._powers(above, 3).tolist() == [2**16 - 1, 2**13, 2**10]
    assert noise._powers(below, 3).tolist() == [2**16 - 1, 2**13 - 1, 2**10 - 1]


@pytest.mark.parametrize("x", [F(1, 10**6), F(1, 3), F(2), F(9)])
def test_all_first_words_together_hit_as_often_as_the_threshold_says(x):
    coin = Coin.exp(x)
    everything, first = range(1 << 16), coin.digits(16)
    assert coin.flips(1 << 16, ScriptedSource(everything, more=2**64 - 1)).sum() == first
    assert coin.flips(1 << 16, ScriptedSource(everything, more=0)).sum() == first + 1


def test_a_tie_is_settled_by_as_many_words_as_it_takes():
    coin = Coin.exp(F(1, 3))
    digits = coin.digits(16 + 3 * 64)
    words = [digits >> 128 & 2**64 - 1, digits >> 64 & 2**64 - 1]
    last = digits & 2**64 - 1
    for final, hit in ((last - 1, True), (last + 1, False)):
        source = ScriptedSource(digits >> 192, [*words, final])
        assert coin.flip(source) is hit
        assert source.drawn64 == 3


def test_a_certain_coin_never_misses():
    assert Coin.exp(F(0)).flips(1 << 16, ScriptedSource(range(1 << 16), more=2**64 - 1)).all()


# ---- the distributions -----------------------------------------------------------------------------


def chi_square(values, cdf, scale):
    """The chi-square statistic over its one-in-a-million value; cells of about 1/60, tails merged."""
    quantiles = np.quantile(values, np.linspace(0, 1, 61)[1:-1], method="nearest")
    spread = scale * 10.0 ** np.arange(-3, 1)  # cells that do not depend on the sample
    edges = np.unique(np.concatenate([quantiles, np.round(spread), np.round(-spread)]).astype(np.int64))
    p = np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))
    assert p.min() > -1e-15
    observed = np.bincount(np.searchsorted(edges, values), minlength=len(p))
    expected = p * len(values)
    # Cells with an expectation below 5 are merged into one.
    small = expected < 5
    if small.any():
        observed = np.append(observed[~small], observed[small].sum())
        expected = np.append(expected[~small], max(expected[small].sum(), 1e-3))
    return ((observed - expected) ** 2 / expected).sum() / chdtri(len(expected) - 1, 1e-6)


def laplace_cdf(scale):
    """P(X <= k) of a discrete Laplace."""
    x = 1 / float(scale)

    def cdf(k):
        tail = np.exp(-x * np.where(k < 0, -k, k + 1.0)) / (1 + math.exp(-x))
        return np.where(k < 0, tail, 1 - tail)

    return cdf


def gaussian_cdf(sigma2):
    """P(X <= k) of a discrete Gaussian: summed, or the normal one (error 1/sigma^2) if sigma is huge."""
    sigma = math.sqrt(sigma2)
    if sigma > 1e6:
        return lambda k: ndtr((k + 0.5) / sigma)
    reach = int(12 * sigma) + 3
    pmf = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * float(sigma2)))
    cumulated = np.cumsum(pmf) / pmf.sum()
    return lambda k: cumulated[np.clip(k + reach, 0, 2 * reach)]


@pytest.mark.parametrize("scale", LAPLACE_SCALES)
def test_laplace_fits_its_scale_and_rejects_a_wrong_one(scale):
    x = discrete_laplace(scale, 200_000, SeededSource(1))
    assert chi_square(x, laplace_cdf(scale), float(scale)) < 1
    assert chi_square(x, laplace_cdf(scale * F(11, 10)), float(scale)) > 1
    assert chi_square(x, laplace_cdf(scale * F(9, 10)), float(scale)) > 1


@pytest.mark.parametrize("sigma2", SIGMA2S)
def test_gaussian_fits_its_variance_and_rejects_a_wrong_one(sigma2):
    x = discrete_gaussian(sigma2, 200_000, SeededSource(2))
    sigma = math.sqrt(sigma2)
    assert chi_square(x, gaussian_cdf(sigma2), sigma) < 1
    assert chi_square(x, gaussian_cdf(sigma2 * F(11, 10)), sigma) > 1
    assert chi_square(x, gaussian_cdf(sigma2 * F(9, 10)), sigma) > 1


@pytest.fixture(params=[(3, 2), (5, 1), (8, 8)], ids=["3 bits", "5 bits", "8 bits"])
def narrow(request, monkeypatch):
    """Words so narrow that ties, high digits and far proposals are everyday events."""
    first, more = request.param
    monkeypatch.setattr(noise, "FIRST", first)
    monkeypatch.setattr(coins, "FIRST", first)
    monkeypatch.setattr(coins, "MORE", more)
    noise._laplace_coins.cache_clear()
    noise._gaussian_plan.cache_clear()
    yield SeededSource(3, first, more)
    noise._laplace_coins.cache_clear()
    noise._gaussian_plan.cache_clear()


@pytest.mark.parametrize("scale", [F(1, 3), F(7, 2), F(2**33 + 1, 5)])
def test_laplace_is_the_same_where_ties_and_high_digits_are_common(narrow, scale):
    x = discrete_laplace(scale, 8_000, narrow)
    assert chi_square(x, laplace_cdf(scale), float(scale)) < 1
    assert chi_square(x, laplace_cdf(scale * F(3, 2)), float(scale)) > 1


@pytest.mark.parametrize("sigma2", [F(1, 9), F(1000), F(2) ** 100])
def test_gaussian_is_the_same_where_ties_are_common(narrow, sigma2):
    x = discrete_gaussian(sigma2, 4_000, narrow)
    assert chi_square(x, gaussian_cdf(sigma2), math.sqrt(sigma2)) < 1
    assert chi_square(x, gaussian_cdf(sigma2 * F(3, 2)), math.sqrt(sigma2)) > 1


def summed_cdf(weights):
    """P(X <= k) of a distribution over 0, 1, 2.. with these weights (logarithms)."""
    pmf = np.exp(weights - weights.max())
    cumulated = np.cumsum(pmf) / pmf.sum()
    return lambda k: np.where(k < 0, 0.0, cumulated[np.clip(k, 0, len(pmf) - 1)])


def cube_cdfs(scale, size):
    """Of max|x|, as the definition has it: vectors of norm k, times exp(-k/scale). Of |x_1|, by adding up."""
    k = np.arange(int(40 * float(scale) * (size + 3)) + 2, dtype=np.float64)
    shells = size * np.log(2 * k + 1) + np.log1p(-(((2 * k - 1) / (2 * k + 1)) ** size) * (k > 0))
    # |x_1| = j: the norms above j, each with all it has of the other coordinates, and the norm j itself.
    others = (size - 1) * np.log(2 * k + 1)
    tails = np.logaddexp.accumulate((others - k / float(scale))[::-1])[::-1]
    return summed_cdf(shells - k / float(scale)), summed_cdf(tails + np.log(np.where(k > 0, 2.0, 1.0)))


@pytest.mark.parametrize(
    ("scale", "size"), [(F(7, 2), 1), (F(1), 4), (F(50), 3), (F(9, 2), 15), (F(2**33), 6)]
)
def test_cube_fits_its_scale_and_rejects_a_wrong_one(scale, size):
    source = SeededSource(4)
    x = np.abs([discrete_cube(scale, size, source) for _ in range(1500)])
    small = min(scale, F(1000) + scale % 1000)  # beyond that only the shape counts
    shape = x if small == scale else np.rint(x * float(small / scale)).astype(np.int64)
    for values, of in ((shape.max(axis=1), 0), (shape[:, 0], 1)):
        fit = [
            chi_square(values, cube_cdfs(small * part, size)[of], float(small))
            for part in (1, F(3, 2), F(2, 3))
        ]
        assert fit[0] < 1
        assert min(fit[1:]) > 1


def test_cube_has_all_signs_and_places_alike():
    source = SeededSource(5)
    x = np.array([discrete_cube(F(30), 5, source) for _ in range(1500)])
    assert np.abs(np.corrcoef(np.sign(x).T) - np.eye(5)).max() < 6 / math.sqrt(1500)
    assert np.bincount(np.abs(x).argmax(axis=1), minlength=5) == pytest.approx([300] * 5, abs=6 * 16)


def test_cube_is_refused_where_it_would_be_drawn_for_ever():
    with pytest.raises(ValueError, match="quarter"):
        discrete_cube(F(9, 10), 4, SeededSource(0))


def test_tiny_scales_give_almost_always_zero():
    # P(X != 0) is about exp(-100) and exp(-50).
    assert not discrete_laplace(F(1, 100), 100_000, SeededSource(4)).any()
    assert not discrete_gaussian(F(1, 100), 100_000, SeededSource(4)).any()
    assert not discrete_gaussian(noise.SMALLEST_SIGMA2, 100_000, SeededSource(4)).any()


def test_signs_and_neighbours_are_independent():
    n = 400_000
    for x in (discrete_laplace(F(50), n, SeededSource(5)), discrete_gaussian(F(2500), n, SeededSource(6))):
        sign, size = np.sign(x), np.abs(x)
        pairs = [
            (sign[:-1], sign[1:]),
            (size[:-1], size[1:]),
            (sign, size),
            (x & 1, x >> 1 & 1),
            (x & 1, sign),
        ]
        for a, b in pairs:
            assert abs(np.corrcoef(a, b)[0, 1]) < 5 / math.sqrt(n)


@pytest.mark.parametrize("scale", [F(1, 3), F(1), F(22, 7), F(100)])
def test_the_coins_multiply_to_the_exact_probability_of_every_integer(scale):
    with mpmath.workprec(400):
        laplace = noise._laplace_coins(scale)
        k = len(laplace.low)
        zero, high, *low = (
            mpmath.mpf(coin.digits(300)) / 2**300 for coin in (laplace.zero, laplace.high, *laplace.low)
        )
        r = exactly("exp", 1 / scale)
        for x in (0, 1, 2, 5, 77, (1 << k) - 1, 1 << k, 1 << k + 1, 5 << k):
            g = abs(x) - 1
            p = zero
            if x:
                p = (1 - zero) / 2 * high ** (g >> k) * (1 - high)
                for i, digit in enumerate(low):
                    p *= digit if g >> i & 1 else 1 - digit
            assert abs(p / ((1 - r) / (1 + r) * r ** abs(x)) - 1) < mpmath.mpf(2) ** -150


def test_the_high_part_is_rare_and_has_no_end():
    laplace = noise._laplace_coins(F(10))
    assert laplace.high.first == 0
    assert len(laplace.low) == 7
    # A word of 0 and then 64 more bits below the threshold: one more multiple of 2^7.
    source = ScriptedSource([0, 0, 0, 1])
    assert noise._with_high_part(5, laplace, source) == 5 + 4 * 128


def test_noise_that_does_not_fit_in_64_bits_raises():
    laplace = noise._laplace_coins(F(2) ** 56)
    assert noise._with_high_part(9, laplace, ScriptedSource([0] * 6 + [9])) == 9 + (7 << 60)
    with pytest.raises(OverflowError, match="64 bits"):
        noise._with_high_part(9, laplace, ScriptedSource([0] * 7 + [9]))


# ---- the Gaussian's plan ---------------------------------------------------------------------------

ALL_SIZES = [noise.SMALLEST_SIGMA2 * F(2) ** k * f for k in range(130) for f in (1, F(4, 3), F(17, 9))]


def test_proposal_and_acceptance_multiply_to_the_gaussian():
    for sigma2 in ALL_SIZES:
        plan = noise._gaussian_plan(sigma2)
        t = sigma2 * plan.q / plan.p
        assert plan.proposal is noise._laplace_coins(t)
        exponents = {y / t + (y * plan.q - plan.p) ** 2 / plan.d - y * y / (2 * sigma2) for y in range(5)}
        assert len(exponents) == 1


def test_the_parts_of_the_exponent_add_up_and_fit():
    rng = np.random.default_rng(7)
    for sigma2 in ALL_SIZES:
        plan = noise._gaussian_plan(sigma2)
        far = math.isqrt(math.floor(12 * plan.d))
        assert plan.near * plan.q - plan.p <= far < (plan.near + 1) * plan.q - plan.p
        v = np.unique(np.concatenate([rng.integers(far + 1, size=20), [0, far, plan.p]]))
        for v_i, a_i in zip(v.tolist(), plan.square_over_unit(v).tolist(), strict=True):
            assert 0 <= v_i**2 - (a_i << plan.unit) < plan.d / 2**17  # no overflow either
            digits = [a_i >> 8 * j & 255 for j in range(4)]
            assert all(digit < len(table) for digit, table in zip(digits, plan.tables, strict=False))
            assert not any(digits[len(plan.tables) :])
        if plan.unit == 0:
            assert np.array_equal(plan.square_over_unit(v), v * v)


@pytest.mark.parametrize("sigma2", [F(1, 9), F(1000), F(2) ** 100 / 3])
def test_tables_hold_the_exact_thresholds(sigma2):
    plan = noise._gaussian_plan(sigma2)
    with mpmath.workprec(300):
        for j, table in enumerate(plan.tables):
            for digit, first in enumerate(table.tolist()):
                p = exactly("exp", (digit << plan.unit + 8 * j) / plan.d)
                assert first == min(65535, int(p * 65536))


def frequency(sigma2, y, source):
    """How often the proposal y is accepted."""
    kept = noise._accepted(noise._gaussian_plan(sigma2), np.full(1000, y, np.int64), source)
    return kept.mean()


class FirstWord(SeededSource):
    """Always the same first word; what follows is random."""

    def __init__(self, seed, word):
        super().__init__(seed)
        self.word = word

    def words16(self, n):
        return np.full(n, self.word, np.uint16)


@pytest.mark.parametrize("sigma2", [F(1, 9), F(100), F(10**9), F(2) ** 100])
def test_acceptance_has_the_exact_probability(sigma2):
    plan = noise._gaussian_plan(sigma2)
    for y in (0, plan.p // (2 * plan.q), -2 * plan.p // plan.q, 3 * plan.p // plan.q):
        p = math.exp(-((abs(y) * plan.q - plan.p) ** 2) / plan.d)
        assert abs(frequency(sigma2, y, SeededSource(8)) - p) < 0.08  # five standard deviations


@pytest.mark.parametrize("sigma2", [F(100), F(10**9), F(2) ** 100])
def test_far_out_proposals_are_accepted_with_the_exact_probability(sigma2):
    # Given a first word of 0, a coin of p < 2^-16 hits with probability 2^16 p.
    plan = noise._gaussian_plan(sigma2)
    for y in (plan.near + 1, -(plan.near + plan.p // 10)):
        p = math.exp(-((abs(y) - plan.p) ** 2) / plan.d) * 2**16
        assert abs(frequency(sigma2, y, FirstWord(9, 0)) - p) < 0.08
        assert frequency(sigma2, y, FirstWord(9, 1)) == 0
    assert frequency(sigma2, 2**63 - 1, FirstWord(9, 0)) == 0


class FirstWords(SeededSource):
    """One first word a call, repeated as often as asked for; what follows is random."""

    def __init__(self, seed, words):
        super().__init__(seed)
        self.words = iter(words)

    def words16(self, n):
        return np.full(n, next(self.words), np.uint16)


def test_a_tie_of_one_digit_is_settled_by_that_digits_probability():
    sigma2 = F(2) ** 100 / 3
    plan = noise._gaussian_plan(sigma2)
    v = 2 * plan.p
    a = int(plan.square_over_unit(np.array([v]))[0])
    assert plan.unit > 0
    assert len(plan.tables) == 3
    for j, table in enumerate(plan.tables):
        digit = a >> 8 * j & 255
        words = [0, 0, 0, 0, 0]  # hits for the rest and the other digits; nothing is far
        words[1 + j] = int(table[digit])
        with mpmath.workprec(300):
            p = exactly("exp", (digit << plan.unit + 8 * j) / plan.d) * 2**16
        assert 0.05 < p - words[1 + j] < 0.95  # or the tie would hardly need settling
        assert abs(frequency(sigma2, plan.p + v, FirstWords(14, words)) - (p - words[1 + j])) < 0.08


def test_the_rest_of_the_exponent_is_not_forgotten():
    # Given a first word of all ones, a coin of p = exp(-x) > 1 - 2^-16 hits with probability 1 - 2^16 x.
    sigma2 = F(2) ** 100
    plan = noise._gaussian_plan(sigma2)
    v = math.isqrt(1 << plan.unit) - 1
    rest = F(v * v) / plan.d
    assert F(1, 2**20) < rest < F(1, 2**17)
    assert abs(frequency(sigma2, plan.p + v, FirstWord(10, 65535)) - (1 - float(rest) * 2**16)) < 0.08


def test_representable_variances_are_floats_and_never_smaller():
    priced = [sigma2 for sigma2 in ALL_SIZES if sigma2 <= F(2) ** 109]
    for sigma2 in [*priced, F(1, 10**9), F(10**30 + 1, 3), F(1, 3)]:
        rounded = representable_sigma2(sigma2)
        assert F(float(rounded)) == rounded
        assert max(sigma2, noise.SMALLEST_SIGMA2) <= rounded
        assert rounded <= max(sigma2, noise.SMALLEST_SIGMA2) * (1 + F(1, 2**52))
        assert representable_sigma2(rounded) == rounded
    for sigma2 in (F(0), F(-1), F(2) ** 109 + F(1, 2)):
        with pytest.raises(ValueError, match="variance"):
            representable_sigma2(sigma2)


# ---- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [F(0), F(-1), F(2) ** 56 + F(1, 10)])
def test_scales_out_of_range_are_refused(scale):
    with pytest.raises(ValueError, match="scale"):
        discrete_laplace(scale, 1, SeededSource(0))


@pytest.mark.parametrize("sigma2", [F(0), F(-1), F(1, 2**20 + 1), F(2) ** 110 + 1])
def test_variances_out_of_range_are_refused(sigma2):
    with pytest.raises(ValueError, match="variance"):
        discrete_gaussian(sigma2, 1, SeededSource(0))


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_cube, discrete_gaussian])
def test_floats_and_negative_sizes_are_refused_and_no_values_are_no_values(draw):
    with pytest.raises(TypeError, match="float"):
        draw(0.1, 1, SeededSource(0))
    with pytest.raises(ValueError, match="size"):
        draw(F(1), -1, SeededSource(0))
    assert draw(F(1), 0, SeededSource(0)).shape == (0,)
    assert draw(3, 5, SeededSource(0)).dtype == np.int64


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("size", [1, 7, CHUNK, 2 * CHUNK + 3])
def test_every_place_of_a_long_array_is_filled(draw, size):
    values = draw(F(2) ** 56, size, SeededSource(11))
    assert len(np.unique(values)) > 0.999 * size  # 0 or a repeated chunk would show


# ---- the source ------------------------------------------------------------------------------------


def test_words_never_come_twice():
    source, other = SystemSource(), SystemSource()
    sizes = [1, 3, 1000, 1, 1023, 1025, 20_000, 5, 16_384, 16_385, 100_000, 1]
    words = np.concatenate([s.words64(n) for n in sizes for s in (source, other)])
    assert len(np.unique(words)) == 2 * sum(sizes)  # a chance of 2^-28 that two agree
    assert [len(source.words16(n)) for n in (0, 1, 7, 65_536, 300_000)] == [0, 1, 7, 65_536, 300_000]


def test_all_bits_of_the_words_are_fair():
    bits = np.unpackbits(SystemSource().words16(1 << 16).view(np.uint8)).reshape(-1, 16)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 8 * 0.5 / 256  # eight standard deviations


def test_two_draws_differ():
    source = system_source()
    assert type(source) is SystemSource
    assert source is system_source()
    a, b = (discrete_laplace(F(10**6), 100, source) for _ in range(2))
    assert (a != b).sum() > 90


def test_a_source_cannot_be_seeded_copied_or_pickled():
    with pytest.raises(TypeError):
        SystemSource(1)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="repeat its noise"):
            duplicate(SystemSource())


FORKS = """
import os, signal, sys
from dpsynth_cli.trusted.noise.words import system_source
source = system_source()

def words():
    return f"{source.words64(1)[0]} {source.words16(9000)[:4].view('u8')[0]} "

def child(children):
    read, write = os.pipe()
    if os.fork() == 0:
        signal.alarm(10)
        os.write(write, (child(children - 1) if children else "").encode() + words().encode())
        os._exit(0)
    os.close(write)
    os.wait()
    return os.read(read, 1000).decode()

source.words64(3)  # the rest of a block is in memory when the process forks
if sys.argv[1] == "locked":
    source._lock.acquire()  # as if another thread were drawing at that moment
family = child(1) + child(0)
if sys.argv[1] == "locked":
    source._lock.release()
print(family, words())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("lock", ["free", "locked"])
def test_forked_children_draw_other_words_than_their_parent_and_each_other(lock):
    run = subprocess.run([sys.executable, "-c", FORKS, lock], capture_output=True, text=True, check=True)
    words = run.stdout.split()
    assert len(words) == 8  # a child, its child, another child, the parent: two words each
    assert len(set(words)) == 8


def test_words_are_drawn_under_the_lock():
    source = SystemSource()
    stream, seen = source._stream, []

    class Watched:
        def update(self, data):
            seen.append(source._lock.locked())
            return stream.update(data)

    source._stream = Watched()
    for n in (1, 10_000, 100_000):
        source.words64(n)
    assert seen == [True, True, True]


# ---- an independent sampler ------------------------------------------------------------------------


class Reference:
    """The scalar samplers of Canonne, Kamath and Steinke (2020), Algorithms 1 to 3, in their letters."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def bernoulli(self, p):
        return self.rng.integers(p.denominator) < p.numerator

    def bernoulli_exp(self, gamma):
        while gamma > 1:
            if not self.bernoulli_exp(F(1)):
                return False
            gamma -= 1
        k = 1
        while self.bernoulli(gamma / k):
            k += 1
        return k % 2 == 1

    def laplace(self, scale):
        s, t = scale.denominator, scale.numerator
        while True:
            u = int(self.rng.integers(t))
            if not self.bernoulli_exp(F(u, t)):
                continue
            v = 0
            while self.bernoulli_exp(F(1)):
                v += 1
            y = (u + t * v) // s
            sign = self.bernoulli(F(1, 2))
            if not (sign and y == 0):
                return -y if sign else y

    def gaussian(self, sigma2):
        t = math.isqrt(math.floor(sigma2)) + 1
        while True:
            y = self.laplace(F(t))
            if self.bernoulli_exp((abs(y) - sigma2 / t) ** 2 / (2 * sigma2)):
                return y


@pytest.mark.slow
@pytest.mark.parametrize("parameter", [F(1, 3), F(7, 2), F(30)])
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_an_independent_sampler_draws_the_same_distribution(name, parameter):
    n = 30_000
    reference, ours = Reference(12), {"laplace": discrete_laplace, "gaussian": discrete_gaussian}[name]
    a = np.array([getattr(reference, name)(parameter) for _ in range(n)])

    def disagreement(b):
        edges = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0, 1, 41), method="nearest"))
        counts = [np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (a, b)]
        return (np.subtract(*counts) ** 2 / np.maximum(1, np.add(*counts))).sum() / chdtri(len(edges), 1e-6)

    assert disagreement(ours(parameter, n, SeededSource(13))) < 1
    assert disagreement(ours(parameter * F(5, 4), n, SeededSource(13))) > 1


def test_a_scale_that_leaves_no_noise_takes_no_time_either():
    source = SeededSource(1)
    assert not discrete_laplace(F(1, 10**12), 100_000, source).any()
    assert Coin.zero(F(10**100)).digits(80) == 2**80 - 1
    assert Coin.exp(F(10**100)).digits(80) == 0
    assert Coin.exp(F(0)).digits(16) == 2**16
