"""How far pmm's synthetic table is from the real one on average, by its own noisy counts.

For every setting: any noise, depth, rule and number of measured levels, by class, with a delta. All measured
levels together say how many rows each cell has, unbiased and with a known variance; `numeric/moved_rows.py`
says what that is worth. The paper's bound (`levels.paper_bound`) needs no answers, but is of the printed
algorithm, without classes, at pure epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.bounds import Bound, Distance
from dpsynth_cli.domain import Column
from dpsynth_cli.numeric.consistency import combined
from dpsynth_cli.numeric.moved_rows import ABSOLUTE, DEEPEST, moved_rows
from dpsynth_cli.numeric.partition import along
from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.questions import Floats

PRINTED = "the printed algorithm (Theorem 3.9), which printed: true is"
OURS = "this release, by its own noisy counts"


@dataclass(frozen=True, eq=False)
class Counted:
    """A tree: how its columns are cut, the noisy counts of its levels (None: not measured) with their
    variances, what the masses of its leaves are in proportion to, and the mass of all. `doubt` is the
    standard deviation of that; None where only the tree says it, as of a class."""

    order: tuple[int, ...]
    scales: Sequence[Scale]
    counts: Sequence[Floats | None]
    variances: Sequence[float]
    mass: Floats
    total: float
    doubt: float | None = None
    lengths: Sequence[float] | None = None  # of the columns, if not all 1


def expected_w1(trees: Sequence[Counted], columns: Sequence[Column], rows: int) -> Bound | None:
    """The bound for the release of all classes, of which so many rows are drawn."""
    total = sum(tree.total for tree in trees)
    if round(total) < 1 or rows < 1:
        return None
    noise = cells = sizes = 0.0
    for tree in trees:
        estimates, variances = combined(tree.counts, tree.variances, np.ones(1 << len(tree.order)))
        widths = diameters(tree.order, tree.scales, columns, tree.lengths)
        mass = tree.mass * (tree.total / max(float(tree.mass.sum()), 1e-300))
        moved = moved_rows(estimates, variances, mass, widths, rows / total)
        noise, cells = noise + moved.between, cells + moved.inside
        if tree.doubt is None:
            doubt = abs(float(estimates[0][0]) - tree.total) + ABSOLUTE * float(variances[0][0]) ** 0.5
            sizes += doubt + 0.5 * total / rows  # classes are rounded, too
        else:
            sizes += ABSOLUTE * tree.doubt
    terms = {"noise": noise / total, "cells": cells / total, "number_of_rows": sizes / total}
    return Bound.of_terms(OURS, Distance(weighted=min(trees[0].lengths or (1.0,)) < 1), **terms)


def diameters(
    order: Sequence[int],
    scales: Sequence[Scale],
    columns: Sequence[Column],
    lengths: Sequence[float] | None = None,
) -> list[Floats]:
    """By level, as far as it is looked at, the diameter of each cell: the largest over the columns, each of
    them 1 (or of these lengths). Different categories are 1 apart, and so is missing from all else.

    >>> x = Column("x", "integer", lower=0, upper=8)
    >>> [level.tolist() for level in diameters((0,), [Scale.even(9, False)], [x])]
    [[1.0], [0.5, 0.375]]
    """
    found = []
    for level in range(min(len(order), DEEPEST) + 1):
        widest = np.zeros(1 << level)
        for a, (scale, column) in enumerate(zip(scales, columns, strict=True)):
            bits = order[:level].count(a)
            own = _widths(scale, column, bits) * (lengths[a] if lengths else 1.0)
            np.maximum(widest, own[along(order[:level], a)], out=widest)
        found.append(widest)
    return found


def _widths(scale: Scale, column: Column, bits: int) -> Floats:
    codes = scale.ranges(bits)[1]
    if column.type in ("nominal", "boolean") or (column.nullable and not bits):
        return np.asarray(codes > 1, np.float64)
    return np.maximum(codes - 1, 0) / max(1, column.size - 1)
