"""The `columns` section of the spec: public declarations, read into `Column`s and written back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpsynth_cli.domain import TYPES, Column
from dpsynth_cli.fillers import SEQUENCE, UUID, Filler, placed
from dpsynth_cli.labels import plain
from dpsynth_cli.mechanisms.search.outer import stand_ins
from dpsynth_cli.spec.column_categories import CANDIDATES, CATEGORIES, OTHER, read_candidates, read_other
from dpsynth_cli.spec.column_checks import check
from dpsynth_cli.spec.column_formats import OF_TYPE, with_format
from dpsynth_cli.spec.column_kinds import ANY, BOUNDS, PRIVATE, or_private
from dpsynth_cli.spec.keys import Key, Kind, Schema, Section, object_schema, or_null, written
from dpsynth_cli.spec.kinds import FLAG, LINE, choice, text
from dpsynth_cli.spec.patterns import Names, with_defaults, written_out
from dpsynth_cli.spec.reader import Reader, Wrong, usable
from dpsynth_cli.spec.yaml_nodes import Keys, Node

COLUMNS = Section(
    "columns",
    (),
    "what is released",
    such_as="age: {type: integer, bounds: [0, 120]}",
    required=True,
    of=lambda spec: (spec.declared, spec.fillers),
    write=lambda both: _columns_document(*both),
)
DEFAULTS = Section(
    "defaults",
    (),
    "keys for all columns that can have them and do not say otherwise",
    such_as='{decimal: ",", missing: ["", NA]}',
    of=lambda spec: None,
    write=lambda _: {},
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
NULLABLE = Key(
    "nullable", FLAG, "`true`: cells may be missing, in the input and in the release", default=False
)


def _key(node: Node) -> str:
    scalar = usable(node)
    words = {"true": SEQUENCE, UUID: UUID}
    if scalar is None or scalar.text not in words:
        raise Wrong("true, for 1, 2, 3, ..., or uuid")
    return words[scalar.text]


KEY = Key(
    "key",
    Kind(_key, {"enum": [True, UUID]}, lambda key: True if key == SEQUENCE else key),
    "a fresh key, never from the data: `true` for 1, 2, 3, ..., or `uuid`",
)
CONSTANT = Key(
    "constant",
    text("a number or a line of text"),
    "the same in every row, and never read: a number or a text",
)
OF = Key(
    "of",
    choice(("unit",)),
    "`unit`: the same in all rows of a unit (`privacy.unit`), such as the sex of a person; needs the unit's "
    "column as a fresh key",
    brief=True,
)
KEYS: dict[str, tuple[Key, ...]] = {
    "continuous": (TYPE, _bounds("continuous"), NULLABLE, OF, *OF_TYPE["continuous"]),
    "integer": (TYPE, _bounds("integer"), NULLABLE, OF, *OF_TYPE["integer"]),
    "date": (TYPE, _bounds("date"), NULLABLE, OF, *OF_TYPE["date"]),
    "datetime": (TYPE, _bounds("datetime"), NULLABLE, OF, *OF_TYPE["datetime"]),
    "ordinal": (TYPE, CATEGORIES, CANDIDATES, OTHER, NULLABLE, OF, *OF_TYPE["ordinal"]),
    "nominal": (TYPE, CATEGORIES, CANDIDATES, OTHER, NULLABLE, OF, *OF_TYPE["nominal"]),
    "boolean": (TYPE, NULLABLE, OF, *OF_TYPE["boolean"]),
}
NEED_BOUNDS = ("scale", "date")  # a scale lies between bounds, and so do years of %y
_EVERY = {key.name: key for keys in KEYS.values() for key in keys}


def read_columns(
    document: Reader, header: Names | None = None
) -> tuple[tuple[Column, ...], tuple[Filler, ...]]:
    """The declared columns, in order, and those that are filled in; a type that is not known is left empty
    and noted.

    `header` names the columns of the input, which are read for a pattern only; None: names are no patterns.
    """
    columns, defaults = document.section(COLUMNS), document.section(DEFAULTS)
    stated, right = bool(columns.keys.entries), len(document.mistakes)
    defaults.expect(*_EVERY.values())
    defaults.finish()
    if header is not None:
        columns.keys = written_out(columns.keys, header, columns.path, document.mistakes)
    columns.keys, fillers = _fillers(columns)
    columns.keys = with_defaults(columns.keys, defaults.keys, _names_of)
    before = len(document.mistakes)
    found = tuple(_column(columns, name) for name in columns.keys.entries)
    # What is declared for many columns at once is one mistake.
    once = {(mistake.place, mistake.text): mistake for mistake in reversed(document.mistakes[before:])}
    document.mistakes[before:] = reversed(list(once.values()))
    if stated and not found and len(document.mistakes) == right:
        document.note(COLUMNS.name, "has none with a type; there must be one to release")
    return found, fillers


def _fillers(columns: Reader) -> tuple[Keys, tuple[Filler, ...]]:
    """The columns that are read, and those that are filled in."""
    entries, fillers = {}, []
    for name, entry in columns.keys.entries.items():
        said = entry.node.entries if isinstance(entry.node, Keys) else {}
        kinds = [key for key in (KEY, CONSTANT) if key.name in said]
        if not kinds:
            entries[name] = entry
            continue
        declared = columns.section(replace(_COLUMN, name=name))
        values = declared.values(kinds)
        declared.finish()
        if len(kinds) > 1:
            declared.note(CONSTANT.name, "is stated beside key; state one of them")
        elif (value := values[kinds[0].name]) is not None:
            fillers.append(Filler(name, len(entries), **{kinds[0].name: value}))
    return Keys(entries, columns.keys.place), tuple(fillers)


def _columns_document(columns: Sequence[Column], fillers: Sequence[Filler]) -> list[dict[str, Any]]:
    """All columns as a recorded document lists them."""
    extra = [(filler, {"name": filler.name} | _filler_document(filler)) for filler in fillers]
    return list(placed([{"name": column.name} | column_document(column) for column in columns], extra))


def _filler_document(filler: Filler) -> dict[str, Any]:
    return {"key": KEY.kind.write(filler.key)} if filler.key else {"constant": filler.constant}


def _names_of(kind: str) -> list[str]:
    return [key.name for key in KEYS.get(kind, ())]


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
            declared.value(replace(key, required=False), _left_out(kind, key))
        elif key is CANDIDATES:
            values |= read_candidates(declared, values["categories"])
        elif key is OTHER:
            values |= read_other(declared, values)
        else:
            values[key.name] = declared.value(own[key.name])
    declared.finish(own)
    if kind == "boolean":
        values["categories"] = ("false", "true")
    if values.get("step") in (PRIVATE, ANY):
        values["sought"] = values.pop("step") == PRIVATE
    bounds = values.pop("bounds", (0, 0))
    if bounds == PRIVATE:
        decimals = values.get("decimals")
        step = values.get("step") if decimals is None else Fraction(1, 10**decimals)
        bounds, values["private"] = stand_ins(kind, step), True
        for need in NEED_BOUNDS:
            if values.get(need) not in (None, "linear") and (need != "date" or "%y" in values[need]):
                declared.note(need, "is stated, but the bounds are private: it needs bounds; state them")
                return Column(name, kind)
    labels = dict(values.pop("labels", None) or ())
    kept = ("type", "nullable", "categories", "private", "open", "sought")
    values = {key: value for key, value in values.items() if key in own or key in kept}
    values.pop("candidates", None)
    column = Column(name, lower=bounds[0], upper=bounds[1], **with_format(values))
    return check(declared, column, labels) if kind else column


def _left_out(kind: str, strange: Key) -> Callable[[Node], None]:
    """Refuses a key that this type of column does not have."""
    needs = [key.name for key in KEYS[kind] if key.required and key is not TYPE]
    others = [other for other, keys in KEYS.items() if strange.name in (key.name for key in keys)]

    def read(node: Node) -> None:
        if not strange.required and strange is not OTHER:
            raise Wrong(f"left out: columns of type {' and '.join(others)} have it, {kind} has not")
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


def declarations_schema() -> Schema:
    """The same with columns that a pattern would take and that are dropped."""
    drop = {
        "type": "object",
        "properties": {"drop": {"const": True}},
        "required": ["drop"],
        "additionalProperties": False,
    }
    columns = columns_schema()
    one_key = [object_schema([replace(key, required=True)]) for key in (KEY, CONSTANT)]
    columns["additionalProperties"]["oneOf"] += [*one_key, drop]
    return columns


def defaults_schema() -> Schema:
    """The JSON Schema of `defaults`: each key as one of the types has it."""
    schema: dict[str, list[Schema]] = {}
    for keys in KEYS.values():
        for key in keys:
            own = {"description": key.about} | or_null(dict(key.kind.schema))
            if own not in schema.setdefault(key.name, []):
                schema[key.name].append(own)
    properties = {name: own[0] if len(own) == 1 else {"anyOf": own} for name, own in schema.items()}
    return {
        "description": DEFAULTS.about,
        "type": ["object", "null"],
        "properties": properties,
        "additionalProperties": False,
    }
