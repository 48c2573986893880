"""Latent factors for tables of mixed types: Y. Zhang, Q. Xu, N. Tang and A. Qu, "Differentially private data
release for mixed-type data via latent factor models".

`release: model` keeps the paper's idea, links between columns of every type and latent normals whose
correlation carries the table, and releases the model instead of the rows: private marginals, one private Gram
of all pairs of columns, then post-processing only. Scores of the cells of a column are its part of the Gram's
first factors, links go from latent normals to cells so that the marginals come out, latent correlations are
what the pair tables say of the scores, and rows are drawn anew. Then they exchange cells, as far as pair
tables stand above their noise and say more than normals can (beyond the paper).

Where this is not the printed algorithm (docs/privacy.md): histograms with independent noise, not sorted
noise (E27); one share for all columns together, split among them (E28); the same private links in both
directions (E29); factors that stand above the known noise of the private Gram, never counted in the data
(E30); nothing unbounded is ever summed (E31); loadings from a noisy Gram, not noisy eigenvectors (E32).
`release: rows` is in `printed.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.factor.latent import column_scores, correlations, nearest_correlation, residual
from dpsynth_cli.mechanisms.factor.links import Link, link, settled
from dpsynth_cli.mechanisms.factor.printed import MOST_SCORES, by_rows
from dpsynth_cli.mechanisms.marginals import independent
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.mechanisms.shared.attributes import Attribute, attribute, joined
from dpsynth_cli.mechanisms.shared.crossed import Crossed, pair_cells, pair_noise
from dpsynth_cli.mechanisms.shared.oneway import Marginal, ask_marginals
from dpsynth_cli.mechanisms.shared.pools import from_pools, towards
from dpsynth_cli.mechanisms.shared.rules import Rules
from dpsynth_cli.mechanisms.shared.sizes import sizes_and_rest
from dpsynth_cli.numeric.pairs import pair_tables
from dpsynth_cli.numeric.projection import normals, rounded
from dpsynth_cli.numeric.sampling import whole
from dpsynth_cli.questions import (
    Answer,
    Ask,
    Floats,
    Gram,
    Ints,
    Model,
    Question,
)
from dpsynth_cli.shares import divide

CELLS = 12  # of a numeric column in the pair tables
CATEGORIES = 64  # of a categorical one; with more, rare neighbours share a cell
SCORES = 3  # dimensions of a column's latent, at most
MOST_CELLS = 2**23  # of all pair tables and classes, above which there are no exchanges
LOUD = 0.16  # noise of an average pair table, as a part of the rows, above which pairs are not asked for
CHUNK = 2**13  # rows that are drawn at a time: they stay in the cache


@dataclass(frozen=True)
class Params:
    release: str = parameter(
        "model",
        "model: rows drawn anew. rows: each row noised by itself, the paper's algorithm; a reference, local "
        "differential privacy, not recommended, replace_one only",
        choices=("model", "rows"),
    )
    factors: int | None = parameter(
        None,
        "r, factors of the latent correlation besides a diagonal; auto: all, and by rows the paper's r(c), "
        "c = 0.8, of the private Gram, as far as it stands above its noise",
        low=1,
        high=1000,
        auto=True,
    )


@dataclass(frozen=True, eq=False)
class Latent:
    """One class: a link for each column (None where nothing is known), and F with z = F x, x normals."""

    links: list[Link | None]
    spread: Floats

    def cells(self, attributes: list[Attribute], k: int, rows: int, rng: np.random.Generator) -> Ints:
        """So many rows, a cell of each column; each column's as many as its marginal says."""
        guesses = [np.zeros(rows, np.int64) for _ in attributes]
        for start in range(0, rows, CHUNK):
            here = slice(start, min(start + CHUNK, rows))
            z = rounded(self.spread @ normals((self.spread.shape[1], here.stop - start), rng))
            at = 0
            for guess, linked in zip(guesses, self.links, strict=True):
                if linked is not None:
                    guess[here] = linked.cells(z[at : at + linked.dimensions])
                    at += linked.dimensions
        made = [
            settled(guess, whole(own.masses(k), rows, rng), rng)
            for own, guess in zip(attributes, guesses, strict=True)
        ]
        return np.stack(made, axis=1)


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    sizes, rest = sizes_and_rest(ask, omega, split)
    notes: tuple[str, ...] = ()
    rows = params.release == "rows" and sizes.total * (params.factors or 1) <= MOST_SCORES
    if params.release == "rows" and not rows:
        notes = (f"more than {MOST_SCORES:,} coordinates for a release by rows: released as a model",)
    stages = ["marginals", "gram", "scores"] if rows else ["marginals", "gram"]
    first, second, *third = divide(rest, [split[stage] for stage in stages])
    widths = [min(c.codes, CATEGORIES if c.categorical else CELLS) for c in omega.modelled]
    if len(widths) < 2 or (not rows and pair_noise(ask, omega, widths, sizes, second) > LOUD):
        notes += ("too little to learn of pairs of columns: each was released by itself, as by marginals",)
        return independent(ask, omega, sizes, rest, notes=notes)

    # Links need the marginals: private ones, for both directions.
    marginals = ask_marginals(ask, omega, omega.modelled, sizes, first)
    attributes = [_attribute(column, marginals[column.name]) for column in omega.modelled]

    # The Gram of all cells: every pair of columns, one share.
    axes = tuple(own.axis for own in attributes)
    answer = ask([Question("gram", Gram(axes), second, omega.strata)])[0]
    if rows:
        return by_rows(ask, attributes, answer, third[0], params.factors, sizes.total)
    latents = [_latent(attributes, k, block, answer.sd, params) for k, block in enumerate(answer.blocks)]

    # Rows: latent normals, then cells by the links, then exchanges towards what the pair tables show beyond
    # the normals; codes by the marginals. With `factors` the normals alone, which is what was asked for.
    totals = np.array([mass.sum() for mass in marginals[omega.modelled[0].name].masses])
    n = round(float(totals.sum()))
    few = pair_cells([own.cells for own in attributes], omega.classes) <= MOST_CELLS
    table = Crossed(omega, attributes, Rules(omega)) if few and params.factors is None else None

    def pools(counts: Ints, rng: np.random.Generator) -> list[Ints]:
        rows = [latent.cells(attributes, k, int(counts[k]), rng) for k, latent in enumerate(latents)]
        return _exchanged(table, answer, rows, rng) if table else rows

    draw = from_pools(omega, attributes, totals, pools)
    facts = {
        "cells": {own.column.name: own.cells for own in attributes},
        "scores": {
            own.column.name: [linked.dimensions if linked else 0 for linked in linked_by_class]
            for own, *linked_by_class in zip(attributes, *(latent.links for latent in latents), strict=True)
        },
    }
    return Model(n, draw, notes, facts)


