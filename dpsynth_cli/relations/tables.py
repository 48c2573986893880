"""Lookup tables: a column that another one determines, by a public table."""

from __future__ import annotations

from collections.abc import Mapping

from dpsynth_cli import numbers
from dpsynth_cli.domain import Column
from dpsynth_cli.relations.kinds import Facts
from dpsynth_cli.relations.nodes import Expression, Literal, Lookup

MOST = 10_000  # entries
_TRUTHS = {"true": True, "false": False}


def lookup(
    operand: Expression, facts: Facts, table: Mapping[str, str], otherwise: str | None, column: Column | None
) -> Lookup:
    """The table as an expression. Its keys are what the operand can be; its results are what the declared
    column holds, or without one numbers if all of them write one, else texts.

    ValueError says what is wrong with an entry.
    """
    if len(table) > MOST:
        raise ValueError(f"has more than {MOST:,} entries")
    results = [*table.values(), *([] if otherwise is None else [otherwise])]
    as_number = all(numbers.decimal(text) is not None for text in results)
    if column is not None and (as_number or column.categorical):
        as_number = not column.categorical
    if column is not None and column.type in ("date", "datetime"):
        raise ValueError(f"a table gives numbers, labels, true or false; the column is {column.type}")
    truths = column.type == "boolean" if column is not None else False
    entries = tuple((_key(text, facts), _result(to, as_number, truths)) for text, to in sorted(table.items()))
    if len({key.value for key, _ in entries}) < len(entries):
        raise ValueError("has a key twice")
    rest = Literal(None) if otherwise is None else _result(otherwise, as_number, truths)
    return Lookup(operand, entries, rest)


def _key(text: str, facts: Facts) -> Literal:
    if facts.kind == "text":
        known = facts.order or facts.labels
        if text not in known:
            raise ValueError(f"has the key {text[:60]!r}, which is not a declared category")
        return Literal(text)
    if facts.kind == "boolean" and text in _TRUTHS:
        return Literal(_TRUTHS[text])
    number = numbers.whole(text) if facts.kind == "integer" else None
    if number is None:
        what = "labels, whole numbers, true or false"
        raise ValueError(f"has the key {text[:60]!r}; a table is of {what}, as its column is")
    value = numbers.decimal(text)
    return Literal(value)


def _result(text: str, as_number: bool, truths: bool) -> Literal:
    if truths:
        if text not in _TRUTHS:
            raise ValueError(f"gives {text[:60]!r}; the column is boolean, which is true or false")
        return Literal(_TRUTHS[text])
    return Literal(numbers.decimal(text) if as_number else text)
