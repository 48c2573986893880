"""The paper's Algorithms 1 to 5 to the letter but for the errata, for fidelity and comparison. `lowdim.py`
names the paper, docs/privacy.md has E1 to E16.

epsilon in three equal parts, class by class, as section 5 of the paper does it: the covariance, the mean,
the counts. Nothing is shrunk, pooled or centred; rows are in the subspace until the projection on the cube.

What the border needs to be done otherwise: covariance and mean come from the sums of y and y y^T, priced
under one relation (E10, E11, E13), sizes of classes are paid for (E14), and noise is normalised (E1).
- R = sqrt(d) + |mean|, as printed; the ball is its hypercube for PSMM, too (E8).
- d' = 1 or 2: PMM with r = ceil(log2(epsilon n)), every level, Algorithm 3. d' >= 3: PSMM on the lattice of
  step sqrt(d / d') (epsilon n)^(-1/d'), or of the finest step that its flow can be solved on in a minute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.lowdim import inside, noisy_sums, pieces
from dpsynth_cli.mechanisms.lowdim.inside import Box, Measure
from dpsynth_cli.mechanisms.shared.sizes import Sizes, sizes_and_rest
from dpsynth_cli.numeric import consistency
from dpsynth_cli.numeric.partition import along
from dpsynth_cli.numeric.projection import BITS, halvings, rounded
from dpsynth_cli.numeric.transport import closest, effort
from dpsynth_cli.questions import Ask, Floats, Model
from dpsynth_cli.shares import divide

DIMENSION = 4  # of the paper's figures, where the spec does not say
TOTAL = {"total": 0.05, "rest": 0.95}
COARSER = (
    "PSMM's lattice is coarser than printed: {due:.3g} cells are too many for its flow to be solved, so "
    "there are {cells:,}."
)


def run(ask: Ask, omega: Domain, dimension: int | None) -> Model:
    # n, by class, and epsilon/3 for each step of Algorithm 1.
    sizes, rest = sizes_and_rest(ask, replace(omega, rows_hint=None), TOTAL)
    covariance, mean, counts = divide(rest, [1.0, 1.0, 1.0])
    by = omega.strata
    asked = {
        "class moments": noisy_sums.question(ask, omega, None, "moments", 2, covariance, by),
        "mean": noisy_sums.question(ask, omega, None, "mean", 1, mean, by),
    }
    answers = dict(zip(asked, ask(list(asked.values())), strict=True))
    sums = noisy_sums.in_units_of_y(omega, asked, answers, sizes, np.ones(len(omega.modelled)))
    assert sums.by_class is not None

    # Algorithms 2 and 3: the first d' eigenvectors of the private covariance, and the region about the mean.
    d = len(omega.modelled)
    few = min(d, DIMENSION if dimension is None else dimension)
    boxes = []
    for n, second, own in zip(sums.sizes, sums.by_class, sums.mean, strict=True):
        vectors = np.linalg.eigh(second / n - np.outer(own, own))[1][:, ::-1][:, :few]
        boxes.append(_region(vectors, own))

    # Algorithm 4 or 5, then X'' = X' + mean and the metric projection.
    epsilon = inside.strength(ask, omega, counts, len(boxes))
    epsilon *= 2 if omega.neighbours == "replace_one" else 1
    subroutine = _pmm if few <= 2 else _psmm
    found, notes = subroutine(ask, omega, counts, epsilon, sizes, boxes)
    parts = [_piece(*each) for each in zip(found, sums.mean, boxes, strict=True)]
    facts = {"dimension": few, "inside": "pmm" if few <= 2 else "psmm", "cells": [len(m.mass) for m in found]}
    return Model(sizes.total, pieces.drawing(omega, parts, np.zeros(d)), notes, facts)


def fits(omega: Domain, dimension: int | None) -> list[str]:
    """Why these columns cannot be released so."""
    if dimension == 0:
        return ["algorithm: printed needs a mechanism.dimension of 1 or more"]
    if any(c.nullable or c.type == "nominal" for c in omega.modelled):
        return ["algorithm: printed takes numbers that are never missing, besides the strata"]
    return []


def _region(vectors: Floats, mean: Floats) -> Box:
    """[-R, R]^d' about the private mean, R = sqrt(d) + |mean|; the paper's mean is of rows in [0, 1]^d."""
    vectors = rounded(vectors)
    centre, R = mean @ vectors, math.sqrt(len(mean)) + float(np.linalg.norm(mean + 0.5))
    low = rounded(centre - R)
    return Box(vectors, low, np.maximum(rounded(centre + R), low + 2.0**-BITS))


def _pmm(
    ask: Ask, omega: Domain, share: Fraction, epsilon: float, sizes: Sizes, boxes: Sequence[Box]
) -> tuple[list[Measure], tuple[str, ...]]:
    """Algorithm 4: all levels, sigma_j ~ 2^((1 - 1/d')(r - j)/2) normalised, Algorithm 3."""
    d = len(boxes[0].widths)
    r = min(inside.DEEPEST, max(1, math.ceil(math.log2(max(2.0, epsilon * float(sizes.rows.mean()))))))
    orders = [halvings(box.widths, r) for box in boxes]
    first = 0 if omega.neighbours == "add_remove" or omega.strata else 1
    levels = range(first, r + 1)
    shares = divide(share, [2 ** (-(1 - 1 / d) * (r - j) / 2) for j in levels])
    questions = [
        inside.question(
            omega,
            [inside.halved(omega, b, o[:j], noisy_sums.BITS) for b, o in zip(boxes, orders, strict=True)],
            own,
        )
        for j, own in zip(levels, shares, strict=True)
    ]
    answers = ask(questions)
    found = []
    for k, (box, order) in enumerate(zip(boxes, orders, strict=True)):
        counts: list[Floats | None] = [None] * first
        counts += [answer.blocks[k].astype(np.float64) for answer in answers]
        room = np.ones(1 << r)
        root = sizes.total if first else max(0.0, float(answers[0].blocks[k][0]))
        mass = consistency.descend(
            round(root), consistency.as_counted(counts, room), None, room, consistency.uniform
        )
        place = [along(order, axis) for axis in range(d)]
        found.append(inside.measure(box, mass, place, [2 ** order.count(a) for a in range(d)]))
    return found, ()


def _psmm(
    ask: Ask, omega: Domain, share: Fraction, epsilon: float, sizes: Sizes, boxes: Sequence[Box]
) -> tuple[list[Measure], tuple[str, ...]]:
    """Algorithm 5: noisy counts on a lattice, then the closest measure."""
    few, d = len(boxes[0].widths), len(omega.modelled)
    shapes, coarser = [], list[tuple[float, int]]()
    for n, box in zip(sizes.rows.tolist(), boxes, strict=True):
        step = math.sqrt(d / few) * max(1.0, epsilon * n) ** (-1 / few)
        printed = side = max(1, math.ceil(float(box.widths.max()) / step))
        while side > 1 and effort(inside.lattice((side,) * few))[0] * len(boxes) > inside.SECONDS:
            side = max(1, round(side * 0.8))
        if side < printed:
            coarser.append((float(printed) ** few, side**few))
        shapes.append((side,) * few)
    cells = [
        inside.divided(omega, box, shape, noisy_sums.BITS) for box, shape in zip(boxes, shapes, strict=True)
    ]
    answer = ask([inside.question(omega, cells, share)])[0]
    found = []
    for box, shape, nu in zip(boxes, shapes, answer.blocks, strict=True):
        total = sizes.total if omega.rows_public and not omega.strata else max(0, int(nu.sum()))
        mass = closest(nu, total, inside.lattice(shape)).counts.astype(np.float64)
        place = np.unravel_index(np.arange(len(mass)), shape)
        found.append(inside.measure(box, mass, list(place), list(shape)))
    return found, (COARSER.format(due=max(coarser)[0], cells=max(coarser)[1]),) if coarser else ()


def _piece(measure: Measure, mean: Floats, box: Box) -> pieces.ClassModel:
    beside = mean - box.vectors @ (mean @ box.vectors)
    none = np.zeros((len(mean), 0))
    return pieces.ClassModel(measure, mean, rounded(beside), box.vectors, none, np.zeros(len(mean)))
