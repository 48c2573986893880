"""Which sums of a stream are measured: the rows of a lower-triangular matrix C of whole numbers, for ever.

Releases are numbered from 1; x_i are the counts of what arrived for release i. A release publishes noisy rows
of C x; everything so far, x_1 + .. + x_k, follows from them by forward substitution (`numeric/running.py`),
which is post-processing. All of this is public: functions of the number of the release alone.

Phases. Releases 1 .. 128 are the first phase, the next 128^2 the second, then 128^4 and so on. A row of C has
entries of its own phase only, and what is known at the end of a phase is carried on. Where it is known
beforehand that there will be no more than so many releases, they are one phase, and there is no other.

`SquareRoot`, for Gaussian noise: C_ki is about c(k-i), the coefficients of (1-z)^(-1/2), whose square counts
(Fichtenberger, Henzinger and Upadhyay, ICML 2023); older releases go together in blocks, so that there are
some 2 log2(k) of them (as in Andersson and Pagh, "Streaming private continual counting via binning", 2024).

`Branches`, for Laplace noise: the sum of the last b^i releases whenever so many have passed.

Claim. Over the whole life of a stream no entry of C is negative, and the squares (`SquareRoot`) or the
entries (`Branches`) of any column add up to at most `norm(length)`, length being that of the column's
phase.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

FIRST = 128  # releases of the first phase: at 8 a doubling, until the clock is 2^16
UNIT = 1 << 16
KEPT = 4


@dataclass(frozen=True)
class Phase:
    """The releases before + 1 .. before + length."""

    before: int
    length: int


class TooManyReleases(ValueError):
    """A release beyond the last one that a stream may have."""


def phase_of(release: int, most: int | None = None) -> Phase:
    """`most` is how many releases there may be; None where nobody knows.

    >>> phase_of(128), phase_of(129), phase_of(129, 500)
    (Phase(before=0, length=128), Phase(before=128, length=16384), Phase(before=0, length=500))
    """
    if most is not None:
        if release > most:
            raise TooManyReleases(f"release {release} of a stream that has at most {most}")
        return Phase(0, most)
    before, length = 0, FIRST
    while release > before + length:
        before, length = before + length, length**2
    return Phase(before, length)


class Factorisation(Protocol):
    """Rows of C inside a phase. Steps count from 1; a block begins after step `start`, and ends at the
    next."""

    @property
    def most(self) -> int | None:
        """How many releases the stream may have, if that is known."""
        ...

    @property
    def unit(self) -> int:
        """The entry of the newest block."""
        ...

    def norm(self, length: int) -> int: ...

    def keeps(self, start: int, step: int, length: int) -> bool:
        """Whether at `step` a block still begins at `start`: once not, never again."""
        ...

    def rows(self, starts: Sequence[int], step: int, length: int) -> list[list[int]]:
        """What is measured at `step`: for each row an entry for each block, in order."""
        ...

    def forgets(self, step: int, length: int) -> int:
        """After `step` no row has entries for blocks that begin before this."""
        ...


@dataclass(frozen=True)
class SquareRoot:
    """c(0) = 2^16, c(m) = floor(2^16 / sqrt(pi (m + 1/4))).

    Proof of the claim. c falls, and the entry of a block is c at the age of its oldest release: so
    C_ki <= c(k-i), and a column's squares add up to at most c(0)^2 + .. + c(length - 1)^2. `norm` adds up
    no less: where it takes several ages together, it takes each as the first of them.
    """

    most: int | None = None
    unit: ClassVar[int] = UNIT

    def weight(self, age: int) -> int:
        # 355/113 is a little above pi.
        return math.isqrt(452 * UNIT**2 // (355 * (4 * age + 1))) if age else UNIT

    def norm(self, length: int) -> int:
        total, age = 0, 0
        while age < length:
            together = min(max(1, age >> 6), length - age)
            total, age = total + together * self.weight(age) ** 2, age + together
        return total

    def keeps(self, start: int, step: int, length: int) -> bool:
        return step - start <= KEPT * (start & -start)

    def rows(self, starts: Sequence[int], step: int, length: int) -> list[list[int]]:
        return [[self.weight(step - 1 - start) if start >= 0 else 0 for start in starts]]

    def forgets(self, step: int, length: int) -> int:
        return 0


@dataclass(frozen=True)
class Branches:
    """A tree with b branches and h levels, b^h >= length.

    Proof of the claim. A row of size b^i, measured at a multiple of b^i, is over the b^i steps until then:
    each step is in at most one row of each of the h sizes, with entry 1.
    """

    most: int | None = None
    unit: ClassVar[int] = 1

    def shape(self, length: int) -> tuple[int, int]:
        """b and h, for the least noise of a sum of all: about h^2 for each of h b / 2 rows.

        >>> [Branches().shape(n) for n in (128, 128**2, 128**4)]
        [(12, 2), (26, 3), (16, 7)]
        """

        def branches(levels: int) -> int:
            b = max(2, int(length ** (1 / levels)))
            while b**levels < length:
                b += 1
            return b

        h = min(range(1, 20), key=lambda levels: levels**3 * branches(levels))
        return branches(h), h

    def norm(self, length: int) -> int:
        return self.shape(length)[1]

    def keeps(self, start: int, step: int, length: int) -> bool:
        b, h = self.shape(length)
        return any(start == (step - 1) // b**i * b**i for i in range(1, h))

    def rows(self, starts: Sequence[int], step: int, length: int) -> list[list[int]]:
        b, h = self.shape(length)
        sizes = [b**i for i in range(h) if step % b**i == 0]
        return [[int(start >= step - size) for start in starts] for size in sizes]

    def forgets(self, step: int, length: int) -> int:
        b, h = self.shape(length)
        top = int(b ** (h - 1))
        return step // top * top


def factorisation(currency: str, most: int | None = None) -> Factorisation:
    """For the noise that a budget's currency buys, and so many releases."""
    return SquareRoot(most) if currency == "rho" else Branches(most)


def next_starts(method: Factorisation, starts: Sequence[int], release: int) -> list[int]:
    """The blocks of a release, by the number of releases before each; the newest is the release's own.

    Those of former phases are one block, with entry 0.
    """
    phase = phase_of(release, method.most)
    step = release - phase.before

    def kept(start: int) -> bool:
        if start in (0, phase.before):
            return True
        return start > phase.before and method.keeps(start - phase.before, step, phase.length)

    return [start for start in starts if kept(start)] + [release - 1]


def rows_of(method: Factorisation, starts: Sequence[int], release: int) -> list[list[int]]:
    """The rows of C that a release measures, as entries of its blocks."""
    phase = phase_of(release, method.most)
    inside = [start - phase.before for start in starts]
    rows = method.rows(inside, release - phase.before, phase.length)
    return [[entry if start >= 0 else 0 for entry, start in zip(row, inside, strict=True)] for row in rows]


def needed_from(method: Factorisation, release: int) -> int:
    """Raw counts of blocks that begin before this are never measured again."""
    phase = phase_of(release, method.most)
    if release == phase.before + phase.length:
        return release
    return phase.before + method.forgets(release - phase.before, phase.length)
