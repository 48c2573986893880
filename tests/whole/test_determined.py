"""Columns that others determine by a table that a part of the budget finds: kept in every released row."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth_cli.mechanisms.determined import SHARE

SPEC = """\
dpsynth: 1
name: people
input: people.csv
output: out/people.csv
privacy: {{epsilon: 4.0, neighbours: {neighbours}{more}}}
mechanism: {{name: {mechanism}{strata}}}
evaluate: {{metrics: none}}
columns:
  school: {{type: nominal, categories: [primary, middle, high, college]}}
  years: {{type: integer, bounds: [0, 20], nullable: true}}
  works: {{type: boolean}}
  age: {{type: integer, bounds: [0, 99]}}
rules:
  determines: {{school: {{years: private}}}}
"""
YEARS = {"primary": 4, "middle": 9, "high": 12, "college": None}


def write(
    folder: Path, mechanism="marginals", neighbours="add_remove", more="", strata="", rows=3000
) -> None:
    rng = np.random.default_rng(5)
    school = rng.choice(list(YEARS), rows, p=[0.1, 0.2, 0.4, 0.3])
    table = pd.DataFrame(
        {
            "id": np.arange(rows) // 2,
            "school": school,
            "years": pd.array([YEARS[one] for one in school], "Int64"),
            "works": rng.random(rows) < 0.5,
            "age": rng.integers(18, 80, rows),
        }
    )
    table.to_csv(folder / "people.csv", index=False)
    words = {"mechanism": mechanism, "neighbours": neighbours, "more": more, "strata": strata}
    (folder / "spec.yaml").write_text(SPEC.format(**words))


def kept(path: Path) -> bool:
    made = pd.read_csv(path)
    expected = made["school"].map(YEARS)
    return bool((made["years"].fillna(-1) == expected.fillna(-1)).all()) and len(made) > 0


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ("marginals", {}),
        ("joint", {"strata": ", strata: works", "more": ", delta: 1e-6"}),
        ("pmm", {"neighbours": "replace_one"}),
        ("factor", {"more": ", unit: {column: id, rows: 2}"}),
    ],
)
def test_what_is_determined_is_so_in_every_row(dpsynth, tmp_path, mechanism, words):
    write(tmp_path, mechanism, **words)
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0, ran.err
    assert kept(tmp_path / "out/people.csv")
    public = json.loads((tmp_path / "out/people.audit.public.json").read_text())
    found = public["mechanism"]["chosen"]["determines"]["years"]
    assert (found["by"], found["seen"], found["values"]) == ("school", 4, 4)
    assert found["table"] == {"primary": "4", "middle": "9", "high": "12", "college": None}
    assert found["part_of_rows"] > 0.9
    lines = [line for line in public["budget"]["charges"] if line["step"] == "determines"]
    assert [(line["columns"], line["cells"]) for line in lines] == [(["school", "years"], 4 * 22)]
    total = Fraction(public["budget"]["total"])
    rest = 1 - Fraction(public.get("found", {"share": 0})["share"])  # joint looks for steps first
    assert Fraction(lines[0]["cost"]) == total * rest * SHARE
    assert Fraction(public["budget"]["spent"]) == total
    others = [line for line in public["budget"]["charges"] if "years" in line["columns"]]
    assert [line["step"] for line in others if line["step"] != "domain"] == [
        "determines"
    ]  # it is not modelled
    assert dpsynth("verify", "out/people.audit.public.json").code == 0
    assert dpsynth("sample", "out/people.transcript.arrow", "-o", "more.csv", "--rows", "99").code == 0
    assert kept(tmp_path / "more.csv")


def test_a_table_that_most_rows_break_is_warned_of_and_kept_all_the_same(dpsynth, tmp_path):
    write(tmp_path)
    table = pd.read_csv(tmp_path / "people.csv")
    table["years"] = np.random.default_rng(1).integers(0, 3, len(table))
    table.to_csv(tmp_path / "people.csv", index=False)
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0, ran.err
    made = pd.read_csv(tmp_path / "out/people.csv")
    assert (made.groupby("school")["years"].nunique() == 1).all()
    warnings = json.loads((tmp_path / "out/people.audit.public.json").read_text())["warnings"]
    assert any(note.startswith("school determines years in about 3") for note in warnings)


def test_check_says_it_and_predicts_with_it(dpsynth, tmp_path):
    write(tmp_path)
    ran = dpsynth("check", "spec.yaml", "--json", "--runs", "0", "--n", "2000")
    assert ran.code == 0, ran.err
    said = "school determines years, by a table that is found for a part of the budget"
    assert said in ran.json["relations"]["rules"]
    assert ran.json["spec"]["rules"] == {"determines": {"school": {"years": "private"}}}
    assert "determines" in {line["step"] for line in ran.json["charges"]}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "{school: {years: private}}",
            "{school: {yeers: private}}",
            "is not a declared column (did you mean",
        ),
        ("{school: {years: private}}", "{skool: {years: private}}", "for two declared columns that are not"),
        ("[0, 20]", "private", "is private, but so are the bounds of years; state them"),
        ("integer, bounds: [0, 20]", "continuous, bounds: [0, 20]", "at most 1,048,576 are counted"),
        ("rules:", "rules:\n  always: [years < age]", "is private, but a rule names years; leave one out"),
        ("{years: private}}", "{years: private}, years: {age: private}}", "but years is determined itself"),
        ("{years: private}}", "{years: private}, age: {years: private}}", "but years is determined twice"),
        ("name: marginals", "name: marginals, strata: works", None),
        ("{school: {years: private}}", "{school: {works: private}}", None),
        ("name: online", "", "a stream looks for no table by which a column determines others"),
    ],
)
def test_what_cannot_be_is_refused_in_words(dpsynth, tmp_path, old, new, said):
    write(tmp_path, "online" if "online" in old else "marginals")
    text = (tmp_path / "spec.yaml").read_text()
    assert old in text
    (tmp_path / "spec.yaml").write_text(text.replace(old, new or old))
    ran = dpsynth("check", "spec.yaml", "--runs", "0", "--n", "1000")
    assert ran.code == (0 if said is None else 2), ran.err
    assert said is None or said in ran.err.replace("\n", " ")


def test_strata_are_not_determined(dpsynth, tmp_path):
    write(tmp_path, strata=", strata: works")
    text = (tmp_path / "spec.yaml").read_text().replace("{years: private}", "{works: private}")
    (tmp_path / "spec.yaml").write_text(text)
    ran = dpsynth("check", "spec.yaml")
    assert ran.code == 2
    assert "works: another column determines it by a private table, and it is strata" in ran.err


def test_what_is_noted_of_a_table_is_told_once_for_all_simulated_releases(dpsynth, tmp_path):
    write(tmp_path)
    notes = dpsynth("check", "spec.yaml", "--json").json["notes"]
    (said,) = [note for note in notes if "school determines years" in note]
    assert re.search(r"school determines years in about \d+ to \d+ % of the rows", said)
