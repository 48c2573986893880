"""Factors of a step multiplied together: a row is looked up in a few tables instead of one for each factor.

A model of fifteen columns has hundreds of small factors. Those whose columns fit into one table of bounded
size are multiplied there; what rows had in it gives, added up, what they had in the table of each factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.mechanisms.joint.frame import Frame
from dpsynth_cli.mechanisms.joint.steps import Step
from dpsynth_cli.questions import Floats, Ints


@dataclass(frozen=True, eq=False)
class Fused:
    """A table of other columns, class by class, x cells of the working level. `places` has a row for each of
    its factors: the place of every cell of this table among the cells of all factors of the step."""

    others: tuple[int, ...]
    levels: tuple[int, ...]
    shape: tuple[int, int]
    linked: Ints | None  # the link's row of each row of this table, if the link is among its factors
    places: NDArray[np.int32]

    def product(self, factors: Floats) -> Floats:
        """Its factors multiplied; `factors` are those of the step, one after the other."""
        return np.asarray(np.multiply.reduce(factors.take(self.places), axis=0).reshape(self.shape))

    def sums(self, counts: Floats, cells: int) -> Floats:
        """What a count of rows in its cells adds to all cells of the step's factors."""
        return np.asarray(
            np.bincount(self.places.ravel(), np.tile(counts, len(self.places)), cells), np.float64
        )


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
    places, linked = [], None
    for at in members:
        factor, row = step.factors[at], first
        for i, level in zip(factor.others, factor.levels, strict=True):
            own = frame.ladders[i]
            row = row * own.size(level) + own.between(known[i], level)[cell[i]]
        if step.linked and at == len(step.factors) - 1:
            linked = row
        places.append((starts[at] + row[:, None] * factor.counts.shape[1] + factor.group).ravel())
    return Fused(tuple(known), tuple(known.values()), (len(first), cells), linked, np.array(places, np.int32))
