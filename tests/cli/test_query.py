"""dpsynth query and replicates as an analyst runs them: with the published files alone."""

import csv
import io
import json
from pathlib import Path

import pytest

from dpsynth_cli import api

STREAM = """\
dpsynth: 1
name: visits
input: day.csv
output: visits.csv
rows_hint: 1000
privacy: {{epsilon: 20}}
mechanism: {{name: online, algorithm: {algorithm}}}
columns:
  hour: {{type: continuous, bounds: [0, 24]}}
  ward: {{type: nominal, categories: [a, b]}}
"""


@pytest.fixture
def transcript(dpsynth, people, tmp_path):
    """A release whose data, spec and ledger are gone."""
    spec = people(epsilon=20)
    assert dpsynth("release", spec).code == 0
    for path in (tmp_path / "people.csv", spec, tmp_path / "ledger.sqlite"):
        path.unlink()
    return tmp_path / "out/people.transcript.arrow"


def test_the_three_forms_say_the_same(dpsynth, transcript):
    shown = dpsynth("query", transcript, "count() by group")
    assert (shown.code, shown.out.splitlines()[0]) == (0, "count() by group")
    rows = json.loads(dpsynth("query", transcript, "count() by group", "--json").out)
    assert [row["group"] for row in rows] == ["a", "b", "c,d"]
    assert all(row["from"] == "measured" and row["low"] < row["estimate"] < row["high"] for row in rows)
    written = dpsynth("query", transcript, "count() by group", "--format", "csv").out
    read = list(csv.DictReader(io.StringIO(written)))
    assert [float(row["estimate"]) for row in read] == [row["estimate"] for row in rows]
    assert f"{rows[0]['estimate']:.6g}" in shown.out


def test_where_level_and_population_change_what_they_say(dpsynth, transcript):
    def width(*more: str) -> float:
        (row,) = json.loads(dpsynth("query", transcript, "mean(age)", "--json", *more).out)
        return row["high"] - row["low"]

    assert width("--level", "0.8") < width() < width("--population")
    older = json.loads(dpsynth("query", transcript, "mean(age)", "--where", "age >= 50", "--json").out)
    assert older[0]["estimate"] >= 50


def test_a_query_that_has_no_answer_leaves_the_others_theirs(dpsynth, transcript):
    wrong = ("mean(nothing)", "count(", "mean(age)")
    ended = dpsynth("query", transcript, "count()", *wrong)
    assert ended.code == 2
    assert [line for line in ended.out.splitlines() if line in ("count()", *wrong)] == [
        "count()",
        "mean(age)",
    ]
    assert "nothing" in ended.err
    assert "2 of 4 queries have no answer." in ended.err
    rows = json.loads(dpsynth("query", transcript, "count()", *wrong, "--json").out)
    assert [(row["query"], "error" in row) for row in rows] == [
        ("count()", False),
        ("mean(age)", False),
        ("mean(nothing)", True),
        ("count(", True),
    ]
    one = dpsynth("query", transcript, "count()", "mean(age)", "--where", "nothing > 1")
    assert one.code == 2
    assert one.err.count("Error:") == 1


def test_several_queries_are_told_apart(dpsynth, transcript):
    rows = json.loads(dpsynth("query", transcript, "count()", "corr(age, score)", "--json").out)
    assert [row["query"] for row in rows] == ["count()", "corr(age, score)"]
    assert (rows[1]["low"], rows[1]["note"]) == (None, "no interval: assumed, never measured: age and score")


def test_csv_says_which_query_a_line_answers(dpsynth, transcript):
    several = dpsynth("query", transcript, "count()", "count() by group", "--format", "csv").out
    read = list(csv.DictReader(io.StringIO(several)))
    assert [row["query"] for row in read] == ["count()", *["count() by group"] * 3]
    assert "query" not in dpsynth("query", transcript, "count()", "--format", "csv").out


