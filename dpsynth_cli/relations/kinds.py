"""What an expression can be, as far as it is known: its kind, its range or labels, and whether it is missing.

Kinds are those of columns, but categories of all sorts are `text`; `nothing` is what only can be missing.
Numbers are bounded: whole numbers stay within 2^53, so that 64-bit integers and floats hold them exactly, and
others within 1e300.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dpsynth_cli.domain import Column
from dpsynth_cli.numbers import day, moment
from dpsynth_cli.relations.language import NotAnExpression
from dpsynth_cli.relations.nodes import Literal

WHOLE = 2**53
REAL = 1e300
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # of the years 1 to 9999
DAY = 86_400_000_000  # microseconds
NUMBERS = ("integer", "continuous")
TIMES = ("date", "datetime")
_WORDS = {
    "integer": "a whole number",
    "continuous": "a number",
    "text": "a text",
    "boolean": "true or false",
    "date": "a date",
    "datetime": "a time",
    "nothing": "missing",
}


@dataclass(frozen=True)
class Facts:
    """Between `low` and `high` (0 and 1 for false and true), or one of `labels`; and `missing` where it can
    be. Where it cannot be anything else, it is not `present`. `order` has the categories of an ordinal.
    """

    kind: str
    low: float | int = 0
    high: float | int = 0
    labels: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    missing: bool = False
    present: bool = True

    @property
    def point(self) -> bool:
        """Whether it can be one value only."""
        one = len(self.labels) == 1 if self.kind == "text" else self.low == self.high
        return self.present and not self.missing and one

    @property
    def can_be_true(self) -> bool:
        return self.present and self.high == 1

    @property
    def can_be_false(self) -> bool:
        return self.present and self.low == 0

    @property
    def in_words(self) -> str:
        return _WORDS[self.kind]


def truth(true: bool, false: bool, missing: bool) -> Facts:
    """What can be true, false, missing.

    >>> truth(True, False, False).can_be_false
    False
    """
    low, high = (0 if false else 1), (1 if true else 0)
    return Facts("boolean", min(low, high), max(low, high), missing=missing, present=true or false)


def of_column(column: Column) -> Facts:
    """What a declared column can be."""
    missing = column.nullable
    if column.type == "boolean":
        return Facts("boolean", 0, 1, missing=missing)
    if column.categorical:
        order = column.categories if column.type == "ordinal" else ()
        return Facts("text", labels=column.categories, order=order, missing=missing)
    if column.type == "continuous":
        return Facts("continuous", float(column.lower), float(column.upper), missing=missing)
    low = int(column.lower)
    return Facts(column.type, low, low + (column.size - 1) * column.unit, missing=missing)


def column_of(name: str, facts: Facts) -> Column:
    """A column that holds what an expression can be."""
    if facts.kind == "text":
        kind = "ordinal" if facts.order and set(facts.labels) <= set(facts.order) else "nominal"
        inside = facts.order if kind == "ordinal" else tuple(sorted(facts.labels))
        return Column(name, kind, categories=inside, nullable=facts.missing)
    if facts.kind == "boolean":
        return Column(name, "boolean", categories=("false", "true"), nullable=facts.missing)
    return Column(name, facts.kind, facts.low, facts.high, nullable=facts.missing)


def of_literal(literal: Literal) -> Facts:
    """What a literal is."""
    value = literal.value
    if value is None:
        return Facts("nothing", missing=True, present=False)
    if isinstance(value, bool):
        return truth(value, not value, False)
    if isinstance(value, str):
        return Facts("text", labels=(value,))
    if value.denominator == 1 and abs(value) <= WHOLE:
        return Facts("integer", int(value), int(value))
    return Facts("continuous", float(value), float(value))


def facing(literal: Literal, other: Facts) -> Literal | int:
    """A text that faces a date or a time is one: then days or microseconds since 1970."""
    if other.kind not in TIMES or not isinstance(literal.value, str):
        return literal
    found = day(literal.value) if other.kind == "date" else moment(literal.value)
    if found is None and other.kind == "datetime" and (whole := day(literal.value)) is not None:
        found = whole * DAY
    if found is None:
        such = "2026-03-01" if other.kind == "date" else "2026-03-01 12:30:00"
        raise NotAnExpression(literal.at, f'{other.in_words} is compared with one such as "{such}"')
    return found


def number(low: float, high: float, missing: bool, present: bool, at: int) -> Facts:
    """A range of numbers; where it would leave 1e300, what is beyond is missing."""
    if math.isnan(low) or math.isnan(high):
        low, high, missing = -REAL, REAL, True
    beyond = low < -REAL or high > REAL
    low, high = max(-REAL, min(REAL, low)), max(-REAL, min(REAL, high))
    return Facts("continuous", low, high, missing=missing or beyond, present=present)


def whole(kind: str, low: int, high: int, missing: bool, present: bool, at: int) -> Facts:
    """A range of whole numbers, dates or times; refused where it would be too large."""
    low, high = int(low), int(high)
    if kind == "integer" and max(abs(low), abs(high)) > WHOLE:
        raise NotAnExpression(at, "this may be beyond 2^53, where whole numbers end; use / or smaller bounds")
    unit = DAY if kind == "datetime" else 1
    if kind in TIMES and not (low // unit >= FIRST_DAY and high // unit <= LAST_DAY):
        raise NotAnExpression(at, "this may be beyond the years 1 to 9999")
    return Facts(kind, low, high, missing=missing, present=present)


def common_order(orders: Iterable[tuple[str, ...]], labels: Iterable[str]) -> tuple[str, ...]:
    """The order of an ordinal column that has all labels, if it is the only one; else none.

    >>> common_order([("low", "high"), ()], ["low"]), common_order([("low", "high"), ()], ["none"])
    (('low', 'high'), ())
    """
    found = {order for order in orders if order}
    order = found.pop() if len(found) == 1 else ()
    return order if set(labels) <= set(order) else ()


def either(one: Facts, other: Facts, at: int) -> Facts:
    """What is the one or the other."""
    if "nothing" in (one.kind, other.kind):
        known = other if one.kind == "nothing" else one
        return replace(known, missing=True)
    missing, present = one.missing or other.missing, one.present or other.present
    if one.kind != other.kind:
        if not {one.kind, other.kind} <= set(NUMBERS):
            raise NotAnExpression(at, f"this is {one.in_words} or {other.in_words}; it must be of one kind")
        one, other = (replace(part, kind="continuous") for part in (one, other))
    labels = tuple(dict.fromkeys((*one.labels, *other.labels)))
    order = common_order([one.order, other.order], labels)
    if one.present and other.present:
        low, high = min(one.low, other.low), max(one.high, other.high)
    else:
        low, high = (one.low, one.high) if one.present else (other.low, other.high)
    return Facts(one.kind, low, high, labels, order, missing, present)
