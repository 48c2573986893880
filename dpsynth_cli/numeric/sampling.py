"""Whole rows from a measure: counts that add up, in blocks, in random order, uniform inside their box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

BLOCK = 2**18  # rows a block, at most


class Axis(NamedTuple):
    """One column of boxes: which of its cells each box has, and each cell's first code and width."""

    cell: NDArray[np.uint32]
    first: Ints
    width: Ints


def whole(measure: Floats, rows: int, rng: Generator) -> Ints:
    """Non-negative whole numbers in proportion to `measure` that add up to exactly `rows`.

    Systematic rounding: the sum over any run of neighbours, so of every node of a tree, is less than 1
    away from its due. Where the measure is 0, so is the number. Expects a positive sum.

    >>> whole(np.array([0.5, 0.0, 0.5, 3.0]), 8, np.random.default_rng(0)).tolist()
    [1, 0, 1, 6]
    """
    sums = np.cumsum(measure)
    due = sums * (rows / sums[-1])
    due[sums == sums[-1]] = rows  # exactly, whatever the rounding; and nothing after the last positive one
    return np.asarray(np.diff(np.floor(due + rng.random()).astype(np.int64), prepend=0))


def portions(counts: Ints, rng: Generator, block: int = BLOCK) -> Iterator[Ints]:
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


def shuffled(counts: Ints, rng: Generator) -> NDArray[np.uint32]:
    """Each index as often as its count says, in random order."""
    index = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    rng.shuffle(index)
    return index


def boxes(measure: Floats, axes: Sequence[Axis], rows: int, rng: Generator) -> Iterator[list[Ints]]:
    """Rows from boxes of codes, in blocks of one array an axis: uniform among the codes of their box."""
    if measure.sum() <= 0:
        measure = np.ones_like(measure)
    for part in portions(whole(measure, rows, rng), rng, max(BLOCK, len(measure))):
        order = shuffled(part, rng)
        for at in range(0, len(order), BLOCK):
            index = order[at : at + BLOCK]
            block = []
            for cell, first, width in axes:
                here = cell.take(index)
                step = rng.random(len(index))
                step *= width.take(here)
                code = step.astype(np.int64)
                code += first.take(here)
                block.append(code)
            yield block
