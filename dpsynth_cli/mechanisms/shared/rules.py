"""Impossible pairs of values, by a table's codes: for mechanisms that model without them (structural zeros).

What is written in a spec (`rules.impossible`) is read by `relations/impossible.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain, Impossible, Ranges
from dpsynth_cli.numbers import day_text
from dpsynth_cli.questions import Ints


class Rules:
    """The impossible pairs of a table by its codes."""

    def __init__(self, omega: Domain) -> None:
        self.omega, self.rules = omega, omega.impossible

    def __bool__(self) -> bool:
        return bool(self.rules)

    def cuts(self, name: str) -> list[int]:
        """The codes of a column at which a rule begins or ends."""
        ends = {end for rule in self.rules for side in _sides(rule, name) for ends in side for end in ends}
        return sorted(end for end in ends if 0 < end < self.omega[name].codes)

    def impossible(self, one: str, other: str, first: Ints, second: Ints) -> NDArray[np.bool_]:
        """Whether codes of one column (down) and of another (across) can never be together."""
        table = np.zeros((len(first), len(second)), bool)
        for rule in self.rules:
            if set(rule.columns) == {one, other}:
                (a,), (b,) = _sides(rule, one), _sides(rule, other)
                table |= np.outer(_within(first, a), _within(second, b))
        return table

    def possible_row(self, fixed: Mapping[str, int]) -> dict[str, int] | None:
        """Codes of the columns that rules name, together with the fixed ones, that break no rule; or None."""
        names = [name for name in self._named if name not in fixed]

        def extended(row: dict[str, int], at: int) -> dict[str, int] | None:
            if at == len(names):
                return row
            for code in self._segments(names[at]):
                longer = row | {names[at]: code}
                if self._holds(longer, names[at]):
                    whole = extended(longer, at + 1)
                    if whole is not None:
                        return whole
            return None

        holds = all(self._holds(dict(fixed), name) for name in fixed)
        return extended(dict(fixed), 0) if holds else None

    def dead_ends(self) -> Iterator[tuple[str, int]]:
        """Columns and codes that no row can have, whatever the other columns are."""
        for name in self._named:
            for code in self._segments(name):
                if self.possible_row({name: code}) is None:
                    yield name, code

    @property
    def _named(self) -> list[str]:
        return list(dict.fromkeys(name for rule in self.rules for name in rule.columns))

    def _segments(self, name: str) -> list[int]:
        return [0, *self.cuts(name)]

    def _holds(self, row: Mapping[str, int], name: str) -> bool:
        for rule in self.rules:
            if name in rule.columns and all(column in row for column in rule.columns):
                inside = [
                    _within(np.array([row[column]]), side)[0]
                    for column, side in zip(rule.columns, rule.codes, strict=True)
                ]
                if all(inside):
                    return False
        return True


def dead_ends(omega: Domain) -> list[tuple[str, str]]:
    """Columns and values that impossible pairs leave no row, whatever the other columns are."""
    return [(name, _said(omega[name], code)) for name, code in Rules(omega).dead_ends()]


def _said(column: Column, code: int) -> str:
    if column.categorical:
        return column.categories[code] if code < column.size else "a missing value"
    if code >= column.size:
        return "a missing value"
    at = int(column.lower) + code * column.unit
    return str(at) if column.type == "integer" else day_text(at)


def _sides(rule: Impossible, name: str) -> list[Ranges]:
    return [codes for column, codes in zip(rule.columns, rule.codes, strict=True) if column == name]


def _within(codes: Ints, ranges: Ranges) -> NDArray[np.bool_]:
    inside = np.zeros(len(codes), bool)
    for first, end in ranges:
        inside |= (codes >= first) & (codes < end)
    return inside
