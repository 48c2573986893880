"""How many rows a unit has, given what is known of the unit: from noisy tables, one for each of its columns.

A row is in a unit of s rows with a probability that depends on the cells of the unit's columns. The tables
say how many units of each cell have s rows, so s times as many rows; iterative scaling finds the
probabilities that agree with all tables on the model's own rows and are otherwise as even as can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.questions import Answer, Bins, Floats, Ints

CELLS = 12  # of a column of numbers, by quantiles of the model's rows
CATEGORIES = 24  # that have cells of their own; more are cut as numbers are
ROUNDS = 25
LEAST, MOST = 1e-4, 1e4  # by which one round may change a probability


@dataclass(frozen=True, eq=False)
class Sizes:
    """The probabilities: `overall` of a row to be in a unit of 1, 2, .. rows, and factors by cell of each
    axis."""

    overall: Floats
    axes: tuple[Bins, ...]
    factors: tuple[Floats, ...]
    units: Floats  # the share of units that have 1, 2, .. rows

    def chances(self, codes: Mapping[str, Ints]) -> Floats:
        """For each row, the probability of each size."""
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


def sizes_of(axes: Sequence[Bins], answers: Sequence[Answer], codes: Mapping[str, Ints], k: int) -> Sizes:
    """Probabilities that agree with all noisy tables, on rows of the model."""
    tables = [answer.values.reshape(-1, k).astype(np.float64) for answer in answers]
    weights = [1 / (answer.sd**2 * len(table) + 1e-9) for answer, table in zip(answers, tables, strict=True)]
    counted = np.average([table.sum(axis=0) for table in tables], axis=0, weights=weights)
    units = _part(on_simplex(counted, max(1.0, float(counted.sum()))))
    overall = _part(units * np.arange(1, k + 1))
    targets = [_by_cell(table, answer.sd, units) for table, answer in zip(tables, answers, strict=True)]
    if not axes:
        return Sizes(overall, (), (), units)
    places = [cells_of(axis, codes) for axis in axes]
    factors = [np.ones_like(target) for target in targets]
    rows = len(places[0])
    found = np.tile(overall, (rows, 1))
    for _ in range(ROUNDS if rows else 0):
        for place, target, factor in zip(places, targets, factors, strict=True):
            now = np.stack([np.bincount(place, own, len(target)) for own in found.T], axis=1).astype(
                np.float64
            )
            ratio = np.clip(target / np.maximum(_normalised(now), 1e-12), LEAST, MOST)
            factor *= ratio
            found = _normalised(found * ratio[place])
    return Sizes(overall, tuple(axes), tuple(factors), units)


def _by_cell(table: Floats, sd: float, units: Floats) -> Floats:
    """The probability that a row of each cell is in a unit of s rows. Cells with few units for their noise
    are drawn to the whole table's."""
    k = len(units)
    found = np.empty_like(table)
    for cell, counts in enumerate(table):
        many = max(0.0, float(counts.sum()))
        own = _part(on_simplex(counts, many)) if many > 0 else units
        trust = many**2 / (many**2 + k * k * sd**2 + 1e-9)
        found[cell] = trust * own + (1 - trust) * units
    return _normalised(found * np.arange(1, k + 1))


def _part(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum()) if counts.sum() > 0 else np.full(len(counts), 1 / len(counts))


def _normalised(table: Floats) -> Floats:
    table = np.maximum(table, 1e-300)
    return np.asarray(table / table.sum(axis=1, keepdims=True))
