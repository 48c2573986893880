"""Public rules of a table: pairs of values that no row can have, kept exactly in what is drawn.

    rules:
      impossible:
        - {relationship: Husband, sex: Female}
        - {age: {to: 20}, education: [Masters, Doctorate]}

A rule names two columns. Of a column of categories it names one or several; of integers and dates, a range
with one or both ends, which belong to it. Missing values are in no rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.registry import Structure
from dpsynth_cli.numbers import day, day_text, whole
from dpsynth_cli.questions import Ints

Ranges = tuple[tuple[int, int], ...]  # codes: the first, and the one after the last


@dataclass(frozen=True)
class Rule:
    """No row has one of these codes in the first column and one of those in the second."""

    columns: tuple[str, str]
    codes: tuple[Ranges, Ranges]


def read(value: Any) -> dict[str, list[dict[str, Any]]]:
    """The rules as written; what they say of columns is checked by `problems`."""
    listed = value["impossible"] if isinstance(value, dict) and set(value) == {"impossible"} else None
    if not isinstance(listed, list):
        raise ValueError(ALLOWED)
    for rule in listed:
        if not isinstance(rule, dict) or len(rule) != 2:
            raise ValueError(f"{ALLOWED}; a rule names two columns")
        for side in rule.values():
            texts = _texts(side)
            if not texts or not all(isinstance(text, str) for text in texts):
                raise ValueError(
                    f"{ALLOWED}; a value, a list of them, or a range such as {{from: 0, to: 15}}"
                )
    return {"impossible": listed}


def _texts(side: Any) -> list[Any]:
    """The values that one side of a rule names; none where it is not a side."""
    if isinstance(side, dict):
        return list(side.values()) if set(side) <= {"from", "to"} else []
    return side if isinstance(side, list) else [side]


ALLOWED = "impossible: a list of rules such as {relationship: Husband, sex: Female}"
_SCALAR = {"type": ["string", "number", "boolean"]}
_RANGE = {
    "type": "object",
    "properties": {"from": _SCALAR, "to": _SCALAR},
    "minProperties": 1,
    "additionalProperties": False,
}
_SIDE = {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}, _RANGE]}
STRUCTURE = Structure(
    ALLOWED,
    {
        "type": "object",
        "properties": {
            "impossible": {
                "type": "array",
                "items": {
                    "type": "object",
                    "minProperties": 2,
                    "maxProperties": 2,
                    "additionalProperties": _SIDE,
                },
            }
        },
        "required": ["impossible"],
        "additionalProperties": False,
    },
    read,
)


class Rules:
    """The rules of a table by its codes."""

    def __init__(self, written: Mapping[str, Any] | None, omega: Domain) -> None:
        self.omega = omega
        listed = written["impossible"] if written else []
        self.rules = [_rule(rule, omega) for rule in listed]

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


def problems(written: Mapping[str, Any] | None, omega: Domain) -> list[str]:
    """What contradicts the declared columns, as sentences; nothing where all is well."""
    found = []
    for number, rule in enumerate(written["impossible"] if written else [], start=1):
        try:
            _rule(rule, omega)
        except ValueError as error:
            found.append(f"mechanism.rules.impossible, rule {number}: {error}")
    if found or not written:
        return found
    rules = Rules(written, omega)
    return [
        f"mechanism.rules.impossible leaves no row that has {_said(omega[name], code)} in {name}; leave that "
        "out of the column's declaration, or drop a rule"
        for name, code in rules.dead_ends()
    ]


def _rule(written: Mapping[str, Any], omega: Domain) -> Rule:
    names = tuple(written)
    known = [column.name for column in omega]
    for name in names:
        if name not in known:
            raise ValueError(f"{name} is not a declared column")
    one, other = names
    return Rule((one, other), (_ranges(omega[one], written[one]), _ranges(omega[other], written[other])))


def _ranges(column: Column, written: Any) -> Ranges:
    if column.categorical:
        labels = [written] if isinstance(written, str) else written
        if not isinstance(labels, list):
            raise ValueError(f"{column.name} has categories; name one, or a list of them")
        for label in labels:
            if label not in column.categories:
                raise ValueError(f"{label} is not a declared category of {column.name}")
        codes = [column.categories.index(label) for label in labels]
        return tuple((code, code + 1) for code in codes)
    if column.type not in ("integer", "date"):
        raise ValueError(f"{column.name} is {column.type}; rules are for categories, integers and dates")
    if isinstance(written, list):
        raise ValueError(f"{column.name} is {column.type}; name one value, or a range such as {{to: 15}}")
    ends = written if isinstance(written, dict) else {"from": written, "to": written}
    low, high = (_number(column, ends.get(key)) for key in ("from", "to"))
    low = int(column.lower) if low is None else low
    high = int(column.upper) if high is None else high
    if not column.lower <= low <= high <= column.upper:
        raise ValueError(f"the range of {column.name} is not within its bounds, the lower end first")
    # Codes of several units each count as impossible as a whole.
    return (((low - int(column.lower)) // column.unit, (high - int(column.lower)) // column.unit + 1),)


def _number(column: Column, text: str | None) -> int | None:
    if text is None:
        return None
    found = whole(text) if column.type == "integer" else day(text)
    if found is None:
        raise ValueError(f"{column.name} is {column.type}; {text} is not")
    return found


def _said(column: Column, code: int) -> str:
    if column.categorical:
        return column.categories[code] if code < column.size else "a missing value"
    at = int(column.lower) + code * column.unit
    return str(at) if column.type == "integer" else day_text(at)


def _sides(rule: Rule, name: str) -> list[Ranges]:
    return [codes for column, codes in zip(rule.columns, rule.codes, strict=True) if column == name]


def _within(codes: Ints, ranges: Ranges) -> NDArray[np.bool_]:
    inside = np.zeros(len(codes), bool)
    for first, end in ranges:
        inside |= (codes >= first) & (codes < end)
    return inside
