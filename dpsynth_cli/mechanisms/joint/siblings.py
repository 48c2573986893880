"""Rows that are drawn given columns that are known: children given their parent and the child before them.

The given columns of the rows that a model is fitted on come from the model of parents. Those of the child
before are what the model so far draws: when it has been fitted, children are drawn again, first ones first,
and what they are is what the next ones are given. Half of the families are renewed each time: if all were, a
model that has too many of something would be followed by one that has too few, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.joint.chain import Chain
from dpsynth_cli.mechanisms.joint.frame import Frame, Table
from dpsynth_cli.mechanisms.joint.ladder import Ladder, ladder
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from dpsynth_cli.numeric.exact import log
from dpsynth_cli.questions import Floats, Ints

FINEST = 512  # cells of a numeric column that rows are given
RENEWED = 0.5  # of the families, each time
RUNS = 64  # of its values, by quantiles


@dataclass
class Siblings:
    """Families that a model is fitted on, one child after the other.

    `cells` has the finest cell of each given column, by its number; `before` is, for each column of the child
    before, the own column that it is a copy of, and its cell for each of that one's, and for none; `place` is
    that of a child among its siblings; `asked` are the rows that are like those that questions are about.
    """

    cells: dict[int, Ints]
    before: dict[int, tuple[int, Ints]]
    place: Ints
    asked: Ints

    @property
    def given(self) -> list[int]:
        return sorted(self.cells)

    @property
    def known(self) -> dict[int, Ints]:
        """The given cells of the rows that a model is fitted on."""
        return {j: cells[self.asked] for j, cells in self.cells.items()}

    def draw_again(self, chain: Chain, rng: np.random.Generator) -> Ints:
        """All columns of all children, drawn in their order; in some families each is from then on what the
        next one is given."""
        cells = self.drawn(chain, self.cells, self.place, rng)
        family = np.cumsum(self.place == 0)
        new = (rng.random(int(family[-1]) + 1) < RENEWED)[family]
        self.cells |= {j: np.where(new, cells[j], self.cells[j]) for j in self.before}
        return cells

    def drawn(self, chain: Chain, cells: Mapping[int, Ints], place: Ints, rng: np.random.Generator) -> Ints:
        """The finest cells of all columns (columns x rows) of children given their parents' cells: the first
        ones, then the second ones given them."""
        found: Ints | None = None
        feedback = chain.feedback()
        for number in range(int(place.max(initial=0)) + 1):
            own = np.flatnonzero(place == number)
            known = {j: cells[j][own] for j in self.given if j not in self.before}
            for j, (source, copy) in self.before.items():
                known[j] = np.full(len(own), copy[-1]) if found is None else copy[found[source, own - 1]]
            made = chain.draw(np.zeros(len(own), np.int64), feedback, rng, known)
            if found is None:
                found = np.zeros((len(made), len(place)), np.int64)
            found[:, own] = made
        assert found is not None
        return found


def given_first(
    given: Sequence[int], pairs: Mapping[tuple[int, int], Table], d: int
) -> list[tuple[int, Table | None]]:
    """An order of all columns, the given ones first; each of the others with the strongest link to one before
    it."""
    order: list[tuple[int, Table | None]] = [(j, None) for j in given]
    placed, left = set(given), [j for j in range(d) if j not in set(given)]
    strength = {pair: _information(link.counts.sum(axis=0)) for pair, link in pairs.items()}
    while left:
        links = [
            (round(strength[pair], 9), -j, pair)
            for pair in pairs
            for j, other in (pair, pair[::-1])
            if j in left and other in placed
        ]
        if links:
            _, number, pair = max(links)
            j, link = -number, pairs[pair]
        else:
            j, link = max(left, key=lambda j: (sum(j in pair for pair in pairs), -j)), None
        order.append((j, link))
        placed.add(j)
        left.remove(j)
    return order


def _information(table: Floats) -> float:
    """How much two columns tell of each other, in nats."""
    p = table / max(float(table.sum()), 1e-300)
    both = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    there = p > 0
    return float((p[there] * log(p[there] / both[there])).sum())


def with_given(frame: Frame, ladders: Sequence[Ladder], most: int) -> Frame:
    """The frame with more columns behind its own; all have as many rows as its own have. They are looked at
    in at most so many cells."""
    total = float(frame.totals.sum())
    masses = [np.array([own.finest.masses(0)]) for own in ladders]
    masses = [mass * (total / max(float(mass.sum()), 1e-300)) for mass in masses]
    return Frame(
        [*frame.ladders, *ladders],
        [*frame.masses, *masses],
        [*frame.coarse, *[own.level(most) for own in ladders]],
        frame.impossible,
    )


def known_ladder(column: Column, codes: Ints) -> Ladder:
    """A column by rows that are known: its categories, or runs of about as many rows."""
    size = column.size
    if column.categorical or size <= RUNS:
        first = np.arange(column.codes)
    else:
        values = np.sort(codes[codes < size])
        at = values[np.arange(1, RUNS) * len(values) // RUNS] if len(values) else np.zeros(0, np.int64)
        first = np.unique([0, *at.tolist(), *([size] if column.nullable else [])])
    width = np.diff(np.append(first, column.codes))
    run = np.searchsorted(first, codes, side="right") - 1
    mass = np.bincount(run, minlength=len(first)).astype(np.float64)
    return ladder(column, Marginal(first, width, [np.maximum(mass, 1e-6)]), FINEST)


def ladder_before(column: Column, own: Ladder, mass: Floats, first: float) -> Ladder:
    """The same column of the child before: the same cells, and one more where there is none, of a part
    `first` of all rows."""
    codes = own.codes_of(own.top)
    none = float(mass.sum()) * first
    masses = mass * (1 - first)
    if own.column.nullable:
        masses = np.append(masses[:-1], masses[-1] + none)
    else:
        codes, masses = np.append(codes, column.size), np.append(masses, none)
    width = np.diff(np.append(codes, column.codes))
    return ladder(column, Marginal(codes, width, [np.maximum(masses, 1e-6)]), FINEST)


def cells_of_codes(own: Ladder, codes: Ints) -> Ints:
    """The finest cell of each code."""
    return np.asarray(np.searchsorted(own.codes_of(own.top), codes, side="right") - 1, np.int64)
