"""The JSON Schema of the spec, for editors and other programs: python -m dpsynth_cli.spec.schema.

It says what one key may hold. What concerns two keys at once (lower <= upper, strata that name a
declared column) only `dpsynth check` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from dpsynth_cli.mechanisms.registry import Mechanism, mechanisms
from dpsynth_cli.spec.columns import COLUMNS, DEFAULTS, declarations_schema, defaults_schema
from dpsynth_cli.spec.document import DOCUMENT, VERSION
from dpsynth_cli.spec.keys import Schema, object_schema
from dpsynth_cli.spec.mechanism import MECHANISM, mechanism_schema
from dpsynth_cli.spec.paths import INPUT
from dpsynth_cli.spec.privacy import BUDGET, PRIVACY
from dpsynth_cli.spec.tables import OWN, TABLES, tables_schema


def json_schema(registry: Mapping[str, Mechanism] | None = None) -> Schema:
    """The JSON Schema (2020-12) of a spec."""
    known = mechanisms() if registry is None else registry
    schema = object_schema(DOCUMENT)
    schema["properties"] |= {
        MECHANISM.name: mechanism_schema(known),
        DEFAULTS.name: defaults_schema(),
        COLUMNS.name: declarations_schema(),
        TABLES.name: tables_schema(),
    }
    alone = [name for name in schema["required"] if name in OWN]
    schema["required"] = [name for name in schema["required"] if name not in OWN]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"dpsynth spec, version {VERSION}",
        **schema,
        "allOf": [_with_or_without_budget(), _with_or_without_input(known), _one_or_several(alone)],
    }


def _one_or_several(alone: Sequence[str]) -> Schema:
    """One table says what it is at the top; several say it each."""
    return {
        "if": {"required": [TABLES.name]},
        "then": {"not": {"anyOf": [{"required": [name]} for name in (INPUT.name, *alone)]}},
        "else": {"required": list(alone)},
    }


def _with_or_without_budget() -> Schema:
    """A release by groups is not differentially private: it has no epsilon, and the others have one."""
    groups = _named(
        MECHANISM.name, {"properties": {"guarantee": {"const": "groups"}}, "required": ["guarantee"]}
    )
    unused = {"not": {"anyOf": [{"required": [key.name]} for key in BUDGET]}}
    return {
        "if": groups,
        "then": {"properties": {PRIVACY.name: unused}},
        "else": _named(PRIVACY.name, {"required": [key.name for key in BUDGET if key.required]}),
    }


def _with_or_without_input(registry: Mapping[str, Mechanism]) -> Schema:
    """A stream gets its rows push by push, and needs no input."""
    streams = [name for name, mechanism in registry.items() if mechanism.stream]
    stream = _named(MECHANISM.name, {"properties": {"name": {"enum": streams}}, "required": ["name"]})
    return {
        "if": {"anyOf": [stream, {"required": [TABLES.name]}]},
        "else": {"required": [INPUT.name]},
    }


def _named(key: str, schema: Schema) -> Schema:
    return {"properties": {key: schema}, "required": [key]}


def document() -> str:
    """The text of configs/spec.schema.json."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(document(), end="")
