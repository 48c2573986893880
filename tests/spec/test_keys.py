"""Claims about the declared keys: what is read, what is written and what the JSON Schema says are one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import jsonschema
import pytest

from dpsynth_cli.domain import TYPES
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.spec.columns import KEYS
from dpsynth_cli.spec.document import CSV, DOCUMENT
from dpsynth_cli.spec.keys import Key, Section, key_schema
from dpsynth_cli.spec.kinds import FLAG
from dpsynth_cli.spec.mechanism import keys_of
from dpsynth_cli.spec.reader import Reader
from dpsynth_cli.spec.schema import json_schema
from dpsynth_cli.spec.yaml_nodes import Keys, Place, from_json
from tests.spec.test_spec import SMALL, TOY, load

EVERY = {
    **{f"{kind} column": keys for kind, keys in KEYS.items()},
    **{key.name: key.keys for key in DOCUMENT if isinstance(key, Section) and key.keys},
    **{one.name: keys_of(one) for one in mechanisms().values()},
    "mechanism": keys_of(TOY["toy"]),
    "the document": DOCUMENT,
}


def each(*, required: bool) -> Any:
    """Runs a test for each key that is required, or for each that is not."""
    found = [(section, key) for section, keys in EVERY.items() for key in keys if isinstance(key, Key)]
    return pytest.mark.parametrize(
        "key",
        [
            pytest.param(key, id=f"{section}: {key.name}")
            for section, key in found
            if key.required == required
        ],
    )


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def names(keys: Any) -> list[str]:
    return [key.name for key in keys]


def read(keys: Any, document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The values of a section, and its mistakes."""
    tree = from_json(document, Place("here"))
    assert isinstance(tree, Keys)
    reader = Reader(tree, "", [])
    values = reader.values(keys)
    reader.finish()
    return values, [str(mistake) for mistake in reader.mistakes]


def test_every_type_of_column_has_its_keys() -> None:
    assert sorted(KEYS) == sorted(TYPES)
    assert all(len(set(names(keys))) == len(keys) for keys in EVERY.values())


def test_every_key_has_words() -> None:
    for keys in EVERY.values():
        for key in keys:
            assert key.about, key.name
            assert key.required or not key.unless, key.name


def always(keys: Iterable[Key | Section]) -> list[Key | Section]:
    """The keys that the effective document has even where they are left out."""
    return [key for key in keys if isinstance(key, Section) or not key.brief]


def test_the_effective_document_has_the_declared_keys_in_their_order() -> None:
    effective = load(SMALL.replace("{type: boolean}", "{type: nominal, categories: [a]}")).effective
    assert list(effective) == [name for name in names(DOCUMENT) if name != "defaults"]
    for section in ("privacy", "csv", "sampling", "evaluate", "mechanism"):
        assert list(effective[section]) == names(always(EVERY[section])), section
    assert [list(column) for column in effective["columns"]] == [["name", *names(always(KEYS["nominal"]))]]
    assert list(effective["mechanism"]["split"]) == list(TOY["toy"].stages)


def test_the_schema_has_the_declared_keys_and_no_others() -> None:
    schema = json_schema(TOY)["properties"]
    assert list(schema) == [*names(DOCUMENT), "tables"]
    for section in ("privacy", "csv", "sampling", "evaluate"):
        assert list(schema[section]["properties"]) == names(EVERY[section]), section
    named, toy = schema["mechanism"]["oneOf"]
    assert named == {"enum": ["toy"]}
    assert list(toy["properties"]) == names(EVERY["mechanism"])
    *columns, key, constant, drop = schema["columns"]["additionalProperties"]["oneOf"]
    assert [list(one["properties"]) for one in (key, constant, drop)] == [["key"], ["constant"], ["drop"]]
    for column in columns:
        assert list(column["properties"]) == names(KEYS[column["properties"]["type"]["const"]])


@each(required=False)
def test_a_key_that_may_be_left_out_may_be_null_too_and_its_default_is_read_back(key: Key) -> None:
    default = key.kind.write(key.default)
    for document in ({}, {key.name: None}, {key.name: json.loads(json.dumps(default))}):
        assert read([key], document) == ({key.name: key.default}, [])
    for value in (None, default):
        jsonschema.validate(value, key_schema(key))


@each(required=True)
def test_a_required_key_may_be_neither_left_out_nor_null(key: Key) -> None:
    for document in ({}, {key.name: None}):
        assert len(read([key], document)[1]) == 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(None, key_schema(key))


def test_a_new_key_is_one_declaration() -> None:
    new = Key("quoted", FLAG, "whether fields are quoted", default=True)
    keys = (*CSV.keys, new)
    others = {"multiline": False, "delimiter": ",", "encoding": "utf-8", "canonical": False}
    assert read(keys, {"quoted": False}) == (others | {"quoted": False}, [])
    assert read(keys, {"quotd": False})[1] == [
        "here: quotd is not a known key (did you mean quoted?);"
        " the keys here are multiline, delimiter, encoding, canonical, quoted"
    ]
    assert key_schema(new) == {
        "description": "whether fields are quoted",
        "type": ["boolean", "null"],
        "default": True,
    }
