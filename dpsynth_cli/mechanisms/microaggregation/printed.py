"""The paper's Algorithm 2 with the constants it prints: damped microaggregation, for fidelity and comparison.

Boedihardjo, Strohmer, Vershynin (2021); docs/privacy.md, E21 to E24. p one-hot cells in d attributes, numeric
columns in 16 public bins; rows are x / sqrt(p). n is public (replace_one). What the border needs to be done
otherwise:

- Questions are priced by their own sensitivity, and the paper's is larger: p^2 for d(d+1)/2 in S, 2p for d in
  the centres. The noise is as printed, so a part of the budget stays unspent.
- The paper's noise is on the means of cells, the border's on sums. A mean's noise times |F_j| v b is that of
  the sum, so sums are asked once for every octave of noisy sizes: at most twice less noise than printed.
- t is rounded down, as in (5.14) and not in step 3; b is rounded up, since Lemma 5.6 needs a whole number.
  The net is a whole lattice, not only its points in the ball. Rows are made by one draw for each attribute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.microaggregation.grid import grid
from dpsynth_cli.mechanisms.microaggregation.mixture import Mixture
from dpsynth_cli.mechanisms.shared.attributes import Attribute
from dpsynth_cli.mechanisms.shared.drawing import Deal, by_class
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from dpsynth_cli.mechanisms.shared.sizes import sizes_and_rest
from dpsynth_cli.numeric.spectrum import axes
from dpsynth_cli.questions import (
    Answer,
    Ask,
    CellCounts,
    Cells,
    CellSums,
    Floats,
    Gram,
    Model,
    Question,
)

BINS = 16
UNSPENT = "the paper's constants are looser than the sensitivities: a part of the budget is not spent"


def run(ask: Ask, omega: Domain) -> Model:
    totals = sizes_and_rest(ask, omega, {})[0].rows
    attributes = [public(column) for column in omega.modelled]
    mixture, facts = damped(ask, attributes, max(3.0, float(totals[0])))

    def begin(k: int, rows: int, rng: np.random.Generator) -> Deal:
        return mixture.deal(k, attributes, rows, rng)

    return Model(round(float(totals[0])), by_class(omega, totals, begin), (UNSPENT,), facts)


def damped(ask: Ask, attributes: Sequence[Attribute], n: float) -> tuple[Mixture, dict[str, float]]:
    """The weights and centres of the cells, steps 1-13. Centres are masses in [0, 1], not normalised."""
    bins = tuple(a.axis for a in attributes)
    widths = [a.cells for a in attributes]
    d, p = len(attributes), sum(widths)
    whole = Question("epsilon", CellCounts(Cells(())), Fraction(1))
    epsilon = 2 * math.sqrt(2) / max(ask.sd(whole), 1e-6)  # with a delta: that of equal noise

    # 1-5: the second moment S, its noise Lap(6p / (n epsilon)), its t leading eigenvectors.
    alpha = math.log(n) ** -0.25
    t = math.floor(math.log(math.sqrt(n)) / math.log(7 / alpha))
    answer = ask([Question("gram", Gram(bins, diagonal=True), Fraction(d * (d + 1), 6 * p * p))])[0]
    vectors = axes(_second_moment(answer, widths) / (n * p), 0.0, t).vectors

    # 6-7: a lattice of step alpha / sqrt(t), and the nearest-point partition.
    step = alpha / math.sqrt(max(1, t))
    far = math.ceil(1 / step)
    between = (np.arange(-far, far) + 0.5) * step * math.sqrt(p)
    cells = grid(attributes, vectors, [between] * vectors.shape[1])

    # 8-10: b, and the sizes of the cells with noise Lap(6 / epsilon).
    b = math.ceil(math.sqrt(p * math.sqrt(n) / epsilon))
    sizes = ask([Question("counts", CellCounts(cells), Fraction(1, 3))])[0].values.astype(np.float64)

    # 9, 11: damped means with noise Lap(12 p / (b epsilon)) in units of a bit, octave by octave.
    octave = np.frexp(np.maximum(sizes, b) / b)[1] - 1  # of base two, rounded down
    octaves = sorted(set(octave.tolist()))
    sums = CellSums(cells, attributes=bins)
    answers = ask([Question("sums", sums, Fraction(d, 6 * p * 2**o)) for o in octaves])
    centres = np.zeros((len(sizes), p))
    for o, answer in zip(octaves, answers, strict=True):
        asked = np.split(answer.values, np.cumsum(widths)[:-1] * len(sizes))
        noisy = np.hstack([table.reshape(len(sizes), -1) for table in asked])
        own = octave == o
        centres[own] = noisy[own] / np.maximum(sizes[own], b)[:, None]

    # 12-13: metric projections on the simplex (in the 1-norm: cut and scale) and on the cube.
    positive = np.maximum(sizes, 0.0)
    weights = positive / max(float(positive.sum()), 1.0)
    tables = np.split(np.clip(centres, 0.0, 1.0), np.cumsum(widths)[:-1], axis=1)
    return Mixture(weights, tuple(tables)), {"alpha": alpha, "t": t, "b": b, "cells": len(sizes)}


def public(column: Column) -> Attribute:
    """A column in public cells: its categories, or equal bins of its codes; missing alone."""
    count = column.size if column.categorical else min(BINS, column.size)
    edges = np.arange(count + 1, dtype=np.int64) * column.size // count
    first = np.append(edges[:-1], column.size) if column.nullable else edges[:-1]
    width = np.diff(np.append(first, column.codes))
    return Attribute(column, Marginal(first, width, [width.astype(np.float64)]), np.arange(len(first)))


def _second_moment(answer: Answer, widths: Sequence[int]) -> Floats:
    """The p x p matrix of a Gram with its diagonal: own histograms and pair tables."""
    first = np.cumsum([0, *widths])
    matrix = np.zeros((first[-1], first[-1]))
    at = 0
    for i, j in combinations_with_replacement(range(len(widths)), 2):
        one, other = slice(first[i], first[i + 1]), slice(first[j], first[j + 1])
        size = widths[i] if i == j else widths[i] * widths[j]
        block = answer.values[at : at + size].astype(np.float64)
        at += size
        matrix[one, other] = np.diag(block) if i == j else block.reshape(widths[i], widths[j])
        matrix[other, one] = matrix[one, other].T
    return matrix
