"""The `columns` section of the spec: public declarations, read into `Column`s and written back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any

from dpsynth_cli.domain import TYPES, Column
from dpsynth_cli.spec.column_kinds import BOUNDS, LABEL, LABELS
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
        BOUNDS[kind],
        "the lowest and the highest value that is possible, by public knowledge",
        required=True,
        default=(0, 0),
        of=attrgetter("lower", "upper"),
    )


TYPE = Key("type", choice(TYPES), "what its cells are", required=True, default="")
CATEGORIES = Key(
    "categories", LABELS, "all labels that are possible, none twice, none empty", required=True, default=()
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
    "ordinal": (TYPE, CATEGORIES, OTHER, NULLABLE),
    "nominal": (TYPE, CATEGORIES, OTHER, NULLABLE),
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
    values = declared.values([TYPE, NULLABLE])
    kind = values["type"]
    own = {key.name: key for key in KEYS.get(kind, ())}
    for key in _EVERY.values():
        if key.name in values:
            continue
        if not kind:
            declared.expect(key)  # which type it would be right for is not known
        elif key.name not in own:
            declared.value(replace(key, required=False), _left_out(kind))
        elif key is OTHER:
            values[key.name] = _other(declared, values["categories"])
        else:
            values[key.name] = declared.value(own[key.name])
    declared.finish()
    if kind == "boolean":
        values["categories"] = ("false", "true")
    lower, upper = values.pop("bounds", (0, 0))
    return Column(name, lower=lower, upper=upper, **values)


def _other(declared: Reader, categories: tuple[str, ...]) -> str | None:
    """One of the categories, where these are known."""
    if not categories:
        declared.expect(OTHER)
        return None
    other: str | None = declared.value(OTHER, one_of(categories, "one of the categories: "))
    return other


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
