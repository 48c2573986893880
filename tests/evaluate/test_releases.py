"""Evaluation in a release: confidential in the steward's audit, public only where it was paid for."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pyarrow.csv
import pytest

from dpsynth_cli.errors import FileError
from dpsynth_cli.evaluate.metrics.names import QUICK
from dpsynth_cli.evaluate.tables import Sample
from dpsynth_cli.release.documents.audit import CONFIDENTIAL
from dpsynth_cli.trusted.rows.csv import CsvScan
from dpsynth_cli.trusted.sums.memory import Memory
from tests.whole.test_release import killed


def audits(folder: Path) -> tuple[dict, dict]:
    return tuple(json.loads((folder / f"people.audit{kind}.json").read_text()) for kind in ("", ".public"))


def with_evaluate(spec: Path, section: str) -> Path:
    spec.write_text(spec.read_text() + f"evaluate: {section}\n")
    return spec


def test_utility_is_in_the_stewards_audit_and_nowhere_else(dpsynth, people, tmp_path):
    assert dpsynth("release", people("marginals")).code == 0
    steward, public = audits(tmp_path / "out")
    utility = steward["utility"]
    assert utility["confidential"] is True
    assert set(utility["metrics"]) == set(QUICK)
    assert utility["verdict"]["summary"]
    assert utility["sample_rows"] == 50_000
    assert utility["rows"]["real"] == 300
    assert "utility" not in public
    assert "evaluation" not in public
    assert {k: v for k, v in steward.items() if k not in (*CONFIDENTIAL, "publishable")} == {
        k: v for k, v in public.items() if k != "publishable"
    }
    # It is the error of the file that was written: computed again from both files it is the same.
    ran = dpsynth("evaluate", "spec.yaml", "out/people.csv", "--json", "-m", "w1,moments", "--no-references")
    assert ran.code == 0, ran.err
    for name, key in (("w1", "columns"), ("moments", None)):
        again, before = (one["metrics"][name]["synthetic"] for one in (ran.json, utility))
        assert (again[key] if key else again) == pytest.approx(before[key] if key else before)


@pytest.mark.parametrize(
    ("section", "metrics"),
    [("{metrics: none}", None), ("{metrics: [matches, w1]}", {"w1", "matches"})],
)
def test_the_spec_chooses_metrics(dpsynth, people, tmp_path, section, metrics):
    assert dpsynth("release", with_evaluate(people("marginals"), section)).code == 0
    utility = audits(tmp_path / "out")[0].get("utility")
    assert (None if utility is None else set(utility["metrics"])) == metrics
    if utility:
        assert "independent" in utility["metrics"]["w1"]


@pytest.mark.parametrize("epsilon", [None, "0.25"])
def test_swapping_a_real_row_changes_no_public_byte_given_the_same_answers(
    dpsynth, people, tmp_path, epsilon
):
    spec = people("marginals")
    if epsilon:
        with_evaluate(spec, f"{{epsilon: {epsilon}}}")
    killed(tmp_path, "compose")  # all answers are there, no file is
    copies = []
    for name in ("as it was", "swapped"):
        copy = tmp_path / name
        copy.mkdir()
        shutil.copytree(tmp_path / "out", copy / "out")
        for file in ("spec.yaml", "people.csv", "ledger.sqlite"):
            shutil.copy(tmp_path / file, copy / file)
        copies.append(copy)
    lines = (copies[1] / "people.csv").read_text().splitlines()
    lines[7] = "99,0.9999,b,somebody else"
    (copies[1] / "people.csv").write_text("\n".join(lines) + "\n")
    for copy in copies:
        ran = dpsynth("release", copy / "spec.yaml", "--resume", "--ledger", copy / "ledger.sqlite")
        assert ran.code == 0, ran.err
        audit = copy / "out/people.audit.json"
        assert dpsynth("report", audit, "--public").code == 0
        assert dpsynth("report", audit).code == 0
        assert dpsynth("record", audit, "--curator", "Us").code == 0
    public = (
        "people.csv", "people.transcript.arrow", "people.audit.public.json", "people.report.public.html",
        "people.registry.yaml", "people.croissant.json", "people.schema.json",
    )  # fmt: skip
    for file in public:
        assert (copies[0] / "out" / file).read_bytes() == (copies[1] / "out" / file).read_bytes(), file
    for file in ("people.audit.json", "people.report.html"):  # and these do see the row
        assert (copies[0] / "out" / file).read_bytes() != (copies[1] / "out" / file).read_bytes(), file
    utilities = [audits(copy / "out")[0]["utility"]["metrics"] for copy in copies]
    assert utilities[0] != utilities[1]


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (FileError("people.csv changed while it was read."), "people.csv changed while it was read."),
        (KeyError("private-1"), "a bug in dpsynth: KeyError"),
    ],
)
def test_what_cannot_be_judged_does_not_stop_a_paid_release(
    dpsynth, people, tmp_path, monkeypatch, failure, said
):
    def fail(*words):
        raise failure

    monkeypatch.setattr("dpsynth_cli.evaluate.utility.judge", fail)
    assert dpsynth("release", people("marginals")).code == 0
    assert audits(tmp_path / "out")[0]["utility"]["failed"] == said
    assert dpsynth("report", "out/people.audit.json").code == 0
    assert dpsynth("verify", "out/people.audit.json").code == 0


def test_a_release_is_judged_by_rows_that_its_sums_passed_over(dpsynth, people, tmp_path, monkeypatch):
    def fail(*words):
        raise AssertionError("the table was read once more")

    monkeypatch.setattr("dpsynth_cli.trusted.sums.passes.scanned", fail)
    assert dpsynth("release", people("marginals")).code == 0
    assert "failed" not in audits(tmp_path / "out")[0]["utility"]


@pytest.mark.parametrize("watch", ["Sample.add", "Memory.keep"])
def test_a_paid_release_goes_on_if_what_is_kept_aside_takes_too_much(
    dpsynth, people, tmp_path, monkeypatch, watch
):
    name, method = watch.split(".")

    def fail(self, codes, piece=None):
        if piece is not None:
            raise MemoryError

    monkeypatch.setattr({"Sample": Sample, "Memory": Memory}[name], method, fail)
    assert dpsynth("release", people("marginals")).code == 0
    assert dpsynth("verify", "out/people.audit.json").code == 0


def test_a_small_table_is_read_once(dpsynth, people, monkeypatch):
    passes = []
    read = CsvScan.pieces

    def pieces(scan):
        passes.append(scan)
        return read(scan)

    monkeypatch.setattr(CsvScan, "pieces", pieces)
    more = ["--set", "privacy.epsilon=100"]  # so that it asks a second time, whatever the noise is
    assert dpsynth("release", people("marginals"), "-o", "small.csv", *more).code == 0
    small = list(passes)
    monkeypatch.setattr("dpsynth_cli.trusted.sums.passes.Memory", partial(Memory, most=1))
    assert dpsynth("release", people("marginals"), "-o", "large.csv", *more).code == 0
    assert len(small) == 2 < len(passes) - len(small)  # lines are counted, then parsed: again if it is large


def test_an_empty_table_is_released_judged_and_shown(dpsynth, people, tmp_path):
    spec = people("marginals", rows=0, more="strata: group")
    assert dpsynth("release", with_evaluate(spec, "{metrics: all, epsilon: 0.1}")).code == 0
    assert "failed" not in audits(tmp_path / "out")[0]["utility"]
    assert dpsynth("report", "out/people.audit.json").code == 0
    assert dpsynth("verify", "out/people.audit.json").code == 0
    (tmp_path / "none.csv").write_text("age,score,group\n")
    assert dpsynth("evaluate", spec, "none.csv", "-m", "w1,marginals,matches,propensity,sliced").code == 0


# --- paid -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("{epsilon: 0.6}", "evaluate.epsilon is more than half of privacy.epsilon, of which it is a part"),
        ("{epsilon: 0}", "evaluate.epsilon is 0; it must be a positive number, or a percentage"),
        ("{metric: all}", "evaluate.metric is not a known key (did you mean metrics?)"),
        ("{metrics: [w1, tvd]}", "evaluate.metrics is [w1, tvd]; it must be one of w1, w1_2d, w1_joint"),
        ("{metrics: [w1, w1]}", "it must be a list that names each metric once"),
        ("{metrics: every}", "it must be a list of w1, w1_2d"),
        ("{target: age}", "evaluate.target is age; it must be a declared ordinal, nominal or boolean column"),
    ],
)  # fmt: skip
def test_a_wrong_section_is_refused_and_costs_nothing(dpsynth, people, tmp_path, section, said):
    ran = dpsynth("release", with_evaluate(people("marginals"), section))
    assert ran.code == 2
    assert said in ran.err
    assert "Nothing was read and nothing was spent." in ran.err
    assert not (tmp_path / "out").exists()


def test_an_evaluation_that_could_not_be_answered_is_refused_before_anything_is(dpsynth, people):
    ran = dpsynth("release", with_evaluate(people("marginals"), "{epsilon: 1e-9}"))
    assert ran.code == 2
    assert "spec.yaml, line 11: this evaluation cannot be paid for" in ran.err
    assert "Nothing was spent." in ran.err
    assert "abort" in dpsynth("budget", "log", "people").out


# --- the command --------------------------------------------------------------------------------------


def test_any_tools_file_is_judged(dpsynth, people, tmp_path):
    spec = people("marginals", more="strata: group")
    table = pyarrow.csv.read_csv(tmp_path / "people.csv")
    pyarrow.csv.write_csv(table.select(["group", "score", "age"]), tmp_path / "theirs.csv")
    ran = dpsynth("evaluate", spec, "theirs.csv", "--json", "-m", "w1,marginals,moments,matches")
    assert ran.code == 0, ran.err
    judged = ran.json
    assert judged["confidential"] is True
    assert judged["metrics"]["w1"]["synthetic"]["worst"] == 0 < judged["metrics"]["w1"]["real_split"]["worst"]
    assert judged["problems"]["real"]["rows"] == judged["problems"]["synthetic"]["rows"] == 300
    assert judged["metrics"]["matches"]["synthetic"]["unique_share"] == 1.0
    shown = dpsynth("evaluate", spec, "theirs.csv", "-m", "w1,w1_2d,sliced,propensity")
    assert shown.code == 0
    for words in ("W1 in the plane, worst", "propensity pMSE, ratio", "real/real", "Confidential"):
        assert words in shown.out
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_sample_of_the_rows_is_said(dpsynth, people, tmp_path):
    spec = people("marginals")
    ran = dpsynth("evaluate", spec, "people.csv", "--rows", 100, "-m", "w1")
    assert ran.code == 0, ran.err
    assert "Compared: samples of 100 and 100 rows." in ran.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere.csv"], 5, "there is no synthetic file nowhere.csv."),
        (["people.csv", "-m", "w1,slized"], 2, "there is no metric slized (did you mean sliced?)."),
        (["people.csv", "--target", "score"], 2, "classifiers cannot predict score"),
        (["people.csv", "--real", "nowhere.csv"], 5, "there is no file nowhere.csv."),
        (["other.csv"], 5, "other.csv has no columns 'age', 'score'."),
    ],
)
def test_what_cannot_be_judged_is_said_in_one_message(dpsynth, people, tmp_path, words, code, said):
    spec = people("marginals")
    (tmp_path / "other.csv").write_text("group,private-1\na,private-2\n")
    ran = dpsynth("evaluate", spec, *words)
    assert (ran.code, said in ran.err) == (code, True), ran.err
    assert "private-" not in ran.err
