"""A column's codes on a scale that is fine where rows are: cells of equal height instead of equal width.

Declared bounds may be a thousand times wider than the values. A `Scale` keeps every code, but gives half of
its height to a focus, a range of codes that most rows are in, and the rest to what is outside, in ranges that
double in length with their distance from it. Without a focus heights are widths, as in `partition.py`. All in
integers, so that cells are the same on every machine, and cells of a level are pairs of the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.tails import quiet

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

HEIGHT = 2**24  # of the whole scale: as many halvings as anybody asks for


@dataclass(frozen=True)
class Scale:
    """The values 0 .. size-1, and `size` for missing where nullable; codes `knots` are at `heights`.

    `spike`: the few codes, from .. up to, that most rows have, where these are not the focus.
    """

    size: int
    nullable: bool
    knots: tuple[int, ...]
    heights: tuple[int, ...]
    spike: tuple[int, int] | None = None

    @classmethod
    def even(cls, size: int, nullable: bool) -> Scale:
        """Every code has the same height."""
        return cls(size, nullable, (0, size), (0, HEIGHT))

    @classmethod
    def focused(cls, size: int, nullable: bool, begin: int, end: int) -> Scale:
        """Half of the height for the codes from begin up to end, the rest for the sides that there are.

        >>> Scale.focused(100, False, 0, 8).edges(3)
        (0, 2, 4, 6, 8, 11, 20, 48, 100)
        """
        side = HEIGHT // (4 if begin > 0 and end < size else 2)
        nearest = (end - begin) // 8  # rows that are just outside are many
        below = _octaves(begin, nearest, side)
        above = _octaves(size - end, nearest, side)
        knots = [begin - far for far, _ in reversed(below)] + [begin, end] + [end + far for far, _ in above]
        low, high = side * bool(below), HEIGHT - side * bool(above)
        heights = [low - up for _, up in reversed(below)] + [low, high] + [high + up for _, up in above]
        return cls(size, nullable, tuple(knots), tuple(heights))

    @property
    def plain(self) -> bool:
        """Whether heights are widths."""
        return len(self.knots) == 2

    @property
    def focus(self) -> tuple[int, int]:
        """The codes from .. up to that have most of the height."""
        i = max(range(len(self.knots) - 1), key=lambda i: self.heights[i + 1] - self.heights[i])
        return self.knots[i], self.knots[i + 1]

    @property
    def loose(self) -> float:
        """How many times wider than the focus all codes are."""
        begin, end = self.focus
        return self.size / max(1, end - begin)

    @property
    def codes(self) -> int:
        """About how many cells it takes until every code in the focus is alone."""
        if self.plain:
            return self.size + self.nullable
        begin, end = self.focus
        tall = self.heights[self.knots.index(end)] - self.heights[self.knots.index(begin)]
        return -(-(end - begin) * HEIGHT // tall) + self.nullable

    @property
    def bits(self) -> int:
        """Halvings until every code in the focus is alone; one more for missing."""
        return (self.codes - self.nullable - 1).bit_length() + self.nullable

    def edges(self, bits: int) -> tuple[int, ...]:
        """The first code of each of 2^bits cells, and the end; of a nullable column the upper half of them is
        for missing, which is in the first of these.

        >>> Scale.even(3, True).edges(3)
        (0, 1, 2, 3, 3, 4, 4, 4, 4)
        """
        if self.nullable and not bits:
            return (0, self.size + 1)
        count = 1 << (bits - self.nullable)
        at = np.arange(count + 1, dtype=np.int64) * (HEIGHT // count)
        heights, knots = np.array(self.heights), np.array(self.knots)
        piece = np.minimum(np.searchsorted(heights, at, side="right") - 1, len(knots) - 2)
        up, rise = at - heights[piece], np.diff(heights)[piece]
        found = knots[piece] - (-up * np.diff(knots)[piece] // rise)
        edges: list[int] = found.tolist()
        return tuple(edges + [self.size + 1] * count if self.nullable else edges)

    def ranges(self, bits: int) -> tuple[Ints, Ints]:
        """The first code and the number of codes of each cell."""
        edges = np.array(self.edges(bits), np.int64)
        return edges[:-1], np.diff(edges)

    def tails(self, bits: int, counts: Floats, sd: float) -> NDArray[np.bool_]:
        """Which of the 2^bits cells are taken to be empty: on each side of the focus the outermost ones, as
        far as none of them, nor any together, stands above noise of this standard deviation in each.

        A few rows of noise a thousand times farther away than all others would move any mean.
        """
        first, width = self.ranges(bits)
        begin, end = self.focus
        empty = np.zeros(len(width), bool)
        if self.plain:
            return empty
        below = np.flatnonzero((first + width <= begin) & (width > 0))
        above = np.flatnonzero((first >= end) & (first < self.size) & (width > 0))[::-1]
        for side in (below, above):
            far = self.far(bits)[side][::-1]
            empty[side[: quiet(counts[side][::-1], sd, far)]] = True
        return empty

    def far(self, bits: int) -> Floats:
        """How far the outer end of each cell is from the focus, in widths of that; inside 0."""
        first, width = self.ranges(bits)
        begin, end = self.focus
        away = np.maximum(np.maximum(begin - first, first + width - end), 0)
        return np.asarray(away / max(1, end - begin))

    def draw(self, cells: NDArray[np.integer[Any]], bits: int, rng: np.random.Generator) -> Ints:
        """A code in each of these of the 2^bits cells."""
        first, width = self.ranges(bits)
        there = width > 0
        first, width, run, part = self.cut(first[there], width[there])
        reached = np.cumsum(part)  # each run has 1
        reached[np.flatnonzero(np.diff(run, append=-1))] = np.arange(1, run[-1] + 2)
        place = (np.cumsum(there) - 1).take(cells) + rng.random(len(cells))
        piece = np.searchsorted(reached, place, side="right")
        return np.asarray(first[piece] + (rng.random(len(cells)) * width[piece]).astype(np.int64))

    def cut(self, first: Ints, width: Ints) -> tuple[Ints, Ints, Ints, Floats]:
        """Runs of codes cut where the scale bends: first codes and widths of the pieces, the run each is in,
        and what part of its run's rows it has: in proportion to its height, and the less the lower a code is
        on the scale, so that rows which are known to be far outside, but not how far, have a mean.

        >>> scale = Scale.focused(70, False, 0, 10)
        >>> [part.tolist() for part in scale.cut(np.array([0, 10]), np.array([10, 60]))[:3]]
        [[0, 10, 11, 13, 17, 25, 41], [10, 1, 2, 4, 8, 16, 29], [0, 1, 1, 1, 1, 1, 1]]
        """
        pieces = np.union1d(first, self.knots[:-1])
        run = np.searchsorted(first, pieces, side="right") - 1
        ends = np.append(pieces[1:], first[-1] + width[-1])
        height = np.interp(np.minimum(ends, self.size), self.knots, self.heights) - np.interp(
            pieces, self.knots, self.heights
        )
        part = np.where(
            pieces >= self.size, 1.0, height * height * height / (ends - pieces) ** 2
        )  # missing has no height
        return pieces, ends - pieces, run, part / np.bincount(run, part)[run]

    def room(self, bits: int) -> Floats:
        """What part of the scale each cell is, up to a factor: its codes, or where a focus has changed that,
        the same for each that has any."""
        width = self.ranges(bits)[1]
        return np.asarray(width if self.plain else width > 0, np.float64)


def _octaves(length: int, first: int, height: int) -> list[tuple[int, int]]:
    """Knots beside a focus: how far, and how high. Each range is twice as long as the one before and as high,
    so that a long tail keeps its form; the last takes what is left.

    >>> _octaves(100, 10, 64)
    [(10, 16), (30, 32), (70, 48), (100, 64)]
    """
    ends, step = [0], max(1, first)
    while ends[-1] + step < length:
        ends.append(ends[-1] + step)
        step *= 2
    ends = [*ends[1:], length] if length > 0 else []
    return [(far, height * (i + 1) // len(ends)) for i, far in enumerate(ends)]
