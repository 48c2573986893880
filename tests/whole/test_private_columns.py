"""Bounds and categories that the steward does not know, from the spec to a verified release."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

import dpsynth_cli.release.synthesis as synthesis
from dpsynth_cli.mechanisms.search.steps import SHARE
from dpsynth_cli.release.record.transcript import PartialTranscript, load
from dpsynth_cli.spec.spec import from_document
from tests.conftest import ROOT

SPEC = """\
dpsynth: 1
name: people
input: people.{ending}
output: out/people.csv
privacy: {{epsilon: 8.0, neighbours: {neighbours}{more}}}
mechanism: {{name: {mechanism}{strata}}}
evaluate: {{metrics: quick{paid}}}
columns:
  income: {{type: continuous, bounds: private}}
  year: {{type: integer, bounds: private, nullable: true}}
  seen: {{type: date, bounds: private}}
  city: {{type: nominal, categories: private, candidates: [AMS, BER, LHR, FRA], other: elsewhere}}
  age: {{type: integer, bounds: [0, 99]}}
"""


@pytest.fixture(autouse=True)
def surely(monkeypatch):
    """Searches that do not fail once in twenty times."""
    monkeypatch.setattr("dpsynth_cli.mechanisms.search.find.FAILURE", Fraction(1, 10**9))


def write(
    folder: Path,
    mechanism: str = "marginals",
    neighbours: str = "add_remove",
    more: str = "",
    strata: str = "",
    ending: str = "csv",
    paid: str = "",
    rows: int = 4000,
) -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "income": np.round(np.exp(rng.normal(10, 0.6, rows)), 2),
            "year": pd.array(np.where(rng.random(rows) < 0.2, None, rng.integers(1980, 2020, rows)), "Int64"),
            "seen": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, rows), unit="D"),
            "city": rng.choice(["AMS", "BER", "nowhere"], rows, p=[0.5, 0.4, 0.1]),
            "age": rng.integers(18, 80, rows),
        }
    )
    if ending == "parquet":
        table.to_parquet(folder / "people.parquet")
    else:
        table.to_csv(folder / "people.csv", index=False, date_format="%Y-%m-%d")
    words = {"mechanism": mechanism, "neighbours": neighbours, "more": more, "strata": strata}
    (folder / "spec.yaml").write_text(SPEC.format(ending=ending, paid=paid, **words))


def audit(folder: Path) -> dict:
    return json.loads((folder / "out/people.audit.public.json").read_text())


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ("marginals", {}),
        ("marginals", {"neighbours": "replace_one", "more": ", search: 0.2"}),
        ("marginals", {"strata": ", strata: city", "more": ", delta: 1e-6"}),
        ("joint", {"ending": "parquet"}),
        ("pmm", {"more": ", delta: 1e-6", "neighbours": "replace_one"}),
        ("factor", {"paid": ", epsilon: 5%"}),
    ],
)
def test_what_was_found_is_in_the_public_audit_and_follows_from_the_transcript(
    dpsynth, tmp_path, mechanism, words
):
    write(tmp_path, mechanism, **words)
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0, ran.err
    public = audit(tmp_path)
    jsonschema.validate(public, json.loads((ROOT / "configs/audit.schema.json").read_text()))
    found, stated = public["found"], {column["name"]: column for column in public["spec"]["columns"]}
    assert stated["income"]["bounds"] == stated["year"]["bounds"] == stated["city"]["categories"] == "private"
    also = ["age"] if mechanism == "joint" else []  # which looks for what numbers are rounded to
    assert list(found["columns"]) == ["income", "year", "seen", "city", *also]
    assert found["columns"]["city"]["categories"] == ["AMS", "BER", "elsewhere"]
    low, high = found["columns"]["income"]["bounds"]
    assert low <= 5000
    assert 60_000 <= high <= 10_000_000
    assert found["columns"]["year"]["bounds"][0] <= 1980
    assert found["columns"]["seen"]["bounds"][0] <= "2020-01-01"
    assert found["failure_probability"] == 1e-9
    costs = [line for line in public["budget"]["charges"] if line["step"] == "domain"]
    total = Fraction(public["budget"]["total"])
    assert sum(Fraction(line["cost"]) for line in costs) == Fraction(found["share"]) * total
    most = Fraction("0.2" if "search" in words.get("more", "") else "0.1")
    assert Fraction(found["share"]) <= most + (SHARE if mechanism == "joint" else 0)
    assert Fraction(public["budget"]["spent"]) == total
    made = pd.read_csv(tmp_path / "out/people.csv")
    assert set(made["city"]) == {"AMS", "BER", "elsewhere"}
    assert abs(np.log(made["income"].median()) - 10) < 0.5
    assert abs(made["year"].median() - 2000) < 8
    assert dpsynth("verify", "out/people.audit.json").code == 0


def test_private_bounds_lie_on_the_grid_that_is_stated(dpsynth, tmp_path):
    """Values are on it, whatever bounds were found; a grid of too many values is left out."""
    write(tmp_path, "joint", more=", delta: 1e-6")
    text = (tmp_path / "spec.yaml").read_text()
    for column, grid in (
        ("income: {type: continuous,", "decimals: 1,"),
        ("year: {type: integer,", "step: 5,"),
        ("seen: {type: date,", "step: 7d,"),
    ):
        text = text.replace(column, f"{column} {grid}")
    (tmp_path / "spec.yaml").write_text(text)
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0, ran.err
    made, found = (
        pd.read_csv(tmp_path / "out/people.csv", dtype={"income": str}),
        audit(tmp_path)["found"]["columns"],
    )
    assert made["income"].str.fullmatch(r"[0-9]+\.[0-9]").all()
    assert (made["year"].dropna() % 5 == 0).all()
    first = pd.Timestamp(found["seen"]["bounds"][0])
    assert ((pd.to_datetime(made["seen"]) - first).dt.days % 7 == 0).all()
    assert (found["income"]["decimals"], found["year"]["step"], found["seen"]["step"]) == (1, 5, "7d")
    assert dpsynth("verify", "out/people.audit.json").code == 0
    assert dpsynth("check", "spec.yaml", "--runs", "0").code == 0


def test_samples_reports_records_and_evaluations_know_what_was_found(dpsynth, tmp_path):
    write(tmp_path)
    assert dpsynth("release", "spec.yaml").code == 0
    assert dpsynth("sample", "out/people.transcript.arrow", "-o", "more.csv", "--rows", "50").code == 0
    assert set(pd.read_csv(tmp_path / "more.csv")["city"]) <= {"AMS", "BER", "elsewhere"}
    ran = dpsynth("evaluate", "spec.yaml", "out/people.csv", "--json", "--metrics", "marginals")
    assert ran.code == 0, ran.err
    assert ran.json["rows"]["real"] == 4000
    assert dpsynth("report", "out/people.audit.json", "--quiet").code == 0
    ran = dpsynth("evaluate", "spec.yaml", "more.csv")
    assert ran.code == 2
    assert "more.csv cannot be read by this spec: bounds or categories of income, year, seen, city are" in (
        ran.err
    )


def test_rules_and_derived_columns_of_other_columns_are_kept(dpsynth, tmp_path):
    write(tmp_path)
    text = (tmp_path / "spec.yaml").read_text()
    (tmp_path / "spec.yaml").write_text(text + "derive: {decade: age // 10}\nrules: {always: [age >= 30]}\n")
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0, ran.err
    made = pd.read_csv(tmp_path / "out/people.csv")
    assert (made["decade"] == made["age"] // 10).all()
    assert made["age"].min() >= 30
    assert made["income"].median() > 10_000
    assert dpsynth("verify", "out/people.audit.json").code == 0


def test_an_edited_bound_is_found_out(dpsynth, tmp_path):
    write(tmp_path)
    assert dpsynth("release", "spec.yaml").code == 0
    path = tmp_path / "out/people.audit.public.json"
    public = json.loads(path.read_text())
    public["found"]["columns"]["income"]["bounds"][1] += 1
    path.write_text(json.dumps(public))
    ran = dpsynth("verify", "out/people.audit.public.json")
    assert ran.code == 4
    assert "was edited: found" in ran.err


def _recorded(path: Path) -> list[np.ndarray]:
    partial = PartialTranscript.reopen(path)
    assert partial is not None
    values = [answer.values for _, answer in partial.answers]
    partial.close()
    return values


@pytest.mark.parametrize("stopped_at", [1, 2, 3, 4])
def test_a_release_that_was_cut_off_goes_on_with_the_bounds_it_had_found(
    dpsynth, tmp_path, monkeypatch, stopped_at
):
    write(tmp_path, paid=", epsilon: 5%")
    asked = 0

    def counting(bill):
        real = bill.declare

        def declare(omega):
            nonlocal asked
            asked += 1
            if asked == stopped_at:
                raise KeyboardInterrupt
            real(omega)

        return declare

    real_run = synthesis.run

    def run(spec, ask, bill, *more, **named):
        bill.declare = counting(bill)
        return real_run(spec, ask, bill, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr("dpsynth_cli.release.table.run", run)
        assert dpsynth("release", "spec.yaml").code in (0, 130)
    left = list((tmp_path / "out").glob("*.partial*")) if (tmp_path / "out").exists() else []
    if asked < stopped_at:
        return  # so many rounds were not needed
    before = _recorded(left[0]) if left else []
    assert dpsynth("release", "spec.yaml", *(["--resume"] if left else [])).code == 0
    after = [answer.values for _, answer in load(tmp_path / "out/people.transcript.arrow")[0].answers]
    assert all(np.array_equal(one, again) for one, again in zip(before, after, strict=False))
    assert dpsynth("verify", "out/people.audit.json").code == 0


def test_check_says_what_finding_takes_and_how_many_rows_it_sees(dpsynth, tmp_path):
    write(tmp_path)
    ran = dpsynth("check", "spec.yaml", "--json")
    assert ran.code == 0, ran.err
    search = ran.json["search"]
    assert (search["share"], search["failure_probability"]) == ("1/10", 0.05)
    assert list(search["rows_seen"]) == ["income", "year", "seen", "city"]
    assert any("at most 1/10 of the budget finds them" in note for note in ran.json["notes"])
    assert ran.json["prediction"]["errors"]
    ran = dpsynth("check", "spec.yaml", "--like", "people.csv", "--input", "other.csv")
    assert ran.code == 2
    assert "--like cannot be read by this spec: bounds or categories of income, year, seen, city are" in (
        ran.err.replace("\n", " ")
    )


def test_the_effective_spec_is_read_again_as_the_same(tmp_path, dpsynth):
    write(tmp_path, more=", search: 0.2")
    ran = dpsynth("check", "spec.yaml", "--json")
    spec = from_document(ran.json["spec"])
    assert spec.effective == ran.json["spec"]
    assert spec.privacy.share_of_search == Fraction(1, 5)
    assert spec.domain["city"].categories == ("AMS", "BER", "LHR", "FRA", "elsewhere")


def refused(dpsynth, tmp_path, old: str, new: str) -> str:
    text = (tmp_path / "spec.yaml").read_text()
    assert old in text
    (tmp_path / "spec.yaml").write_text(text.replace(old, new))
    ran = dpsynth("check", "spec.yaml")
    assert ran.code == 2
    return ran.err.replace("\n", " ")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            ", candidates: [AMS, BER, LHR, FRA]",
            "",
            "privacy.delta is not stated, but labels of city are looked for among cells",
        ),
        (", other: elsewhere", "", "state other: LABEL, or nullable: true"),
        ("add_remove}", "add_remove, search: 0.7}", "is more than half of the budget"),
        (
            "add_remove}\nmechanism: {name: marginals}\nevaluate: {metrics: quick}",
            "add_remove, search: 0.5}\nmechanism: {name: marginals}\nevaluate: {metrics: quick, epsilon: 4}",
            "and privacy.search together are more than three quarters of the budget",
        ),
        ("name: marginals", "name: online", "the cells of a stream are fixed before its first row comes"),
        (
            "evaluate:",
            "rules: {always: [income > age]}\nevaluate:",
            "income: a rule or a derived column depends on a column whose bounds, categories or step are",
        ),
        (
            "income: {type: continuous,",
            "income: {type: continuous, scale: asinh,",
            "is stated, but the bounds are private: it needs bounds; state them",
        ),
        (
            "evaluate:",
            "derive: {half: year // 2}\nevaluate:",
            "line 7: year: a rule or a derived column depends on a column whose bounds, categories or step",
        ),
        (
            "categories: private, candidates: [AMS",
            "categories: [AMS, elsewhere], candidates: [AMS",
            "is stated, but the categories are not private; leave it out",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words(dpsynth, tmp_path, old, new, said):
    write(tmp_path)
    assert said in refused(dpsynth, tmp_path, old, new)


def test_a_release_by_groups_has_no_budget_to_find_anything_with(dpsynth, tmp_path):
    write(tmp_path)
    text = (tmp_path / "spec.yaml").read_text()
    text = text.replace("privacy: {epsilon: 8.0, neighbours: add_remove}\n", "")
    text = text.replace("{name: marginals}", "{name: microaggregation, guarantee: groups}")
    (tmp_path / "spec.yaml").write_text(text)
    ran = dpsynth("check", "spec.yaml")
    assert ran.code == 2
    assert "a release by groups has no budget to find them with" in ran.err.replace("\n", " ")


def test_a_search_without_a_private_column_is_a_mistake(dpsynth, people):
    spec = people()
    text = spec.read_text().replace("neighbours: add_remove", "neighbours: add_remove, search: 0.1")
    spec.write_text(text)
    ran = dpsynth("check", "spec.yaml")
    assert ran.code == 2
    assert "no column is private: nothing is to be found; leave it out" in ran.err.replace("\n", " ")
