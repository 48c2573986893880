"""The relations of one spec: computed columns, rules that every row keeps, what is missing together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Block, Ints
from dpsynth_cli.relations.arrays import Values, of_codes
from dpsynth_cli.relations.kinds import Facts, of_column
from dpsynth_cli.relations.nodes import Compare, Expression, IsMissing, Name, names
from dpsynth_cli.relations.values import evaluate


@dataclass(frozen=True)
class Computed:
    """A column that is computed from others, and is no part of the model."""

    column: Column
    expression: Expression


@dataclass(frozen=True)
class Rule:
    """What is false in no row, and the words for it."""

    words: str
    expression: Expression


@dataclass(frozen=True)
class Relations:
    """All of them. `computed` columns come after those that they are computed from; `missing_with` has
    columns with the one that they are missing with, which is in no other pair as the first.
    """

    computed: tuple[Computed, ...] = ()
    rules: tuple[Rule, ...] = ()
    missing_with: tuple[tuple[str, str], ...] = ()

    @cached_property
    def kept(self) -> tuple[Rule, ...]:
        """The rules, and that what is missing together is."""
        together = tuple(
            Rule(
                f"{one} is missing where {other} is",
                Compare("==", IsMissing(Name(one)), IsMissing(Name(other))),
            )
            for one, other in self.missing_with
        )
        return self.rules + together

    @cached_property
    def by_name(self) -> dict[str, Computed]:
        return {one.column.name: one for one in self.computed}

    def modelled(self, expression: Expression) -> tuple[str, ...]:
        """The columns that are not computed, on which an expression depends."""
        found: dict[str, None] = {}
        todo, seen = [name.name for name in names(expression)], set[str]()
        while todo:
            name = todo.pop()
            if name in self.by_name and name not in seen:
                seen.add(name)
                todo += [inside.name for inside in names(self.by_name[name].expression)]
            elif name not in self.by_name:
                found[name] = None
        return tuple(found)

    def groups(self) -> list[tuple[tuple[str, ...], tuple[Rule, ...]]]:
        """Columns that rules connect, directly or by others, and those rules."""
        groups: list[tuple[set[str], list[Rule]]] = []
        for rule in self.kept:
            columns, own = set(self.modelled(rule.expression)), [rule]
            apart = []
            for group in groups:
                if group[0] & columns:
                    columns, own = columns | group[0], group[1] + own
                else:
                    apart.append(group)
            groups = [*apart, (columns, own)]
        return [(tuple(sorted(columns)), tuple(own)) for columns, own in groups]

    def values(
        self, known: Mapping[str, Values], rows: int, needed: Iterable[str] | None = None
    ) -> dict[str, Values]:
        """The columns that are known, and those that are computed from them (or only the needed ones)."""
        found = dict(known)
        wanted = None if needed is None else self.computed_for(needed)
        for one in self.computed:
            if wanted is None or one.column.name in wanted:
                found[one.column.name] = evaluate(one.expression, found, rows)
        return found

    def computed_for(self, needed: Iterable[str]) -> set[str]:
        """Those of the names that are computed, and what they are computed from as far as that is."""
        found, todo = set[str](), list(needed)
        while todo:
            name = todo.pop()
            if name in self.by_name and name not in found:
                found.add(name)
                todo += [inside.name for inside in names(self.by_name[name].expression)]
        return found

    def broken(self, block: Block, omega: Domain, rules: Sequence[Rule]) -> NDArray[np.bool_]:
        """Rows that break one of the rules: it is false there. What is missing breaks none."""
        used = {name for rule in rules for name in self.modelled(rule.expression)}
        rows = len(next(iter(block.values())))
        known = {name: of_codes(block[name], omega[name]) for name in used}
        needed = [name.name for rule in rules for name in names(rule.expression)]
        values = self.values(known, rows, needed)
        found = np.zeros(rows, bool)
        for rule in rules:
            said = evaluate(rule.expression, values, rows)
            found |= ~said.missing & ~said.data.astype(bool)
        return found


def declared_facts(columns: Iterable[Column]) -> dict[str, Facts]:
    """What declared columns can be."""
    return {column.name: of_column(column) for column in columns}


def category_codes(values: Values, column: Column) -> Ints:
    """Places among the categories of a column; a whole number is the label that writes it."""
    if values.kind == "boolean":
        return np.asarray(values.data, np.int64)
    place = {label: at for at, label in enumerate(column.categories)}
    if values.kind == "text":
        places = np.array([place.get(label, 0) for label in values.labels] or [0], np.int64)
        return np.asarray(places[values.data])
    numbers, at = np.unique(values.data, return_inverse=True)
    return np.array([place.get(str(int(number)), 0) for number in numbers] or [0], np.int64)[at]
