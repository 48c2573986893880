"""Factors of a step multiplied together: a row is looked up in a few tables instead of one for each factor.

A model of fifteen columns has hundreds of small factors. Those whose columns fit into one table of bounded
size are multiplied there; what rows had in it gives, added up, what they had in the table of each factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsynth_cli.mechanisms.joint.frame import Frame
from dpsynth_cli.mechanisms.joint.steps import Factor, Step
from dpsynth_cli.numeric.conditional import Sums
from dpsynth_cli.questions import Floats, Ints


@dataclass(frozen=True, eq=False)
class Part:
    """A factor of a fused table: its row for each row of the table, and the place of its cells among those of
    all factors of the step."""

    factor: Factor
    row: Ints
    place: slice

    def values(self, factors: Floats) -> Floats:
        """By what the cells of the table are multiplied."""
        own = factors[self.place].reshape(self.factor.counts.shape)
        return np.asarray(own[:, self.factor.group].take(self.row, axis=0))

    def sums(self, counts: Floats) -> Floats:
        """What a count of rows in the table's cells adds to its own."""
        return self._sums.of(counts, self.factor.group, self.factor.counts.shape[1]).ravel()

    @cached_property
    def _sums(self) -> Sums:
        return Sums(self.row, len(self.factor.counts))


@dataclass(frozen=True, eq=False)
class Fused:
    """A table of other columns, class by class, x cells of the working level; its factors in the order of the
    step, so that the link, if it is one of them, is the last."""

    others: tuple[int, ...]
    levels: tuple[int, ...]
    shape: tuple[int, int]
    parts: tuple[Part, ...]
    linked: Ints | None  # the link's row of each row of this table, if the link is among its factors

    def product(self, factors: Floats) -> Floats:
        """Its factors multiplied; `factors` are those of the step, one after the other."""
        found = self.parts[0].values(factors)
        for part in self.parts[1:]:
            found *= part.values(factors)
        return found

    def sums(self, counts: Floats, into: Floats) -> None:
        """Add what a count of rows in its cells adds to the cells of the step's factors."""
        for part in self.parts:
            into[part.place] += part.sums(counts.reshape(self.shape))


def fused(frame: Frame, step: Step, most: int) -> list[Fused]:
    """Tables of at most so many numbers that together have every factor of a step, the link in the first.

    Factors of most cells come first, each goes where it adds least; one that is larger has its own table.
    """
    classes, cells = step.start.shape
    groups: list[tuple[dict[int, int], list[int]]] = []  # the level of each column, and factors

    def size(levels: dict[int, int]) -> int:
        other = math.prod(frame.ladders[i].size(level) for i, level in levels.items())
        return int(classes * cells * other)

    last = len(step.factors) - 1
    order = sorted(range(last + 1), key=lambda at: (at < last, -len(step.factors[at].counts), at))
    for at in order:
        own = dict(zip(step.factors[at].others, step.factors[at].levels, strict=True))
        both = [_finer(known, own) for known, _ in groups]
        more = [
            (size(one) / size(known), at)
            for at, (one, (known, _)) in enumerate(zip(both, groups, strict=True))
            if size(one) <= most
        ]
        if more:
            best = min(more)[1]
            groups[best] = both[best], [*groups[best][1], at]
        else:
            groups.append((own, [at]))
    return [_fused(frame, step, known, members) for known, members in groups]


def _finer(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    """The columns of both, each at the finer of its levels."""
    return {i: max(one.get(i, 0), other.get(i, 0)) for i in sorted({*one, *other})}


def _fused(frame: Frame, step: Step, known: dict[int, int], members: Sequence[int]) -> Fused:
    classes, cells = step.start.shape
    starts = np.cumsum([0, *[own.counts.size for own in step.factors]])
    sizes = [frame.ladders[i].size(level) for i, level in known.items()]
    first, *rest = np.indices((classes, *sizes)).reshape(len(sizes) + 1, -1)
    cell = dict(zip(known, rest, strict=True))
    parts, linked = [], None
    for at in sorted(members):
        factor, row = step.factors[at], first
        for i, level in zip(factor.others, factor.levels, strict=True):
            own = frame.ladders[i]
            row = row * own.size(level) + own.between(known[i], level)[cell[i]]
        if step.linked and at == len(step.factors) - 1:
            linked = row
        parts.append(Part(factor, row, slice(starts[at], starts[at + 1])))
    return Fused(tuple(known), tuple(known.values()), (len(first), cells), tuple(parts), linked)
