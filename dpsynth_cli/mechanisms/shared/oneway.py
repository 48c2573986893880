"""The private marginal of each column, by class: what `marginals` draws from, and others begin with.

A categorical column is one noisy histogram, projected on the simplex with the noisy total. A numeric column
is counted in 16 cells and, where rows allow or its codes are few, in finer ones too: a tree, divided from the
root down. At its two ends, where cells do not stand above noise, rows are as a law of tails that fits the
counts has them (`ends.py`). Then the heavy cells are cut to single codes and counted once more, with a small
share, or more where one stands out (`suspects.py`): a code that stands out, such as a zero that most rows
have, keeps its count as a spike, and the rest of its cell is even over the other codes.

Where rows are few, a numeric column has fewer cells and no spikes. Of two cells only the difference is asked:
it has half the variance of two counts, and their sum is known from the other columns. The differences of all
such columns are one question. Counts of categories are drawn nearer to those of all classes together, as far
as noise could be what they differ by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.shared.ends import Ends
from dpsynth_cli.mechanisms.shared.focus import ask_scales, surely
from dpsynth_cli.mechanisms.shared.oneway_plan import COARSE, ColumnPlan, count, plan_for, weight
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.mechanisms.shared.suspects import share_to_see
from dpsynth_cli.numeric.consistency import combined, descend, posterior
from dpsynth_cli.numeric.decks import MOST_CARDS, Deck, deck
from dpsynth_cli.numeric.histogram import best_total, nearer, on_simplex
from dpsynth_cli.numeric.partition import code_ranges
from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.numeric.spikes import cut, divided, threshold
from dpsynth_cli.questions import (
    Answer,
    Ask,
    Bins,
    CellCounts,
    Cells,
    Floats,
    Halves,
    Ints,
    Moments,
    Question,
)
from dpsynth_cli.shares import divide

PIECES = 2**14  # cells of the question about spikes, at most


@dataclass(frozen=True, eq=False)
class Marginal:
    """One column's runs of codes, the same for all classes: first code, number of codes, masses by class.

    Runs may be pieces of longer ones whose masses are known better, being even inside: those begin at the
    codes `counted`. None: all runs were counted. Outside of the codes that stand above noise, from .. up to
    `stands`, masses follow a law (`ends.py`). None: all do.
    """

    first: Ints
    width: Ints
    masses: list[Floats]
    counted: Ints | None = None
    stands: tuple[int, int] | None = None

    def deck(
        self, k: int, rows: int, rng: np.random.Generator, runs: slice = slice(None), most: int = MOST_CARDS
    ) -> Deck:
        """A deck of runs of class k (of these only), as many of each as its mass says."""
        mass = self.masses[k][runs]
        mass = mass if mass.any() else self.width[runs].astype(np.float64)
        return deck(mass, rows, rng, most, runs.start or 0)

    def codes(self, runs: NDArray[Any], rng: np.random.Generator) -> Ints:
        """A code for each run, even inside it; a new array."""
        first, width = self._tables
        codes: Ints = runs.astype(np.int64) if first is None else first.take(runs)
        if width is not None:
            codes += (rng.random(len(runs)) * width.take(runs)).astype(np.int64)
        return codes

    @cached_property
    def _tables(self) -> tuple[Ints | None, Ints | None]:
        """First codes, None where runs are the codes; widths, None where all are 1."""
        plain = (self.first == np.arange(len(self.first))).all()
        return None if plain else self.first, None if (self.width == 1).all() else self.width


def ask_marginals(
    ask: Ask,
    omega: Domain,
    columns: Sequence[Column],
    sizes: Sizes,
    share: Fraction,
    depth: int | None = None,
) -> dict[str, Marginal]:
    """The marginals of columns, for one share, in two rounds. All masses of a class add up to its size."""
    return marginals_and_more(ask, omega, columns, sizes, share, Fraction(0), depth)[0]


def marginals_and_more(
    ask: Ask,
    omega: Domain,
    columns: Sequence[Column],
    sizes: Sizes,
    share: Fraction,
    more: Fraction,
    depth: int | None = None,
) -> tuple[dict[str, Marginal], Fraction]:
    """The same, and what was spent of what may be spent `more` to see values that many rows have."""
    shares = divide(share, [weight(column) for column in columns])
    n = max(1.0, float(sizes.rows.sum()))
    scales, left = ask_scales(ask, "columns", columns, shares, surely(sizes))
    shares = divide(left, [weight(column, scale) for column, scale in zip(columns, scales, strict=True)])
    signed = sizes.variance == 0 or 2 * sum(column.categorical for column in columns) >= len(columns)
    plans = [
        plan_for(ask, omega, column, scale, own, n, depth, signed)
        for column, scale, own in zip(columns, scales, shares, strict=True)
    ]

    # Counts: of categories, of cells; and the differences of two cells.
    questions = [question for plan in plans for question in plan.questions]
    halved = {plan.column.name: own for plan, own in zip(plans, shares, strict=True) if plan.signed}
    if halved:
        differences = Moments(tuple(halved), bits=1, degree=1)
        questions.append(Question("columns", differences, sum(halved.values(), Fraction(0)), omega.strata))
    answers = ask(questions)
    upper = answers.pop().blocks if halved else []
    totals = class_totals(omega, sizes, answers)
    if depth == 1:
        answers = [_nearer(answer, totals) for answer in answers]
    counted, differ = iter(answers), iter(np.transpose(upper))
    marginals = {
        plan.column.name: _halves(plan.column, next(differ), totals)
        if plan.signed
        else estimated(plan, [next(counted) for _ in plan.questions], totals)
        for plan in plans
    }

    # Spikes: single codes in heavy cells.
    plans, spent = _more_for_spikes(ask, omega, plans, marginals, more)
    looked = [spike_question(ask, omega, plan, marginals[plan.column.name]) for plan in plans]
    for plan, look, answer in zip(plans, looked, ask(looked) if looked else [], strict=True):
        marginals[plan.column.name], _ = with_spikes(marginals[plan.column.name], look, answer)
    return marginals, spent


def _more_for_spikes(
    ask: Ask, omega: Domain, plans: Sequence[ColumnPlan], marginals: Mapping[str, Marginal], more: Fraction
) -> tuple[list[ColumnPlan], Fraction]:
    """The plans in which single codes are counted, each with the share that it takes to see what stands out,
    the least first; and what that is more than their own."""
    wanted = []
    for number, plan in enumerate(plans):
        if plan.signed or not plan.levels or not plan.may_have_spikes:
            continue
        marginal, own = marginals[plan.column.name], plan.spikes or Fraction(0)
        values = len(marginal.first) - plan.column.nullable
        mass = np.sum(marginal.masses, axis=0)[:values]
        sd = ask.sd(plan.questions[-1]) * math.sqrt(len(marginal.masses))

        def noise(share: Fraction, column: Column = plan.column) -> float:
            return math.sqrt(omega.classes) * ask.sd(count(omega, Halves(column.name, 1), share))

        wanted.append((share_to_see(mass, marginal.width[:values], sd, noise, own, more), number))
    spent, found = Fraction(0), {number: plan for number, plan in enumerate(plans) if plan.spikes}
    for extra, number in sorted(wanted):
        if extra and spent + extra <= more:
            spent += extra
            found[number] = replace(plans[number], spikes=(plans[number].spikes or Fraction(0)) + extra)
    return [found[number] for number in sorted(found)], spent


def room_for(ask: Ask, omega: Domain, sizes: Sizes, share: Fraction) -> int | None:
    """Halvings of a numeric column that few rows leave room for: cells of a class twice as large as noise."""
    lone = CellCounts(Cells(()))
    sd = ask.sd(Question("columns", lone, share / len(omega.modelled), omega.strata))
    room = float(sizes.rows.sum()) / omega.classes / max(2 * sd, 1e-9)
    return None if room >= 2**COARSE else max(1, math.floor(math.log2(max(room, 2.0))))


def class_totals(omega: Domain, sizes: Sizes, answers: Sequence[Answer]) -> Floats:
    """The class sizes again, with what the columns say of them: each of their sums is an estimate."""
    known = [[(float(rows), sizes.variance)] if sizes.variance < math.inf else [] for rows in sizes.rows]
    for answer in answers:
        for own, block in zip(known, answer.blocks, strict=True):
            own.append((float(block.sum()), answer.sd**2 * len(block)))
    best = np.array([best_total(own) for own in known])
    # Many small classes, each clipped at 0 by itself, would add up to too many rows.
    return on_simplex(best, float((sizes.rows if omega.rows_public else best).sum()))


def estimated(plan: ColumnPlan, answers: Sequence[Answer], totals: Floats) -> Marginal:
    """The marginal of a column by the answers to its plan."""
    column = plan.column
    if not plan.levels:
        masses = [on_simplex(block, n) for block, n in zip(answers[0].blocks, totals, strict=True)]
        return Marginal(np.arange(column.codes), np.ones(column.codes, np.int64), masses)
    depth = plan.levels[-1]
    (first, width), room = plan.scale.ranges(depth), plan.scale.room(depth)
    there = width > 0
    together, sd = np.sum(answers[0].blocks, axis=0), answers[0].sd * math.sqrt(len(totals))
    ends = Ends.of(plan.scale, plan.levels[0], together, sd)
    room = np.where(ends.outside(depth), 0.0, room)
    masses = []
    for k, n in enumerate(totals):
        counts: list[Floats | None] = [None] * (depth + 1)
        variances = [0.0] * (depth + 1)
        for level, answer in zip(plan.levels, answers, strict=True):
            counts[level], variances[level] = answer.blocks[k].astype(np.float64), answer.sd**2
        masses.append(descend(n, *combined(counts, variances, room), room, posterior))
    masses = [mass[there] for mass in ends.filled(masses, depth)]
    return _spread(plan.scale, Marginal(first[there], width[there], masses, None, ends.codes))


def _spread(scale: Scale, marginal: Marginal) -> Marginal:
    """Cells that reach far beyond the focus of their scale: even on it, not over their codes."""
    if scale.plain:
        return marginal
    first, width, run, part = scale.cut(marginal.first, marginal.width)
    return Marginal(
        first, width, [mass[run] * part for mass in marginal.masses], marginal.first, marginal.stands
    )


def _halves(column: Column, more: Ints, totals: Floats) -> Marginal:
    """Two cells, by how many more rows of each class the upper one has."""
    first, width = code_ranges((column.size, False), 1)
    upper = np.clip((totals + more) / 2, 0.0, totals)
    return Marginal(first, width, [np.array([n - x, x]) for n, x in zip(totals, upper, strict=True)])


def _nearer(answer: Answer, totals: Floats) -> Answer:
    """Few rows: what classes seem to differ by is mostly noise."""
    counts = nearer(np.stack(answer.blocks), totals, answer.sd**2)
    return replace(answer, values=np.rint(counts).astype(np.int64).ravel())


def spike_question(ask: Ask, omega: Domain, plan: ColumnPlan, marginal: Marginal) -> Question:
    """The question about spikes: single codes, or as many pieces as may be, of every heavy run."""
    column, share = plan.column, plan.spikes
    assert share is not None
    sd = ask.sd(count(omega, Halves(column.name, 1), share))
    # Where there is hardly any noise a run must still have a row: sums leave traces of mass in empty ones.
    heavy = _above(marginal.masses, np.maximum(threshold(marginal.width, sd), 0.5)) & (marginal.width > 1)
    pieces = _pieces(np.sum(marginal.masses, axis=0), marginal.width, heavy)
    starts, _ = cut(marginal.first, marginal.width, pieces)
    known = range(plan.scale.spike[0], plan.scale.spike[1] + 1) if plan.scale.spike else ()
    return count(omega, Bins(column.name, tuple(sorted({*starts.tolist(), *known, column.codes}))), share)


def _pieces(mass: Floats, width: Ints, heavy: np.ndarray) -> Ints:
    """Into how many each run is cut: the heaviest to single codes as far as there is room, others evenly."""
    order = np.flatnonzero(heavy)[np.argsort(-mass[heavy], kind="stable")]
    whole = int(np.searchsorted(np.cumsum(width[order]), PIECES, side="right"))
    left = PIECES - int(width[order[:whole]].sum())
    pieces = np.ones(len(width), np.int64)
    pieces[order[:whole]] = width[order[:whole]]
    rest = order[whole:]
    pieces[rest] = np.clip(left // max(1, len(rest)), 1, width[rest])
    return pieces


def with_spikes(marginal: Marginal, look: Question, answer: Answer) -> tuple[Marginal, NDArray[np.bool_]]:
    """The marginal in the pieces of a question about spikes, and which of them are spikes."""
    assert isinstance(look.statistic, CellCounts)
    assert isinstance(look.statistic.cells, Cells)
    axis = look.statistic.cells.axes[0]
    assert isinstance(axis, Bins)
    edges = np.array(axis.edges)
    first, width = edges[:-1], np.diff(edges)
    run = np.searchsorted(marginal.first, first, side="right") - 1
    pieces = np.bincount(run)[run]
    counts = [block.astype(np.float64) for block in answer.blocks]
    spike = _above(counts, threshold(pieces, answer.sd)) & (pieces > 1)
    masses = [
        divided(mass, run, width, spike, count, answer.sd)
        for mass, count in zip(marginal.masses, counts, strict=True)
    ]
    counted = marginal.first if marginal.counted is None else marginal.counted
    return Marginal(first, width, masses, counted, marginal.stands), spike


def _above(counts: Sequence[Floats], height: Floats) -> np.ndarray:
    """Where one class, or all together, stand above the noise."""
    together = np.sum(counts, axis=0) > math.sqrt(len(counts)) * height
    return np.asarray(together | (np.max(counts, axis=0) > height))
