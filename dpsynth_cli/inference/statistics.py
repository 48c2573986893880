"""A query on a table: which numbers it has (one a group or coefficient), and what they are.

Rows where a value is missing have no part in a mean, a correlation or a regression, and missing is a group
of its own among groups. Categories enter a regression as indicators, all but the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.inference.checks import check, facts_of
from dpsynth_cli.inference.groups import WIDEST, few_values, label_of
from dpsynth_cli.inference.language import REGRESSIONS, Query
from dpsynth_cli.inference.quantiles import quantiles
from dpsynth_cli.inference.regression import distinct, least_squares, logistic
from dpsynth_cli.questions import Floats, Ints
from dpsynth_cli.relations.arrays import Values, of_codes
from dpsynth_cli.relations.facts import Typing
from dpsynth_cli.relations.kinds import Facts
from dpsynth_cli.relations.nodes import Expression, Name
from dpsynth_cli.relations.relations import Relations, declared_facts
from dpsynth_cli.relations.values import evaluate

MOST_GROUPS = 10_000

Codes: TypeAlias = Mapping[str, NDArray[Any]]
Key: TypeAlias = tuple[tuple[str, str | None], ...]  # columns and labels; None is missing


@dataclass(frozen=True, eq=False)
class _Used:
    """Places of the rows that have a part in a statistic, their groups, and the values of all rows."""

    chosen: Ints
    group: Ints
    parts: list[Values]

    @property
    def numbers(self) -> list[Floats]:
        return [_numbers(part, self.chosen) for part in self.parts if part.kind != "text"]

    def weight(self, weight: Floats | None) -> Floats:
        return np.ones(len(self.chosen)) if weight is None else weight[self.chosen]


@dataclass(frozen=True, eq=False)
class Statistic:
    """A query about the columns of a domain, and those that are computed from them."""

    query: Query
    domain: Domain
    relations: Relations

    def __post_init__(self) -> None:
        query = self.query
        for name in (*query.by, *([] if query.kind != "share" else [query.named[0]])):
            self.labels(name)
        check(query, self.typing)
        if len(self._all_groups) > MOST_GROUPS:
            raise UsageError(
                f"the query has {len(self._all_groups):,} groups; at most {MOST_GROUPS:,} are answered.", ""
            )

    @cached_property
    def typing(self) -> Typing:
        computed = [one.column for one in self.relations.computed]
        return Typing(declared_facts([*self.domain, *computed]))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The modelled columns that it depends on."""
        found = dict[str, None]()
        for name in self.query.named:
            found |= dict.fromkeys(self.relations.modelled(Name(name)))
        return tuple(found)

    @cached_property
    def keys(self) -> list[Key]:
        query = self.query
        if query.kind in REGRESSIONS:
            return [(("term", name),) for name in self._terms]
        groups = [[(name, label) for label in self.labels(name)] for name in query.by]
        if query.kind == "share":
            name = query.named[0]
            groups.append([(name, label) for label in self.labels(name) if label is not None])
        return list(product(*groups))

    @cached_property
    def possible(self) -> tuple[float, float]:
        """The least and the greatest that any of its numbers can be."""
        if self.query.kind in ("mean", "sum"):
            facts = self._facts(self.query.of[0], "the query")
            if self.query.kind == "mean":
                return float(facts.low), float(facts.high)
            return -math.inf if facts.low < 0 else 0.0, math.inf if facts.high > 0 else 0.0
        least = {"count": 0.0, "share": 0.0, "sd": 0.0, "corr": -1.0}.get(self.query.kind, -math.inf)
        return least, {"share": 1.0, "corr": 1.0}.get(self.query.kind, math.inf)

    def labels(self, name: str) -> list[str | None]:
        """What a column of groups can be; None, the last, for missing."""
        facts = self._facts(Name(name), "the query")
        if facts.kind == "text":
            found: list[str | None] = list(facts.labels)
        elif facts.kind == "boolean":
            found = ["false", "true"]
        elif (values := self._few_values(name)) is not None:
            found = [label_of(value) for value in values]
        elif facts.kind == "integer" and facts.high - facts.low < WIDEST:
            found = [str(value) for value in range(int(facts.low), int(facts.high) + 1)]
        else:
            raise UsageError(
                f"{name} has too many values for groups.", "", "Take one side of a value with --where."
            )
        return [*found, None] if facts.missing else found

    def _few_values(self, name: str) -> Floats | None:
        """The values of a modelled column of numbers, where they are few."""
        return next((few_values(column) for column in self.domain if column.name == name), None)

    def __call__(self, codes: Codes, weight: Floats | None = None, near: Floats | None = None) -> Floats:
        """All numbers, for weights of the rows (1 each, if there are none); not a number where no row is.
        `near` is what they are likely to be."""
        if self.query.kind == "logistic":
            used = self._used(codes)
            return logistic(self._design(used), self._outcome(used), used.weight(weight), near)
        return self.prepared(codes)(weight)

    def prepared(self, codes: Codes, near: Floats | None = None) -> Callable[[Floats | None], Floats]:
        """The same function of weights, for rows that are the same each time."""
        used = self._used(codes)
        if self.query.kind == "linear":
            design, outcome = self._design(used), self._outcome(used)
            return lambda weight: least_squares(design, outcome, used.weight(weight))
        if self.query.kind == "logistic":
            rows, outcomes, place = distinct(self._design(used), self._outcome(used))
            many = len(outcomes)

            def fitted(weight: Floats | None) -> Floats:
                own = np.asarray(np.bincount(place, used.weight(weight), many), np.float64)
                return logistic(rows, outcomes, own, near)

            return fitted
        return lambda weight: self._grouped(used.group, used.numbers, used.weight(weight))

    def linear(self, codes: Codes) -> tuple[Floats, Floats | None] | None:
        """The numbers as sums over rows, or as quotients of two: what each row adds to each of them. None
        where they are no such thing."""
        kind, used = self.query.kind, self._used(codes)
        if kind not in ("count", "sum", "mean", "share"):
            return None
        rows, name = len(next(iter(codes.values()))), self.query.named[:1]
        every = np.zeros((len(self._all_groups), rows))
        every[used.group, used.chosen] = 1.0
        if kind == "count":
            return every, None
        if kind == "share":
            known = every.reshape(-1, len(self.labels(name[0])), rows)[:, : self._known(name[0])]
            return known.reshape(-1, rows), np.repeat(known.sum(axis=1), known.shape[1], axis=0)
        top = every.copy()
        top[used.group, used.chosen] = used.numbers[0]
        return top, every if kind == "mean" else None

    def part(self, codes: Codes, weight: Floats) -> float:
        """The part of rows that has the outcome of a logistic regression."""
        used = self._used(codes)
        own = used.weight(weight)
        return float(own @ self._outcome(used)) / max(float(own.sum()), 1e-300)

    def members(self, codes: Codes) -> tuple[Ints, Ints]:
        """The places of the rows that have a part in it, and the group of each."""
        used = self._used(codes)
        return used.chosen, used.group

    def _used(self, codes: Codes) -> _Used:
        """The rows that have a part in it, their groups and their values."""
        query, rows = self.query, len(next(iter(codes.values())))
        known = {name: of_codes(codes[name], self.domain[name]) for name in self.columns}
        values = self.relations.values(known, rows, query.named)
        keep = np.ones(rows, bool)
        if query.where is not None:
            said = evaluate(query.where, values, rows)
            keep = said.data.astype(bool) & ~said.missing
        group = np.zeros(rows, np.int64)
        for name in self._grouping:
            group = group * len(self.labels(name)) + self._group(values[name], name)
        parts = [] if query.kind in ("count", "share") else [evaluate(one, values, rows) for one in query.of]
        for part in parts:
            keep = keep & ~part.missing
        chosen = np.flatnonzero(keep)
        return _Used(chosen, group[chosen], parts)

    def _grouped(self, group: Ints, arrays: list[Floats], weight: Floats) -> Floats:
        kind, many = self.query.kind, max(1, len(self._all_groups))

        def added(numbers: Floats) -> Floats:
            return np.asarray(np.bincount(group, weight * numbers, many), np.float64)

        ones = added(np.ones(len(group)))
        with np.errstate(all="ignore"):
            if kind == "count":
                return ones
            if kind == "share":
                whole = ones.reshape(-1, len(self.labels(self.query.named[0])))
                known = whole[:, : self._known(self.query.named[0])]
                return np.asarray(known / known.sum(axis=1, keepdims=True)).ravel()
            if kind == "sum":
                return added(arrays[0])
            if kind == "quantile":
                return quantiles(group, arrays[0], weight, many, float(self.query.level))
            mean = added(arrays[0]) / ones
            if kind == "mean":
                return mean
            x = arrays[0] - mean[group]
            spread = added(x * x) / ones
            if kind == "sd":
                return np.sqrt(spread)
            y = arrays[1] - (added(arrays[1]) / ones)[group]
            return np.asarray(added(x * y) / ones / np.sqrt(spread * (added(y * y) / ones)))

    def _known(self, name: str) -> int:
        return sum(label is not None for label in self.labels(name))

    @property
    def _grouping(self) -> tuple[str, ...]:
        return self.query.by if self.query.kind != "share" else (*self.query.by, self.query.named[0])

    @cached_property
    def _all_groups(self) -> range:
        return range(math.prod(len(self.labels(name)) for name in self._grouping))

    def _group(self, values: Values, name: str) -> Ints:
        labels = self.labels(name)
        if values.kind == "text":
            place = {label: at for at, label in enumerate(labels)}
            found = np.array([place.get(label, 0) for label in values.labels] or [0])[values.data]
        elif values.kind == "boolean":
            found = values.data.astype(np.int64)
        elif (few := self._few_values(name)) is not None:
            found = np.minimum(np.searchsorted(few, values.data), len(few) - 1)
        else:
            found = values.data - int(self._facts(Name(name), "").low)
        return np.where(values.missing, len(labels) - 1, found)

    def _facts(self, expression: Expression, called: str) -> Facts:
        return facts_of(expression, called, self.typing)

    @cached_property
    def _terms(self) -> list[str]:
        found = ["(constant)"]
        for part, text in zip(self.query.of[1:], self.query.terms, strict=True):
            facts = self._facts(part, "the query")
            name = part.name if isinstance(part, Name) else text
            if facts.kind == "text":
                found += [f"{name}={label}" for label in facts.labels[1:]]
            else:
                found.append(f"{name}=true" if facts.kind == "boolean" else name)
        return found

    def _design(self, used: _Used) -> Floats:
        columns = [np.ones(len(used.chosen))]
        for part, expression in zip(used.parts[1:], self.query.of[1:], strict=True):
            if part.kind != "text":
                columns.append(_numbers(part, used.chosen))
                continue
            place = {label: at for at, label in enumerate(part.labels)}
            data = part.data[used.chosen]
            for label in self._facts(expression, "").labels[1:]:
                columns.append((data == place.get(label, -1)).astype(np.float64))
        return np.stack(columns, axis=1)

    def _outcome(self, used: _Used) -> Floats:
        part = used.parts[0]
        if part.kind != "text":
            return _numbers(part, used.chosen)
        second = self._facts(self.query.of[0], "").labels[1]
        return np.asarray(part.data[used.chosen] == part.labels.index(second), np.float64)


def _numbers(values: Values, chosen: Ints) -> Floats:
    return np.asarray(values.data[chosen], np.float64)
