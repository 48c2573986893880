"""Which rows units begin with, and how many rows they have: rows of a model, weighed so that they agree with
the noisy tables of units by size and a column of the unit, or the time of its first row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.units.distribution import Distribution
from dpsynth_cli.mechanisms.units.sizes import LEAST, MOST, ROUNDS, cells_of
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.questions import Answer, Bins, Floats, Ints


@dataclass(frozen=True, eq=False)
class Heads:
    """A factor for each cell of an axis and each group of sizes; a row and a size are as likely as their
    factors multiplied."""

    units: Distribution
    axes: tuple[Bins, ...]
    factors: tuple[Floats, ...]

    def by(self, axes: Sequence[Bins]) -> Heads:
        """The same, which can be weighed by more axes, whatever the size."""
        more = [np.ones((len(axis.edges) - 1, 1)) for axis in axes]
        return replace(self, axes=(*self.axes, *axes), factors=(*self.factors, *more))

    def weigh(self, axis: Bins, ratio: Floats) -> None:
        """Rows in each cell of an axis so much more likely."""
        factor = self.factors[self.axes.index(axis)]
        factor *= ratio[:, None]

    def places(self, codes: Mapping[str, Ints]) -> list[Ints]:
        """The cell of each row on every axis: found once for rows that are drawn from many times."""
        return [cells_of(axis, codes) for axis in self.axes]

    def weights(self, places: Sequence[Ints]) -> Floats:
        """Of each group of sizes, for each row. However rows are weighed, a group has as many units."""
        wanted = self.units.units[:, None]
        found = np.tile(wanted, (1, len(places[0])))
        for place, factor in zip(places, self.factors, strict=True):
            found *= np.ascontiguousarray(factor.T).take(place, axis=1)
        whole = found.sum(axis=1, keepdims=True)
        even = wanted / max(1, found.shape[1])
        scale = np.divide(wanted, whole, out=np.zeros_like(wanted), where=whole > 0)
        return np.asarray(np.where(whole > 0, found * scale, even))

    def drawn(self, places: Sequence[Ints], count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """So many units, in any order: the row that each begins with, and how many it has."""
        upto = np.cumsum(self.weights(places))  # even over sizes, and over rows next to each other
        at = (np.arange(count) + rng.random()) / max(1, count) * upto[-1]
        place = np.minimum(np.searchsorted(upto, at, side="right"), len(upto) - 1)
        group, row = np.divmod(place, len(upto) // len(self.units.units))
        size = self.units.sizes(group, rng)
        order = rng.permutation(count)
        return row[order], size[order]


def heads_of(
    axes: Sequence[Bins],
    answers: Sequence[Answer],
    codes: Mapping[str, Ints],
    units: Distribution,
    limits: tuple[Bins, Floats] | None = None,
) -> Heads:
    """Factors that agree with all tables on rows of the model; where a table's noise is large, with the sizes
    of all units. `limits` are factors that no table changes: 0 for what cannot be."""
    groups = len(units.units)
    tables = [answer.values.reshape(-1, groups).astype(np.float64) for answer in answers]
    places = [cells_of(axis, codes) for axis in axes]
    rows = len(places[0]) if places else 0
    weights = np.tile(units.units / max(1, rows), (rows, 1))
    if limits is not None and rows:
        can = limits[1][cells_of(limits[0], codes)]
        weights *= np.where(can.any(axis=0), can, 1.0)
    targets = [
        _target(table, answer.sd, units.units, np.bincount(place, minlength=len(table)))
        for table, answer, place in zip(tables, answers, places, strict=True)
    ]
    factors = [np.ones_like(table) for table in tables]
    for _ in range(ROUNDS if rows else 0):
        for place, target, factor in zip(places, targets, factors, strict=True):
            now = np.stack([np.bincount(place, own, len(target)) for own in weights.T], axis=1)
            ratio = np.where(now > 0, np.clip(target / np.maximum(now, 1e-12), LEAST, MOST), 1.0)
            factor *= ratio
            weights *= ratio[place]
    heads = Heads(units, tuple(axes), tuple(factors))
    if limits is None:
        return heads
    return replace(heads, axes=(*heads.axes, limits[0]), factors=(*heads.factors, limits[1]))


def in_time(time: Column, gap: int, edges: Sequence[int]) -> tuple[Bins, Floats]:
    """Cells of time, and which groups of sizes may begin in them: those whose units have time left for all
    their rows, at the gap that is usual for those that come soonest."""
    least = np.asarray(edges[:-1], np.int64)  # rows after the first
    latest = np.maximum(0, time.size - 1 - least * gap)
    cells = tuple(sorted({0, *(latest + 1).tolist(), time.codes}))
    starts = np.asarray(cells[:-1])
    return Bins(time.name, cells), (starts[:, None] <= latest).astype(np.float64)


def _target(table: Floats, sd: float, units: Floats, rows: Ints) -> Floats:
    """The units of each cell and size: noise below 0 is taken out, and cells whose noise is as large as what
    they have, or would have if all rows of the model were as likely, are drawn to that."""
    whole = max(1.0, float(units.sum()))
    own = on_simplex(table.ravel(), whole).reshape(table.shape)
    usual = np.outer(rows / max(1, rows.sum()), units)
    known = np.maximum(own.sum(axis=1, keepdims=True), usual.sum(axis=1, keepdims=True)) ** 2
    trust = known / (known + table.shape[1] * sd**2 + 1e-9)
    target = trust * own + (1 - trust) * usual
    return np.asarray(target * (units / np.maximum(target.sum(axis=0), 1e-9)))
