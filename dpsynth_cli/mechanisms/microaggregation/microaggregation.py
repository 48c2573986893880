"""Microaggregation by covariance loss: rows are replaced by what is private about the cell they are in.

Boedihardjo, Strohmer, Vershynin (2021), Algorithm 2, made practical. The rows' private covariance gives axes,
the axes a grid of cells F_j, each cell its noisy sum of one-hot rows: its weight w_j and the marginals y_j of
its rows. The release is the mixture of these product distributions.

Where this is not the printed algorithm (docs/privacy.md):
- noisy sums instead of noisy damped means, 10,000 times better at any practical n (E21);
- the axes are of the covariance between attributes; rows and noise say how many there are, so that cells have
  rows enough (E22);
- cells that differ more than the covariance says are made more alike: a cut across independent attributes
  would make them dependent;
- one-way marginals are asked by themselves and kept;
- one draw for each attribute: one for each bit would give rows with no category or with two (E24).

`parameters: paper` is the printed algorithm (`printed.py`), and `guarantee: groups` its Algorithm 1 without
differential privacy, which is not done here but by the trusted core.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.marginals import independent
from dpsynth_cli.mechanisms.microaggregation import printed as damped
from dpsynth_cli.mechanisms.microaggregation.constraints import STRUCTURE, Kept, NotLinear, kept
from dpsynth_cli.mechanisms.microaggregation.grid import grid
from dpsynth_cli.mechanisms.microaggregation.mixture import Mixture
from dpsynth_cli.mechanisms.microaggregation.products import attenuated, between, fitted, weights, within
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.mechanisms.shared.attributes import Attribute, attribute
from dpsynth_cli.mechanisms.shared.drawing import Deal, by_class
from dpsynth_cli.mechanisms.shared.oneway import ask_marginals
from dpsynth_cli.mechanisms.shared.sizes import Sizes, sizes_and_rest
from dpsynth_cli.numeric.pairs import pair_tables
from dpsynth_cli.numeric.spectrum import axes
from dpsynth_cli.questions import Ask, Bins, Block, Cells, CellSums, Floats, Gram, Model, Question
from dpsynth_cli.shares import divide

RICH = 12  # rows a class for each row of noise in a pair table: below it marginals are the safer release
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
        "practical", "dp: ours, or the constants that the paper prints", choices=("practical", "paper")
    )
    axes: int | None = parameter(
        None, "dp: private axes of the grid; auto: as many as rows and noise allow", low=0, high=6, auto=True
    )
    cells: int = parameter(3, "dp: cells of the grid on each axis", low=2, high=9)
    bins: int = parameter(16, "dp: cells of a numeric column, at most", low=2, high=64)
    convex: Sequence[str] | None = parameter(
        None,
        "dp: linear constraints between numeric columns that every row shall keep: [a <= b, a + b <= c]",
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
    poor = _poor(ask, omega, sizes, gram)
    if poor is not None and (params.axes is None or len(omega.modelled) < 2):
        return _keeping(independent(ask, omega, sizes, rest, notes=(poor,)), keep)

    # Attributes: each column by its private marginal, numeric ones in few cells.
    marginals = ask_marginals(ask, omega, omega.modelled, sizes, columns)
    attributes = [attribute(column, marginals[column.name], params.bins) for column in omega.modelled]
    totals = np.array([attributes[0].masses(k).sum() for k in range(omega.classes)])

    # Axes: of the private covariance, class by class; on each, equal cells of a box.
    bins = tuple(a.axis for a in attributes)
    answer = ask([Question("gram", Gram(bins), gram, omega.strata)])[0]
    noise = _scale(ask, omega, sums)
    parts, known = [], []
    for k, block in enumerate(answer.blocks):
        n = max(1.0, float(totals[k]))
        tables = pair_tables(block, [a.cells for a in attributes])
        means = [a.masses(k) / n for a in attributes]
        known.append(between(tables, means, n))
        most = _affordable(n, noise, params.cells) if params.axes is None else params.axes
        found = axes(between(tables, means, n, answer.sd), 0.0, most)
        vectors = found.vectors[:, found.seen > 1e-9]  # what does not depend on anything has no axis
        spread = found.seen[: vectors.shape[1]] + np.einsum("ij,ij->j", vectors, within(means) @ vectors)
        parts.append(_cells(attributes, means, vectors, np.sqrt(spread), params.cells))

    # Sums: of the one-hot rows of every cell, empty ones too.
    each = tuple(parts) if omega.strata else parts[0]
    answer = ask([Question("sums", CellSums(each, attributes=bins), sums, omega.strata)])[0]
    mixtures = [
        _mixture(block.astype(np.float64), attributes, k, float(totals[k]), known[k])
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


def _poor(ask: Ask, omega: Domain, sizes: Sizes, gram: Fraction) -> str | None:
    """Why there are too few rows for axes; None where there are enough. From public and noisy things.

    The noise of a pair table is d (d - 1) / (2 epsilon) times a constant, with a delta less: where rows are
    few times that, the axes would be the noise's.
    """
    if len(omega.modelled) < 2:
        return "there is only one column to model: the release is its private marginal"
    question = Question("gram", Gram(_single_cells(omega)), gram, omega.strata)
    rows = float(sizes.rows.mean()) / max(0.5, ask.sd(question))
    if rows >= RICH:
        return None
    kind = "class-conditional marginals" if omega.strata else "independent marginals"
    each = " a class" if omega.strata else ""
    return (
        f"too few rows: there are about {rows:.2g}{each} for each row of noise in a pair table, and below "
        f"{RICH} the safer release is one of {kind}, which this is; state mechanism.axes to have cells"
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


def _keeping(model: Model, keep: Kept | None) -> Model:
    """The model with rows that keep the constraints."""
    if keep is None:
        return model

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        for block in model.draw(rows, rng):
            keep.apply(block)
            yield block

    return replace(model, draw=draw)


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
    try:
        kept(params.convex or (), omega)
    except NotLinear as wrong:
        faults.append(f"mechanism.convex: {wrong}")
    return faults


def _group_faults(omega: Domain, params: Params) -> list[str]:
    faults = []
    if params.group_size is None:
        faults.append("guarantee: groups needs mechanism.group_size, a whole number from 2 up")
    if omega.strata:
        faults.append("guarantee: groups takes no strata: all rows of a group would share the class")
    if params.convex or params.parameters == "paper":
        faults.append("mechanism.convex and mechanism.parameters are for guarantee: dp")
    return faults


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
    private=lambda params: params.guarantee == "dp",
)
