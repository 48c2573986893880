"""What an expression may call: for each function what it takes, what it can give, and what it gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli import numbers
from dpsynth_cli.relations.kinds import DAY, NUMBERS, TIMES, Facts, either, number, whole
from dpsynth_cli.relations.language import NotAnExpression

Array = NDArray[Any]


@dataclass(frozen=True)
class Function:
    """`least` to `most` arguments of these kinds; `facts` of what arguments can be, `values` of arrays of
    them (where none is missing: a missing argument makes a missing result)."""

    about: str
    kinds: tuple[str, ...]
    facts: Callable[[Sequence[Facts], int], Facts]
    values: Callable[..., Array]
    least: int = 1
    most: int = 1


def _both(facts: Sequence[Facts]) -> tuple[bool, bool]:
    return any(one.missing for one in facts), all(one.present for one in facts)


def _same(ends: Callable[[Sequence[Facts]], tuple[float, float]]) -> Callable[[Sequence[Facts], int], Facts]:
    """A function whose result is of the kind of its arguments, a number if one of them is."""

    def facts(given: Sequence[Facts], at: int) -> Facts:
        kinds = {one.kind for one in given}
        if len(kinds) > 1 and not kinds <= set(NUMBERS):
            raise NotAnExpression(at, "the arguments must be of one kind")
        kind = "continuous" if len(kinds) > 1 else given[0].kind
        return Facts(kind, *ends(given), missing=_both(given)[0], present=_both(given)[1])

    return facts


def _rounded(up: Callable[[float], float]) -> Callable[[Sequence[Facts], int], Facts]:
    def facts(given: Sequence[Facts], at: int) -> Facts:
        return whole("integer", int(up(given[0].low)), int(up(given[0].high)), *_both(given), at)

    return facts


def _round_facts(given: Sequence[Facts], at: int) -> Facts:
    if len(given) == 1:
        return _rounded(round)(given, at)
    if not given[1].point or given[1].kind != "integer" or not 0 <= given[1].low <= 15:
        raise NotAnExpression(at, "round(number, decimals) has 0 to 15 decimals, as a number")
    room = 10.0 ** -int(given[1].low)
    return number(given[0].low - room, given[0].high + room, *_both(given), at)


def _round(x: Array, decimals: Array | None = None) -> Array:
    if decimals is None:
        return np.rint(x).astype(np.int64)
    return np.round(x.astype(np.float64), int(decimals[0]) if len(decimals) else 0)


def _between(low: int, high: int, of: Callable[[Array], Array], about: str) -> Function:
    """A part of a date or a time, from low to high."""

    def facts(given: Sequence[Facts], at: int) -> Facts:
        return whole("integer", low, high, *_both(given), at)

    return Function(about, TIMES if low else ("datetime",), facts, of)


def _parts(of: Callable[[Array, Array], Array]) -> Callable[[Array], Array]:
    """A function of days since 1970 and of the microseconds of the day; times are told by their size."""

    def values(x: Array) -> Array:
        timed = x.dtype == np.dtype("datetime64[us]")
        micros = x.astype(np.int64) if timed else x.astype(np.int64) * DAY
        return of(np.floor_divide(micros, DAY), np.remainder(micros, DAY))

    return values


def _calendar(unit: str, days: Array) -> Array:
    return days.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.int64)


def _day_of_month(days: Array) -> Array:
    first = days.astype("datetime64[D]").astype("datetime64[M]").astype("datetime64[D]")
    return days - first.astype(np.int64) + 1


def _year(days: Array) -> Array:
    return _calendar("Y", days) + 1970


def _year_facts(given: Sequence[Facts], at: int) -> Facts:
    unit = DAY if given[0].kind == "datetime" else 1
    low, high = _year(np.array([given[0].low // unit, given[0].high // unit], np.int64))
    return whole("integer", int(low), int(high), *_both(given), at)


def _date_facts(given: Sequence[Facts], at: int) -> Facts:
    return whole("date", int(given[0].low) // DAY, int(given[0].high) // DAY, *_both(given), at)


def _or_else_facts(given: Sequence[Facts], at: int) -> Facts:
    found = given[0]
    for one in given[1:]:
        both = either(found, one, at)  # of one kind, whether the other one is needed or not
        found = replace(both, missing=one.missing) if found.missing else replace(found, kind=both.kind)
    return found


def label_number(label: str) -> int | float | None:
    """The number that a label writes.

    >>> label_number("12"), label_number("0.5"), label_number("low")
    (12, 0.5, None)
    """
    value = numbers.decimal(label.strip())
    if value is None:
        return None
    return int(value) if value.denominator == 1 and abs(value) <= 2**53 else float(value)


def _number_facts(given: Sequence[Facts], at: int) -> Facts:
    found = [label_number(label) for label in given[0].labels]
    ends = [value for value in found if value is not None]
    if not ends:
        return Facts("integer", missing=True, present=False)
    missing, present = given[0].missing or None in found, given[0].present
    kind = "integer" if all(isinstance(value, int) for value in ends) else "continuous"
    return Facts(kind, min(ends), max(ends), missing=missing, present=present)


def _unused(*arrays: Array) -> Array:
    raise AssertionError("or_else and number know of missing values and of labels: values.py")


FUNCTIONS: dict[str, Function] = {
    "abs": Function(
        "the number without its sign",
        NUMBERS,
        _same(lambda g: (max(g[0].low, -g[0].high, 0), max(-g[0].low, g[0].high))),
        np.abs,
    ),
    "min": Function(
        "the least of them",
        (*NUMBERS, *TIMES),
        _same(lambda g: (min(one.low for one in g), min(one.high for one in g))),
        lambda *xs: np.minimum.reduce(np.broadcast_arrays(*xs)),
        least=2,
        most=20,
    ),
    "max": Function(
        "the greatest of them",
        (*NUMBERS, *TIMES),
        _same(lambda g: (max(one.low for one in g), max(one.high for one in g))),
        lambda *xs: np.maximum.reduce(np.broadcast_arrays(*xs)),
        least=2,
        most=20,
    ),
    "round": Function(
        "the nearest whole number, a half to the even one; or so many decimals",
        NUMBERS,
        _round_facts,
        _round,
        most=2,
    ),
    "floor": Function(
        "the whole number below", NUMBERS, _rounded(math.floor), lambda x: np.floor(x).astype(np.int64)
    ),
    "ceil": Function(
        "the whole number above", NUMBERS, _rounded(math.ceil), lambda x: np.ceil(x).astype(np.int64)
    ),
    "year": Function("the year", TIMES, _year_facts, _parts(lambda days, micros: _year(days))),
    "month": _between(
        1, 12, _parts(lambda days, micros: _calendar("M", days) % 12 + 1), "the month, 1 to 12"
    ),
    "day": _between(1, 31, _parts(lambda days, micros: _day_of_month(days)), "the day of the month"),
    "weekday": _between(
        1, 7, _parts(lambda days, micros: (days + 3) % 7 + 1), "the day of the week: Monday is 1, Sunday is 7"
    ),
    "hour": _between(0, 23, _parts(lambda days, micros: micros // 3_600_000_000), "the hour, 0 to 23"),
    "minute": _between(0, 59, _parts(lambda days, micros: micros // 60_000_000 % 60), "the minute"),
    "second": _between(0, 59, _parts(lambda days, micros: micros // 1_000_000 % 60), "the second"),
    "date": Function("the day of a time", ("datetime",), _date_facts, _parts(lambda days, micros: days)),
    "or_else": Function(
        "the first of them that is not missing", (), _or_else_facts, _unused, least=2, most=20
    ),
    "number": Function("the number that a label writes, else missing", ("text",), _number_facts, _unused),
}
