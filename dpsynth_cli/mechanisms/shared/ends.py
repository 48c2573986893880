"""The two ends of a number's marginal: cells where its rows do not stand above noise, and what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.numeric.tails import beyond, quiet
from dpsynth_cli.questions import Floats

FINER = 3  # halvings of a counted cell in which a tail has its form
MOST = 0.5  # of a class that may be in its tails


@dataclass(frozen=True, eq=False)
class Ends:
    """Of the 2^bits counted cells of values, the ones that stand are `low` up to `high`."""

    scale: Scale
    bits: int
    counts: Floats  # of all classes, missing left out
    sd: float
    low: int
    high: int

    @classmethod
    def of(cls, scale: Scale, bits: int, counts: Floats, sd: float) -> Ends:
        """By counts of all 2^bits cells; where nothing stands, every cell may have rows."""
        counts = np.where(scale.ranges(bits)[1] > 0, counts, 0.0)[: len(counts) >> scale.nullable]
        far = scale.far(bits)[: len(counts)]
        low, high = quiet(counts[::-1], sd, far[::-1]), len(counts) - quiet(counts, sd, far)
        return cls(scale, bits, counts, sd, *((low, high) if low < high else (0, len(counts))))

    @property
    def codes(self) -> tuple[int, int]:
        """The codes of the cells that stand, from .. up to."""
        edges = self.scale.edges(self.bits)
        return edges[self.low], edges[self.high]

    def outside(self, bits: int) -> NDArray[np.bool_]:
        """Which of the 2^bits cells are beyond those that stand."""
        cell = np.arange(1 << bits) >> (bits - self.bits)
        return np.asarray((cell < self.low) | ((cell >= self.high) & (cell < len(self.counts))))

    def filled(self, masses: Sequence[Floats], bits: int) -> list[Floats]:
        """The masses by class of 2^bits cells, with those outside by a law of tails: each class has a part of
        them, as of the last cells that stand. Sums stay."""
        values = len(self.counts) << (bits - self.bits)
        parts = np.array([mass[:values] for mass in masses])
        counted = parts.reshape(len(parts), len(self.counts), -1).sum(axis=2)
        added = np.zeros_like(parts)
        for way, last in ((1, self.high), (-1, len(self.counts) - self.low)):
            if last < len(self.counts):
                there = counted[:, ::way][:, last - 1]
                share = there / max(float(there.sum()), 1e-9)
                added += share[:, None] * self._beyond(counted.sum(axis=0), bits, way, last)
        before, more = parts.sum(axis=1, keepdims=True), added.sum(axis=1, keepdims=True)
        added *= np.minimum(1.0, MOST * before / np.maximum(more, 1e-9))
        parts *= 1 - added.sum(axis=1, keepdims=True) / np.maximum(before, 1e-9)
        return [np.append(own, mass[values:]) for own, mass in zip(parts + added, masses, strict=True)]

    def _beyond(self, masses: Floats, bits: int, way: int, last: int) -> Floats:
        """Rows of all classes in each of the 2^bits cells (missing left out), beyond the `last` counted ones
        on the way up, 1, or down, -1."""
        finer = min(bits, self.bits + FINER)
        edges, fine = (
            np.array(self.scale.edges(own), np.float64)[: (len(self.counts) << (own - self.bits)) + 1][::way]
            for own in (self.bits, finer)
        )
        away = way * fine[last << (finer - self.bits) :]
        rows = beyond(way * edges, self.counts[::way], masses[::way], self.sd, last, away)
        rows = np.append(np.zeros(len(fine) - 1 - len(rows)), rows)[::way]
        width = self.scale.ranges(bits)[1][: len(self.counts) << (bits - self.bits)]
        there = (width > 0).reshape(len(rows), -1)
        return np.asarray((there * (rows / np.maximum(there.sum(axis=1), 1))[:, None]).ravel())
