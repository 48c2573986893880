"""How rows of a unit follow one another: which tables of pairs are asked for, and what they say once noise is
taken for what it is.

For every column of a row (not of the unit, not of time) a table of its cells before and after, once for a row
and the one before it, once for a row and the first of its run; of a column with more categories than noise
allows only whether it is the same. For numbers how far they change besides. For time the gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpsynth_cli.changes import change_codes, change_step, change_zero
from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.units.sizes import CATEGORIES
from dpsynth_cli.numeric.exact import inner, log
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.questions import Answer, Ask, Bins, Floats, Ints, Question, UnitPairs
from dpsynth_cli.shares import divide

STEP = "pairs"
NEAR, FAR, CHANGED, GAP = 1.0, 0.5, 0.5, 0.5  # weights of the questions
FINEST = (12, 8, 6, 4, 3, 2)  # cells of a number
QUIET, LOUD = 0.2, 0.5  # noise of a table, as a part of its pairs, up to which cells are made finer
WEIGHED = 0.05  # the error, as a part, of counting pairs of units with few rows as much as those with many
TYPICAL = 16  # cells of a table


@dataclass(frozen=True, eq=False)
class Link:
    """A column before and after. Its state is its cell; without an axis its code, and what is known of a pair
    is whether it is less, the same, more, or from or to missing."""

    column: Column
    axis: Bins | None
    near: Floats = field(default_factory=lambda: np.zeros(0))  # logarithms of weights
    far: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def shape(self) -> tuple[int, int]:
        """Cells before, cells after."""
        return (1, 4) if self.axis is None else (len(self.axis.edges) - 1,) * 2

    @property
    def many(self) -> int:
        """How many states there are."""
        return self.column.codes if self.axis is None else self.shape[1]

    def states(self, codes: Ints) -> Ints:
        return codes if self.axis is None else np.searchsorted(self.axis.edges, codes, side="right") - 1

    def cells(self, before: Ints, after: Ints) -> Ints:
        """The cell of each pair of states in its table."""
        if self.axis is not None:
            return np.asarray(before * self.shape[1] + after)
        missing = (before >= self.column.size) | (after >= self.column.size)
        return np.asarray(np.where(missing & (before != after), 3, np.sign(after - before) + 1))

    def question(self, share: Fraction, most: int, far: bool) -> Question:
        if self.axis is not None:
            return Question(STEP, UnitPairs((self.axis,), (self.axis,), (), most, far), share)
        zero, last = change_zero(self.column), change_codes(self.column)
        edges = (0, zero, zero + 1, last - self.column.nullable, last)
        return Question(STEP, UnitPairs((), (), (Bins(self.column.name, edges),), most, far), share)


def link_of(column: Column, codes: Ints, sd: float, pairs: float) -> Link:
    """Cells of a column as fine as noise allows, or none."""
    if column.categorical:
        fine = column.codes <= CATEGORIES and column.codes**2 * sd <= LOUD * pairs
        return Link(column, Bins(column.name, tuple(range(column.codes + 1))) if fine else None)
    cells = next((many for many in FINEST if many**2 * sd <= QUIET * pairs), FINEST[-1])
    values = np.sort(codes[codes < column.size])
    at = values[np.arange(1, cells) * len(values) // cells].tolist() if len(values) else []
    return Link(column, Bins(column.name, tuple(sorted({0, *at, column.size, column.codes}))))


def change_axis(column: Column, codes: Ints) -> Bins:
    """Changes of a number: none, by very little, a little .. in both directions, by how far its values lie
    apart in the model; and missing."""
    values = codes[codes < column.size]
    spread = float(np.quantile(values, 0.9) - np.quantile(values, 0.1)) if len(values) else 1.0
    far = {int(spread / part / change_step(column)) for part in (64, 16, 4, 1)}
    near = {1, 2, 3} if spread < 1000 else {1}
    zero, last = change_zero(column), change_codes(column) - column.nullable
    up = sorted(step for step in far | near if 0 < step < column.size)
    edges = {0, last, change_codes(column)} | {zero + step for step in up} | {zero + 1 - step for step in up}
    return Bins(column.name, tuple(sorted(edge for edge in edges if 0 <= edge <= change_codes(column))))


def gap_axis(column: Column, sd: float, pairs: float) -> Bins:
    """Gaps of time: alone where they are short, then octave by octave; fewer where there is noise."""
    zero, codes = change_zero(column), change_codes(column)
    steps = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, *(2**power for power in range(5, 31))]
    edges = [zero + step for step in steps if zero + step < codes]
    while len(edges) > 6 and len(edges) * sd > LOUD * pairs:
        edges = edges[:4] + edges[5::2]
    return Bins(column.name, tuple(sorted({0, *edges, codes})))


def most_pairs(ask: Ask, share: Fraction, units: Floats, spread: int) -> int:
    """How many pairs of a unit are counted: few where noise for many would be worse than that units with many
    rows count for less. `units` is how many have 1, 2, .. rows; the share is for `spread` tables."""
    k, size = len(units), np.arange(1, len(units) + 1)
    tried = sorted({1, k - 1} | {step for step in (2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128) if step < k - 1})
    whole = max(1.0, inner(units, size - 1))

    def error(most: int) -> float:
        many = max(1.0, inner(units, np.minimum(size - 1, most)))
        sd = ask.sd(_typical(share / spread, most))
        return float(TYPICAL * sd / many + (TYPICAL / many) ** 0.5 + WEIGHED * (1 - many / whole))

    def _typical(own: Fraction, most: int) -> Question:
        return Question(STEP, UnitPairs((), (), (), most), own)

    return min(tried, key=error)


@dataclass(frozen=True, eq=False)
class Told:
    """A noisy table of pairs as what it says of what comes after, given what was before."""

    after: Floats  # probabilities, a row for each cell before
    trust: Floats  # how far they stand above noise, a row each
    before: Floats  # the part of pairs that each row has

    @property
    def information(self) -> float:
        """How much what was before tells of what comes after, as far as it stands above noise."""
        after = (self.before[:, None] * self.after).sum(axis=0)
        each = self.after * log(np.maximum(self.after, 1e-12) / np.maximum(after, 1e-12))
        return float((self.before[:, None] * self.trust * each).sum())

    def given(self, expected: Floats) -> Floats:
        """Drawn to what is expected where noise is as large as what was counted."""
        return self.trust * self.after + (1 - self.trust) * expected


def told(answer: Answer, shape: tuple[int, int]) -> Told:
    counts = answer.values.astype(np.float64)
    table = on_simplex(counts, max(0.0, float(counts.sum()))).reshape(shape)
    many = table.sum(axis=1, keepdims=True)
    trust = many**2 / (many**2 + shape[1] ** 2 * answer.sd**2 + 1e-9)
    part = many[:, 0] / max(1e-9, float(many.sum()))
    return Told(table / np.maximum(many, 1e-9), np.where(many > 0, trust, 0.0), part)


@dataclass(frozen=True)
class Plan:
    """The questions about pairs of one release, in order, and what they are about."""

    links: tuple[Link, ...]
    changes: Mapping[str, Bins]
    gap: Bins
    most: int
    far: int  # pairs with the first of a run that are counted of a unit; 0: none
    questions: tuple[Question, ...]


def plan(
    ask: Ask,
    columns: Sequence[Column],
    time: Column,
    codes: Mapping[str, Ints],
    units: Floats,
    share: Fraction,
) -> Plan:
    """What is asked for a share of the budget, where so many `units` have 1, 2, .. rows."""
    numbers = [column for column in columns if not column.categorical]
    k = len(units)
    weights = [GAP, *[NEAR] * len(columns), *[CHANGED] * len(numbers)]
    weights += [FAR] * len(columns) if k > 2 else []
    shares = divide(share, weights)
    most = most_pairs(ask, share, units, len(weights))
    far = min(most, k - 2)
    pairs = max(1.0, inner(units, np.minimum(np.arange(k), most)))
    near, changed = shares[1 : 1 + len(columns)], shares[1 + len(columns) :]
    typical = Question(STEP, UnitPairs((), (), (), most), near[0] if near else shares[0])
    sd = ask.sd(typical)
    links = tuple(link_of(column, codes[column.name], sd, pairs) for column in columns)
    gap = gap_axis(time, ask.sd(Question(STEP, typical.statistic, shares[0])), pairs)
    changes = {column.name: change_axis(column, codes[column.name]) for column in numbers}
    asked = [Question(STEP, UnitPairs((), (), (gap,), most), shares[0])]
    asked += [link.question(own, most, False) for link, own in zip(links, near, strict=True)]
    asked += [
        Question(STEP, UnitPairs((), (), (axis,), most), own)
        for axis, own in zip(changes.values(), changed, strict=False)
    ]
    if far:
        own_far = changed[len(numbers) :]
        asked += [link.question(own, far, True) for link, own in zip(links, own_far, strict=True)]
    return Plan(links, changes, gap, most, far, tuple(asked))
