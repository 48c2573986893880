"""Releases of panels: rows of a unit in the order of time, from the command line."""

from __future__ import annotations

import json
import secrets
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from pyarrow import csv, parquet

import dpsynth_cli.trusted.rows.unit_runs as truncation
from dpsynth_cli.release.record.journal import Journal
from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.trusted.core import curator
from dpsynth_cli.trusted.sums.passes import Passes
from tests.whole.test_units import moved_too_far

SPEC = """
dpsynth: 1
name: visits
input: visits.csv
output: out/visits.csv
privacy: {{epsilon: {epsilon}, neighbours: {neighbours}{delta}, unit: {{column: pid, rows: 4, order: year}}}}
mechanism: {{name: {mechanism}{strata}}}
evaluate: {{metrics: none}}
columns:
  pid: {{key: true}}
  year: {{type: integer, bounds: [2000, 2019]}}
  sex: {{type: nominal, categories: [F, M], of: unit}}
  age: {{type: integer, bounds: [0, 99]}}
  visit: {{type: ordinal, categories: [a, b, c]}}
"""


@pytest.fixture
def panel(tmp_path):
    """Writes visits.csv, people of 1 to 6 rows, a year apart, and a spec."""

    def write(mechanism="joint", neighbours="add_remove", delta="", strata="", epsilon="2.0", people=40):
        rng = np.random.default_rng(5)
        lines = []
        for person in range(people):
            sex, age, kind = "FM"[rng.integers(2)], rng.integers(20, 80), "abc"[rng.integers(3)]
            begin = rng.integers(2000, 2010)
            many = rng.integers(1, 7)
            lines += [f"person-{person:05d},{begin + i},{sex},{age + i},{kind}" for i in range(many)]
        rng.shuffle(lines)
        (tmp_path / "visits.csv").write_text("\n".join(["pid,year,sex,age,visit", *lines, ""]))
        (tmp_path / "spec.yaml").write_text(
            SPEC.format(
                mechanism=mechanism,
                neighbours=neighbours,
                epsilon=epsilon,
                delta=f", delta: {delta}" if delta else "",
                strata=f", strata: {strata}" if strata else "",
            )
        )
        return tmp_path / "visits.csv"

    return write


def unit_of(many: int, cells: str = "F,50,a", first: int = 2003) -> bytes:
    return b"".join(f"person-new,{first + i % 7},{cells}\n".encode() for i in range(many))


def released(dpsynth, monkeypatch, folder, given=None):
    """Release visits.csv under a key that is always the same; the questions and their exact sums, and the
    table. With `given`, these are the answers."""
    (folder / "ledger.sqlite").unlink(missing_ok=True)
    kept, honest = SimpleNamespace(asked=[], sums=[], omega=None), Passes.sums

    def watching(self, questions):
        found, start = honest(self, questions), len(kept.asked)
        kept.asked, kept.sums, kept.omega = kept.asked + list(questions), kept.sums + found, self._omega
        return found if given is None else given[start : len(kept.asked)]

    with monkeypatch.context() as patched:
        patched.setattr(Passes, "sums", watching)
        patched.setattr(secrets, "token_hex", lambda size: "ab" * size)
        if given is not None:
            patched.setattr(
                curator, "noise_for", lambda charge, *rest: np.zeros(sum(charge.lengths), np.int64)
            )
        ran = dpsynth("release", "spec.yaml", "--set", "sampling.seed=7", "--replace")
    assert ran.code == 0, ran.err
    transcript, _ = load(folder / "out/visits.transcript.arrow")
    kept.answers = [answer.values for _, answer in transcript.answers]
    return kept, (folder / "out/visits.csv").read_bytes()


@pytest.mark.parametrize(
    ("mechanism", "neighbours", "delta", "strata"),
    [
        ("joint", "add_remove", "", ""),
        ("joint", "replace_one", "1e-6", "visit"),
        ("marginals", "replace_one", "", ""),
        ("pmm", "add_remove", "1e-6", "visit"),
    ],
)
def test_neighbours_by_a_whole_unit_with_the_same_answers_release_the_same(
    dpsynth, panel, tmp_path, monkeypatch, mechanism, neighbours, delta, strata
):
    path = panel(mechanism, neighbours, delta, strata)
    data = path.read_bytes()
    path.write_bytes(data + unit_of(9))
    first, table = released(dpsynth, monkeypatch, tmp_path)
    others = [data]
    if neighbours == "replace_one":  # more rows, at the top of the file; fewer; junk
        others += [data.replace(b"\n", b"\n" + unit_of(30), 1), data + unit_of(2, "M,9,c", 2015)]
        others += [data + unit_of(3, "junk,,")]
    moved = 0
    for other in others:
        path.write_bytes(other)
        again, seen = released(dpsynth, monkeypatch, tmp_path, first.answers)
        assert seen == table
        assert again.asked == first.asked
        assert not moved_too_far(first, again)
        each = zip(first.asked, first.sums, again.sums, strict=True)
        moved += sum(int(np.abs(one - two).sum()) for asked, one, two in each if asked.step == "pairs")
    assert moved > 0, "neighbours that move no pair show nothing"


