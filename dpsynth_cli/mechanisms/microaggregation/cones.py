"""Balls and second-order cones: the norm of a few columns is at most a number, or at most another column.

    norm(x - 3, 2 y) <= 5        norm(east, north) <= 2 range + 1

The nearest point of one is found by bisection of its multiplier (Karush, Kuhn and Tucker), for many points
at once. Sums are taken column by column, as in `polytope.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Cone:
    """|scale (x - middle)| <= slope x + offset; scale and slope are never both other than 0 in a column, and
    slope is so in one at most."""

    scale: Floats
    middle: Floats
    slope: Floats
    offset: float

    @property
    def concerned(self) -> NDArray[np.bool_]:
        """The columns that it is about."""
        return np.asarray((self.scale != 0) | (self.slope != 0))

    def of(self, there: NDArray[np.bool_]) -> Cone:
        """The same in the coordinates of some columns."""
        return replace(self, scale=self.scale[there], middle=self.middle[there], slope=self.slope[there])

    def tightened(self, step: Floats) -> Cone:
        """With room for values that are off by half a step."""
        margin = float((self.scale + np.abs(self.slope)) @ step) * 0.51 + 1e-9
        return replace(self, offset=self.offset - margin)

    def excess(self, x: Floats) -> Floats:
        """By how much each row breaks it; at most 0 where it does not. Convex."""
        return np.asarray(self._size(x) - self._limit(x), dtype=np.float64)

    def cut(self, x: Floats) -> tuple[Floats, float]:
        """A half-space a x <= b that the cone is inside of, and that touches it where it is seen from x."""
        size = max(float(self._size(x[None])[0]), 1e-300)
        a = self.scale**2 * (x - self.middle) / size
        return a - self.slope, float(a @ self.middle) + self.offset

    def nearest(self, p: Floats) -> Floats:
        """The nearest points of the cone."""
        x: Floats = p.copy()
        out = np.flatnonzero(self.excess(p) > 0)
        if len(out):
            x[out] = self._projected(p[out])
        return x

    def _size(self, x: Floats) -> Floats:
        total = np.zeros(len(x))
        for column, scale, middle in zip(x.T, self.scale, self.middle, strict=True):
            total += (scale * (column - middle)) ** 2
        return np.asarray(np.sqrt(total))

    def _limit(self, x: Floats) -> Floats:
        total = np.full(len(x), self.offset)
        for column, slope in zip(x.T, self.slope, strict=True):
            total += slope * column
        return total

    def _projected(self, p: Floats) -> Floats:
        """With the limit z: of the multiplier m, x - middle is (p - middle) / (1 + m scale^2) and z is
        z0 / (1 - m slope^2); of n = 1 / m the same, where z0 is not positive."""
        far = np.where(self.scale != 0, p - self.middle, 0.0)
        square, other = self.scale**2, float((self.slope**2).sum())
        z0 = self._limit(p)
        positive = z0 > 0
        # How large the multiplier can be: where there is no slope, until the ellipsoid is reached.
        spread = np.where(square > 0, far / np.where(square > 0, self.scale, 1.0), 0.0)
        length = np.zeros(len(p))
        for column in spread.T:
            length += column**2
        longest = np.sqrt(length) / np.maximum(z0, 1e-300)
        high = np.where(positive, 1 / other if other else longest, other)
        low = np.zeros(len(p))
        for _ in range(HALVINGS):
            between = (low + high) / 2
            size = np.zeros(len(p))
            for column, own in zip(far.T, square.tolist(), strict=True):
                if own:
                    size += own * (column / np.where(positive, 1 + between * own, between + own)) ** 2
            left = np.where(positive, 1 - between * other, other - between)
            too_large = size * left**2 > z0**2
            low, high = np.where(too_large, between, low), np.where(too_large, high, between)
        m = high[:, None]
        shrink = np.where(
            positive[:, None], 1 / (1 + m * square), m / (m + np.where(square > 0, square, 1.0))
        )
        # The tip is nearest to what lies below it (the polar cone).
        tip = ~positive & (length * other**2 <= z0**2)
        shrink = np.where(tip[:, None], 0.0, shrink)
        x = np.where(self.scale != 0, self.middle + shrink * far, p)
        if other:
            slope = np.where(self.slope != 0, self.slope, 1.0)
            x = np.where(self.slope != 0, (self._size(x)[:, None] - self.offset) / slope, x)
        return np.asarray(x)
