"""The `columns` section of the spec: public declarations, read into `Column`s and written back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsynth_cli.domain import TYPES, Column
from dpsynth_cli.numbers import day, day_text, moment, moment_text
from dpsynth_cli.spec.reader import TODO, Section, Wrong, choice, decimal, flag, items, plain, text
from dpsynth_cli.spec.yaml_nodes import Node, Scalar, shortened

BOUNDED = ("continuous", "integer", "date", "datetime")
LABELLED = ("ordinal", "nominal")
MOST_EXACT = 2**53  # whole numbers up to here are exact in a float64

_TWO = {
    "continuous": "two numbers, the lower first, such as [0, 1.5]",
    "integer": "two whole numbers within ±2^53, the lower first, such as [0, 120]",
    "date": "two dates, the earlier first, such as [2020-01-01, 2020-12-31]",
    "datetime": "two times, the earlier first, such as [2020-01-01T00:00:00, 2020-12-31T23:59:59]",
}
_LABELS = "a list of different labels, none of them empty, such as [low, mid, high]"


def read_columns(document: Section) -> tuple[Column, ...]:
    """The declared columns, in order; a type that is not known is left empty and noted."""
    columns = document.section("columns", "age: {type: integer, bounds: [0, 120]}")
    return tuple(_column(columns, name) for name in columns.keys.entries)


def _column(columns: Section, name: str) -> Column:
    declared = columns.section(name, "{type: integer, bounds: [0, 120]}")
    if not name or not plain(name):
        columns.note(name, "is not a name for a column; it must be one line of text")
    kind = declared.required("type", choice(TYPES), "")
    nullable = declared.optional("nullable", flag, False)
    lower: float = 0
    upper: float = 0
    categories: tuple[str, ...] = ()
    other = None
    if kind in BOUNDED:
        lower, upper = declared.required("bounds", _bounds(kind), (0, 0))
    elif kind:
        _leave_out(declared, "bounds", kind)
    if kind in LABELLED:
        categories = declared.required("categories", _categories, ())
        if categories:
            other = declared.optional("other", choice(categories, "one of the categories: "), None)
    elif kind:
        _leave_out(declared, "categories", kind)
        _leave_out(declared, "other", kind)
    declared.known += [key for key in ("bounds", "categories", "other") if key not in declared.known]
    declared.finish()
    if kind == "boolean":
        categories = ("false", "true")
    return Column(name, kind, lower, upper, categories, other, nullable)


def _leave_out(declared: Section, key: str, kind: str) -> None:
    """Note a key that this type of column does not have."""
    needs = (
        "bounds" if kind in BOUNDED else "categories" if kind in LABELLED else "neither bounds nor categories"
    )

    def convert(node: Node) -> None:
        raise Wrong(f"left out: a column of type {kind} has {needs}")

    declared.optional(key, convert, None)


def _bounds(kind: str) -> Callable[[Node], tuple[float, float]]:
    """A converter to a column's two bounds, in its own unit."""

    def convert(node: Node) -> tuple[float, float]:
        ends = [_END[kind](end) for end in items(node, _TWO[kind])]
        if len(ends) != 2 or ends[0] is None or ends[1] is None or ends[0] > ends[1]:
            raise Wrong(_TWO[kind])
        return ends[0], ends[1]

    return convert


def _number(node: Node) -> float | None:
    value = decimal(node)
    return None if value is None else float(value)


def _whole(node: Node) -> int | None:
    value = decimal(node)
    if value is None or value.denominator != 1 or abs(value) > MOST_EXACT:
        return None
    return int(value)


def _day(node: Node) -> int | None:
    """Days since 1970-01-01."""
    return day(node.text) if isinstance(node, Scalar) else None


def _moment(node: Node) -> int | None:
    """Microseconds since 1970-01-01T00:00:00 UTC."""
    return moment(node.text) if isinstance(node, Scalar) else None


_END: dict[str, Callable[[Node], float | None]] = {
    "continuous": _number,
    "integer": _whole,
    "date": _day,
    "datetime": _moment,
}


def _categories(node: Node) -> tuple[str, ...]:
    labels = tuple(_label(one) for one in items(node, _LABELS))
    if not labels or (len(labels) > 1 and set(labels) == {TODO}):
        raise Wrong(_LABELS)
    seen: set[str] = set()
    for label in labels:
        if label in seen:
            raise Wrong(_LABELS, f"lists {shortened(label)} twice")
        seen.add(label)
    return labels


def _label(node: Node) -> str:
    if isinstance(node, Scalar) and node.null:
        fault = f"lists {node.text}" if node.text else "lists an empty label"
        raise Wrong(
            f'{_LABELS}; missing cells are declared by nullable: true, a label null is written "null"', fault
        )
    return text(_LABELS)(node)


def column_document(column: Column) -> dict[str, Any]:
    """A column as the spec would declare it, with its defaults.

    >>> column_document(Column("seen", "date", lower=0, upper=1))
    {'type': 'date', 'bounds': ['1970-01-01', '1970-01-02'], 'nullable': False}
    """
    document: dict[str, Any] = {"type": column.type}
    if column.type in BOUNDED:
        document["bounds"] = [_written(column.type, end) for end in (column.lower, column.upper)]
    if column.type in LABELLED:
        document |= {"categories": list(column.categories), "other": column.other}
    return document | {"nullable": column.nullable}


def _written(kind: str, end: float) -> str | float:
    if kind == "date":
        return day_text(int(end))
    if kind == "datetime":
        return moment_text(int(end))
    return end