def test_a_panel_that_does_not_truncate_is_seen(dpsynth, panel, tmp_path, monkeypatch):
    path = panel("marginals")
    data = path.read_bytes()
    honest = truncation.in_time
    monkeypatch.setattr(
        truncation, "in_time", lambda records, heads, size, time, k: honest(records, heads, size, time, 99)
    )
    path.write_bytes(data + unit_of(9))
    first, _ = released(dpsynth, monkeypatch, tmp_path)
    path.write_bytes(data)
    again, _ = released(dpsynth, monkeypatch, tmp_path, first.answers)
    assert moved_too_far(first, again)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_release_of_a_panel_has_units_whose_rows_follow_one_another(dpsynth, panel, tmp_path, ending):
    panel(epsilon="2000", people=300)
    ran = dpsynth("release", "spec.yaml", "--set", f"output=out/visits.{ending}")
    assert ran.code == 0, ran.err
    assert dpsynth("verify", "out/visits.audit.json").code == 0
    path = tmp_path / f"out/visits.{ending}"
    table = csv.read_csv(path) if ending == "csv" else parquet.read_table(path)
    assert table.column_names == ["pid", "year", "sex", "age", "visit"]
    by_unit: dict[int, list[dict]] = {}
    for row in table.to_pylist():
        by_unit.setdefault(row["pid"], []).append(row)
    assert sorted(by_unit) == list(range(1, len(by_unit) + 1))
    assert max(map(len, by_unit.values())) == 4
    pairs = [pair for own in by_unit.values() for pair in pairwise(own)]
    assert all(one["sex"] == two["sex"] for one, two in pairs)
    # At epsilon 2000 there is next to no noise: all gaps were one year, no visit was of another kind.
    assert np.mean([two["year"] - one["year"] == 1 for one, two in pairs]) > 0.97
    assert np.mean([two["visit"] == one["visit"] for one, two in pairs]) > 0.9
    assert np.corrcoef([[one["age"], two["age"]] for one, two in pairs], rowvar=False)[0, 1] > 0.9
    audit = json.loads((tmp_path / "out/visits.audit.public.json").read_text())
    assert audit["mechanism"]["chosen"]["units"]["order"] == "year"
    assert audit["guarantee"]["statement"].endswith("They follow one another in the order of year.")
    kinds = {charge["question"] for charge in audit["budget"]["charges"]}
    assert {"UnitSizes", "UnitPairs"} <= kinds
    more = dpsynth(
        "sample", "out/visits.transcript.arrow", "--output", "more.csv", "--rows", "20", "--seed", "1"
    )
    assert more.code == 0
    assert len((tmp_path / "more.csv").read_text().splitlines()) == 21


def test_a_panel_that_is_resumed_asks_nothing_twice(dpsynth, panel, tmp_path, monkeypatch):
    panel()
    record, seen = Journal.record, []

    def dies(self, charges, answers):
        record(self, charges, answers)
        seen.append(charges[0].question.step)
        if seen[-1] == "units":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "record", dies)
        assert dpsynth("release", "spec.yaml").code == 130
    asked = []

    def watching(self, charges, answers):
        asked.extend(charge.question.step for charge in charges)
        record(self, charges, answers)

    monkeypatch.setattr(Journal, "record", watching)
    assert dpsynth("release", "spec.yaml").code == 0
    assert set(asked) == {"pairs"}
    assert dpsynth("verify", "out/visits.audit.json").code == 0
    transcript, _ = load(tmp_path / "out/visits.transcript.arrow")
    assert transcript.answers


def test_check_simulates_a_panel_and_a_report_and_a_query_speak_of_it(dpsynth, panel, tmp_path):
    panel()
    ran = dpsynth("check", "spec.yaml", "--json", "--n", "500")
    assert ran.code == 0, ran.err
    assert ran.json["spent"] == ran.json["total"]
    pairs = [line for line in ran.json["charges"] if line["question"] == "UnitPairs"]
    assert pairs
    assert {int(line["sensitivity"]["value"]) for line in pairs} <= {1, 2, 3}
    assert dpsynth("release", "spec.yaml").code == 0
    assert dpsynth("report", "out/visits.audit.json", "--output", "page.html").code == 0
    ran = dpsynth("query", "out/visits.transcript.arrow", "count() by sex", "--json")
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["privacy.unit.order=when"], "order: when, which is not declared in columns"),
        (["privacy.unit.order=sex"], "order: sex, which is nominal: time is a number"),
        (["columns.year.nullable=true"], "order: year, which is nullable: a row without a time has no place"),
        (["columns.year.of=unit"], "order: year, which is of: unit: time is a row's own"),
        (["privacy.unit.rows=1"], "order: year, which needs two rows or more of a unit"),
        (["privacy.unit.column=who"], "order: year, which needs who in columns as a fresh key"),
        (["rules.always=[age < year]"], "order: year, which is in a rule with other columns"),
        (["derive.year=2000 + age"], "order: year, which is computed from other columns"),
        (
            ["columns.year={type: ordinal, categories: [x, y]}", "mechanism.strata=year"],
            "label of the strata",
        ),
    ],
)
def test_an_order_that_cannot_be_kept_is_refused_before_a_row_is_read(dpsynth, panel, change, said):
    panel()
    ran = dpsynth("check", "spec.yaml", *(word for one in change for word in ("--set", one)))
    assert ran.code == 2
    assert said in ran.err.replace("\n", " ")