def test_the_same_seed_gives_the_same_interval(dpsynth, transcript):
    runs = [dpsynth("query", transcript, "mean(score)", "--json", "--seed", seed).out for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_mistakes_say_what_happened_and_cost_nothing(dpsynth, transcript, tmp_path):
    wrong = dpsynth("query", transcript, "mean(agee)")
    assert (wrong.code, wrong.err) == (
        2, "Error: the query: 'agee' is not a declared column (did you mean 'age'?).\n"
    )  # fmt: skip
    assert dpsynth("query", tmp_path / "none.arrow", "count()").code == 5
    (tmp_path / "broken.arrow").write_bytes(b"no transcript")
    assert dpsynth("query", tmp_path / "broken.arrow", "count()").code == 4


def test_replicates_are_tables_and_a_release_is_not_overwritten(dpsynth, transcript, tmp_path):
    made = dpsynth("replicates", transcript, "-m", 3, "-o", tmp_path / "r.csv", "--seed", 5, "--json").json
    assert [name.rsplit("/", 1)[1] for name in made["files"]] == ["r.01.csv", "r.02.csv", "r.03.csv"]
    texts = [Path(name).read_text() for name in made["files"]]
    assert len(set(texts)) == 3
    assert {text.splitlines()[0] for text in texts} == {"age,score,group"}
    again = dpsynth("replicates", transcript, "-m", 3, "-o", tmp_path / "s.csv", "--seed", 5, "--json").json
    assert [Path(name).read_text() for name in again["files"]] == texts
    assert dpsynth("replicates", transcript, "-o", tmp_path / "r.txt").code == 2
    (tmp_path / "t.01.audit.public.json").write_text("{}")
    refused = dpsynth("replicates", transcript, "-o", tmp_path / "t.csv")
    assert (refused.code, "is the table of a release" in refused.err) == (2, True)


def test_replicates_tell_how_many_rows_each_has(dpsynth, people, tmp_path):
    assert dpsynth("release", people(epsilon="0.2")).code == 0  # noise enough that no three are the same
    asked = ("replicates", "out/people.transcript.arrow", "-m", 3, "-o", tmp_path / "r.csv", "--seed", 5)
    told, made = dpsynth(*asked).out.splitlines(), dpsynth(*asked, "--json").json
    rows = [len(Path(name).read_text().splitlines()) - 1 for name in made["files"]]
    assert made["rows"] == rows
    assert len(set(rows)) > 1
    assert told[:3] == [f"{n:,} rows in {name}" for n, name in zip(rows, made["files"], strict=True)]
    assert told[3] == f"3 tables of {min(rows):,} to {max(rows):,} rows (seed 5; nothing was spent)"


@pytest.mark.parametrize("command", ["query", "replicates", "sample"])
@pytest.mark.parametrize("ending", [".audit.json", ".audit.public.json", ".csv"])
def test_another_file_of_a_release_is_told_by_its_transcript(dpsynth, transcript, command, ending):
    given = transcript.parent / f"people{ending}"
    ran = dpsynth(command, given, *(["count()"] if command == "query" else []))
    assert (ran.code, ran.err) == (
        2, f"Error: {given} is of a release, but not its transcript.\nGive its transcript: {transcript}\n"
    )  # fmt: skip


def test_an_audit_whose_transcript_is_gone_is_no_transcript(dpsynth, transcript):
    transcript.rename(transcript.with_name("elsewhere"))
    assert dpsynth("query", transcript.parent / "people.audit.json", "count()").code == 4


def test_what_names_a_folder_as_its_transcript_is_no_transcript(dpsynth, transcript):
    given = transcript.with_name("odd.json")
    given.write_text('{"transcript": {"file": "folder/"}}')
    ran = dpsynth("query", given, "count()")
    assert (ran.code, "is not a whole dpsynth transcript" in ran.err) == (4, True)


def test_bounds_that_were_found_are_those_of_the_answers(dpsynth, people):
    spec = people(epsilon=50)
    spec.write_text(spec.read_text().replace("bounds: [0.0, 1.0]", "bounds: private"))
    assert dpsynth("release", spec).code == 0
    (row,) = json.loads(dpsynth("query", "out/people.transcript.arrow", "mean(score)", "--json").out)
    assert row["from"] == "model"
    assert 0 < row["estimate"] < 1  # scores are even from 0 to 1, and the noise of 300 rows is below 0.02


def test_rows_of_persons_are_said_to_be_those_that_were_kept(dpsynth, people):
    spec = people(epsilon=20)
    text = spec.read_text().replace("neighbours: add_remove", "unit: {column: group, rows: 40}")
    spec.write_text("".join(line for line in text.splitlines(True) if not line.startswith("  group")))
    assert dpsynth("release", spec).code == 0
    (row,) = json.loads(dpsynth("query", "out/people.transcript.arrow", "count()", "--json").out)
    assert row["note"] == "of at most 40 rows of each group"
    (row,) = json.loads(
        dpsynth("query", "out/people.transcript.arrow", "count()", "--population", "--json").out
    )
    assert (row["low"], row["high"]) == (None, None)
    assert "rows of one group are not independent draws" in row["note"]
    assert abs(row["estimate"] - 120) < 100  # three groups of 40 rows; the noise has a deviation below 4


@pytest.mark.parametrize(("algorithm", "code"), [("blocks", 0), ("sparse", 2)])
def test_a_snapshot_of_a_stream_is_queried_as_a_release_is(dpsynth, tmp_path, algorithm, code):
    (tmp_path / "s.yaml").write_text(STREAM.format(algorithm=algorithm))
    assert dpsynth("stream", "init", "s.yaml").code == 0
    for day in range(3):
        rows = ["hour,ward", *(f"{hour % 24}.5,{'ab'[hour % 4 == 0]}" for hour in range(400))]
        (tmp_path / "day.csv").write_text("\n".join(rows) + "\n")
        assert dpsynth("stream", "push", "s.yaml", "day.csv", "--batch-id", day, "--publish").code == 0
    asked = dpsynth("query", "visits.transcript.arrow", "count() by ward", "mean(hour)", "--json")
    assert asked.code == code
    if code == 0:
        a, b, mean = json.loads(asked.out)
        assert a["from"] == b["from"] == "measured"
        # 900 and 300 events. Intervals are 2 deviations of Laplace noise to each side; 12 have chance 4e-8.
        assert abs(a["estimate"] - 900) < 6 * (a["high"] - a["low"]) / 2
        assert abs(b["estimate"] - 300) < 6 * (b["high"] - b["low"]) / 2
        assert mean["low"] < mean["estimate"] < mean["high"]
    else:
        assert "sparse counting" in asked.err + asked.out
    made = dpsynth("replicates", "visits.transcript.arrow", "-m", 2, "-o", "r.csv", "--json")
    assert made.code == code
    if code == 0:
        wards = [Path(name).read_text().count(",a\n") for name in made.json["files"]]
        assert abs(sum(wards) / 2 - a["estimate"]) < 2 * (a["high"] - a["low"])


def test_the_public_audit_says_what_was_measured(transcript):
    audit = json.loads((transcript.parent / "people.audit.public.json").read_text())
    assert audit["relations"]["numbers"] == {"measured": 0, "looked_at": 0, "follows": 0, "assumed": 3}
    assert audit["relations"]["assumed"] == [["age", "score"], ["age", "group"], ["score", "group"]]
    assert {tuple(line["columns"]) for line in audit["relations"]["best_known"]} == {
        ("age",),
        ("score",),
        ("group",),
    }


def test_python_has_the_same(transcript):
    (row,) = api.query(transcript, "count()")
    assert row["low"] < row["estimate"] < row["high"]
    assert abs(row["estimate"] - 300) < 60  # 300 rows; the noise of the total has a deviation below 2
    assert api.combine([1.0, 2.0, 3.0], [0.1, 0.1, 0.1])[0] == 2.0
