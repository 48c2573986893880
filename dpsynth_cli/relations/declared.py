"""Does what is computed fit the column that was declared for it? And what is the column, if none was?"""

from __future__ import annotations

from dpsynth_cli.domain import Column
from dpsynth_cli.numbers import day_text, moment_text
from dpsynth_cli.relations.kinds import Facts

MOST_LABELS = 10_000  # of a column of categories that whole numbers are written into
_CLOSE = 1e-9  # of the range, that rounding may be beyond a bound


def misfit(column: Column, facts: Facts) -> str | None:
    """What is wrong, as the end of a sentence; None where all that can be computed can be written."""
    if not facts.present:
        return "is always missing"
    if facts.missing and not column.nullable:
        return "can be missing; declare it with nullable: true, or write or_else(…, something)"
    if column.type == "boolean" or facts.kind == "boolean":
        return None if column.type == facts.kind else _other(column, facts)
    if column.categorical:
        return _labels(column, facts)
    if facts.kind != column.type and (facts.kind, column.type) != ("integer", "continuous"):
        hint = (
            "; write round(…) or floor(…)" if (facts.kind, column.type) == ("continuous", "integer") else ""
        )
        return _other(column, facts) + hint
    room = _CLOSE * max(abs(column.lower), abs(column.upper)) if column.type == "continuous" else 0
    if facts.low < column.lower - room or facts.high > column.upper + room:
        low, high = (_text(column, end) for end in (facts.low, facts.high))
        return f"can be from {low} to {high}, which is beyond its bounds; widen them, or use min and max"
    if column.unit > 1 and column.type == "integer":
        return "has more than 2^30 values, and would not be written exactly; leave its declaration out"
    return None


def _labels(column: Column, facts: Facts) -> str | None:
    if facts.kind == "integer" and facts.high - facts.low < MOST_LABELS:
        labels = [str(number) for number in range(int(facts.low), int(facts.high) + 1)]
    elif facts.kind == "text":
        labels = list(facts.labels)
    else:
        return _other(column, facts)
    strange = sorted(set(labels) - set(column.categories))
    if strange:
        return f"can be {strange[0]!r}, which is not one of its categories"
    return None


def _other(column: Column, facts: Facts) -> str:
    return f"is {facts.in_words}, and was declared as {column.type}"


def _text(column: Column, value: float) -> str:
    if column.type == "date":
        return day_text(int(value))
    return moment_text(int(value)) if column.type == "datetime" else f"{value:g}"
