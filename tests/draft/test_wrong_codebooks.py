"""Claims about codebooks that are wrong: refused by their place, in linear time, and never a bug."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsynth_cli.draft.draft import draft
from dpsynth_cli.errors import DpsynthError, UsageError
from tests.draft.books import ROWS, book


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(ROWS)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "b.json",
            "{\n  'a': 1}",
            "b.json, line 2: this is not JSON: Expecting property name enclosed in double quotes.",
        ),
        ("b.json", "[" * 100_000, "b.json: it is nested too deep."),
        (
            "b.json",
            '{"fields": [{"name": "age", "constraints": {"minimum": NaN}}]}',
            "b.json: NaN is not JSON.",
        ),
        (
            "b.json",
            "{}",
            "b.json: it is none of expectation suite, CSVW metadata, Frictionless Table Schema, SDV"
            " metadata, google/dpsynth domain.",
        ),
        ("b.json", {"fields": [{"name": "age"}, {}]}, "b.json, fields[1]: the field has no name."),
        ("b.json", {"fields": {"name": "age"}}, "b.json, fields: here should be a list."),
        (
            "b.json",
            {"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 9, "maximum": 1}}]},
            "b.json, fields[0] (age): the lower bound 9 is above the upper bound 1.",
        ),
        (
            "b.json",
            {"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0.5, "maximum": 1}}]},
            "b.json, fields[0] (age): the bound 0.5 is not a whole number within ±2^53.",
        ),
        (
            "b.json",
            {"fields": [{"name": "seen", "type": "date", "constraints": {"minimum": "now", "maximum": "x"}}]},
            "b.json, fields[0] (seen): the bound now is not a day such as 2020-12-31.",
        ),
        (
            "b.json",
            {"fields": [{"name": "sex", "constraints": {"enum": ["F", "F"]}}]},
            "b.json, fields[0] (sex): the category F is there twice.",
        ),
        (
            "b.json",
            {"fields": [{"name": "sex", "constraints": {"enum": ["a\nb"]}}]},
            "b.json, fields[0] (sex): a category is not one line of at most 1000 characters.",
        ),
        (
            "b.json",
            {"fields": [{"name": "sex", "constraints": {"enum": [*map(str, range(10_001))]}}]},
            "b.json, fields[0] (sex): there are more than 10,000 categories.",
        ),
        (
            "b.json",
            {"fields": [{"name": "sex"}, {"name": "sex"}]},
            "b.json, fields[1] (sex): the column is described twice, first at b.json, fields[0] (sex).",
        ),
        (
            "b.json",
            {"resources": [{"name": "a"}, {"name": "b"}]},
            "b.json: it describes 2 tables, and not one is called people.",
        ),
        ("b.csv", "name,min\nage,1,2\n", "b.csv, line 2: there are 3 fields, but 2 names in the header."),
        ("b.csv", "age,min\n1,2\n", "b.csv, line 2: the column has no name."),
        ("b.csv", 'name,min\n"age,1\n', "b.csv, line 2: this is not CSV: unexpected end of data."),
        ("b.csv", "name,type\nage,blob\n", "b.csv, line 2 (age): the type blob is not known."),
        (
            "b.csv",
            "name,categories,other\nsex,F|M,X\n",
            "b.csv, line 2 (sex): other is X, which is none of its categories.",
        ),
        ("b.csv", "name,type\n", "b.csv: it describes no column."),
        ("b.xml", "<a>\n<var/></a>", "b.xml, line 2: the variable has no name."),
        ("b.xml", "<a>\n<b></a>", "b.xml, line 2: this is not XML: mismatched tag."),
        (
            "b.xml",
            '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY x "y">]>\n<a>&x;</a>',
            "b.xml, line 2: it defines or refers to an entity, which is not read.",
        ),
        (
            "b.xml",
            "<a>" * 101 + "</a>" * 101,
            "b.xml, line 1: it is nested too deep, or has too many elements.",
        ),
        (
            "b.yaml",
            "age: &x {min_value: 1}\n",
            "b.yaml, line 1: age has the anchor &x; anchors are not used here, leave it out.",
        ),
        (
            "b.yaml",
            "age: {possible_values: [a], out_of_domain_index: 3}\n",
            "b.yaml, age: out_of_domain_index is not the place of one of its possible_values.",
        ),
        ("b.txt", "age", "b.txt: its name does not end with .json, .yaml, .xml or .csv."),
    ],
)
def test_a_codebook_that_is_wrong_is_refused_by_its_place(name: str, content: object, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        draft("people.csv", codebook=book(name, content), rows=False)
    assert caught.value.happened == said
    assert caught.value.cost == "Nothing was spent."
    assert caught.value.next_step


def test_a_large_codebook_or_one_that_is_no_text_is_refused(monkeypatch) -> None:
    Path("b.json").write_bytes(b"{\n\xff}")
    with pytest.raises(UsageError, match=r"^b\.json, line 2: this is not UTF-8 text\."):
        draft("people.csv", codebook="b.json")
    with pytest.raises(
        DpsynthError, match=r"^The codebook no\.json cannot be read: No such file or directory\."
    ):
        draft("people.csv", codebook="no.json")
    monkeypatch.setattr("dpsynth_cli.draft.documents.LARGEST", 1)
    with pytest.raises(UsageError, match=r"^The codebook b\.json is larger than"):
        draft("people.csv", codebook="b.json")


def test_text_of_strangers_is_read_in_linear_time() -> None:
    started = time.process_time()
    long = "a|" * 400_000
    for name, content in (
        (
            "b.json",
            {"tableSchema": {"columns": [{"name": "sex", "datatype": {"base": "string", "format": long}}]}},
        ),
        (
            "b.json",
            {"fields": [{"name": "age", "constraints": {"minimum": "1" * 10**6, "maximum": "1e" * 10**6}}]},
        ),
        ("b.csv", f"name,categories\nsex,{long}\n"),
        ("b.xml", f"<a><var name='sex'><labl>{'x ' * 10**6}</labl></var></a>"),
    ):
        try:
            draft("people.csv", codebook=book(name, content), rows=False)
        except UsageError:
            continue
    assert time.process_time() - started < 10


KEYS = [
    *(
        "fields",
        "name",
        "type",
        "constraints",
        "enum",
        "minimum",
        "maximum",
        "columns",
        "tableSchema",
        "datatype",
    ),
    *("base", "format", "titles", "age", "expectations", "kwargs", "column", "value_set", "sdtype", "tables"),
    *("resources", "schema", "path", "possible_values", "min_value", "required"),
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inside, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    VALUES,
    st.sampled_from(["fields", "tableSchema", "expectations", "columns", "resources", "age", "tables"]),
)
def test_any_document_gives_a_draft_or_an_error_of_ours(value: object, key: str) -> None:
    Path("b.json").write_text(json.dumps({key: value}))
    try:
        made = draft("people.csv", codebook="b.json")
    except DpsynthError as error:
        assert str(error)  # noqa: PT017
    else:
        assert made.text


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60), st.sampled_from(["b.csv", "b.xml", "b.yaml", "b.json"]))
def test_any_text_gives_a_draft_or_an_error_of_ours(content: str, name: str) -> None:
    Path(name).write_text(
        "name,min\n" + content if name == "b.csv" else content, encoding="utf-8", errors="replace"
    )
    try:
        made = draft("people.csv", codebook=name)
    except DpsynthError as error:
        assert str(error)  # noqa: PT017
    else:
        assert made.text
