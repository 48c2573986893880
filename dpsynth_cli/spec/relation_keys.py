"""The keys of `derive` and `rules`: what they may hold, in words and as a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from dpsynth_cli.spec.keys import Key, Kind, Schema, Section
from dpsynth_cli.spec.kinds import SCALARS
from dpsynth_cli.spec.reader import Wrong, usable
from dpsynth_cli.spec.yaml_nodes import Items, Keys, Node

MOST = 500  # rules, and computed columns
EXPRESSIONS = "a list of expressions such as [start <= end, if age < 15 then income is missing]"
IMPOSSIBLE_RULES = "a list of rules such as {relationship: Husband, sex: Female}"
COMPUTED = "columns such as {hour: sched_dep_time // 100}"
PAIRS = "columns such as {arr_delay: air_time}"
TABLES = (
    "columns with tables such as {education: {education_num: {Bachelors: 13, Masters: 14}}}, or private in "
    "place of a table"
)
_SCALAR: Schema = {"type": SCALARS}
_RANGE: Schema = {
    "type": "object",
    "properties": {"from": _SCALAR, "to": _SCALAR, "missing": {"enum": [True]}},
    "minProperties": 1,
    "additionalProperties": False,
}
_SIDE: Schema = {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}, _RANGE]}
_TABLE: Schema = {"type": "object", "additionalProperties": _SCALAR, "minProperties": 1}
_LOOKUP: Schema = {
    "type": "object",
    "properties": {"of": {"type": "string"}, "table": _TABLE, "else": _SCALAR},
    "required": ["of", "table"],
    "additionalProperties": False,
}


def _list(allowed: str) -> Callable[[Node], Items]:
    def read(node: Node) -> Items:
        usable(node)
        if isinstance(node, Items) and len(node.nodes) <= MOST:
            return node
        raise Wrong(f"{allowed}, at most {MOST}")

    return read


def _keys(allowed: str) -> Callable[[Node], Keys]:
    def read(node: Node) -> Keys:
        usable(node)
        if isinstance(node, Keys) and len(node.entries) <= MOST:
            return node
        raise Wrong(f"{allowed}, at most {MOST}")

    return read


def _mapping(inside: Schema) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": inside, "maxProperties": MOST}


def _array(inside: Schema) -> dict[str, Any]:
    return {"type": "array", "items": inside, "maxItems": MOST}


def _in_order(derive: dict[str, Any] | None) -> list[dict[str, Any]] | None:
    """A list, since the order of columns matters; `from_document` takes it back."""
    if derive is None:
        return None
    return [{"name": name, "is": written} for name, written in derive.items()]


DERIVE = Key(
    "derive",
    Kind(_keys(COMPUTED), _mapping({"anyOf": [_SCALAR, _LOOKUP]}), _in_order),
    "[columns that are computed](relations.md#derive) from others of the same synthetic row: expressions "
    "such as `{hour: sched_dep_time // 100}`, or lookup tables. They are no part of the model and never read",
    of=attrgetter("stated.derive"),
)
ALWAYS = Key(
    "always",
    Kind(_list(EXPRESSIONS), _array(_SCALAR)),
    "expressions that are false in no row, such as `start <= end` or `if age < 15 then income is missing`",
)
IMPOSSIBLE = Key(
    "impossible",
    Kind(_list(IMPOSSIBLE_RULES), _array(_mapping(_SIDE) | {"minProperties": 2, "maxProperties": 10})),
    "values of two columns or more that no row has together, such as `{relationship: Husband, sex: Female}`",
)
MISSING_WITH = Key(
    "missing_with",
    Kind(_keys(PAIRS), _mapping({"type": "string"})),
    "columns that are missing exactly where another one is, such as `{arr_delay: air_time}`",
)
DETERMINES = Key(
    "determines",
    Kind(_keys(TABLES), _mapping(_mapping({"anyOf": [_TABLE, {"const": "private"}]}))),
    "public tables by which a column determines others, such as `{education: {education_num: {Bachelors: "
    "13}}}`. What is determined is computed, as what is derived. `{education: {education_num: private}}`: "
    "the table is found for 1/20 of the budget",
)
RULES = Section(
    "rules",
    (ALWAYS, IMPOSSIBLE, MISSING_WITH, DETERMINES),
    "what every row keeps, whatever the data says",
    such_as="{always: [start <= end]}",
    of=attrgetter("stated.rules"),
    write=lambda rules: rules,
)
