"""How many units have 1, 2, .. rows: from noisy counts of units by groups of sizes, and how many rows the
model has.

Both together say more than either: noise that puts a few units where none are, at a hundred rows each, would
make more rows than there are. What is taken are the numbers nearest to the counts that are not negative, add
up to as many units as counts and rows say together, and have as many rows. If noise below 0 were only cut
off, units would be left where none are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.numeric.exact import exp, inner, log
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.questions import Answer, Floats, Ints, Model

HALVINGS = 60  # of a bisection
ROUNDS = 3  # sizes inside a group, and how many units it has, by turns
OUTSIDE = 1 / 4  # how far off a mean size inside a group may be, in standard deviations of even ones
STEEPEST = 40.0  # the logarithm of how much more likely the largest size of a group may be than the smallest


@dataclass(frozen=True, eq=False)
class Distribution:
    """Units by groups of sizes: group i is edges[i] < rows <= edges[i + 1]."""

    edges: tuple[int, ...]
    units: Floats  # how many each group has
    inside: Floats  # the part of their group's units that have 1, 2, .. rows

    @property
    def group(self) -> Ints:
        """Of 1, 2, .. rows."""
        return np.repeat(np.arange(len(self.units)), np.diff(self.edges))

    @property
    def each(self) -> Floats:
        """How many units have 1, 2, .. rows."""
        return np.asarray(self.units[self.group] * self.inside)

    @property
    def means(self) -> Floats:
        """How many rows a unit of each group has."""
        return _means(self.inside, self.edges)

    @property
    def mean(self) -> float:
        """How many rows a unit has."""
        return inner(self.units, self.means) / max(1e-9, float(self.units.sum()))

    @property
    def facts(self) -> dict[str, Any]:
        """For the audit."""
        part = self.each / max(1e-9, self.units.sum())
        return {"rows_of_a_unit": [round(one, 6) for one in part.tolist()], "mean": round(self.mean, 6)}

    def sizes(self, group: Ints, rng: np.random.Generator) -> Ints:
        """How many rows units have that are in these groups."""
        upto = np.cumsum(self.inside)  # group i ends at i + 1
        size = np.searchsorted(upto, group + rng.random(len(group)), side="right") + 1
        edges = np.asarray(self.edges)
        return np.clip(size, edges[group] + 1, edges[group + 1])


def size_edges(k: int) -> tuple[int, ...]:
    """Sizes that are counted together: few where they are large, but k alone, which all have that had more.

    >>> size_edges(3), size_edges(25)
    ((0, 1, 2, 3), (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 25))
    """
    steps = {x for power in range(1, k.bit_length() + 1) for x in (2**power, 3 * 2 ** (power - 1))}
    return tuple(sorted({0, 1, k - 1, k} | {x for x in steps if x < k}))


def rows_known(omega: Domain, model: Model) -> int | None:
    """How many rows units have together. A hint is nobody's answer, and may be of all rows, not of those that
    are kept."""
    return model.total if omega.rows_hint is None else None


def distribution_of(answers: Sequence[Answer], edges: Sequence[int], rows: float | None) -> Distribution:
    """The numbers that answers by groups of sizes, each for some cells of a column, say of all units, and
    that have so many `rows`, if that is known. Its noise is small beside that of units with many rows."""
    groups = len(edges) - 1
    tables = [answer.values.reshape(-1, groups).astype(np.float64) for answer in answers]
    exact = [1 / (answer.sd**2 * len(table) + 1e-9) for answer, table in zip(answers, tables, strict=True)]
    counted = np.average([table.sum(axis=0) for table in tables], axis=0, weights=exact)
    return _nearest(counted, 1 / sum(exact), tuple(edges), rows)


def _nearest(counted: Floats, variance: float, edges: tuple[int, ...], rows: float | None) -> Distribution:
    units = on_simplex(counted, max(1.0, float(counted.sum())))
    inside = _between(units, variance, edges)
    if rows is None or rows < 1:
        return Distribution(edges, units, inside)
    widths = np.diff(edges)
    for _ in range(ROUNDS):
        means = _means(inside, edges)
        unsure = OUTSIDE**2 * float((units**2 * (widths**2 - 1)).sum()) / 12
        excess = inner(means, counted) - rows
        better = counted - variance * means * (excess / (variance * inner(means, means) + unsure + 1e-9))
        whole = float(np.clip(better.sum(), max(1.0, rows / edges[-1]), max(1.0, rows)))
        units = _with_rows(better, means, whole, inner(means, better))
        inside = _between(units, variance, edges)
    return Distribution(edges, units, _tilted(inside, units, edges, rows))


def _with_rows(counted: Floats, means: Floats, whole: float, rows: float) -> Floats:
    """The nearest numbers that are not negative and add up to so many units and rows, or nearly so."""
    if len(counted) == 1:
        return np.array([whole])
    away = (means - means.mean()) / means.std()

    def less(of_large: float) -> Floats:
        return on_simplex(counted - of_large * away, whole)

    far = 4 * (float(np.abs(counted).sum()) + whole)
    return less(_root(lambda at: rows - inner(means, less(at)), -far, far))


def _between(units: Floats, variance: float, edges: tuple[int, ...]) -> Floats:
    """The part of their group's units that have 1, 2, .. rows: between those of groups beside it, on a
    logarithmic scale; the last group, of those that had more, is alone."""
    widths = np.diff(edges)
    middle = (np.asarray(edges[1:]) + np.asarray(edges[:-1]) + 1) / 2
    least = (variance**0.5 + 1) / 2  # what cannot be told from none
    level = log(np.maximum(units, least) / widths)
    own = slice(0, max(1, len(units) - 1))
    found = exp(np.interp(np.arange(1, edges[-1] + 1), middle[own], level[own]))
    group = np.repeat(np.arange(len(units)), widths)
    return np.asarray(found / np.bincount(group, found)[group])


def _tilted(inside: Floats, units: Floats, edges: tuple[int, ...], rows: float) -> Floats:
    """Sizes inside of groups with as many rows in all as there are, as far as that can be."""
    widths, size = np.diff(edges), np.arange(1, edges[-1] + 1)
    group = np.repeat(np.arange(len(units)), widths)
    place = (size - np.asarray(edges)[group] - 1) / np.maximum(1, widths - 1)[group] - 0.5

    def steeper(slope: float) -> Floats:
        found = inside * exp(slope * place)
        return np.asarray(found / np.bincount(group, found)[group])

    return steeper(_root(lambda at: inner(units, _means(steeper(at), edges)) - rows, -STEEPEST, STEEPEST))


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where it is 0; the end that is nearest where it never is."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def _means(inside: Floats, edges: Sequence[int]) -> Floats:
    group = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    return np.asarray(np.bincount(group, inside * np.arange(1, len(inside) + 1)), np.float64)
