"""The JSON Schema of the spec, for editors and other programs: python -m dpsynth_cli.spec.schema.

It says what one key may hold. What concerns two keys at once (lower <= upper, strata that name a
declared column) only `dpsynth check` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dpsynth_cli.domain import TYPES
from dpsynth_cli.evaluate.names import NAMES
from dpsynth_cli.mechanisms.registry import Mechanism, mechanisms
from dpsynth_cli.numbers import CLOCK, DAY, ZONE
from dpsynth_cli.spec.columns import BOUNDED, LABELLED, MOST_EXACT
from dpsynth_cli.spec.evaluate import WORDS
from dpsynth_cli.spec.spec import (
    DELIMITER,
    LARGEST_SEED,
    LONGEST_NAME,
    MOST_ROWS,
    NEIGHBOURS,
    OUTPUTS,
    VERSION,
)

Schema = dict[str, Any]

_SCALARS = ["string", "number", "boolean"]  # taken as text, as written
_CONTROL = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
_LINE = f"^[^{_CONTROL}]+$"
_TRIMMED = rf"^(?!\s)[^{_CONTROL}]+(?<!\s)$"
_NAME = rf"^(?!\s)[^{_CONTROL}/\\]+(?<!\s)$"
_LABEL: Schema = {"type": _SCALARS, "pattern": _LINE}
_FLAG: Schema = {"type": ["boolean", "null"]}
_DECIMAL = r"^\+?(?=[0-9.]*[1-9])(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?$"


def json_schema(registry: Mapping[str, Mechanism] | None = None) -> Schema:
    """The JSON Schema (2020-12) of a spec."""
    known = mechanisms() if registry is None else registry
    rows = {"type": "integer", "minimum": 1, "maximum": MOST_ROWS}
    endings = "|".join(ending.replace(".", r"\.") for ending in OUTPUTS)
    privacy: dict[str, Schema] = {
        "epsilon": _positive("an exact decimal"),
        "delta": _or_null(_positive("then zCDP accounting and Gaussian noise", below=1)),
        "neighbours": {"enum": [*NEIGHBOURS, None], "default": NEIGHBOURS[0]},
        "dataset": _or_null(
            _text("whose budget is charged; default: name", _TRIMMED, maxLength=LONGEST_NAME)
        ),
    }
    columns = {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": _LINE},
        "additionalProperties": {"type": "object", "oneOf": [_column(kind) for kind in TYPES]},
    }
    delimiter = {"type": ["string", "null"], "pattern": f"^{DELIMITER}$"}
    seed = {"type": ["integer", "null"], "minimum": 0, "maximum": LARGEST_SEED}
    document: dict[str, Schema] = {
        "dpsynth": {"const": VERSION},
        "name": _text("used in messages and the ledger", _NAME, maxLength=LONGEST_NAME),
        "input": _text("a .csv, .csv.gz or .parquet file, a folder of Parquet files, or -"),
        "output": _text("a .csv or .parquet file, or -", f"^(-|.*({endings}))$"),
        "rows": {"anyOf": [{"enum": ["noisy", None]}, rows], "default": "noisy"},
        "rows_hint": _or_null(rows, "a public guess of the number of rows"),
        "privacy": _section(privacy),
        "mechanism": {"type": "object", "oneOf": [_mechanism(one) for one in known.values()]},
        "columns": columns,
        "csv": _or_null(_section({"multiline": _FLAG, "delimiter": delimiter})),
        "sampling": _or_null(_section({"seed": seed})),
        "evaluate": _or_null(_evaluate()),
    }
    needed = ("dpsynth", "name", "output", "mechanism", "columns")
    heading = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"dpsynth spec, version {VERSION}",
    }
    return (
        heading
        | _section(document, *needed)
        | {"allOf": [_with_or_without_budget(), _with_or_without_input(known)]}
    )


def _with_or_without_budget() -> Schema:
    """A release by groups is not differentially private: it has no epsilon, and the others have one."""
    groups = _named(
        "mechanism", {"properties": {"guarantee": {"const": "groups"}}, "required": ["guarantee"]}
    )
    unused = {"not": {"anyOf": [{"required": [key]} for key in ("epsilon", "delta", "neighbours")]}}
    return {
        "if": groups,
        "then": {"properties": {"privacy": unused}},
        "else": _named("privacy", {"required": ["epsilon"]}),
    }


def _with_or_without_input(registry: Mapping[str, Mechanism]) -> Schema:
    """A stream gets its rows push by push, and needs no input."""
    streams = [name for name, mechanism in registry.items() if mechanism.stream]
    return {
        "if": _named("mechanism", {"properties": {"name": {"enum": streams}}, "required": ["name"]}),
        "else": {"required": ["input"]},
    }


def _named(key: str, schema: Schema) -> Schema:
    return {"properties": {key: schema}, "required": [key]}


def _section(properties: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _or_null(schema: Schema, description: str = "") -> Schema:
    said = {"description": description} if description else {}
    return said | {"anyOf": [schema, {"type": "null"}]}


def _text(description: str, pattern: str = _LINE, **limits: int) -> Schema:
    return {"description": description, "type": _SCALARS, "pattern": pattern} | limits


def _positive(description: str = "", below: int | None = None) -> Schema:
    limits = {"maximum": 1e300} if below is None else {"exclusiveMaximum": below}
    number: Schema = {"type": "number", "exclusiveMinimum": 0} | limits
    return {"description": description, "anyOf": [number, {"type": "string", "pattern": _DECIMAL}]}


def _evaluate() -> Schema:
    names = {"type": "array", "items": {"enum": list(NAMES)}, "uniqueItems": True}
    return _section(
        {
            "metrics": {"description": "in the steward's audit", "anyOf": [{"enum": [*WORDS, None]}, names]},
            "epsilon": _or_null(_positive("a part of privacy.epsilon, for errors that may be published")),
            "target": _or_null(_LABEL, "the column classifiers predict; default: the strata"),
        }
    )


def _column(kind: str) -> Schema:
    properties: dict[str, Schema] = {"type": {"const": kind}, "nullable": _FLAG}
    required = ["type"]
    if kind in BOUNDED:
        ends: dict[str, Schema] = {
            "continuous": {"type": "number"},
            "integer": {"type": "integer", "minimum": -MOST_EXACT, "maximum": MOST_EXACT},
            "date": {"type": "string", "pattern": f"^{DAY}$"},
            "datetime": {"type": "string", "pattern": f"^{DAY}{CLOCK}{ZONE}?$"},
        }
        properties["bounds"] = {"type": "array", "items": ends[kind], "minItems": 2, "maxItems": 2}
        required.append("bounds")
    if kind in LABELLED:
        properties["categories"] = {"type": "array", "items": _LABEL, "minItems": 1, "uniqueItems": True}
        properties["other"] = _or_null(_LABEL)
        required.append("categories")
    return _section(properties, *required)


def _mechanism(mechanism: Mechanism) -> Schema:
    stages = {stage: _or_null(_positive()) for stage in mechanism.stages}
    own = {parameter.name: _parameter(parameter.metadata) for parameter in fields(mechanism.params)}
    common = {
        "name": {"const": mechanism.name},
        "strata": _or_null(_LABEL),
        "split": _or_null(_section(stages)),
    }
    return {"description": mechanism.summary} | _section(common | own, "name")


def _parameter(stated: Mapping[str, Any]) -> Schema:
    words = [*stated["choices"], *(["auto"] if stated["auto"] else []), None]
    schema: Schema = {"enum": words}
    if stated["structure"]:
        schema = {"anyOf": [schema, dict(stated["structure"].schema)]}
    elif not stated["choices"]:
        limits = {"minimum": stated["low"], "maximum": stated["high"]}
        number = {"type": "integer" if stated["whole"] else "number"}
        schema = {"anyOf": [schema, number | {k: v for k, v in limits.items() if v is not None}]}
    return {"description": stated["help"]} | schema


def document() -> str:
    """The text of configs/spec.schema.json."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(document(), end="")
