"""Intervals of quantiles, by inversion of what cells say about the rows below a value.

R. Woodruff: Confidence Intervals for Medians and Other Position Measures, JASA 47, 1952. At the end of each
cell that was counted, the noise says whether the rows below can be fewer, or more, than the quantile asks
for. The interval ends at the first such end that they cannot; where values lie inside of cells has no part
in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsynth_cli.inference.cells import cell_ends
from dpsynth_cli.inference.statistics import Codes, Statistic
from dpsynth_cli.inference.tables import CellOf
from dpsynth_cli.questions import Floats, Ints
from dpsynth_cli.relations.nodes import Name
from dpsynth_cli.values import numbers_of

NEAR = 48  # ends of cells to each side of a quantile that are all looked at; of those beyond, ever fewer
FAR = 32


@dataclass(frozen=True, eq=False)
class Below:
    """How many rows of each group are at or below ends of cells, beyond what the quantile asks for: a
    function of rows and weights."""

    statistic: Statistic
    ends: Ints  # codes of its column, rising

    @cached_property
    def column(self) -> str:
        part = self.statistic.query.of[0]
        assert isinstance(part, Name)
        return part.name

    def __call__(self, codes: Codes, weight: Floats) -> Floats:
        chosen, group = self.statistic.members(codes)
        many, size = len(self.statistic.keys), len(self.ends) + 1
        place = np.searchsorted(self.ends, codes[self.column][chosen])
        rows = np.bincount(group * size + place, weight[chosen], many * size).reshape(many, size)
        below = np.cumsum(rows, axis=1)
        return np.asarray(below[:, :-1] - float(self.statistic.query.level) * below[:, -1:])

    def spread(self, codes: Codes, weight: Floats) -> Floats:
        """The variance of this over tables from the same population."""
        chosen, group = self.statistic.members(codes)
        rows = np.bincount(group, weight[chosen], len(self.statistic.keys))
        q = float(self.statistic.query.level)
        return np.asarray(np.maximum(rows, 0.0) * q * (1 - q))[:, None]

    def interval(self, beyond: Floats, half: Floats) -> tuple[float, float]:
        """The quantile of a group: `beyond` at each end, and how far off that may be to each side."""
        above = np.logical_and.accumulate(beyond + half < 0)  # it is above all of these
        below = np.logical_and.accumulate((beyond - half >= 0)[::-1])[::-1]  # and not above any of these
        column = self.statistic.domain[self.column]
        low = self.ends[above][-1] + 1 if above.any() else 0
        high = self.ends[below][0] if below.any() else column.size - 1
        first, last = numbers_of(np.array([low, max(low, high)]), column)
        return float(first), float(last)


def below_ends(statistic: Statistic, codes: Codes, weight: Floats, cells: list[CellOf]) -> Below | None:
    """For a quantile of a column whose cells were counted: at their ends, more of them near to it."""
    part = statistic.query.of[0]
    if not isinstance(part, Name) or part.name not in statistic.columns or not cells:
        return None
    column = statistic.domain[part.name]
    points = cell_ends(column.size, cells)
    points = points[points < column.size - 1]
    ends = points[np.any([cell(points) != cell(points + 1) for cell in cells], axis=0)]
    if not len(ends):
        return None
    every = Below(statistic, ends)
    keep = np.zeros(len(ends), bool)
    far = np.unique(np.geomspace(NEAR, max(NEAR + 1, len(ends)), FAR).astype(np.int64))
    steps = np.concatenate([np.arange(NEAR), far])
    for row in every(codes, weight):
        middle = int(np.argmin(np.abs(row)))
        for places in (middle - steps, middle + steps):
            keep[places[(places >= 0) & (places < len(ends))]] = True
    return Below(statistic, ends[keep])
