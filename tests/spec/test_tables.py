"""`tables` in a spec: what it means, and every mistake at its own line."""

from __future__ import annotations

import json

import jsonschema
import pytest
import yaml

from dpsynth_cli.errors import UsageError
from dpsynth_cli.spec.document import public_document
from dpsynth_cli.spec.schema import json_schema
from dpsynth_cli.spec.spec import from_document, load_spec
from tests.conftest import ROOT

SPEC = (ROOT / "configs/households_joint.yaml").read_text()


@pytest.fixture
def spec_at(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "spec.yaml"
        path.write_text(text)
        return str(path)

    return write


def test_a_recorded_document_says_the_same(spec_at):
    spec = load_spec(spec_at(SPEC))
    assert from_document(spec.effective).effective == spec.effective
    public = public_document(spec.effective)
    assert "input" not in json.dumps(public)
    assert [table["output"] for table in public["tables"]] == ["households.csv", "members.csv"]
    again = from_document(json.loads(json.dumps(public)))
    assert again.domain == spec.domain
    assert again.tables.children[0].order == ("relation", "-age")


def test_what_parents_and_children_are_asked_about(spec_at):
    spec = load_spec(spec_at(SPEC))
    child = spec.tables.children[0]
    assert [column.name for column in spec.domain] == ["city", "rooms", "rent", "number of members"]
    assert (spec.domain.unit_rows, spec.domain.table, spec.domain.rows_public) == (1, "households", False)
    omega = child.of_child(child.spec.domain, spec.domain)
    assert [column.name for column in omega][4:] == [
        "households.city", "households.rooms", "households.rent", "households.number of members",
        "previous.relation", "previous.age", "previous.sex", "previous.works", "place",
    ]  # fmt: skip
    assert child.sorted_by == (("relation", False), ("age", True))
    few = load_spec(
        spec_at(
            SPEC.replace("    columns:\n      relation", "    siblings: [age]\n    columns:\n      relation")
        )
    )
    omega = few.tables.children[0].of_child(child.spec.domain, spec.domain)
    assert [column.name for column in omega if column.origin and column.origin[0] == "previous"] == [
        "previous.age"
    ]


def test_an_output_on_the_command_line_is_that_of_the_parents(spec_at):
    spec = load_spec(spec_at(SPEC), output="made/homes.parquet")
    assert spec.output == "made/homes.parquet"
    assert spec.tables.children[0].spec.output == "made/homes.members.parquet"


def test_the_json_schema_takes_tables_and_refuses_both_forms():
    document = json.loads(json.dumps(yaml.safe_load(SPEC)))
    jsonschema.validate(document, json_schema())
    for wrong in (
        document | {"output": "o.csv"},
        document | {"tables": {"a": document["tables"]["households"]}},
        {key: value for key, value in document.items() if key != "tables"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, json_schema())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: joint", "name: marginals", "line 9: mechanism is marginals; several tables need joint"),
        ("name: joint", "name: joint\n  strata: city", "mechanism"),
        (
            "    parent: households\n",
            "    parent: homes\n",
            "tables.members has the parent homes; it must be households",
        ),
        (
            "    foreign_key: household_id",
            "    foreign: household_id",
            "tables.members.foreign_key is missing",
        ),
        (
            "    rows: 6 ",
            "    rows: 0 ",
            "tables.members.rows is 0; it must be a whole number from 1 to 1000",
        ),
        (
            "    order: [relation, -age]",
            "    order: [relation, -years]",
            "has years in order, which is no modelled column",
        ),
        ("    order: [relation, -age]", "    order: [age, age]", "a list that names each column once"),
        (
            "../out/members.csv",
            "../elsewhere/members.csv",
            "has its output in another folder than households",
        ),
        ("../out/members.csv", "../out/households.parquet", "has an output of the same name as households"),
        ("../out/members.csv", "../out/{date}/members.csv", "has {date} in its output"),
        ("    key: household_id ", "    parent: members #", "tables.households.foreign_key is missing"),
        (
            "  epsilon: 2.0 ",
            "  unit: {column: city, rows: 2}\n  epsilon: 2.0 ",
            "privacy has a unit, but of several tables",
        ),
        (
            "name: households\n",
            "name: households\noutput: o.csv\n",
            "output is stated beside tables; state it in each",
        ),
        ("name: households\n", "name: households\nfoo: 1\n", "foo is not a known key"),
        (
            "      rooms: {type: integer, bounds: [1, 9]}",
            "      rooms: {type: integer}",
            "tables.households.columns.rooms.bounds is missing",
        ),
        (
            "      rooms:",
            "      number of members:",
            "has a column number of members, which would mean something else",
        ),
        ("      works:", "      previous.age:", "has a column previous.age, which would mean something else"),
        (
            "      relation: {type: ordinal, categories: [head, spouse, child, other]}",
            "      relation: {type: ordinal, categories: private, other: other}",
            "tables.members looks for labels of relation that nobody has listed, which a release of",
        ),
        (
            "    order: [relation, -age]",
            "    rules: {determines: {relation: {works: private}}}\n    order: [relation, -age]",
            "tables.members has private tables in rules.determines, which a release of one table finds",
        ),
    ],
)
def test_mistakes_are_told_at_their_key(spec_at, old, new, said):
    assert old in SPEC
    with pytest.raises(UsageError) as told:
        load_spec(spec_at(SPEC.replace(old, new)))
    assert said in told.value.happened


def test_all_mistakes_are_told_at_once(spec_at):
    text = SPEC.replace("    rows: 6 ", "    rows: 0 ").replace("    key: household_id", "    keys: home")
    with pytest.raises(UsageError) as told:
        load_spec(spec_at(text))
    assert len([line for line in told.value.happened.split("\n") if "spec.yaml, line" in line]) == 3


def test_a_third_level_is_refused_in_words(spec_at):
    visits = """
  visits:
    input: v.csv
    output: ../out/visits.csv
    parent: members
    foreign_key: member_id
    rows: 3
    columns: {cost: {type: integer, bounds: [0, 9]}}
"""
    with pytest.raises(UsageError) as told:
        load_spec(spec_at(SPEC + visits))
    assert "rows of visits do not say which row of households they are part of" in told.value.happened
