"""A tree of two-way tables, and all other pairs as far as they stand above their noise.

The Gram matrix of one-hot rows is all two-way tables at once: one sum, whose sensitivity is the number of
pairs whatever the categories are. It says which pairs are linked; the links of a maximum spanning tree (Chow
and Liu) are counted once more. Every estimate goes from what is expected to what was counted as far as its
noise allows: a link from independent columns, a pair without a link from what the tree implies. Rows are
drawn from root to leaf, and then exchange cells until all their pair tables are near these estimates.

Beyond the papers, but made of their part, the private second moment. No table is chosen by a private
selection: class sizes, columns, pairs and links are all that is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli import shares as budget
from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.marginals import independent
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.mechanisms.shared.attributes import attribute
from dpsynth_cli.mechanisms.shared.crossed import Crossed, Tables, pair_cells, pair_noise
from dpsynth_cli.mechanisms.shared.oneway import ask_marginals
from dpsynth_cli.mechanisms.shared.pools import from_pools, towards
from dpsynth_cli.mechanisms.shared.rules import STRUCTURE, Rules, problems
from dpsynth_cli.mechanisms.shared.sizes import sizes_and_rest
from dpsynth_cli.numeric.forest import Pair, cells_drawn, implied, rooted, spanning
from dpsynth_cli.numeric.pairs import pair_tables
from dpsynth_cli.numeric.ratios import shrunk_by_class
from dpsynth_cli.questions import Ask, CellCounts, Cells, Gram, Ints, Model, Question

MOST_CELLS = 2**23  # of all pair tables and classes, about 60 bytes of memory each
LOUD = 0.2  # noise of an average pair table, as a part of the rows, above which pairs are not asked for
LEAST = 0.002  # a link moves at least this part of the rows


@dataclass(frozen=True)
class Params:
    bins: int = parameter(16, "cells of a numeric column in pair tables, of about equal mass", low=2, high=64)
    rules: Mapping[str, Any] | None = parameter(
        None, "what no row can have: pairs of values of two columns", structure=STRUCTURE
    )


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    sizes, rest = sizes_and_rest(ask, omega, split)
    shares = budget.split(rest, [split["columns"], split["pairs"], split["links"]])
    quiet = pair_noise(ask, omega, _widths(omega, params), sizes, shares[1]) <= LOUD
    if not quiet and not params.rules:
        return independent(ask, omega, sizes, rest, notes=(FALLBACK,))

    # Columns: a private marginal each, and few cells of about equal mass.
    rules = Rules(params.rules, omega)
    marginals = ask_marginals(ask, omega, omega.modelled, sizes, shares[0] if quiet else rest)
    attributes = [
        attribute(column, marginals[column.name], params.bins, rules.cuts(column.name))
        for column in omega.modelled
    ]
    table = Crossed(omega, attributes, rules)

    # Pairs: all tables, and the links of the tree again. Without them columns are independent.
    links: list[Pair] = []
    targets = table.expected
    if quiet:
        links, targets = _linked(ask, table, shares[1], shares[2])

    # Rows: from root to leaf, then exchanges towards all pairs.
    order = rooted(links, len(attributes))

    def pool(k: int, rows: int, rng: np.random.Generator) -> Ints:
        own = {pair: tables[k] for pair, tables in targets.items()}
        cells = cells_drawn(order, table.masses[k], {pair: own[pair] for pair in links}, rows, rng)
        cells = towards(cells, table.sizes, own, table.impossible, rng)
        return table.without_impossible(k, cells, rng)

    def pools(counts: Ints, rng: np.random.Generator) -> list[Ints]:
        return [pool(k, int(count), rng) for k, count in enumerate(counts)]

    draw = from_pools(omega, attributes, table.totals, pools)
    names = [own.column.name for own in attributes]
    facts = {
        "links": [[names[i], names[j]] for i, j in links],
        "cells": dict(zip(names, table.sizes, strict=True)),
    }
    return Model(round(float(table.totals.sum())), draw, () if quiet else (FALLBACK,), facts)


FALLBACK = (
    "At this epsilon and number of rows and columns, noise would hide what pair tables say: columns are "
    "independent (within a class), as in marginals."
)


def _linked(ask: Ask, table: Crossed, pairs: Fraction, links: Fraction) -> tuple[list[Pair], Tables]:
    """The tree, and an estimate of every pair by class."""
    strata = table.omega.strata
    axes = tuple(own.axis for own in table.attributes)
    answer = ask([Question("pairs", Gram(axes), pairs, strata)])[0]
    blocks = [pair_tables(block, table.sizes) for block in answer.blocks]
    noisy = {pair: [block[pair] for block in blocks] for pair in table.pairs}
    variance = max(answer.sd**2, 1e-9)

    # The tree: pairs by the rows that would be in a wrong cell if their columns were independent.
    least = LEAST * float(table.totals.sum())
    scores = {}
    for pair in table.pairs:
        expected = table.expected[pair]
        found = shrunk_by_class(noisy[pair], variance, expected, table.most(pair))
        moved = sum(float(np.abs(one - other).sum()) / 2 for one, other in zip(found, expected, strict=True))
        scores[pair] = round(moved, 3) - least
    chosen = spanning(scores, len(axes)) or [max(table.pairs, key=lambda pair: scores[pair])]

    # Its links again, and both answers by inverse variance. Noise moves m cells by m times its scale in all:
    # these shares make the sum over links least, for Gaussian and for Laplace noise.
    power = 2 / 3 if answer.noise == "discrete_gaussian" else 1 / 2
    weights = [(table.sizes[i] * table.sizes[j]) ** power for i, j in chosen]
    questions = [
        Question("links", CellCounts(Cells((axes[i], axes[j]))), share, strata)
        for (i, j), share in zip(chosen, budget.split(links, weights), strict=True)
    ]
    targets: Tables = {}
    for pair, again in zip(chosen, ask(questions), strict=True):
        trust = variance / max(variance + again.sd**2, 1e-300)
        both = [
            before + trust * (block.reshape(before.shape) - before)
            for before, block in zip(noisy[pair], again.blocks, strict=True)
        ]
        targets[pair] = table.fitted(pair, both, max(trust * again.sd**2, 1e-9), table.expected[pair])

    # Other pairs: what the tree implies, and what their tables show beyond it.
    order = rooted(chosen, len(axes))
    by_tree = [
        implied(order, own, {pair: targets[pair][k] for pair in chosen}) for k, own in enumerate(table.masses)
    ]
    for pair in table.pairs:
        if pair not in targets:
            expected = [own[pair] * table.possible(pair) for own in by_tree]
            targets[pair] = table.fitted(pair, noisy[pair], variance, expected)
    return chosen, targets


def _widths(omega: Domain, params: Params) -> list[int]:
    """How many cells each column has in pair tables, at most; a function of the declaration."""
    rules = Rules(params.rules, omega)
    return [
        column.codes
        if column.categorical
        else min(column.codes, params.bins + column.nullable + len(rules.cuts(column.name)))
        for column in omega.modelled
    ]


def fits(omega: Domain, params: Params) -> list[str]:
    if not omega.modelled:
        return ["tree needs a column besides the strata"]
    found = problems(params.rules, omega)
    if found:
        return found
    widths = _widths(omega, params)
    # Exchanges hold one matrix, all cells by all cells, at an eighth of the bytes.
    cells = max(pair_cells(widths, omega.classes), sum(widths) ** 2 // 8)
    if cells > MOST_CELLS:
        found.append(
            f"tree would hold {cells:,} cells of pair tables in memory, and takes at most {MOST_CELLS:,}; "
            "join rare categories under `other`, lower mechanism.bins, leave the strata out, or use marginals"
        )
    return found


MECHANISM = Mechanism(
    name="tree",
    summary="all two-way tables from one private Gram matrix, a spanning tree of them counted again",
    suits="mixed or categorical tables (the usual choice), with strata if there is a label",
    citation=(
        "C. K. Chow, C. N. Liu: Approximating Discrete Probability Distributions with Dependence Trees. "
        "IEEE Trans. Inf. Theory 14, 1968; over the private second moment of M. Boedihardjo, T. Strohmer, "
        "R. Vershynin: Covariance's Loss is Privacy's Gain. Found. Comput. Math. 2022"
    ),
    run=run,
    params=Params,
    stages={"total": 0.005, "columns": 0.305, "pairs": 0.4, "links": 0.29},
    fits=fits,
)
