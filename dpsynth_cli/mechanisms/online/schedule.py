"""When a stream is released, and which blocks of it are measured: public, functions of public numbers alone.

The clock counts events where arrivals are public, else pushes. Releases are numbered from 1, and epoch L is
the releases 2^L .. 2^(L+1) - 1. Inside an epoch the blocks of some sizes are measured, each when it ends; a
block never crosses an epoch's edge, so an event is in exactly one block of each size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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


# --- blocks ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """The events of releases first .. last."""

    first: int
    last: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


def epoch(release: int) -> int:
    """L, where the release is one of 2^L .. 2^(L+1) - 1."""
    return release.bit_length() - 1


def sizes(L: int) -> list[int]:
    """The sizes of the blocks that are measured in epoch L, rising.

    All of 1, 2, 4 .. 2^L would be the binary mechanism, with epsilon/(L+1) a tree. Fewer, larger shares
    are better: one size up to 15 releases, two up to 511, one more for every five doublings then. The
    noise of a snapshot has less than a third of the variance.

    >>> [sizes(L) for L in (0, 3, 4, 6, 8, 9)]
    [[1], [1], [1, 8], [1, 16], [1, 32], [1, 16, 128]]
    """
    h = 1 + (L + 1) // 5
    return [1 << (i * (L + 2) + h // 2) // h if i else 1 for i in range(h)]


def share(release: int) -> Fraction:
    """What each block of a release costs: the blocks of an event together cost the whole."""
    return Fraction(1, len(sizes(epoch(release))))


def ending(release: int) -> list[Block]:
    """The blocks that end with a release, smallest first."""
    L = epoch(release)
    return [Block(release - s + 1, release) for s in sizes(L) if (release - 2**L + 1) % s == 0]


def covering(release: int) -> list[Block]:
    """The fewest measured blocks that make up all releases until this one, in order.

    >>> [(block.first, block.last) for block in covering(25)][-3:]
    [(16, 23), (24, 24), (25, 25)]
    """
    blocks, first = [], 1
    while first <= release:
        L = epoch(first)
        fits = [s for s in sizes(L) if (first - 2**L) % s == 0 and first + s - 1 <= release]
        blocks.append(Block(first, first + fits[-1] - 1))
        first += fits[-1]
    return blocks


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
