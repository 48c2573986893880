"""The `columns` section of the spec: public declarations, read into `Column`s and written back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from dpsynth_cli.domain import TYPES, Column
from dpsynth_cli.mechanisms.search.outer import STAND_INS
from dpsynth_cli.spec.column_kinds import BOUNDS, LABEL, LABELS, PRIVATE, or_private
from dpsynth_cli.spec.keys import Key, Schema, Section, object_schema, written
from dpsynth_cli.spec.kinds import FLAG, LINE, choice, one_of
from dpsynth_cli.spec.reader import Reader, Wrong, plain
from dpsynth_cli.spec.yaml_nodes import Node

COLUMNS = Section(
    "columns",
    (),
    "what is released",
    such_as="age: {type: integer, bounds: [0, 120]}",
    required=True,
    of=attrgetter("declared"),
    write=lambda columns: [{"name": column.name} | column_document(column) for column in columns],
)
_COLUMN = Section("", (), "", such_as="{type: integer, bounds: [0, 120]}", required=True)


def _bounds(kind: str) -> Key:
    return Key(
        "bounds",
        or_private(BOUNDS[kind]),
        "the lowest and the highest value that is possible, by public knowledge; or `private`: found for a "
        "part of the budget (`privacy.search`)",
        required=True,
        default=(0, 0),
        of=lambda column: PRIVATE if column.private else (column.lower, column.upper),
    )


TYPE = Key("type", choice(TYPES), "what its cells are", required=True, default="")
CATEGORIES = Key(
    "categories",
    or_private(LABELS),
    "all labels that are possible, none twice, none empty; or `private`: those of the `candidates` that "
    "there are, found for a part of the budget (`privacy.search`)",
    required=True,
    default=(),
    of=lambda column: PRIVATE if column.private else column.categories,
)
CANDIDATES = Key(
    "candidates",
    replace(LABELS, write=lambda labels: None if labels is None else list(labels)),
    "with `categories: private`: all labels that there may be, by public knowledge; those with few rows, or "
    "none, become the `other` one",
    of=lambda column: column.categories if column.private else None,
)
OTHER = Key("other", LABEL, "which of the categories an unlisted label becomes")
NULLABLE = Key(
    "nullable", FLAG, "`true`: cells may be missing, in the input and in the release", default=False
)

KEYS: dict[str, tuple[Key, ...]] = {
    "continuous": (TYPE, _bounds("continuous"), NULLABLE),
    "integer": (TYPE, _bounds("integer"), NULLABLE),
    "date": (TYPE, _bounds("date"), NULLABLE),
    "datetime": (TYPE, _bounds("datetime"), NULLABLE),
    "ordinal": (TYPE, CATEGORIES, CANDIDATES, OTHER, NULLABLE),
    "nominal": (TYPE, CATEGORIES, CANDIDATES, OTHER, NULLABLE),
    "boolean": (TYPE, NULLABLE),
}
_EVERY = {key.name: key for keys in KEYS.values() for key in keys}


def read_columns(document: Reader) -> tuple[Column, ...]:
    """The declared columns, in order; a type that is not known is left empty and noted."""
    columns = document.section(COLUMNS)
    return tuple(_column(columns, name) for name in columns.keys.entries)


def _column(columns: Reader, name: str) -> Column:
    declared = columns.section(replace(_COLUMN, name=name))
    if not name or not plain(name):
        columns.note(name, "is not a name for a column; it must be one line of text")
    values = declared.values([TYPE, NULLABLE]) | {"private": False}
    kind = values["type"]
    own = {key.name: key for key in KEYS.get(kind, ())}
    for key in _EVERY.values():
        if key in (TYPE, NULLABLE):
            continue
        if not kind:
            declared.expect(key)  # which type it would be right for is not known
        elif key.name not in own:
            declared.value(replace(key, required=False), _left_out(kind))
        elif key is CANDIDATES:
            values |= _candidates(declared, values["categories"])
        elif key is OTHER:
            values |= _other(declared, values)
        else:
            values[key.name] = declared.value(own[key.name])
    declared.finish()
    if kind == "boolean":
        values["categories"] = ("false", "true")
    bounds = values.pop("bounds", (0, 0))
    if bounds == PRIVATE:
        bounds, values["private"] = STAND_INS[kind], True
    return Column(name, lower=bounds[0], upper=bounds[1], **values)


def _candidates(declared: Reader, categories: tuple[str, ...] | str) -> dict[str, Any]:
    """The categories, where these are known, else all that there may be."""
    if categories != PRIVATE:
        if declared.value(CANDIDATES) is not None:
            declared.note("candidates", "is stated, but the categories are not private; leave it out")
        return {"private": False}
    candidates = declared.value(CANDIDATES)
    if candidates is None and "candidates" not in declared.keys.entries:
        declared.note(
            "categories",
            "is private, but which labels there may be is not said; state candidates: a list by public "
            "knowledge, such as all codes of a standard. Labels that nobody has listed are not looked for",
        )
    return {"private": True, "categories": candidates or ()}


def _other(declared: Reader, values: Mapping[str, Any]) -> dict[str, Any]:
    """One of the categories, where these are known; of private ones any label, which is then always there."""
    categories: tuple[str, ...] = values["categories"]
    if not categories:
        declared.expect(OTHER)
        return {}
    if not values["private"]:
        return {"other": declared.value(OTHER, one_of(categories, "one of the categories: "))}
    other: str | None = declared.value(OTHER)
    if other is None and not values["nullable"]:
        declared.note(
            "categories",
            "is private, but what becomes of labels that are not found is not said; state other: LABEL, or "
            "nullable: true",
        )
    return {"other": other, "categories": _with(categories, other)}


def _with(labels: tuple[str, ...], other: str | None) -> tuple[str, ...]:
    return labels if other is None or other in labels else (*labels, other)


def _left_out(kind: str) -> Callable[[Node], None]:
    """Refuses a key that this type of column does not have."""
    needs = [key.name for key in KEYS[kind] if key.required and key is not TYPE]

    def read(node: Node) -> None:
        has = " and ".join(needs) or "neither bounds nor categories"
        raise Wrong(f"left out: a column of type {kind} has {has}")

    return read


def column_document(column: Column) -> dict[str, Any]:
    """A column as the spec would declare it, with its defaults.

    >>> column_document(Column("seen", "date", lower=0, upper=1))
    {'type': 'date', 'bounds': ['1970-01-01', '1970-01-02'], 'nullable': False}
    """
    return written(KEYS[column.type], column)


def columns_schema() -> Schema:
    """The JSON Schema of the section: any names, and the keys of each type."""
    by_type = []
    for kind, keys in KEYS.items():
        column = object_schema(keys)
        column["properties"]["type"] = {"const": kind}
        by_type.append(column)
    return {
        "description": COLUMNS.about,
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": LINE},
        "additionalProperties": {"type": "object", "oneOf": by_type},
    }
