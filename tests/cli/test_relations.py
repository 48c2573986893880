"""Derived columns and rules on the command line: what `check` says, and what is for the steward alone."""

import json

import pandas as pd
import pytest

SPEC = """\
dpsynth: 1
name: trips
input: trips.csv
output: out/trips.csv
rows: 200
privacy: {epsilon: 5}
mechanism: {name: marginals}
columns:
  left: {type: integer, bounds: [0, 2359]}
  back: {type: integer, bounds: [0, 2359], nullable: true}
  hour: {type: integer, bounds: [0, 23]}
derive:
  hour: left // 100
  early: left < 600
  kind: {of: early, table: {true: bird, false: owl}}
rules:
  always: [left <= back]
  impossible: [{left: {to: 59}, back: [100, 200]}]
evaluate: {metrics: none}
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    rows = [(100, 200, 1, "true"), (700, 600, 7, "false"), (800, "", 9, ""), (5, 100, 0, "x")]
    lines = ["left,back,hour,early", *(",".join(map(str, row)) for row in rows * 50)]
    (tmp_path / "trips.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "spec.yaml"


def test_check_shows_what_is_computed_and_what_is_kept(dpsynth, spec):
    ran = dpsynth("check", spec)
    assert ran.code == 0, ran.err
    assert (
        "computed, never read: hour, integer from 0 to 23, from left\n"
        "computed, never read: early, boolean, from left\n"
        "computed, never read: kind, nominal (bird, owl), from left\n"
        "kept in every row: left <= back\n"
        "kept in every row: impossible: back 100 or 200 with left to 59\n"
    ) in ran.out
    found = dpsynth("check", spec, "--json").json["relations"]
    assert found["computed"]["kind"] == {
        "from": ["left"], "type": "nominal", "categories": ["bird", "owl"], "other": None, "nullable": False,
        "candidates": None,
    }  # fmt: skip
    assert found["rules"] == ["left <= back", "impossible: back 100 or 200 with left to 59"]


def test_check_with_data_counts_the_rows_that_disagree_for_the_steward_alone(dpsynth, spec):
    ran = dpsynth("check", spec, "--data")
    assert (
        "Real rows that disagree with the spec, in 200 rows (confidential: for the steward only)" in ran.out
    )
    found = dpsynth("check", spec, "--data", "--json").json["data"]["relations"]
    assert found == {
        "confidential": True,
        "rows": 200,
        "of": 200,
        "differing": {"hour": 50, "early": 100},  # the input has no column kind
        "breaking": {"left <= back": 50, "impossible: back 100 or 200 with left to 59": 50},
    }
    assert dpsynth("release", spec).code == 0
    for name in ("trips.audit.public.json", "trips.audit.json"):
        audit = json.loads((spec.parent / "out" / name).read_text())
        assert "relations" not in audit.get("problems", {})


def test_evaluate_judges_computed_columns_that_both_tables_have(dpsynth, spec, tmp_path):
    assert dpsynth("release", spec).code == 0
    found = dpsynth("evaluate", spec, "out/trips.csv", "-m", "w1", "--json").json
    assert sorted(found["metrics"]["w1"]["synthetic"]["columns"]) == ["back", "early", "hour", "left"]
    made = pd.read_csv(tmp_path / "out/trips.csv")
    made.drop(columns=["early", "kind"]).to_csv(tmp_path / "other.csv", index=False)
    found = dpsynth("evaluate", spec, "other.csv", "-m", "w1", "--json").json
    assert sorted(found["metrics"]["w1"]["synthetic"]["columns"]) == ["back", "hour", "left"]


def test_the_record_describes_all_columns_of_the_file(dpsynth, spec, tmp_path):
    assert dpsynth("release", spec).code == 0
    ran = dpsynth("record", "out/trips.audit.public.json")
    assert ran.code == 0, ran.err
    schema = json.loads((tmp_path / "out/trips.schema.json").read_text())
    assert [field["name"] for field in schema["fields"]] == ["left", "back", "hour", "early", "kind"]


def test_a_data_frame_of_the_release_has_the_types_of_all_columns(dpsynth, spec):
    from dpsynth_cli.release.files.frame import read_frame
    from dpsynth_cli.spec.spec import load_spec

    assert dpsynth("release", spec).code == 0
    wanted = load_spec("spec.yaml")
    frame = read_frame("out/trips.csv", wanted.released, wanted.csv)
    assert [str(kind) for kind in frame.dtypes[:4]] == ["Int64", "Int64", "Int64", "boolean"]
    assert (frame.hour == frame.left // 100).all()
    assert (frame.early == (frame.left < 600)).all()
