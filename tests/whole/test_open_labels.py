"""Labels that nobody has listed, from the spec to a verified release."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

from dpsynth_cli.labels import KIND, packed, unpacked
from dpsynth_cli.questions import Answer
from dpsynth_cli.release.record.transcript import Transcript, load
from dpsynth_cli.trusted.core import curator
from dpsynth_cli.trusted.core.gaussian import epsilon_of_rho, rho_of_epsilon
from tests.conftest import ROOT

SPEC = """\
dpsynth: 1
name: people
input: people.{ending}
output: out/people.csv
privacy: {{epsilon: 2.0, delta: 1e-6, neighbours: {neighbours}{more}}}
mechanism: {{name: marginals{strata}}}
evaluate: {{metrics: none}}
columns:
  city: {{type: nominal, categories: private, other: elsewhere}}
  grade: {{type: ordinal, categories: private, other: none, nullable: true}}
  age: {{type: integer, bounds: [0, 99]}}
"""
CITIES = ["Ämsterdam", "BER", "yes"]  # a word of YAML is a label like others


def write(folder: Path, neighbours="add_remove", more="", strata="", ending="csv", rows=4000) -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "id": np.arange(rows) // 2,
            "city": rng.choice(CITIES, rows, p=[0.5, 0.3, 0.2]),
            "grade": rng.choice(["9", "10", "11", "NA"], rows),
            "age": rng.integers(18, 80, rows),
        }
    )
    table.loc[: rows // 20, "city"] = [f"Quux{i}" for i in range(rows // 20 + 1)]
    table.loc[rows // 20 : rows // 20 + 11, "city"] = "Plugh"
    if ending == "parquet":
        table.to_parquet(folder / "people.parquet")
    else:
        table.to_csv(folder / "people.csv", index=False)
    words = {"neighbours": neighbours, "more": more, "strata": strata, "ending": ending}
    (folder / "spec.yaml").write_text(SPEC.format(**words))


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"neighbours": "replace_one", "strata": ", strata: city", "ending": "parquet"},
        {"more": ", unit: {column: id, rows: 2}"},
    ],
)
def test_labels_above_the_threshold_are_released_and_no_other_is_anywhere(dpsynth, tmp_path, words):
    write(tmp_path, **words)
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0, ran.err
    public = json.loads((tmp_path / "out/people.audit.public.json").read_text())
    jsonschema.validate(public, json.loads((ROOT / "configs/audit.schema.json").read_text()))
    found = public["found"]["columns"]
    assert sorted(found["city"]["categories"][:-1]) == sorted(CITIES)
    assert found["city"]["categories"][-1] == "elsewhere"
    assert found["grade"]["categories"] == ["9", "10", "11", "none"]  # as numbers; NA is missing
    made = pd.read_csv(tmp_path / "out/people.csv", keep_default_na=False)
    assert set(made["city"]) == {*CITIES, "elsewhere"}
    assert abs((made["city"] == "elsewhere").mean() - 0.05) < 0.03
    for file in (tmp_path / "out").iterdir():
        assert b"Quux" not in file.read_bytes()
        assert b"Plugh" not in file.read_bytes()
    # What it costs: half of the delta, and rho is that of the other half.
    budget, half = public["budget"], Fraction("1e-6") / 2
    assert Fraction(budget["total"]) == rho_of_epsilon(Fraction(2), half)
    assert Fraction(budget["delta_of_labels"]) == half
    lines = [line for line in budget["charges"] if line["question"] == "OpenLabels"]
    assert [Fraction(line["delta"]) for line in lines] == [half / 2] * 2
    assert [line["threshold"] for line in lines] == list(public["found"]["thresholds"].values())
    seen = public["found"]["rows_seen"]
    assert all(line["threshold"] < seen[line["columns"][0]] < 2 * line["threshold"] for line in lines)
    assert {line["sensitivity"]["value"] for line in lines} == {"2" if "neighbours" in words else "1"}
    answers = load(tmp_path / "out/people.transcript.arrow")[0].answers
    for line, (_, answer) in zip(lines, answers[:2], strict=True):
        assert min(unpacked(answer.values)[1]) >= line["threshold"]
    assert dpsynth("verify", "out/people.audit.public.json").code == 0
    assert dpsynth("sample", "out/people.transcript.arrow", "-o", "more.csv", "--rows", "50").code == 0
    assert dpsynth("query", "out/people.transcript.arrow", "count() by city").code == 0
    assert dpsynth("evaluate", "spec.yaml", "out/people.csv", "--metrics", "marginals").code == 0


def test_where_nothing_reaches_the_threshold_only_the_other_category_is_left(dpsynth, tmp_path):
    write(tmp_path, rows=60)
    ran = dpsynth("release", "spec.yaml", "--set", "privacy.epsilon=0.1")
    assert ran.code == 0, ran.err
    public = json.loads((tmp_path / "out/people.audit.public.json").read_text())
    assert public["found"]["sure"] == {"city": False, "grade": False}
    assert public["found"]["columns"]["city"]["categories"] == ["elsewhere"]
    assert any(
        "no label was found, and all rows are of the other category" in note for note in public["warnings"]
    )
    assert dpsynth("verify", "out/people.audit.public.json").code == 0


def test_a_release_that_was_cut_off_has_the_same_labels_and_no_second_noise(dpsynth, tmp_path, monkeypatch):
    write(tmp_path)
    real = curator.noise_for

    def broken(*words):
        raise KeyboardInterrupt

    monkeypatch.setattr(curator, "noise_for", broken)
    assert dpsynth("release", "spec.yaml").code == 130
    monkeypatch.setattr(curator, "noise_for", real)
    monkeypatch.setattr(curator, "labels_above", broken)
    ran = dpsynth("release", "spec.yaml", "--resume")
    assert ran.code == 0, ran.err
    assert dpsynth("verify", "out/people.audit.json").code == 0


EVIL = [
    b"9,unheard of,12,30",
    b"9,BER,11,30",
    b"9,\xff\xfe\x00,9,30",
    b"9," + b"x" * 5000 + b",9,30",
    b"9,unheard of,12,30,too,many",
    b'9,"BER,9,30',
]


@pytest.mark.parametrize("more", ["", ", unit: {column: id, rows: 2}"])
def test_one_row_moves_one_count_by_one_whatever_it_is(dpsynth, tmp_path, monkeypatch, more):
    """On whole releases: the exact counts of labels with one row more, and without."""
    seen: list[dict] = []
    real = curator.labels_above

    def watching(charges, counted, noise):
        groups = list(counted)
        seen.append(
            {
                (place, label): count
                for place, labels, counts in groups
                for label, count in zip(labels.tolist(), counts.tolist(), strict=True)
            }
        )
        return real(charges, groups, noise)

    write(tmp_path, more=more, rows=300)
    plain = (tmp_path / "people.csv").read_bytes()
    monkeypatch.setattr(curator, "labels_above", watching)
    if more:
        monkeypatch.setattr("dpsynth_cli.release.record.journal.fresh_key", lambda: "5a" * 32)
    for row in [None, *EVIL]:
        text = plain if row is None else plain + row.replace(b"9,", b"9999,", 1) + b"\n"
        (tmp_path / "people.csv").write_bytes(text)
        assert dpsynth("release", "spec.yaml", "--replace", "--again").code == 0
    for own in seen[1:]:
        for place in (0, 1):
            before, after = (
                Counter({k: n for k, n in one.items() if k[0] == place}) for one in (seen[0], own)
            )
            assert not before - after
            assert sum((after - before).values()) <= 1
            assert all(after[label] == 1 for label in after if label not in before)
    assert sum(own != seen[0] for own in seen) >= 3


def test_a_label_below_the_threshold_in_a_transcript_is_found_out(dpsynth, tmp_path):
    write(tmp_path)
    assert dpsynth("release", "spec.yaml").code == 0
    path = tmp_path / "out/people.transcript.arrow"
    transcript = load(path)[0]
    (question, answer), *rest = transcript.answers
    values = packed(np.array([b"BER", b"mine"], KIND), np.array([1000, 3]))
    forged = Answer(values, (len(values),), answer.noise, answer.sd)
    path.write_bytes(Transcript(transcript.header, ((question, forged), *rest)).as_bytes())
    ran = dpsynth("sample", "out/people.transcript.arrow", "-o", "more.csv", "--rows", "50")
    assert ran.code == 4
    assert "the recorded answers do not fit what the mechanism asks" in ran.err


def test_the_ledger_counts_the_delta_of_labels_beside_rho(dpsynth, tmp_path):
    """A grant at delta 1e-6: one release sets half of it apart, and a second one too would leave nothing."""
    write(tmp_path)
    assert dpsynth("budget", "grant", "people", "100", "--delta", "1e-6").code == 0
    assert dpsynth("release", "spec.yaml").code == 0
    ran = dpsynth("release", "spec.yaml", "--output", "out/b.csv")
    assert ran.code == 3
    assert (
        "this release spends delta = 5e-7 on labels that nobody has listed, but people has 5e-7 of its"
        in (ran.err.replace("\n", " "))
    )
    less = ["--set", "privacy.delta=1e-7"]
    assert dpsynth("release", "spec.yaml", "--output", "out/c.csv", *less).code == 0
    assert dpsynth("budget", "verify").code == 0
    shown = dpsynth("budget", "show", "people", "--json").json["datasets"][0]
    left = Fraction(shown["remaining"])
    spent = rho_of_epsilon(Fraction(2), Fraction("5e-7")) + rho_of_epsilon(Fraction(2), Fraction("5e-8"))
    assert left == rho_of_epsilon(Fraction(100), Fraction("4.5e-7")) - spent
    assert Fraction(shown["charged_epsilon"]) == epsilon_of_rho(spent, Fraction("4.5e-7"))
    assert Fraction(shown["remaining_epsilon"]) == epsilon_of_rho(left, Fraction("4.5e-7"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (", delta: 1e-6", "", "privacy.delta is not stated, but labels of city, grade are looked for among"),
        (
            ", other: elsewhere",
            "",
            "what becomes of those that few rows have is not said; state other: LABEL",
        ),
        ("name: marginals", "name: online", "the cells of a stream are fixed before its first row comes"),
        (
            "evaluate:",
            'rules: {always: ["city != grade"]}\nevaluate:',
            "depends on a column whose bounds, categories or step are private",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words(dpsynth, tmp_path, old, new, said):
    write(tmp_path)
    text = (tmp_path / "spec.yaml").read_text()
    assert old in text
    (tmp_path / "spec.yaml").write_text(text.replace(old, new))
    ran = dpsynth("check", "spec.yaml")
    assert ran.code == 2
    assert said in ran.err.replace("\n", " ")


def test_no_label_of_an_open_column_is_told_as_unlisted_before_labels_are_known(dpsynth, tmp_path):
    write(tmp_path)
    ran = dpsynth("check", "spec.yaml", "--json", "--n", "4000", "--runs", "0", "--data")
    assert ran.code == 0, ran.err
    counted = {name: ran.json["data"]["columns"][name]["unlisted"] for name in ("city", "grade")}
    assert counted == {"city": 0, "grade": 0}
    assert 800 < ran.json["data"]["columns"]["grade"]["missing"] < 1200  # NA
    assert dpsynth("release", "spec.yaml").code == 0
    audit = json.loads((tmp_path / "out/people.audit.json").read_text())
    assert audit["problems"]["columns"]["city"]["unlisted"] == 4000 // 20 + 12


def test_check_says_what_a_label_must_reach(dpsynth, tmp_path):
    write(tmp_path, more=", unit: {column: id, rows: 2}")
    ran = dpsynth("check", "spec.yaml", "--json", "--n", "4000", "--runs", "0")
    assert ran.code == 0, ran.err
    search = ran.json["search"]
    assert search["delta"] == "5E-7"
    assert all(
        20 < search["thresholds"][name] < search["rows_seen"][name] < 100 for name in ("city", "grade")
    )
    assert any(
        "noisy number of values of id, each at one of its labels," in note for note in ran.json["notes"]
    )


def test_a_wrong_delta_is_one_mistake(dpsynth, tmp_path):
    write(tmp_path)
    ran = dpsynth("check", "spec.yaml", "--set", "privacy.delta=2")
    assert ran.code == 2
    assert "privacy.delta is 2; it must be a number between 0 and 1" in ran.err
    assert "is not stated" not in ran.err
    assert "privacy.delta is not stated" in dpsynth("check", "spec.yaml", "--set", "privacy.delta=null").err


def test_a_release_says_of_no_label_that_it_is_not_as_declared(dpsynth, tmp_path):
    write(tmp_path)  # one row in 20 has a city of its own
    ran = dpsynth("release", "spec.yaml")
    assert (ran.code, "confidential" in ran.err) == (0, False)
    problems = json.loads((tmp_path / "out/people.audit.json").read_text())["problems"]
    assert (problems["cells"], problems["warnings"]) == (0, [])