def _attribute(column: Column, marginal: Marginal) -> Attribute:
    if column.categorical and column.codes > CATEGORIES:
        return Attribute(column, marginal, joined(np.sum(marginal.masses, axis=0), CATEGORIES))
    return attribute(column, marginal, CELLS)


def _latent(attributes: list[Attribute], k: int, block: Ints, sd: float, params: Params) -> Latent:
    masses = [own.masses(k) for own in attributes]
    n = float(masses[0].sum())
    if n < 1:
        return Latent([None] * len(attributes), np.zeros((0, 0)))
    p = [mass / n for mass in masses]
    tables = pair_tables(block, [own.cells for own in attributes])
    residuals = {(i, j): residual(table / n, p[i], p[j]) for (i, j), table in tables.items()}
    scores = column_scores(residuals, p, sd / n, SCORES)
    links = [link(phi, own) if phi.shape[1] else None for phi, own in zip(scores, p, strict=True)]
    carried = [made.carried if made else np.zeros((0, 0)) for made in links]
    seen = correlations(residuals, scores, carried, sd / n)
    near = nearest_correlation(seen, [phi.shape[1] for phi in scores], params.factors)
    return Latent(links, rounded(np.asarray(np.linalg.cholesky(near), np.float64)) if near.size else near)


def _exchanged(table: Crossed, answer: Answer, rows: list[Ints], rng: np.random.Generator) -> list[Ints]:
    """The classes' rows after exchanges: what they already imply is what is expected of each pair, and its
    noisy tables say how far to go from there."""
    blocks = [pair_tables(block, table.sizes) for block in answer.blocks]
    targets = {}
    for i, j in table.pairs:
        shape = table.sizes[i], table.sizes[j]
        implied = [
            np.bincount(cells[:, i] * shape[1] + cells[:, j], minlength=shape[0] * shape[1]).reshape(shape)
            * (total / len(cells))
            for cells, total in zip(rows, table.totals, strict=True)
        ]
        noisy = [block[i, j] for block in blocks]
        targets[i, j] = table.fitted((i, j), noisy, max(answer.sd**2, 1e-9), implied)
    return [
        towards(cells, table.sizes, {pair: tables[k] for pair, tables in targets.items()}, {}, rng)
        for k, cells in enumerate(rows)
    ]


def fits(omega: Domain, params: Params) -> list[str]:
    problems = [] if omega.modelled else ["factor needs a column besides the strata"]
    if params.release == "rows" and not omega.rows_public:
        problems.append(
            "release: rows needs privacy.neighbours: replace_one, and no privacy.unit: there the number of "
            "rows is public"
        )
    if params.release == "rows" and omega.strata:
        problems.append("release: rows has no strata: rows are released one by one")
    return problems


MECHANISM = Mechanism(
    name="factor",
    summary="latent normals with one correlation matrix, linked to columns of every type",
    suits="mixed tables without a label, or with few rows for their columns",
    citation=(
        "Y. Zhang, Q. Xu, N. Tang, A. Qu: Differentially Private Data Release for Mixed-type Data via Latent "
        "Factor Models. JMLR 2024"
    ),
    run=run,
    params=Params,
    stages={"total": 0.02, "marginals": 0.3, "gram": 0.68, "scores": 0.5},
    fits=fits,
    printed={"release": "rows"},
)
