"""Ranges of sums, differences, products and quotients: what + - * / // % can give, rounded outwards."""

from __future__ import annotations

import math
from itertools import product

from dpsynth_cli.relations.kinds import NUMBERS, WHOLE, Facts, number, whole
from dpsynth_cli.relations.language import NotAnExpression

SECOND = 1_000_000


def result_kind(operator: str, left: str, right: str) -> str | None:
    """The kind of a result; None where there is none.

    >>> result_kind("-", "date", "date"), result_kind("+", "date", "integer")
    ('integer', 'date')
    """
    if left in NUMBERS and right in NUMBERS:
        both = left == right == "integer"
        return "integer" if operator != "/" and (both or operator == "//") else "continuous"
    if operator == "-" and left == right:
        return {"date": "integer", "datetime": "continuous"}.get(left)
    if operator == "+" and left in NUMBERS:
        left, right = right, left
    if operator in "+-" and (
        (left, right) == ("date", "integer") or (left == "datetime" and right in NUMBERS)
    ):
        return left
    return None


def arithmetic(operator: str, left: Facts, right: Facts, at: int) -> Facts:
    """What a result can be."""
    missing, present = left.missing or right.missing, left.present and right.present
    if "nothing" in (left.kind, right.kind):
        known = right if left.kind == "nothing" else left
        return Facts(known.kind, known.low, known.high, missing=True, present=False)
    kind = result_kind(operator, left.kind, right.kind)
    if kind is None:
        raise NotAnExpression(at, f"{left.in_words} {operator} {right.in_words} means nothing")
    if operator in ("/", "//", "%"):
        missing = missing or right.low <= 0 <= right.high
        if right.low == right.high == 0:
            return Facts(kind, missing=True, present=False)
    scale = SECOND if "datetime" in (left.kind, right.kind) else 1
    low, high = _range(operator, left, right, scale)
    if kind == "continuous":
        if left.kind == right.kind == "datetime":
            low, high = low / SECOND, high / SECOND
        return number(_down(low), _up(high), missing, present, at)
    if kind == "integer" and max(abs(low), abs(high)) > WHOLE:
        raise NotAnExpression(at, "this may be beyond 2^53, where whole numbers end; use / or smaller bounds")
    return whole(kind, math.floor(low), math.ceil(high), missing, present, at)


def _range(operator: str, left: Facts, right: Facts, scale: int) -> tuple[float, float]:
    a, b = (_seconds(left, scale), _seconds(right, scale)) if scale > 1 else (_ends(left), _ends(right))
    if operator == "+":
        return a[0] + b[0], a[1] + b[1]
    if operator == "-":
        return a[0] - b[1], a[1] - b[0]
    if operator == "*":
        ends = [x * y for x, y in product(a, b)]
        return min(ends), max(ends)
    if operator == "%":
        return _remainder(a, b, left.kind == right.kind == "integer")
    divisors = _divisors(right)
    if divisors is None:
        return -math.inf, math.inf
    if operator == "//":
        ends = [_floor_divided(x, y) for x, y in product(a, divisors)]
    else:
        ends = [x / y for x, y in product(a, divisors)]
    return min(ends), max(ends)


def _ends(facts: Facts) -> tuple[float, float]:
    return facts.low, facts.high


def _seconds(facts: Facts, scale: int) -> tuple[float, float]:
    """Numbers that are added to times are seconds; times are counted in microseconds."""
    if facts.kind == "datetime":
        return facts.low, facts.high
    return math.floor(facts.low * scale), math.ceil(facts.high * scale)


def _floor_divided(x: float, y: float) -> float:
    return x // y if isinstance(x, int) and isinstance(y, int) else math.floor(min(max(x / y, -1e300), 1e300))


def _divisors(facts: Facts) -> list[float] | None:
    """The ends of what can be divided by; None where that comes as near to 0 as one likes."""
    low, high = facts.low, facts.high
    if low <= 0 <= high:
        if facts.kind != "integer":
            return None
        return [end for end in (low, -1 if low < 0 else 0, 1 if high > 0 else 0, high) if end]
    return [low, high]


def _remainder(a: tuple[float, float], b: tuple[float, float], integers: bool) -> tuple[float, float]:
    """It has the sign of the divisor, and is smaller."""
    if b[0] > 0 and a[0] >= 0 and a[1] < b[0]:
        return a
    one = 1 if integers else 0
    return min(0, b[0] + one if b[0] < 0 else 0), max(0, b[1] - one if b[1] > 0 else 0)


def _down(value: float) -> float:
    return math.nextafter(float(value), -math.inf) if value else 0.0


def _up(value: float) -> float:
    return math.nextafter(float(value), math.inf) if value else 0.0
