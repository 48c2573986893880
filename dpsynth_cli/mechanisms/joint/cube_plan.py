"""What is asked for one model of every combination: as many orders of columns as are quiet, and their shares.

Public facts decide (columns, rows, budget). If all pairs are quiet nothing is looked at before it is counted.
Else, if it would show how far pairs are from independence, there is a look at them first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.joint.characters import binary, character
from dpsynth_cli.mechanisms.joint.residuals import Axes
from dpsynth_cli.mechanisms.joint.survey import HOPELESS, gap_noise, is_gaussian
from dpsynth_cli.numeric.selection import weight_power
from dpsynth_cli.questions import Ask, Bins, CellCounts, Cells, Question
from dpsynth_cli.shares import divide

SIZE = 0.03  # of the budget, for the number of rows
QUIET = {
    2: 0.6,
    3: 0.06,
    4: 0.025,
}  # noise of what is asked of so many columns, as a part of the rows, at most
COLUMNS = 0.75  # of the share of columns, for them by themselves; pairs tell of them too
FURTHER = (0.6, 0.4)  # of the share of pairs, for three and four columns
MOST_SETS = 50_000  # of columns, that are ranked


@dataclass(frozen=True)
class Tables:
    """Questions about sets of columns."""

    columns: Sequence[Column]

    @property
    def wide(self) -> list[int]:
        return [j for j, column in enumerate(self.columns) if column.codes > 1]

    def cells(self, axes: Axes) -> Cells:
        columns = [self.columns[j] for j in axes]
        return Cells(tuple(Bins(column.name, tuple(range(column.codes + 1))) for column in columns))

    def question(self, step: str, axes: Axes, share: Fraction) -> Question:
        columns = [self.columns[j] for j in axes]
        if all(map(binary, columns)):
            return character(step, columns, share, None)
        return Question(step, CellCounts(self.cells(axes)), share)

    def numbers(self, axes: Axes) -> int:
        """How many numbers are asked of these columns."""
        sizes = [self.columns[j].codes for j in axes]
        return 1 if max(sizes) == 2 else math.prod(sizes)

    def functions(self, axes: Axes) -> float:
        """By what the noise of an answer is multiplied in a table of all functions of these columns."""
        if self.numbers(axes) == 1:
            return 1.0
        return math.sqrt(math.prod(self.columns[j].codes * (self.columns[j].codes - 1) for j in axes))

    def sets(self, order: int) -> list[Axes]:
        """All sets of so many columns, those of few numbers first; none if there are too many."""
        if math.comb(len(self.wide), order) > MOST_SETS:
            return []
        return sorted(combinations(self.wide, order), key=lambda axes: (self.numbers(axes), axes))


@dataclass(frozen=True)
class Plan:
    """Shares of the number of rows and of a look at pairs; for each order the sets of columns, and theirs."""

    rows: Fraction
    look: Fraction
    orders: list[tuple[list[Axes], Fraction]]


def plan(
    ask: Ask, tables: Tables, rest: Fraction, weights: Mapping[str, float], rows: float, most: int, size: bool
) -> Plan | None:
    """What to ask for a share of the budget, of at most so many sets of columns; with `size`, the number of
    rows too. None if noise would hide every pair."""
    alone = weights["columns"] * max(COLUMNS, weights["columns"] / sum(weights.values()))
    pairs = weights["columns"] - alone + weights["misfit"] + weights["links"]
    each = [alone, pairs, *[weights["pairs"] * part for part in FURTHER]]
    every = tables.sets(2)
    for top in range(min(len(each), len(tables.wide)), 1, -1):
        first, shares = _shares(rest, each[:top], size)
        orders = [(tables.sets(1), shares[0])]
        for order, share in enumerate(shares[1:], start=2):
            left = most - sum(len(sets) for sets, _ in orders)
            sets = _quiet(ask, tables, tables.sets(order), share, QUIET[order] * rows, left)
            if sets and (order > 2 or len(sets) == len(every)):
                orders.append((sets, share))
        if len(orders) == top:
            return Plan(first, Fraction(0), orders)
    loud = [weights["columns"], weights["misfit"], weights["links"] + weights["pairs"]]
    first, (own, look, share) = _shares(rest, loud, size)
    if not every or gap_noise(ask, len(every), look, rows) > HOPELESS:
        return None
    return Plan(first, look, [(tables.sets(1), own), (every, share)])


def _shares(rest: Fraction, weights: Sequence[float], size: bool) -> tuple[Fraction, list[Fraction]]:
    """The share of the number of rows, if that is asked, and those of such weights."""
    if not size:
        return Fraction(0), divide(rest, weights)
    first, *shares = divide(rest, [SIZE * sum(weights), *weights])
    return first, shares


def _quiet(
    ask: Ask, tables: Tables, sets: list[Axes], share: Fraction, noise: float, most: int
) -> list[Axes]:
    """The sets, without the largest, that a share buys with little noise."""
    power = weight_power(is_gaussian(ask))
    for size in sorted({tables.numbers(axes) for axes in sets}, reverse=True) if most > 0 else ():
        some = [axes for axes in sets if tables.numbers(axes) <= size]
        weights = [tables.numbers(axes) ** power for axes in some]
        own = share * Fraction(weights[-1] / sum(weights[-most:]))
        if ask.sd(tables.question("pairs", some[-1], own)) * tables.functions(some[-1]) <= noise:
            return some
    return []
