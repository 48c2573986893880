"""Whole rows from a measure: counts that add up, in blocks, in random order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

BLOCK = 2**18  # rows a block, about


def whole(measure: Floats, rows: int, rng: np.random.Generator) -> Ints:
    """Non-negative whole numbers in proportion to `measure` that add up to exactly `rows`.

    Systematic rounding: the sum over any run of neighbours, so of every node of a tree, is less than 1
    away from its due. Where the measure is 0, so is the number; one that is 0 everywhere counts as even.

    >>> whole(np.array([0.5, 0.0, 0.5, 3.0]), 8, np.random.default_rng(0)).tolist()
    [1, 0, 1, 6]
    """
    sums = np.cumsum(measure if measure.any() else np.ones(len(measure)))
    due = sums * (rows / sums[-1])
    due[sums == sums[-1]] = rows  # exactly, whatever the rounding; and nothing after the last positive one
    return np.asarray(np.diff(np.floor(due + rng.random()).astype(np.int64), prepend=0))


def portions(counts: Ints, rng: np.random.Generator, block: int = BLOCK) -> Iterator[Ints]:
    """Counts in parts of about `block` rows that add up to `counts`; each count evenly over the parts."""
    parts = max(1, -(-int(counts.sum()) // block))
    phase = rng.random(len(counts)) if parts > 1 else np.zeros(len(counts))
    before = np.zeros_like(counts)
    for part in range(1, parts + 1):
        upto = counts
        if part < parts:
            upto = np.minimum(np.floor(counts * (part / parts) + phase).astype(np.int64), counts)
        yield upto - before
        before = upto


def shuffled(counts: Ints, rng: np.random.Generator) -> Ints:
    """Each index as often as its count says, in random order."""
    index = np.repeat(np.arange(len(counts)), counts)
    rng.shuffle(index)
    return index
