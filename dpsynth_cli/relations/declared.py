"""A computed column that was declared: does its kind fit, and what must rows keep so that its values do?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dpsynth_cli.domain import Column
from dpsynth_cli.numbers import day_text, moment_text, whole
from dpsynth_cli.relations.kinds import Facts
from dpsynth_cli.relations.nodes import Compare, IsMissing, Literal, Name, Not, Within
from dpsynth_cli.relations.relations import Rule

_CLOSE = 1e-9  # of the bounds, that rounding may be beyond them


def misfit(column: Column, facts: Facts) -> str | None:
    """Why no value fits, as the end of a sentence; None where some do."""
    if not facts.present:
        return "is always missing"
    if column.type == "boolean" or facts.kind == "boolean":
        return None if column.type == facts.kind else _other(column, facts)
    if column.categorical:
        return None if facts.kind in ("text", "integer") else _other(column, facts)
    if facts.kind != column.type and (facts.kind, column.type) != ("integer", "continuous"):
        hint = (
            "; write round(…) or floor(…)" if (facts.kind, column.type) == ("continuous", "integer") else ""
        )
        return _other(column, facts) + hint
    if column.step is not None or column.scale != "linear":
        return "has a step or a scale, and would not be written exactly; leave that out of its declaration"
    if column.unit > 1 and column.type == "integer":
        return "has more than 2^30 values, and would not be written exactly; leave its declaration out"
    return None


def as_declared(column: Column, facts: Facts) -> Iterator[Rule]:
    """What every row keeps so that only declared values are computed; nothing where no others can be."""
    name = Name(column.name)
    if facts.missing and not column.nullable:
        yield Rule(f"{column.name} is not missing, as declared", Not(IsMissing(name)))
    if column.type == "boolean":
        return
    if column.categorical:
        if not _possible_labels(facts) <= set(column.categories):
            yield Rule(f"{column.name} is one of its categories", Within(name, _choices(column, facts)))
        return
    room = _CLOSE * max(abs(column.lower), abs(column.upper)) if column.type == "continuous" else 0
    if facts.low < column.lower - room:
        words = f"{column.name} is at least {_text(column, column.lower)}, as declared"
        yield Rule(words, Compare(">=", name, _end(column, column.lower)))
    if facts.high > column.upper + room:
        words = f"{column.name} is at most {_text(column, column.upper)}, as declared"
        yield Rule(words, Compare("<=", name, _end(column, column.upper)))


def _possible_labels(facts: Facts) -> set[str]:
    """What it can be, as labels; one that is in no declaration stands for more than there could be."""
    if facts.kind == "text":
        return set(facts.labels)
    if facts.high - facts.low > 10_000:
        return {""}
    return {str(number) for number in range(int(facts.low), int(facts.high) + 1)}


def _choices(column: Column, facts: Facts) -> tuple[Literal, ...]:
    if facts.kind == "text":
        return tuple(Literal(label) for label in column.categories if label in facts.labels)
    numbers = [whole(label) for label in column.categories if str(whole(label)) == label]
    return tuple(Literal(Fraction(number)) for number in numbers if number is not None)


def _end(column: Column, value: float) -> Literal:
    return Literal(_text(column, value) if column.type in ("date", "datetime") else Fraction(value))


def _other(column: Column, facts: Facts) -> str:
    return f"is {facts.in_words}, and was declared as {column.type}"


def _text(column: Column, value: float) -> str:
    if column.type == "date":
        return day_text(int(value))
    return moment_text(int(value)) if column.type == "datetime" else f"{value:g}"
