"""`impossible`: values of two columns or more that no row can have together.

    impossible:
      - {relationship: Husband, sex: Female}
      - {age: {to: 14}, income: {from: 1}}
      - {grade: [1, 2], score: {missing: true}}

Of a column of categories a rule names one or several; of numbers, dates and times, values or a range with
one or both ends, which belong to it; of any column that it is missing. A rule about two columns of
categories, integers or dates is also kept as codes, so that a mechanism can use it as it models.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpsynth_cli.domain import Column, Impossible, Ranges
from dpsynth_cli.numbers import day, decimal, moment, whole
from dpsynth_cli.relations.nodes import Compare, Expression, IsMissing, Literal, Logic, Name, Not, Within

ALLOWED = "a list of rules such as {relationship: Husband, sex: Female}"


def checked(rule: Any) -> Mapping[str, Any]:
    """A rule as it is written; ValueError where it has not the form of one."""
    if not isinstance(rule, dict) or not 2 <= len(rule) <= 10:
        raise ValueError(f"{ALLOWED}; a rule names two columns or more")
    for side in rule.values():
        texts = _texts(side)
        if not texts or not all(isinstance(text, str) for text in texts):
            raise ValueError(
                f"{ALLOWED}; a value, a list of them, a range such as {{from: 0, to: 15}}, or "
                "{missing: true}"
            )
    return rule


def _texts(side: Any) -> list[Any]:
    """The values that one side of a rule names; none where it is not a side."""
    if side == {"missing": "true"}:
        return ["true"]
    if isinstance(side, dict):
        return list(side.values()) if set(side) <= {"from", "to"} else []
    return side if isinstance(side, list) else [side]


def expression(rule: Mapping[str, Any], columns: Mapping[str, Column]) -> Expression:
    """What a rule says; ValueError where it contradicts the declared columns."""
    for name in rule:
        if name not in columns:
            raise ValueError(f"{name} is not a declared column")
    return Not(Logic("and", tuple(_side(columns[name], side) for name, side in sorted(rule.items()))))


def _side(column: Column, side: Any) -> Expression:
    name = Name(column.name)
    if side == {"missing": "true"}:
        if not column.nullable:
            raise ValueError(f"{column.name} is never missing; declare it with nullable: true")
        return IsMissing(name)
    if not isinstance(side, dict):
        return Within(name, tuple(Literal(_value(column, text)) for text in _texts(side)))
    if column.categorical:
        raise ValueError(f"{column.name} has categories; name one, or a list of them")
    low = _rank(column, side["from"]) if "from" in side else column.lower
    high = _rank(column, side["to"]) if "to" in side else column.upper
    if not column.lower <= low <= high <= column.upper:
        raise ValueError(f"the range of {column.name} is not within its bounds, the lower end first")
    parts = tuple(
        Compare(">=" if key == "from" else "<=", name, Literal(_value(column, text)))
        for key, text in sorted(side.items())
    )
    return parts[0] if len(parts) == 1 else Logic("and", parts)


def _value(column: Column, text: str) -> Fraction | str | bool:
    if column.type == "boolean" and text in column.categories:
        return text == "true"
    if column.categorical:
        if text not in column.categories:
            raise ValueError(f"{text} is not a declared category of {column.name}")
        return text
    _rank(column, text)
    return text if column.type in ("date", "datetime") else decimal(text) or Fraction(0)


def _rank(column: Column, text: str) -> float:
    """A value in the column's own unit."""
    reads = {"integer": whole, "continuous": decimal, "date": day, "datetime": moment}
    found = reads[column.type](text)
    if found is None:
        raise ValueError(f"{column.name} is {column.type}; {text} is not")
    return float(found) if column.type == "continuous" else int(found)


def in_codes(rule: Mapping[str, Any], columns: Mapping[str, Column]) -> Impossible | None:
    """The same in codes, where a rule is about two columns of categories, integers or dates."""
    if len(rule) != 2 or any(columns[name].type in ("continuous", "datetime") for name in rule):
        return None
    (one, first), (other, second) = sorted(rule.items())
    return Impossible((one, other), (_ranges(columns[one], first), _ranges(columns[other], second)))


def _ranges(column: Column, side: Any) -> Ranges:
    """Codes of several units each count as impossible as a whole."""
    if side == {"missing": "true"}:
        return ((column.size, column.size + 1),)
    if column.categorical:
        codes = [column.categories.index(text) for text in _texts(side)]
        return tuple((code, code + 1) for code in codes)
    if isinstance(side, dict):
        pairs = [(side.get("from"), side.get("to"))]
    else:
        pairs = [(text, text) for text in _texts(side)]
    found = []
    for low, high in pairs:
        ends = (
            column.lower if low is None else _rank(column, low),
            column.upper if high is None else _rank(column, high),
        )
        first, last = ((int(end) - int(column.lower)) // column.unit for end in ends)
        if first < column.size and last >= 0:
            found.append((max(0, first), min(column.size, last + 1)))
    return tuple(found)
