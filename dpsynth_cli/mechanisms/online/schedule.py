"""When a stream is released: public, a function of public numbers alone.

The clock counts events where arrivals are public, else pushes.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpsynth_cli.shares import divide


def due(clock: int, per_doubling: int) -> int:
    """How many releases are due by now: floor(R log2(clock)) + 1, exactly.

    >>> [due(t, 2) for t in (0, 1, 2, 3, 4, 8)]
    [0, 1, 3, 4, 5, 7]
    """
    if clock <= 0:
        return 0
    past = per_doubling * math.log2(clock)
    if abs(past - round(past)) > 1e-6:  # the error of floats is below 1e-8
        return math.floor(past) + 1
    return int(clock**per_doubling).bit_length()


def most_releases(clock: int | None, per_doubling: int) -> int | None:
    """How many releases there can be until then, one at each time of the clock at most; None without an end.

    From R / ln 2 on, less than one is due at each time.

    >>> [most_releases(t, 2) for t in (1, 2, 3, 4, 8)], most_releases(100, 8), most_releases(2**20, 8)
    ([1, 2, 3, 4, 6], 37, 144)
    """
    if clock is None:
        return None
    first = min(clock, math.ceil(per_doubling / math.log(2)) + 1)
    dense = len({due(t, per_doubling) for t in range(1, first + 1)})
    return dense + due(clock, per_doubling) - due(first, per_doubling)


# --- sparse counting: time levels, and the shares of the partition's levels ----------------------------


def time_level(clock: int, epsilon: Fraction) -> int:
    """r, where 2^r <= epsilon t < 2^(r+1); 0 before.

    >>> [time_level(t, Fraction(1, 2)) for t in (1, 4, 15, 16)]
    [0, 1, 2, 3]
    """
    return max(0, int(epsilon * clock).bit_length() - 1)


def shares(r: int, d: int, depth: int, root: bool) -> dict[int, Fraction]:
    """epsilon_{j,r} as parts of the whole, for the levels j of the partition that exist at time level r.

    d >= 2: eq. (5.3), proportional to 2^((j-r)(1-1/d)/2), normalised over the levels that are there (the
    events of time level r are counted in these only). d = 1: eq. (5.12), proportional to 1/(j+1)^2,
    normalised over all levels that will ever be (docs/privacy.md, E18: as printed only 0.392 of epsilon is
    spent). The root, level 0, is counted only where arrivals are private.
    """
    first = 0 if root else 1
    there = range(first, min(r, depth) + 1)
    if not there:
        return {}
    if d == 1:
        every = range(first, depth + 1)
        parts = divide(Fraction(1), [1 / (j + 1) ** 2 for j in every])
        return {j: part for j, part in zip(every, parts, strict=True) if j in there}
    parts = divide(Fraction(1), [2 ** ((j - r) * (1 - 1 / d) / 2) for j in there])
    return dict(zip(there, parts, strict=True))


def checks(r: int, epsilon: Fraction, per_doubling: int) -> int:
    """T, the most release times that time level r can have.

    While t doubles, floor(R log2 t) takes R + 1 values at most; level 0 is everything until epsilon t = 2.
    """
    return per_doubling + 1 if r else max(2, due(math.ceil(2 / epsilon), per_doubling))
