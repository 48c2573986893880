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

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

HEIGHT = 2**24  # of the whole scale: as many halvings as anybody asks for


@dataclass(frozen=True)
class Scale:
    """The values 0 .. size-1, and `size` for missing where nullable; codes `knots` are at `heights`."""

    size: int
    nullable: bool
    knots: tuple[int, ...]
    heights: tuple[int, ...]

    @classmethod
    def even(cls, size: int, nullable: bool) -> Scale:
        """Every code has the same height."""
        return cls(size, nullable, (0, size), (0, HEIGHT))

    @classmethod
    def focused(cls, size: int, nullable: bool, begin: int, end: int) -> Scale:
        """Half of the height for the codes from begin up to end, a quarter for each side, if there is one.

        >>> Scale.focused(100, False, 0, 10).edges(3)
        (0, 2, 4, 5, 7, 9, 10, 20, 100)
        """
        quarter, nearest = HEIGHT // 4, (end - begin) // 8  # rows that are just outside are many
        below = _octaves(begin, nearest, quarter)
        above = _octaves(size - end, nearest, quarter)
        knots = [begin - far for far, _ in reversed(below)] + [begin, end] + [end + far for far, _ in above]
        low, high = quarter * bool(below), HEIGHT - quarter * bool(above)
        heights = [low - up for _, up in reversed(below)] + [low, high] + [high + up for _, up in above]
        return cls(size, nullable, tuple(knots), tuple(heights))

    @property
    def plain(self) -> bool:
        """Whether heights are widths."""
        return len(self.knots) == 2

    @property
    def codes(self) -> int:
        """About how many cells it takes until every code in the focus is alone."""
        if self.plain:
            return self.size + self.nullable
        steep = max(range(len(self.knots) - 1), key=lambda i: self.heights[i + 1] - self.heights[i])
        width = self.knots[steep + 1] - self.knots[steep]
        return -(-width * HEIGHT // (self.heights[steep + 1] - self.heights[steep])) + self.nullable

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

    def draw(self, cells: NDArray[np.integer[Any]], bits: int, rng: np.random.Generator) -> Ints:
        """A code in each of these of the 2^bits cells, even on the scale."""
        first, width = self.ranges(bits)
        tall = HEIGHT >> (bits - self.nullable) if bits else HEIGHT
        up = cells.astype(np.int64) * tall + rng.integers(0, tall, len(cells))
        piece = np.minimum(np.searchsorted(self.heights, up, side="right"), len(self.knots) - 1) - 1
        knots, heights = np.array(self.knots), np.array(self.heights)
        codes = knots[piece] + (up - heights[piece]) * np.diff(knots)[piece] // np.diff(heights)[piece]
        lowest = first.take(cells)
        return np.asarray(np.clip(codes, lowest, lowest + np.maximum(width.take(cells), 1) - 1))

    def cut(self, first: Ints, width: Ints) -> tuple[Ints, Ints, Ints, Floats]:
        """Runs of codes cut where the scale bends: first codes and widths of the pieces, the run each is in,
        and what part of its run's height it has.

        >>> scale = Scale.focused(70, False, 0, 10)
        >>> [part.tolist() for part in scale.cut(np.array([0, 10]), np.array([10, 60]))]
        [[0, 10, 20, 40], [10, 10, 20, 30], [0, 1, 1, 1], [1.0, 0.5, 0.25, 0.25]]
        """
        pieces = np.union1d(first, self.knots[:-1])
        run = np.searchsorted(first, pieces, side="right") - 1
        ends = np.append(pieces[1:], first[-1] + width[-1])
        height = np.interp(np.minimum(ends, self.size), self.knots, self.heights) - np.interp(
            pieces, self.knots, self.heights
        )
        height = np.where(pieces >= self.size, 1.0, height)  # missing
        return pieces, ends - pieces, run, height / np.bincount(run, height)[run]

    def room(self, bits: int) -> Floats:
        """What part of the scale each cell is, up to a factor: its codes, or where a focus has changed that,
        the same for each that has any."""
        width = self.ranges(bits)[1]
        return np.asarray(width if self.plain else width > 0, np.float64)


def _octaves(length: int, first: int, height: int) -> list[tuple[int, int]]:
    """Knots beside a focus: how far, and how high. Each range is twice as long as the one before and half as
    high, and the last takes what is left.

    >>> _octaves(100, 10, 64)
    [(10, 32), (30, 48), (70, 56), (100, 64)]
    """
    found: list[tuple[int, int]] = []
    far, up, step = 0, 0, max(1, first)
    while far + step < length and height - up > 2:
        far, up, step = far + step, up + (height - up) // 2, 2 * step
        found.append((far, up))
    return [*found, (length, height)] if length > 0 else []
