"""A key of the spec, declared once: how it is read and written, its JSON Schema, and what it is in words.

A new key is one `Key` in the tuple of its section. `Reader` reads what the tuple declares, `written` gives
the effective document, `object_schema` the JSON Schema, and docs/generate.py the table in docs/spec.md.
What concerns two keys at once is a plain function beside the section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dpsynth_cli.spec.yaml_nodes import Node

Schema: TypeAlias = dict[str, Any]


def as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Kind:
    """What a key may hold.

    `read` gives the value that a node says, or raises `Wrong` with what is allowed. `write` gives what the
    effective document says, which `read` takes back. `schema` describes it to an editor, null left aside.
    """

    read: Callable[[Node], Any]
    schema: Mapping[str, Any]
    write: Callable[[Any], Any] = as_it_is


@dataclass(frozen=True)
class Key:
    """A key of a section.

    A key that is not required may be left out or null, and is then `default`; one that is required has it
    where its mistake has been noted. `unless` says in words when a required key is not. `of` finds the value
    in what was made of the section, where that is not the attribute of the same name. A `brief` key is in the
    effective document only where it is not the default.
    """

    name: str
    kind: Kind
    about: str
    required: bool = False
    unless: str = ""
    default: Any = None
    of: Callable[[Any], Any] | None = None
    brief: bool = False


@dataclass(frozen=True)
class Section:
    """A key with keys inside, such as `such_as`.

    Where what is declared inside decides on the keys, none are listed, and `write` gives the whole section.
    A plain value there is that of the key called `short`, if there is one.
    """

    name: str
    keys: tuple[Key, ...]
    about: str
    such_as: str
    required: bool = False
    unless: str = ""
    of: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None
    short: str = ""


def written(keys: Iterable[Key | Section], kept: Any) -> dict[str, Any]:
    """What the effective document says of these keys; `kept` is what was made of them.

    >>> from fractions import Fraction
    >>> written([Key("real", Kind(as_it_is, {}, str), "the real part")], Fraction(1, 3))
    {'real': '1/3'}
    """
    document: dict[str, Any] = {}
    for key in keys:
        value = key.of(kept) if key.of else getattr(kept, key.name)
        if isinstance(key, Key):
            if not key.brief or value != key.default:
                document[key.name] = key.kind.write(value)
        else:
            document[key.name] = key.write(value) if key.write else written(key.keys, value)
    return document


def object_schema(keys: Iterable[Key | Section]) -> Schema:
    """The JSON Schema of a mapping with these keys and no others."""
    keys = tuple(keys)
    return {
        "type": "object",
        "properties": {key.name: key_schema(key) for key in keys},
        "required": [key.name for key in keys if key.required and not key.unless],
        "additionalProperties": False,
    }


def key_schema(key: Key | Section) -> Schema:
    """The JSON Schema of what is at a key: its words, what it may hold, its default."""
    schema = dict(key.kind.schema) if isinstance(key, Key) else object_schema(key.keys)
    if not key.required:
        schema = or_null(schema)
    default = key.kind.write(key.default) if isinstance(key, Key) and not key.required else None
    return {"description": key.about} | schema | ({} if default is None else {"default": default})


def or_null(schema: Schema) -> Schema:
    """A schema that takes null too.

    >>> or_null({"type": "integer", "minimum": 1}), or_null({"enum": ["a"]})
    ({'type': ['integer', 'null'], 'minimum': 1}, {'enum': ['a', None]})
    """
    if set(schema) == {"enum"}:
        return {"enum": [*schema["enum"], None]}
    if set(schema) == {"anyOf"}:
        return {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "type" in schema:  # limits of numbers, texts, lists and mappings say nothing about null
        types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        return schema | {"type": [*types, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}
