"""How many rows the unit of a row has, given what is known of the unit: from noisy tables, one for each of
its columns.

A row is in a unit of so many rows with a probability that depends on the cells of the unit's columns. The
tables say how many units of each cell have so many rows, so how many rows are in such units; iterative
scaling finds the probabilities that agree with all tables on the model's own rows, last of all with how many
rows all units of a size have, and are otherwise as even as can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.units.distribution import Distribution
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.questions import Answer, Bins, Floats, Ints

CELLS = 12  # of a column of numbers, by quantiles of the model's rows
CATEGORIES = 24  # that have cells of their own; more are cut as numbers are
ROUNDS = 25
LEAST, MOST = 1e-4, 1e4  # by which one round may change a probability


@dataclass(frozen=True, eq=False)
class Sizes:
    """The probabilities: `overall` of a row to be in a unit of each group of sizes, and factors by cell of
    each axis."""

    units: Distribution
    overall: Floats
    axes: tuple[Bins, ...]
    factors: tuple[Floats, ...]

    def chances(self, codes: Mapping[str, Ints]) -> Floats:
        """For each row, the probability of each group of sizes."""
        rows = len(next(iter(codes.values())))
        found = np.tile(self.overall, (rows, 1))
        for axis, factor in zip(self.axes, self.factors, strict=True):
            found *= factor[cells_of(axis, codes)]
        return _normalised(found)


def axis_of(column: Column, codes: Ints) -> Bins:
    """Cells of a unit's column: its categories, or quantiles of the model's rows; missing alone."""
    if column.categorical and column.codes <= CATEGORIES:
        return Bins(column.name, tuple(range(column.codes + 1)))
    values = np.sort(codes[codes < column.size])
    at = values[np.arange(1, CELLS) * len(values) // CELLS].tolist() if len(values) else []
    return Bins(column.name, tuple(sorted({0, *at, column.size, column.codes})))


def cells_of(axis: Bins, codes: Mapping[str, Ints]) -> Ints:
    """The cell of each row."""
    return np.asarray(np.searchsorted(axis.edges, codes[axis.column], side="right") - 1, np.int64)


def sizes_of(
    axes: Sequence[Bins], answers: Sequence[Answer], codes: Mapping[str, Ints], units: Distribution
) -> Sizes:
    """Probabilities that agree with all noisy tables, on rows of the model."""
    part = _part(units.units)
    whole = _part(part * units.means)
    tables = [answer.values.reshape(-1, len(part)).astype(np.float64) for answer in answers]
    targets = [
        _normalised(_by_cell(table, answer.sd, part) * units.means)
        for table, answer in zip(tables, answers, strict=True)
    ]
    rows = len(next(iter(codes.values()), ()))
    if not axes or not rows:
        return Sizes(units, whole, (), ())
    places = [cells_of(axis, codes) for axis in axes]
    overall, factors = whole.copy(), [np.ones_like(target) for target in targets]
    found = np.tile(overall, (rows, 1))
    for turn in range(2 * ROUNDS):
        # The second half is for the sizes alone: tables and rows may not agree on how large cells are.
        by_column = zip(places, targets, factors, strict=True) if turn < ROUNDS else ()
        for place, target, factor in by_column:
            now = np.stack([np.bincount(place, own, len(target)) for own in found.T], axis=1)
            ratio = _ratio(target, _normalised(now.astype(np.float64)))
            factor *= ratio
            found = _normalised(found * ratio[place])
        ratio = _ratio(whole, found.mean(axis=0))
        overall *= ratio
        found = _normalised(found * ratio)
    return Sizes(units, overall, tuple(axes), tuple(factors))


def _ratio(wanted: Floats, now: Floats) -> Floats:
    return np.clip(wanted / np.maximum(now, 1e-12), LEAST, MOST)


def _by_cell(table: Floats, sd: float, whole: Floats) -> Floats:
    """The share of each cell's units that have so many rows. Cells with few units for their noise are drawn
    to the whole table's."""
    found = np.empty_like(table)
    for cell, counts in enumerate(table):
        many = max(0.0, float(counts.sum()))
        own = _part(on_simplex(counts, many)) if many > 0 else whole
        trust = many**2 / (many**2 + len(whole) ** 2 * sd**2 + 1e-9)
        found[cell] = trust * own + (1 - trust) * whole
    return found


def _part(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum()) if counts.sum() > 0 else np.full(len(counts), 1 / len(counts))


def _normalised(table: Floats) -> Floats:
    table = np.maximum(table, 1e-300)
    return np.asarray(table / table.sum(axis=1, keepdims=True))
