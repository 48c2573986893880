"""Every path of a sampler through its coins, with its exact probability.

The sampler's own code runs once for each path. Its random words come from a source that decides nothing by
itself: where the sampler compares a word with a number, or flips a coin, both outcomes are followed in
turn. A path that would go on for ever is cut where a proposal is rejected, since what comes then is the
same again, and what is cut is counted: the probabilities of all paths and of all cuts add up to 1. A
geometric variable whose highest part is not 0 is taken for the least of these: all beyond is one value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np

from dpsynth_cli.trusted.noise import coins, rounded, samplers
from dpsynth_cli.trusted.noise.coins import FIRST, Coin
from tests.enumeration.bases import Chance, Enclosed, Rational, coin_chance

WHOLE = Fraction(1)
WORDS = 1 << FIRST
CUT = "cut"  # the value of a path that was not followed to its end


class Cut(Exception):
    """This path goes on for ever."""


class Path:
    """One path: the choices that are given, and then the first of every further one. It is the source of
    words."""

    def __init__(self, given: Sequence[int], base: Enclosed | Rational) -> None:
        self.given, self.base = given, base
        self.taken: list[int] = []
        self.options: list[list[Chance]] = []
        self.seen: Any = None  # what a test wants to know of the way

    def choose(self, chances: list[Chance]) -> int:
        """The number of one of these outcomes; those without any chance are none."""
        possible = [i for i, (_, high) in enumerate(chances) if high > 0]
        if len(possible) == 1:
            return possible[0]
        at = len(self.taken)
        choice = self.given[at] if at < len(self.given) else 0
        self.taken.append(choice)
        self.options.append([chances[i] for i in possible])
        return possible[choice]

    def happens(self, chance: Chance) -> bool:
        low, high = chance
        return self.choose([chance, (1 - high, 1 - low)]) == 0

    @property
    def chance(self) -> Chance:
        low = high = WHOLE
        for choice, options in zip(self.taken, self.options, strict=True):
            low, high = low * options[choice][0], high * options[choice][1]
        return low, high

    def words16(self, n: int) -> LazyWords:
        return LazyWords(self, n)

    def words64(self, n: int) -> LazyWords:
        return LazyWords(self, n)


class LazyWords:
    """Uniform words that are known no better than what was asked about them."""

    def __init__(self, path: Path, n: int) -> None:
        self.path, self.known, self.least = path, [None] * n, [0] * n

    def __and__(self, mask: Any) -> np.ndarray:
        """The lowest bits: every value alike."""
        values = int(mask) + 1
        assert values & values - 1 == 0
        alike = [(Fraction(1, values),) * 2] * values
        return np.array([self.path.choose(alike) for _ in self.known], dtype=type(mask))

    def __lt__(self, bounds: Any) -> np.ndarray:
        below = []
        for i, bound in enumerate(np.broadcast_to(bounds, len(self.known)).tolist()):
            assert self.least[i] == 0
            chance = Fraction(bound, WORDS)
            below.append(self.path.happens((chance, chance)))
            self.least[i] = WORDS if below[-1] else bound
        return np.array(below, np.bool_)

    def __eq__(self, values: Any) -> np.ndarray:  # type: ignore[override]
        same = []
        for i, value in enumerate(np.broadcast_to(values, len(self.known)).tolist()):
            if self.least[i] == WORDS:  # it was below the number that it is compared with
                same.append(False)
                continue
            chance = Fraction(1, WORDS - self.least[i])
            same.append(self.path.happens((chance, chance)))
            if same[-1]:
                self.known[i] = value
        return np.array(same, np.bool_)

    def __getitem__(self, i: int) -> int:
        assert self.known[i] is not None
        return self.known[i]


class LazyUniform:
    """Integers below their bounds, each alike: what `_uniform` gives. Beyond `LARGEST` no more is told."""

    LARGEST = 5

    def __init__(self, path: Path, bounds: np.ndarray) -> None:
        self.path, self.bounds = path, [int(bound) for bound in bounds]
        if self.bounds[0] > self.LARGEST + 1:
            raise Cut

    def __le__(self, most: Any) -> np.ndarray:
        for bound in self.bounds:
            if not self.path.happens((min(Fraction(int(most) + 1, bound), WHOLE),) * 2):
                raise Cut
        return np.ones(len(self.bounds), np.bool_)

    def astype(self, kind: Any) -> np.ndarray:
        self.path.seen = self.bounds
        return np.array([self.path.choose([(Fraction(1, b),) * 2] * b) for b in self.bounds], kind)


# --- coins that are decided by a path -----------------------------------------------------------------


def chance_of(coin: Coin, path: Path) -> Chance:
    kind, x = coin.made_of  # type: ignore[attr-defined]
    return coin_chance(kind, x, path.base)


def flips(coin: Coin, n: int, path: Path) -> np.ndarray:
    return np.array([path.happens(chance_of(coin, path)) for _ in range(n)], np.bool_)


def flip(coin: Coin, path: Path) -> bool:
    return path.happens(chance_of(coin, path))


def settle(coin: Coin, drawn: int, path: Path) -> bool:
    """A coin of which the first word is known."""
    low, high = chance_of(coin, path)
    first = coin.digits(FIRST)
    if drawn != first:
        return drawn < first
    return path.happens((max(low * WORDS - first, Fraction(0)), min(high * WORDS - first, WHOLE)))


def _made_of(kind: str) -> classmethod:
    original = getattr(Coin, kind).__func__

    def made(cls: type[Coin], x: Fraction) -> Coin:
        coin = original(cls, x)
        coin.made_of = kind, Fraction(x)
        return coin

    return classmethod(made)


def _accepted(plan: Any, y: np.ndarray, path: Path, original: Callable = samplers._accepted) -> np.ndarray:
    kept = original(plan, y, path)
    if not kept.all():
        raise Cut
    return kept


def _high_part(low: int, laplace: Any, path: Path) -> int:
    return 1 << len(laplace.low)


@contextmanager
def driven(base: Enclosed | Rational, bits: int = rounded.BITS) -> Iterator[None]:
    """Samplers whose coins a `Path` decides; one proposal at a time, and Gaussian noise on a grid of step
    2^-bits."""
    caches = (samplers._laplace_coins, samplers._gaussian_plan)
    with ExitStack() as stack:
        change = lambda owner, name, new: stack.enter_context(patch.object(owner, name, new))  # noqa: E731
        for kind in ("exp", "digit", "zero"):
            change(Coin, kind, _made_of(kind))
        change(Coin, "flips", flips)
        change(Coin, "flip", flip)
        change(Coin, "settle", settle)
        change(samplers, "CHUNK", 1)
        change(samplers, "_accepted", _accepted)
        change(samplers, "_with_high_part", _high_part)
        change(samplers, "_uniform", lambda bounds, path: LazyUniform(path, bounds))
        change(rounded, "BITS", bits)
        if isinstance(base, Rational):
            change(coins, "exp_minus", base.digits)
            change(samplers, "exp_minus", base.digits)
        for cache in caches:
            cache.cache_clear()
        try:
            yield
        finally:
            for cache in caches:
                cache.cache_clear()


def distribution(
    sample: Callable[[Path], Any], base: Enclosed | Rational, most: int = 200_000
) -> dict[Any, Chance]:
    """The probability of every value that paths end with; of `CUT`, all that was cut."""
    found: dict[Any, Chance] = defaultdict(lambda: (Fraction(0), Fraction(0)))
    given: list[int] = []
    for _ in range(most):
        path = Path(given, base)
        try:
            value = sample(path)
        except Cut:
            value = CUT
        (low, high), (a, b) = found[value], path.chance
        found[value] = low + a, high + b
        taken = path.taken
        while taken and taken[-1] == len(path.options[len(taken) - 1]) - 1:
            taken.pop()
        if not taken:
            return dict(found)
        given = [*taken[:-1], taken[-1] + 1]
    raise AssertionError("too many paths")
