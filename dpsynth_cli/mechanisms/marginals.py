"""Independent private marginals, one for each column; with strata, one for each column and class.

The baseline that nothing may fall below. A categorical column is one histogram, projected on the simplex
with the noisy total. A numeric column is a binary tree over its codes, counted on a few levels down to
cells of one code or so: from the root down, mass follows the counts where they tell more than the noise
and the volumes where they do not, so that spikes survive and empty ranges stay empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_cli import budget
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.mechanisms.sizes import Sizes, sizes_and_rest
from dpsynth_cli.numeric.consistency import Siblings, clipped, combined, descend, posterior
from dpsynth_cli.numeric.histogram import on_simplex, shuffled, whole
from dpsynth_cli.numeric.partition import code_ranges
from dpsynth_cli.questions import (
    Answer,
    Ask,
    Bins,
    Block,
    CellCounts,
    Cells,
    Floats,
    Halves,
    Ints,
    Model,
    Question,
)

ROWS = 2**17  # of a block
DEEPEST = 20
STEP, TOP, LEAST, MOST, FIND = 7, 4, 0.2, 0.3, 70


@dataclass(frozen=True)
class Params:
    depth: int | None = parameter(
        None,
        "halvings of a numeric column; auto: by the private number of rows",
        low=1,
        high=DEEPEST,
        auto=True,
    )


@dataclass(frozen=True)
class Marginal:
    """One column's cells, the same for all classes: first code, number of codes, and masses by class."""

    first: Ints
    width: Ints
    masses: list[Floats]


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    sizes, rest = sizes_and_rest(ask, omega, split)
    marginals = ask_marginals(ask, omega, omega.modelled, sizes, rest, params.depth)
    facts = {"cells": {name: len(marginal.first) for name, marginal in marginals.items()}}

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        for start in range(0, rows, ROWS):
            count = min(ROWS, rows - start)
            label = shuffled(whole(sizes.rows, count, rng), rng)
            block = {column.name: np.empty(count, np.int64) for column in omega.modelled}
            for k in range(omega.classes):
                own = np.flatnonzero(label == k)
                for name, marginal in marginals.items():
                    block[name][own] = codes_from(marginal, k, len(own), rng)
            if omega.strata:
                block[omega.strata] = label
            yield block

    return Model(sizes.total, draw, facts=facts)


def ask_marginals(
    ask: Ask,
    omega: Domain,
    columns: tuple[Column, ...],
    sizes: Sizes,
    share: Fraction,
    depth: int | None = None,
) -> dict[str, Marginal]:
    """The marginals of columns, one budget for all of them, asked in one go."""
    questions: list[Question] = []
    parts: dict[str, list[Question]] = {}
    for column, own in zip(
        columns, budget.split(share, [math.sqrt(min(column.codes, 16)) for column in columns]), strict=True
    ):
        parts[column.name] = _questions(ask, column, own, omega, sizes, depth)
        questions += parts[column.name]
    answers = dict(zip(questions, ask(questions), strict=True))
    return {
        column.name: _marginal(column, {q: answers[q] for q in parts[column.name]}, sizes)
        for column in columns
    }


def codes_from(marginal: Marginal, k: int, rows: int, rng: np.random.Generator) -> Ints:
    """Codes of class k, as many of each cell as its mass says, uniform inside it, in random order."""
    cell = shuffled(whole(marginal.masses[k], rows, rng), rng)
    return marginal.first[cell] + (rng.random(rows) * marginal.width[cell]).astype(np.int64)


def _questions(
    ask: Ask, column: Column, share: Fraction, omega: Domain, sizes: Sizes, depth: int | None
) -> list[Question]:
    by = omega.strata
    if column.categorical or column.bits <= 4:
        edges = tuple(range(column.codes + 1))
        return [Question("columns", CellCounts(Cells((Bins(column.name, edges),))), share, by)]
    n = max(1.0, float(sizes.rows.sum()))
    lone = Question("columns", CellCounts(Cells(())), share, by)
    signal = n * math.sqrt(2) / max(ask.sd(lone), 1e-9)  # epsilon n of this column
    bits = min(column.bits, DEEPEST, depth or max(4, math.ceil(math.log2(n)) + 2))
    top = min(bits, max(3, round(math.log2(max(2.0, signal)) - TOP)))
    below = math.ceil((bits - top) / STEP)
    levels = [top] + [round(top + (bits - top) * (i + 1) / below) for i in range(below)]
    # The lower levels only have to find spikes: the fewer rows there are, the larger they must be.
    spikes = min(MOST, max(LEAST, FIND / signal)) if below else 0.0
    shares = budget.split(share, [1.0 - spikes] + [spikes / max(1, below)] * below)
    return [
        Question("columns", CellCounts(Cells((Halves(column.name, j),), (0,) * j)), own, by)
        for j, own in zip(levels, shares, strict=True)
    ]


def _marginal(column: Column, answers: Mapping[Question, Answer], sizes: Sizes) -> Marginal:
    totals = np.maximum(sizes.rows, 1e-9)
    if column.categorical or column.bits <= 4:
        (answer,) = answers.values()
        masses = [on_simplex(block, total) for block, total in zip(answer.blocks, totals, strict=True)]
        return Marginal(np.arange(column.codes), np.ones(column.codes, np.int64), masses)
    levels = sorted(_level(question) for question in answers)
    top, depth = levels[0], levels[-1]
    first, width = code_ranges((column.size, column.nullable), depth)
    room = width.astype(np.float64)

    def rule(pair: Siblings) -> Floats:
        return clipped(pair) if len(pair.parent) < 2**top else posterior(pair)

    def fitted(blocks: Mapping[int, tuple[Floats, float]], total: float, room: Floats) -> Floats:
        counts = [blocks[j][0] if j in blocks else None for j in range(depth + 1)]
        variances = [blocks[j][1] if j in blocks else 0.0 for j in range(depth + 1)]
        return descend(total, *combined(counts, variances, width.astype(np.float64)), room, rule)

    own = [
        {_level(q): (a.blocks[k].astype(np.float64), a.sd**2) for q, a in answers.items()}
        for k in range(len(totals))
    ]
    together = {j: (np.sum([part[j][0] for part in own], axis=0), len(own) * own[0][j][1]) for j in levels}
    common = fitted(together, totals.sum(), room)
    if len(own) == 1:
        return Marginal(first, width, [common])
    # Below the top level a class with few rows looks like all classes together, but for what its counts say.
    common = common / common.sum() + 1e-3 * room / room.sum()
    return Marginal(
        first, width, [fitted(part, total, common) for part, total in zip(own, totals, strict=True)]
    )


def _level(question: Question) -> int:
    assert isinstance(question.statistic, CellCounts)
    assert isinstance(question.statistic.cells, Cells)
    return len(question.statistic.cells.order or ())


MECHANISM = Mechanism(
    name="marginals",
    summary="each column by its own noisy histogram or tree; with strata, class by class",
    suits="any table; with strata the safe choice for labelled tables with few rows",
    citation=(
        "Noisy histograms (Dwork, McSherry, Nissim, Smith 2006) and trees of counts "
        "(Hay, Rastogi, Miklau, Suciu 2010)"
    ),
    run=run,
    params=Params,
    stages={"total": 0.05, "columns": 0.95},
)
