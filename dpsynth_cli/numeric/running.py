"""Sums of a stream from noisy rows of C x, by forward substitution, block by block; one level of a tree.

A row is y = sum over blocks of entry_b X_b + noise, and only its newest block was not known before:
X_new = (y - sum of the others) / entry_new. The covariance of the blocks' errors is public and the same for
every cell; it follows the rows as they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(eq=False)
class Running:
    """Estimates of the blocks, [block, cell], and the covariance of their errors, [block, block]."""

    blocks: Ints
    errors: Floats

    @property
    def total(self) -> Ints:
        return np.asarray(self.blocks.sum(axis=0))

    @property
    def variance(self) -> float:
        """Of one cell's total."""
        return max(0.0, float(self.errors.sum()))

    def merged(self, groups: Sequence[int]) -> Running:
        """Block i becomes part of block groups[i]; groups rise from 0, one by one."""
        count = groups[-1] + 1 if groups else 0
        member = np.zeros((count, len(groups)))
        member[list(groups), range(len(groups))] = 1.0
        firsts = [groups.index(g) for g in range(count)]
        blocks = np.add.reduceat(self.blocks, firsts, axis=0) if firsts else self.blocks
        return Running(blocks, member @ self.errors @ member.T)

    def opened(self) -> Running:
        """With a new block of which nothing is known yet."""
        return Running(
            np.vstack([self.blocks, np.zeros((1, self.blocks.shape[1]), np.int64)]),
            np.pad(self.errors, (0, 1)),
        )

    def take(self, row: Sequence[int], noisy: Ints, variance: float) -> None:
        """Learn the newest block from a row; noise of `variance` is in it."""
        entries, unit = np.array(row[:-1], np.int64), row[-1]
        rest = noisy - entries @ self.blocks[:-1]
        self.blocks[-1] = (2 * rest + unit) // (2 * unit)  # to the nearest: 1/12 more of variance
        old = self.errors[:-1, :-1]
        across = -(old @ entries) / unit
        self.errors[-1, :-1] = self.errors[:-1, -1] = across
        self.errors[-1, -1] = (variance + float(entries @ old @ entries)) / unit**2 + (unit > 1) / 12

    def coarser(self, times: int) -> Running:
        """Cells of a level that is so many halvings above."""
        cells = 1 << times
        blocks = self.blocks.reshape(len(self.blocks), -1, cells).sum(axis=2)
        return Running(blocks, self.errors * cells)

    def finer(self, guide: Floats, doubt: float, room: Floats) -> Running:
        """Cells of a level below, as many as `guide` has, which says how rows lie there, with an error of
        `doubt`: where it says little they lie as the room does.
        """
        cells = len(guide) // self.blocks.shape[1]
        return Running(divided(self.blocks, guide, doubt, room), self.errors / cells)

    def follow(self, above: Running, room: Floats) -> None:
        """The newest block, known only as a level above knows it, lies as the others do."""
        others = self.blocks[:-1].sum(axis=0).astype(np.float64)
        doubt = max(0.0, float(self.errors[:-1, :-1].sum())) ** 0.5
        self.blocks[-1] = divided(above.blocks[-1:], others, doubt, room)[0]
        cells = len(others) // above.blocks.shape[1]
        self.errors[-1], self.errors[:, -1] = above.errors[-1] / cells, above.errors[:, -1] / cells


def divided(blocks: Ints, guide: Floats, doubt: float, room: Floats) -> Ints:
    """Each cell of each block divided into whole numbers, as many cells as `guide` has, that add up to it."""
    cells = len(guide) // blocks.shape[1]
    shape = (-1, cells)
    known = np.maximum(guide, 0.0).reshape(shape)
    even = room.reshape(shape)
    even = even / np.maximum(even.sum(axis=1, keepdims=True), 1e-300)
    known[even == 0] = 0.0
    weight = 2 * doubt * np.sqrt(cells) + 1e-9
    part = (known + weight * even) / (known.sum(axis=1, keepdims=True) + weight)
    ends = np.cumsum(part, axis=1)
    ends[:, -1] = 1.0
    up_to = np.rint(blocks[:, :, None] * ends[None])
    parts = np.diff(up_to, axis=2, prepend=0.0).astype(np.int64)
    return np.asarray(parts.reshape(len(blocks), -1))


def nothing(cells: int) -> Running:
    """Before the first release."""
    return Running(np.zeros((0, cells), np.int64), np.zeros((0, 0)))
