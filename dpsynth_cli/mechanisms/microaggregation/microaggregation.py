"""Microaggregation by covariance loss: rows are replaced by what is private about the cell they are in.

Boedihardjo, Strohmer, Vershynin (2021), Algorithm 2, made practical. The rows' private covariance gives axes,
the axes a grid of cells F_j, each cell its noisy sum of one-hot rows: its weight w_j and the marginals y_j of
its rows. The release is the mixture of these product distributions.

Where this is not the printed algorithm (docs/privacy.md):
- noisy sums instead of noisy damped means, 10,000 times better at any practical n (E21);
- the axes are of the covariance between attributes, and only those above the edge of its noise; no more of
  them than leave cells rows enough (E22);
- cells that differ more than the covariance says are made more alike: a cut across independent attributes
  would make them dependent;
- one-way marginals are asked by themselves and kept;
- one draw for each attribute: one for each bit would give rows with no category or with two (E24).

`printed: true`, which is `parameters: paper`, is the printed algorithm (`printed.py`), and
`guarantee: groups` its Algorithm 1 without differential privacy, which is not done here but by the
trusted core.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.marginals import independent
from dpsynth_cli.mechanisms.microaggregation import printed as damped
from dpsynth_cli.mechanisms.microaggregation.constraints import STRUCTURE, Kept, NotLinear, keeping, kept
from dpsynth_cli.mechanisms.microaggregation.covariance import covariances, expected_edge, question
from dpsynth_cli.mechanisms.microaggregation.grid import grid
from dpsynth_cli.mechanisms.microaggregation.mixture import Mixture
from dpsynth_cli.mechanisms.microaggregation.products import attenuated, fitted, weights, within
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.mechanisms.shared.attributes import Attribute, attribute
from dpsynth_cli.mechanisms.shared.drawing import Deal, by_class
from dpsynth_cli.mechanisms.shared.oneway import ask_marginals
from dpsynth_cli.mechanisms.shared.sizes import Sizes, sizes_and_rest
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.numeric.spectrum import axes
from dpsynth_cli.questions import Ask, Bins, Cells, CellSums, Floats, Ints, Model, Question
from dpsynth_cli.shares import divide

WORTH = 0.25  # of all variance: where noise alone would look like an axis with as much, none is looked for
ROWS_PER_NOISE = 20  # times the noise of a sum: what a cell has on average, at least
MOST_AXES = 4
SIGMAS = 1.8  # half the side of the box that the grid divides, in standard deviations of its axis
WIDEST = 3000  # one-hot cells: their covariance is held and decomposed
LARGEST = 2**26  # numbers of one answer


@dataclass(frozen=True)
class Params:
    guarantee: str = parameter(
        "dp",
        "dp: differentially private; groups: a minimum group size, no privacy budget",
        choices=("dp", "groups"),
    )
    parameters: str = parameter(
        "practical", "ours, or the constants that the paper prints", choices=("practical", "paper")
    )
    axes: int | None = parameter(
        None, "dp: private axes of the grid; auto: as many as rows and noise allow", low=0, high=6, auto=True
    )
    cells: int = parameter(3, "dp: cells of the grid on each axis", low=2, high=9)
    bins: int = parameter(16, "dp: cells of a numeric column, at most", low=2, high=64)
    convex: Sequence[str] | None = parameter(
        None,
        "convex constraints that every row shall keep: [a <= b, a + b <= c, 'norm(a - 3, b) <= c']",
        structure=STRUCTURE,
    )
    group_size: int | None = parameter(
        None, "groups: rows in a group, at least; it must be stated", low=2, high=10**6, auto=True
    )
    partition: str = parameter(
        "bisection",
        "groups: halves along the principal direction, or the paper's net",
        choices=("bisection", "net"),
    )
    output: str = parameter(
        "centroids",
        "groups: each group's centre as often as it has rows, or rows drawn from the groups",
        choices=("centroids", "bootstrap"),
    )


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    if params.parameters == "paper":
        return damped.run(ask, omega)
    sizes, rest = sizes_and_rest(ask, omega, split)
    columns, gram, sums = divide(rest, [split[stage] for stage in ("columns", "gram", "sums")])
    keep = kept(params.convex or (), omega)
    poor = _poor(ask, omega, params, sizes, gram)
    if poor is not None and (params.axes is None or len(omega.modelled) < 2):
        return _keeping(independent(ask, omega, sizes, rest, notes=(poor,)), keep)

    # Attributes: each column by its private marginal, numeric ones in few cells.
    marginals = ask_marginals(ask, omega, omega.modelled, sizes, columns)
    attributes = [attribute(column, marginals[column.name], params.bins) for column in omega.modelled]
    totals = np.array([attributes[0].masses(k).sum() for k in range(omega.classes)])

    # Axes: of the private covariance, class by class; on each, equal cells of a box.
    bins = tuple(a.axis for a in attributes)
    asked = question(ask, omega, bins, [a.cells for a in attributes], gram)
    known = covariances(asked, ask([asked])[0], attributes, totals)
    noise = _scale(ask, omega, sums)
    parts = []
    for k, own in enumerate(known):
        n = max(1.0, float(totals[k]))
        means = [a.masses(k) / n for a in attributes]
        most = _affordable(n, noise, params.cells) if params.axes is None else params.axes
        found = axes(own.kept, 0.0, most)
        # What does not depend on anything has no axis, nor has noise.
        vectors = found.vectors[:, found.seen > (own.edge if params.axes is None else 1e-9)]
        spread = found.seen[: vectors.shape[1]] + np.einsum("ij,ij->j", vectors, within(means) @ vectors)
        parts.append(_cells(attributes, means, vectors, np.sqrt(spread), params.cells))

    # Sums: of the one-hot rows of every cell, empty ones too.
    each = tuple(parts) if omega.strata else parts[0]
    answer = ask([Question("sums", CellSums(each, attributes=bins), sums, omega.strata)])[0]
    trust = float(sums**2 / (sums**2 + columns**2))
    mixtures = [
        _alone(block, attributes, k, float(totals[k]), trust)
        if not parts[k].axes
        else _mixture(block.astype(np.float64), attributes, k, float(totals[k]), known[k].seen)
        for k, block in enumerate(answer.blocks)
    ]

    def begin(k: int, rows: int, rng: np.random.Generator) -> Deal:
        return mixtures[k].deal(k, attributes, rows, rng)

    facts = {
        "axes": [len(part.axes) for part in parts],
        "cells": [len(mixture.weights) for mixture in mixtures],
        "attributes": {a.column.name: a.cells for a in attributes},
    }
    return _keeping(Model(round(float(totals.sum())), by_class(omega, totals, begin), (), facts), keep)


def _poor(ask: Ask, omega: Domain, params: Params, sizes: Sizes, gram: Fraction) -> str | None:
    """Why axes are not worth their price; None where they may be. From public and noisy things.

    The covariance's noise gives eigenvalues up to an edge of its own. Where even an axis with a large part of
    all variance would drown in it, the marginals get all of the budget.
    """
    if len(omega.modelled) < 2:
        return "there is only one column to model: the release is its private marginal"
    cells = [c.codes if c.categorical else min(c.codes, params.bins + c.nullable) for c in omega.modelled]
    whole = [
        Bins(c.name, (0, *range(1, count), c.codes)) for c, count in zip(omega.modelled, cells, strict=True)
    ]
    asked = question(ask, omega, whole, cells, gram)
    edge = expected_edge(asked, max(0.5, ask.sd(asked)), cells, max(1.0, float(sizes.rows.mean())))
    part = edge / sum(1 - 1 / count for count in cells)
    if part <= WORTH:
        return None
    kind = "class-conditional marginals" if omega.strata else "independent marginals"
    each = " of a class" if omega.strata else ""
    return (
        f"too few rows: noise alone would look like an axis with {100 * part:.0f} % of the variance{each}, "
        f"and from {100 * WORTH:.0f} % the safer release is one of {kind}, which this is; state "
        "mechanism.axes to have cells"
    )


def _single_cells(omega: Domain) -> tuple[Bins, ...]:
    return tuple(Bins(column.name, (0, column.codes)) for column in omega.modelled)


def _scale(ask: Ask, omega: Domain, share: Fraction) -> float:
    """The scale of Laplace noise in one sum of one-hot rows: d / (share epsilon) under add_remove. With a
    delta, that of equal variance. Never below 1/2: a cell needs rows even where there is no noise."""
    question = Question("sums", CellSums(Cells(()), attributes=_single_cells(omega)), share, omega.strata)
    return max(0.5, ask.sd(question) / math.sqrt(2))


def _affordable(n: float, noise: float, cells: int) -> int:
    """How many axes leave every cell rows enough, on average, for its noise."""
    return max(0, min(MOST_AXES, math.floor(math.log(max(1.0, n / noise / ROWS_PER_NOISE), cells) + 1e-9)))


def _cells(
    attributes: Sequence[Attribute], means: Sequence[Floats], vectors: Floats, spread: Floats, cells: int
) -> Cells:
    """The grid: so many equal cells of a box on each axis, about the private mean."""
    centre = np.concatenate(means) @ vectors
    at = (np.arange(1, cells) - cells / 2) * (2 * SIGMAS / cells)
    return grid(attributes, vectors, [c + at * own for c, own in zip(centre, spread, strict=True)])


def _mixture(sums: Floats, attributes: Sequence[Attribute], k: int, n: float, known: Floats) -> Mixture:
    """The product distribution of each cell: noisy sums, made to agree with what else is known of class k,
    its marginals and its covariance."""
    widths = [a.cells for a in attributes]
    count = len(sums) // sum(widths)
    blocks = np.split(sums, np.cumsum(widths)[:-1] * count)
    noisy = [block.reshape(count, width) for block, width in zip(blocks, widths, strict=True)]
    parts = weights(noisy, n)
    tables = [fitted(table, parts, a.masses(k)) for table, a in zip(noisy, attributes, strict=True)]
    return Mixture(parts, tuple(attenuated(tables, known)))


def _alone(sums: Ints, attributes: Sequence[Attribute], k: int, n: float, trust: float) -> Mixture:
    """One cell, where there is no axis: its sums are the marginals once more, and are taken in."""
    tables = np.split(sums, np.cumsum([a.cells for a in attributes])[:-1])
    known = [a.masses(k) for a in attributes]
    better = [on_simplex(own + trust * (table - own), n) for own, table in zip(known, tables, strict=True)]
    return Mixture(np.array([n]), tuple(mass[None] for mass in better))


def _keeping(model: Model, keep: Kept | None) -> Model:
    """The model with rows that keep the constraints."""
    return model if keep is None else replace(model, draw=lambda n, rng: keeping(model.draw(n, rng), keep))


def fits(omega: Domain, params: Params) -> list[str]:
    """What is wrong with the parameters and the table, in words."""
    if params.guarantee == "groups":
        return _group_faults(omega, params)
    faults = []
    if not omega.modelled:
        faults.append("microaggregation needs a column besides the strata")
    if params.group_size is not None:
        faults.append("mechanism.group_size is for guarantee: groups")
    if params.parameters == "paper":
        if not omega.rows_public:
            faults.append("parameters: paper needs neighbours: replace_one, and no unit")
        if omega.strata:
            faults.append("parameters: paper has no strata")
        if params.convex:
            faults.append("parameters: paper takes no convex constraints")
    widest = sum(c.codes if c.categorical else min(c.codes, params.bins + 1) for c in omega.modelled)
    most = max(widest / 2, params.cells ** (MOST_AXES if params.axes is None else params.axes))
    if widest > WIDEST:
        faults.append(f"microaggregation has at most {WIDEST} categories and bins in all, not {widest}")
    elif omega.classes * widest * most > LARGEST:
        faults.append(
            "microaggregation would have too many cells: state fewer axes, cells or bins, or no strata"
        )
    return faults + _not_linear(omega, params)


def _not_linear(omega: Domain, params: Params) -> list[str]:
    try:
        kept(params.convex or (), omega)
    except NotLinear as wrong:
        return [f"mechanism.convex: {wrong}"]
    return []


def _group_faults(omega: Domain, params: Params) -> list[str]:
    faults = []
    if params.group_size is None:
        faults.append("guarantee: groups needs mechanism.group_size, a whole number from 2 up")
    if omega.strata:
        faults.append("guarantee: groups takes no strata: all rows of a group would share the class")
    if params.parameters == "paper" and params.partition != "net":
        faults.append("parameters: paper is of the paper's net: state mechanism.partition: net")
    return faults + _not_linear(omega, params)


MECHANISM = Mechanism(
    name="microaggregation",
    summary="similar rows in cells of private axes, with noisy marginals each; or in groups, without noise",
    suits="wide Boolean, categorical and mixed tables; or a minimum group size without differential privacy",
    citation=(
        "Boedihardjo, Strohmer, Vershynin (2021), Covariance's Loss is Privacy's Gain, Algorithms 1 and 2"
    ),
    run=run,
    params=Params,
    stages={"total": 0.02, "columns": 0.4, "gram": 0.2, "sums": 0.38},
    fits=fits,
    printed={"parameters": "paper", "partition": "net"},
    private=lambda params: params.guarantee == "dp",
)
