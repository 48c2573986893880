"""Tables whose columns have few combinations in all: one log-linear model of every combination (a cell).

Columns are asked first, then all pairs, threes and fours as far as their noise is small (`cube_plan.py`),
each for what it has beyond its parts (`numeric/residual.py`). Where pairs are loud, a look tells first which
are worth it. After each order the part of its answers that is not noise is seen from how far they are from
what the orders before expect; the model goes that far towards them (`numeric/loglinear.py`). Where a column
decides another, or a pair's table is mostly empty, no row is in its empty cells. Rows are drawn evenly from
the cells (`cube_rows.py`). A class is a column like any other here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.joint.choice import LINKED, NOISE
from dpsynth_cli.mechanisms.joint.cube_plan import Tables, plan
from dpsynth_cli.mechanisms.joint.cube_rows import drawing
from dpsynth_cli.mechanisms.joint.residuals import Axes, Known
from dpsynth_cli.mechanisms.joint.survey import gaps_of, is_gaussian
from dpsynth_cli.mechanisms.shared.rules import Rules
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.numeric.exact import log
from dpsynth_cli.numeric.loglinear import DIRECT, ROUNDED, fitted
from dpsynth_cli.numeric.ratios import decided, shrunk
from dpsynth_cli.numeric.residual import Basis
from dpsynth_cli.numeric.selection import weight_power, worth_counting
from dpsynth_cli.questions import Ask, CellCounts, Cells, Floats, Model, Question, Total
from dpsynth_cli.shares import divide

MOST_CELLS = 2**23  # if all columns have two values, which is solved faster
MOST_OTHERS = 2**18
MOST_CODES = 24  # of a column
STEPS = {1: "columns", 2: "links", 3: "pairs", 4: "pairs"}
TABLES = 4000  # of so many columns, at most
HELD = 10  # numbers a cell, while the model is fitted
FINISHED = 1e-5  # nats that another step of a fit would gain
AGAIN, RAKES = 2, 12  # tables that are wanted, and passes of proportional fitting to them
LIGHT = 1e-4  # part of the rows that a cell of a column has at least, where a fit begins


def takes(omega: Domain) -> bool:
    """Whether every combination of codes can have a cell."""
    codes = [column.codes for column in omega]
    most = MOST_CELLS if max(codes) <= 2 else MOST_OTHERS
    return len(codes) > 1 and max(codes) <= MOST_CODES and math.prod(codes) <= most


class Cube:
    """The model as it grows."""

    def __init__(self, omega: Domain, rules: Rules) -> None:
        self.columns = list(omega)
        self.tables = Tables(self.columns)
        self.known = Known(Basis([column.codes for column in self.columns]))
        self.never = impossible(omega, rules)
        self.theta: dict[Axes, Floats] = {}
        self.decided: list[Axes] = []  # pairs of which the first column decides the second

    def most(self) -> int:
        """How many sets of columns may be asked of; in many cells, what the fit can take at once."""
        return TABLES if self.known.basis.cells <= MOST_OTHERS else DIRECT

    def strongest(self, sets: Sequence[Axes], most: int) -> list[Axes]:
        """Those whose pairs are the furthest from independence."""
        strength = {axes: self._strength(axes) for axes in self.known.size if len(axes) == 2}

        def score(axes: Axes) -> float:
            pairs = sorted((strength.get(pair, 0.0) for pair in combinations(axes, 2)), reverse=True)
            return round(float(sum(pairs[: len(axes) - 1])), 9)

        return sorted(sorted(sets, key=lambda axes: (-score(axes), axes))[:most])

    def _strength(self, pair: Axes) -> float:
        found, _ = self.known.means(pair)
        one, other = (self.known.means((j,))[0] for j in pair)
        return math.sqrt(float(((found - np.multiply.outer(one, other).ravel()) ** 2).sum()))

    def masses(self) -> list[Floats]:
        """The distribution of each column."""
        found = []
        for j, size in enumerate(self.known.basis.sizes):
            weights = np.ones(size)
            if size > 1:
                weights[1:] = self.known.means((j,))[0]
            mass = np.maximum(Basis((size,)).values(weights) / size, LIGHT)
            found.append(mass / mass.sum())
        return found

    def independent(self) -> Floats:
        """The distribution if columns were independent."""
        return np.asarray(reduce(np.multiply.outer, self.masses()).ravel())

    def look(self, ask: Ask, pairs: Sequence[Axes], share: Fraction, left: Fraction) -> list[Axes]:
        """The pairs that are worth counting for what is left, by how far they are from independence."""
        rows, masses = self.known.rows, self.masses()
        expected = [rows * np.multiply.outer(masses[i], masses[j]) for i, j in pairs]
        gaps, _ = gaps_of(ask, [self.tables.cells(axes) for axes in pairs], expected, share, rows)
        saved = np.array([LINKED * gap.beyond + gap.by_chance for gap in gaps])
        cells = np.array([float(self.tables.numbers(axes)) for axes in pairs])
        one = Question("links", CellCounts(Cells(())), left)
        chosen = (
            worth_counting(saved[:, None], cells[:, None], NOISE * ask.sd(one) / rows, is_gaussian(ask)) >= 0
        )
        chosen[np.argmax(saved)] = True
        return [axes for axes, own in zip(pairs, chosen, strict=True) if own]

    def settle(self, pairs: Sequence[Axes]) -> None:
        """No row is in the empty cells of a pair whose table is mostly empty, or where one column decides the
        other."""
        shape, masses = self.known.basis.sizes, self.masses()
        for i, j in pairs:
            counts, variance = self.known.table((i, j))
            found = {(i, j): decided(counts, variance), (j, i): decided(counts.T, variance).T}
            self.decided += [pair for pair, empty in found.items() if empty.any()]
            one, other = (self.known.rows * masses[at] for at in (i, j))
            expected, most = np.multiply.outer(one, other) / self.known.rows, np.minimum.outer(one, other)
            parts = (counts.ravel(), variance, expected.ravel(), most.ravel())
            none = np.asarray(shrunk(*parts, zeros=True).reshape(counts.shape) <= 0)
            none &= ~none.all(axis=0) & ~none.all(axis=1, keepdims=True)
            empty = found[i, j] | found[j, i] | none
            if empty.any():
                never = np.zeros(shape, bool) if self.never is None else self.never.reshape(shape)
                never = never | empty.reshape([shape[at] if at in (i, j) else 1 for at in range(len(shape))])
                self.never = never.ravel() if not never.all() else self.never

    def fit(self, sets: Sequence[Axes]) -> Floats:
        """The distribution by these residuals, from where it was before."""
        basis = self.known.basis
        index = np.concatenate([basis.residual(axes) for axes in sets])
        each = [self.known.means(axes) for axes in sets]
        means = np.concatenate([found for found, _ in each])
        penalty = np.concatenate(
            [
                np.full(len(found), v / self.known.size[axes])
                for axes, (found, v) in zip(sets, each, strict=True)
            ]
        )
        if not self.theta:
            alone = basis.means(log(self.independent())) / basis.cells
            self.theta = {(j,): alone[basis.residual((j,))] for j in self.tables.wide}
        start = [
            self.theta.get(axes, np.zeros(len(found))) for axes, (found, _) in zip(sets, each, strict=True)
        ]
        p, theta, gain = fitted(basis, index, means, penalty, self.never, np.concatenate(start))
        cuts = np.cumsum([len(found) for found, _ in each])[:-1]
        self.theta = dict(zip(sets, np.split(theta, cuts), strict=True))
        return p if gain < FINISHED else self._raked(p, sets)

    def _raked(self, p: Floats, sets: Sequence[Axes]) -> Floats:
        """A distribution whose fit was not finished, brought to the tables of these columns by proportional
        fitting: each table towards what was counted, as far as its noise allows."""
        p = p.reshape(self.known.basis.sizes)
        for _ in range(AGAIN):
            wanted = [(axes, self._wanted(p, axes)) for axes in sets if self.known.tells(axes)]
            for _ in range(RAKES):
                for axes, due in wanted:
                    there = _sums(p, axes)
                    scale = np.divide(due, there, out=np.zeros_like(due), where=there > 0)
                    p = p * scale.reshape([p.shape[at] if at in axes else 1 for at in range(p.ndim)])
            p = p / p.sum()
        return np.round(p.ravel(), ROUNDED)

    def _wanted(self, p: Floats, axes: Axes) -> Floats:
        """The part of rows in each cell of a table."""
        counts, variance = self.known.table(axes)
        expected = _sums(p, axes) * self.known.rows
        alone = [np.maximum(_sums(counts, (at,)), 0.0) for at in range(len(axes))]
        most = reduce(np.minimum.outer, alone)
        due = shrunk(counts.ravel(), variance, expected.ravel(), most.ravel()).reshape(counts.shape)
        due = np.where(expected > 0, due, 0.0)
        return np.asarray(due / max(float(due.sum()), 1e-9))


def _sums(table: Floats, axes: Axes) -> Floats:
    """A table added up over all other columns."""
    return np.asarray(table.sum(axis=tuple(at for at in range(table.ndim) if at not in axes)))


def run(
    ask: Ask, omega: Domain, sizes: Sizes, rest: Fraction, weights: Mapping[str, float], rules: Rules
) -> Model | None:
    """The model of all cells, for the share that is left of the budget; None, and nothing asked, where noise
    would hide every pair."""
    cube = Cube(omega, rules)
    tables, known = cube.tables, cube.known
    planned = plan(ask, tables, rest, weights, sizes.at_least, cube.most(), not omega.rows_public)
    if planned is None:
        return None
    _know_rows(ask, omega, sizes, known, planned.rows)
    asked: list[Axes] = []
    p = np.full(known.basis.cells, 1 / known.basis.cells)
    for order, (sets, share) in enumerate(planned.orders, start=1):
        if order == 2 and planned.look:
            sets = cube.look(ask, sets, planned.look, share)
        sets = cube.strongest(sets, cube.most() - len(asked))
        shares = divide(share, [tables.numbers(axes) ** weight_power(is_gaussian(ask)) for axes in sets])
        questions = [tables.question(STEPS[order], axes, own) for axes, own in zip(sets, shares, strict=True)]
        for axes, answer in zip(sets, ask(questions), strict=True):
            known.add(axes, answer.values.astype(np.float64), answer.sd * answer.sd)
        known.judge(sets, known.basis.means(p))
        asked += sets
        if order == 2:
            cube.settle(sets)
        p = cube.independent() if order == 1 else cube.fit(asked)
    return _model(cube, p)


def _know_rows(ask: Ask, omega: Domain, sizes: Sizes, known: Known, share: Fraction) -> None:
    """What sizes say of the number of rows and of classes; and the number once more, if it is not public."""
    if not math.isinf(sizes.variance):
        place = [at for at, column in enumerate(omega) if column.name == omega.strata]
        known.add(tuple(place), sizes.rows, sizes.variance)
    if omega.rows_public:
        known.sums[()] = (sizes.rows.sum()[None], 1e-9)
    else:
        again = ask([Question("columns", Total(), share)])[0]
        known.add((), again.values.astype(np.float64), again.sd * again.sd)


def impossible(omega: Domain, rules: Rules) -> NDArray[np.bool_] | None:
    """The cells that a rule forbids; nothing without rules."""
    if not rules:
        return None
    columns = list(omega)
    shape = [column.codes for column in columns]
    found = np.zeros(shape, bool)
    for i, j in combinations(range(len(columns)), 2):
        first, second = (np.arange(shape[at]) for at in (i, j))
        never = rules.impossible(columns[i].name, columns[j].name, first, second)
        found |= never.reshape([shape[at] if at in (i, j) else 1 for at in range(len(shape))])
    return found.ravel()


def _model(cube: Cube, p: Floats) -> Model:
    names = [column.name for column in cube.columns]
    kinds = {2: "pairs", 3: "threes", 4: "fours"}
    facts: dict[str, Any] = {"cells": cube.known.basis.cells}
    for order, kind in kinds.items():
        facts[kind] = sum(len(axes) == order for axes in cube.theta)
    strongest = cube.strongest([axes for axes in cube.theta if len(axes) == 2], 10)
    facts["strongest_pairs"] = [[names[j] for j in axes] for axes in strongest]
    facts["decides"] = [[names[j] for j in axes] for axes in cube.decided]
    return Model(round(cube.known.rows), drawing(cube.columns, p), (), facts, held=HELD * len(p))
