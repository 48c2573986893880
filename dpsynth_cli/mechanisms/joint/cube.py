"""Tables whose columns have few combinations in all: one log-linear model of every combination (a cell).

Columns are asked first, then all pairs, threes and fours as far as their noise is small, each for what it has
beyond its parts (`numeric/residual.py`). After each order the part of its answers that is not noise is seen
from how far they are from what the orders before expect; the model goes that far towards them
(`numeric/loglinear.py`). Rows are drawn evenly from the cells. A class is a column like any other here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.joint.characters import binary, character
from dpsynth_cli.mechanisms.joint.residuals import Axes, Known
from dpsynth_cli.mechanisms.joint.survey import is_gaussian
from dpsynth_cli.mechanisms.shared.rules import Rules
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.numeric.loglinear import DIRECT, fitted
from dpsynth_cli.numeric.residual import Basis
from dpsynth_cli.numeric.selection import weight_power
from dpsynth_cli.numeric.systematic import GOLDEN
from dpsynth_cli.questions import Ask, Bins, Block, CellCounts, Cells, Floats, Model, Question, Total
from dpsynth_cli.shares import divide

MOST_CELLS = 2**23  # if all columns have two values, which is solved faster
MOST_OTHERS = 2**18
MOST_CODES = 24  # of a column
SIZE = 0.03  # of the budget, for the number of rows
QUIET = {
    2: 0.6,
    3: 0.06,
    4: 0.025,
}  # noise of what is asked of so many columns, as a part of the rows, at most
STEPS = {1: "columns", 2: "links", 3: "pairs", 4: "pairs"}
COLUMNS = 0.75  # of the share of columns, for them by themselves; pairs tell of them too
FURTHER = (0.6, 0.4)  # of the share of pairs, for three and four columns
MOST_SETS = 50_000  # of columns, that are ranked
TABLES = 4000  # of so many columns, at most
LIGHT = 1e-4  # part of the rows that a cell of a column has at least, where a fit begins
BLOCK = 2**16  # rows


def takes(omega: Domain) -> bool:
    """Whether every combination of codes can have a cell."""
    codes = [column.codes for column in omega]
    most = MOST_CELLS if max(codes) <= 2 else MOST_OTHERS
    return len(codes) > 1 and max(codes) <= MOST_CODES and math.prod(codes) <= most


class Cube:
    """The model as it grows."""

    def __init__(self, omega: Domain, rules: Rules) -> None:
        self.omega = omega
        self.columns = list(omega)
        self.known = Known(Basis([column.codes for column in self.columns]))
        self.never = _impossible(omega, rules)
        self.theta: dict[Axes, Floats] = {}
        self.wide = [j for j, column in enumerate(self.columns) if column.codes > 1]

    def question(self, step: str, axes: Axes, share: Fraction) -> Question:
        columns = [self.columns[j] for j in axes]
        if all(map(binary, columns)):
            return character(step, columns, share, None)
        cells = Cells(tuple(Bins(column.name, tuple(range(column.codes + 1))) for column in columns))
        return Question(step, CellCounts(cells), share)

    def numbers(self, axes: Axes) -> int:
        """How many numbers are asked of these columns."""
        sizes = [self.columns[j].codes for j in axes]
        return 1 if max(sizes) == 2 else math.prod(sizes)

    def most(self, asked: int) -> int:
        """How many more sets may be asked of; in many cells, what the fit can take at once."""
        return TABLES if self.known.basis.cells <= MOST_OTHERS else max(0, DIRECT - asked)

    def choices(self, order: int) -> int:
        """How many sets of so many columns there are."""
        return math.comb(len(self.wide), order)

    def functions(self, axes: Axes) -> float:
        """By what the noise of an answer is multiplied in a table of all functions of these columns."""
        if self.numbers(axes) == 1:
            return 1.0
        return math.sqrt(math.prod(self.columns[j].codes * (self.columns[j].codes - 1) for j in axes))

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

    def independent(self) -> Floats:
        """The distribution if columns were independent."""
        masses = []
        for j, size in enumerate(self.known.basis.sizes):
            own = Basis((size,))
            weights = np.ones(size)
            if size > 1:
                weights[1:] = self.known.means((j,))[0]
            mass = np.maximum(own.values(weights) / size, LIGHT)
            masses.append(mass / mass.sum())
        return np.asarray(reduce(np.multiply.outer, masses).ravel())

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
            alone = basis.means(np.log(self.independent())) / basis.cells
            self.theta = {(j,): alone[basis.residual((j,))] for j in self.wide}
        start = [
            self.theta.get(axes, np.zeros(len(found))) for axes, (found, _) in zip(sets, each, strict=True)
        ]
        p, theta = fitted(basis, index, means, penalty, self.never, np.concatenate(start))
        cuts = np.cumsum([len(found) for found, _ in each])[:-1]
        self.theta = dict(zip(sets, np.split(theta, cuts), strict=True))
        return p


def run(
    ask: Ask, omega: Domain, sizes: Sizes, rest: Fraction, weights: Mapping[str, float], rules: Rules
) -> Model | None:
    """The model of all cells, for the share that is left of the budget; None, and nothing asked, where noise
    would hide every pair."""
    cube = Cube(omega, rules)
    plan = _plan(ask, cube, rest, weights, _at_least(sizes))
    if not plan:
        return None
    _know_rows(ask, omega, sizes, cube.known, plan.pop(0)[1])
    asked: list[Axes] = []
    p = np.full(cube.known.basis.cells, 1 / cube.known.basis.cells)
    for order, (sets, share) in plan.items():
        sets = cube.strongest(sets, cube.most(len(asked)))
        shares = divide(share, [cube.numbers(axes) ** weight_power(is_gaussian(ask)) for axes in sets])
        questions = [cube.question(STEPS[order], axes, own) for axes, own in zip(sets, shares, strict=True)]
        for axes, answer in zip(sets, ask(questions), strict=True):
            cube.known.add(axes, answer.values.astype(np.float64), answer.sd**2)
        cube.known.judge(sets, cube.known.basis.means(p))
        asked += sets
        p = cube.independent() if order == 1 else cube.fit(asked)
    return _model(cube, p, plan)


def _at_least(sizes: Sizes) -> float:
    """Rows that there are, but for noise; a public hint is taken as it is."""
    noise = 0.0 if math.isinf(sizes.variance) else math.sqrt(sizes.variance * len(sizes.rows))
    return max(1.0, sizes.total - noise)


def _know_rows(ask: Ask, omega: Domain, sizes: Sizes, known: Known, share: Fraction) -> None:
    """What sizes say of the number of rows and of classes; and the number once more, if it is not public."""
    if not math.isinf(sizes.variance):
        place = [at for at, column in enumerate(omega) if column.name == omega.strata]
        known.add(tuple(place), sizes.rows, sizes.variance)
    if omega.rows_public:
        known.sums[()] = (sizes.rows.sum()[None], 1e-9)
    else:
        again = ask([Question("columns", Total(), share)])[0]
        known.add((), again.values.astype(np.float64), again.sd**2)


def _plan(
    ask: Ask, cube: Cube, rest: Fraction, weights: Mapping[str, float], rows: float
) -> dict[int, tuple[list[Axes], Fraction]]:
    """For each order the sets of columns to ask about, and their share: as many orders as are quiet.
    Order 0 is the number of rows. Empty if pairs are not quiet."""
    size = SIZE if not cube.omega.rows_public else 0.0
    columns = weights["columns"] * max(COLUMNS, weights["columns"] / sum(weights.values()))
    each = [columns, weights["columns"] - columns + weights["misfit"] + weights["links"]]
    each += [weights["pairs"] * part for part in FURTHER]
    power = weight_power(is_gaussian(ask))
    for top in range(min(len(each), len(cube.wide)), 1, -1):
        plan: dict[int, tuple[list[Axes], Fraction]] = {}
        own = [size * sum(each[:top]), *each[:top]] if size else each[:top]
        shares = divide(rest, own)
        plan[0] = ([()], shares.pop(0) if size else Fraction(0))
        for order, share in enumerate(shares, start=1):
            sets = list(combinations(cube.wide, order)) if cube.choices(order) <= MOST_SETS else []
            sets.sort(key=lambda axes: (cube.numbers(axes), axes))
            most = cube.most(sum(len(some) for some, _ in plan.values()))
            if order > 1:
                sets = _quiet(ask, cube, sets, share, power, QUIET[order] * rows, most) if most else []
            if sets:
                plan[order] = (sets, share)
        if len(plan) == top + 1:
            return plan
    return {}


def _quiet(
    ask: Ask, cube: Cube, sets: list[Axes], share: Fraction, power: float, noise: float, most: int
) -> list[Axes]:
    """The sets, without the largest, that a share buys with little noise."""
    sizes = sorted({cube.numbers(axes) for axes in sets}, reverse=True)
    for size in sizes:
        some = [axes for axes in sets if cube.numbers(axes) <= size]
        weights = [cube.numbers(axes) ** power for axes in some]
        own = share * Fraction(weights[-1] / sum(weights[-most:]))
        if ask.sd(cube.question("pairs", some[-1], own)) * cube.functions(some[-1]) <= noise:
            return some
    return []


def _impossible(omega: Domain, rules: Rules) -> NDArray[np.bool_] | None:
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


def _model(cube: Cube, p: Floats, plan: Mapping[int, tuple[list[Axes], Fraction]]) -> Model:
    names = [column.name for column in cube.columns]
    kinds = {2: "pairs", 3: "threes", 4: "fours"}
    facts: dict[str, Any] = {"cells": cube.known.basis.cells}
    for order, kind in kinds.items():
        facts[kind] = sum(len(axes) == order for axes in cube.theta)
    strongest = cube.strongest(plan[2][0], 10)
    facts["strongest_pairs"] = [[names[j] for j in axes] for axes in strongest]
    return Model(round(cube.known.rows), _drawing(cube, p), (), facts)


def _drawing(cube: Cube, p: Floats) -> Callable[[int, np.random.Generator], Iterator[Block]]:
    """Rows at even distances along the cells; those of a block are between those of the blocks before."""
    upto = np.cumsum(p)
    upto /= upto[-1]
    last = int(np.flatnonzero(p)[-1])

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        start = rng.random()
        for number, at in enumerate(range(0, rows, BLOCK)):
            many = min(BLOCK, rows - at)
            points = (np.arange(many) + (start + number * GOLDEN) % 1.0) / many
            cells = np.minimum(np.searchsorted(upto, points, side="right"), last)
            codes = np.unravel_index(rng.permutation(cells), cube.known.basis.sizes)
            yield {column.name: code for column, code in zip(cube.columns, codes, strict=True)}

    return draw
