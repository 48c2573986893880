"""A release from end to end: files, receipts, crashes, refusals."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.release.record.transcript import PartialTranscript, load
from tests.conftest import ROOT

EVERY = sorted(name for name, one in mechanisms().items() if not one.stream)  # streams: test_stream.py


def answers(path: Path) -> list[np.ndarray]:
    return [answer.values for _, answer in load(path)[0].answers]


@pytest.mark.parametrize("mechanism", EVERY)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [None, "1e-6"])
@pytest.mark.parametrize("strata", [False, True])
def test_every_mechanism_releases_and_its_charges_add_up(
    dpsynth, people, tmp_path, mechanism, neighbours, delta, strata
):
    more = "strata: group" if strata else ""
    spec = people(mechanism, "0.1", neighbours, delta, more)
    ran = dpsynth("release", spec, "--json")
    if ran.code == 2 and "takes" in ran.err:
        pytest.skip(f"{mechanism} does not take such a table")
    assert ran.code == 0, ran.err
    audit = json.loads((tmp_path / "out/people.audit.public.json").read_text())
    schema = json.loads((ROOT / "configs/audit.schema.json").read_text())
    jsonschema.validate(audit, schema)
    jsonschema.validate(json.loads((tmp_path / "out/people.audit.json").read_text()), schema)
    costs = sum(Fraction(line["cost"]) for line in audit["budget"]["charges"])
    assert costs == Fraction(audit["budget"]["spent"]) == Fraction(audit["budget"]["total"])
    assert (costs == Fraction(1, 10)) == (delta is None)
    table = pyarrow.csv.read_csv(tmp_path / "out/people.csv")
    assert table.column_names == ["age", "score", "group"]
    assert table.num_rows == ran.json["rows"]
    ages = [age for age in table["age"].to_pylist() if age is not None]
    assert all(isinstance(age, int) and 0 <= age <= 99 for age in ages)
    assert set(table["group"].to_pylist()) <= {"a", "b", "c,d"}
    assert dpsynth("verify", "out/people.audit.json").code == 0


@pytest.mark.parametrize("mechanism", EVERY)
def test_replay_gives_the_same_file(dpsynth, people, tmp_path, mechanism):
    more = "strata: group" if mechanism == "lowdim" else ""
    assert dpsynth("release", people(mechanism, more=more)).code == 0
    (tmp_path / "people.csv").unlink()
    ran = dpsynth("verify", "out/people.audit.public.json", "--json")
    assert ran.code == 0, ran.err
    assert "the synthetic file: rebuilt from the transcript, the same bytes" in ran.json["findings"]
    one, two = (dpsynth("sample", "out/people.transcript.arrow", "-n", 50, "--seed", 4).out for _ in range(2))
    assert one == two
    assert one.count("\n") == 51


def test_two_releases_of_one_spec_differ_in_every_noisy_answer(dpsynth, people, tmp_path):
    spec = people("pmm")
    seen = []
    for _ in range(2):
        assert dpsynth("release", spec, "--set", "rows_hint=300", "--replace").code == 0
        seen.append(answers(tmp_path / "out/people.transcript.arrow"))
    # Later questions follow from earlier answers, so that there may be others of them.
    assert all(not np.array_equal(one, other) for one, other in zip(*seen, strict=False))


def test_parquet_in_and_out_keeps_types(dpsynth, people, tmp_path):
    spec = people("marginals")
    table = pyarrow.csv.read_csv(tmp_path / "people.csv")
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet")
    ran = dpsynth("release", spec, "-i", "people.parquet", "-o", "made/p.parquet", "--rows", 40)
    assert ran.code == 0, ran.err
    made = pyarrow.parquet.read_table(tmp_path / "made/p.parquet")
    assert made.num_rows == 40
    assert [str(made.schema.field(name).type) for name in ("age", "score")] == ["int64", "double"]
    assert dpsynth("verify", "made/p.audit.public.json").code == 0


def test_pipes(dpsynth, people, tmp_path):
    spec = people("marginals")
    command = [sys.executable, "-m", "dpsynth_cli", "release", str(spec), "-i", "-", "-o", "-"]
    with open(tmp_path / "people.csv", "rb") as data:
        ran = subprocess.run(command, stdin=data, capture_output=True, cwd=tmp_path, env=os.environ)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(b"age,score,group\n")
    assert b" synthetic rows on standard output\n" in ran.stderr
    assert b"  spent: epsilon = 1 of people, add_remove (no grant: recorded, not limited)\n" in ran.stderr
    assert (tmp_path / "people.audit.public.json").exists()


def test_the_public_files_hold_no_path_and_no_value_of_a_row(dpsynth, people, tmp_path):
    assert dpsynth("release", people("marginals")).code == 0
    public = (tmp_path / "out/people.audit.public.json").read_text()
    transcript = (tmp_path / "out/people.transcript.arrow").read_bytes()
    for text in (public.encode(), transcript):
        assert b"people.csv" not in text.replace(b'"output":"people.csv"', b"").replace(b'"people.csv"', b"")
        assert str(tmp_path).encode() not in text
        assert b"private-" not in text
    steward = json.loads((tmp_path / "out/people.audit.json").read_text())
    assert steward["input"].endswith("people.csv")
    assert steward["publishable"] is False
    assert (tmp_path / "out/people.audit.json").stat().st_mode & 0o077 == 0


# --- tampering ------------------------------------------------------------------------------------


@pytest.fixture
def released(dpsynth, people, tmp_path):
    assert dpsynth("release", people("marginals")).code == 0
    return tmp_path / "out"


def test_an_edited_output_is_found(dpsynth, released):
    path = released / "people.csv"
    path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))
    ran = dpsynth("verify", released / "people.audit.json")
    assert (ran.code, "its bytes differ" in ran.err) == (4, True)


def test_an_edited_transcript_is_found_even_with_its_hash_mended(dpsynth, released):
    from dpsynth_cli.hashing import sha256
    from dpsynth_cli.questions import Answer
    from dpsynth_cli.release.record.transcript import Transcript

    path = released / "people.transcript.arrow"
    transcript, digest = load(path)
    question, answer = transcript.answers[-1]
    values = answer.values.copy()
    values[0] += 50
    edited = Transcript(
        transcript.header,
        (*transcript.answers[:-1], (question, Answer(values, answer.lengths, answer.noise, answer.sd))),
    )
    path.write_bytes(edited.as_bytes())
    assert dpsynth("verify", released / "people.audit.json").code == 4
    audit = released / "people.audit.json"
    audit.write_text(audit.read_text().replace(digest, sha256(edited.as_bytes())))
    assert dpsynth("verify", audit).code == 4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"epsilon": "1"', '"epsilon": "0.5"'),
        ('"cost": "', '"cost": "0'),
        ('"standard_deviation": ', '"standard_deviation": 1'),
        ('"neighbours": "add_remove"', '"neighbours": "replace_one"'),
        ('"day": "', '"day": "1'),
        ('"rows": ', '"rows": 1'),
        ('"warnings": []', '"warnings": ["none"]'),
        ('"publishable": true', '"publishable": true, "extra": 1'),
    ],
)
def test_an_edited_audit_is_found(dpsynth, released, old, new):
    path = released / "people.audit.public.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert dpsynth("verify", path).code == 4


def test_an_edited_ledger_row_is_found(dpsynth, released, tmp_path):
    with sqlite3.connect(tmp_path / "ledger.sqlite") as db:
        tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
        table = next(name for name in tables if "entr" in name)
        columns = [row[1] for row in db.execute(f"pragma table_info({table})")]
        payload = next(name for name in columns if name == "payload")
        for trigger in [
            name for (name,) in db.execute("select name from sqlite_master where type = 'trigger'")
        ]:
            db.execute(f"drop trigger {trigger}")
        db.execute(f"update {table} set {payload} = replace({payload}, '1', '2') where rowid = 1")
    db.close()
    assert dpsynth("verify", released / "people.audit.json").code == 4


@pytest.mark.parametrize("name", ["people.transcript.arrow", "people.audit.json"])
def test_cut_off_files_are_found(dpsynth, released, name):
    path = released / name
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert dpsynth("verify", released / "people.audit.json").code == 4


# --- crashes --------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from dpsynth_cli.release.record.transcript import PartialTranscript
from dpsynth_cli.release import table as release
point, count = sys.argv[1], int(sys.argv[2])
def die(*words, **more):
    os.kill(os.getpid(), signal.SIGKILL)
if point == "answer":
    record = PartialTranscript.record
    def after(self, question, answer):
        record(self, question, answer)
        if len(self.answers) >= count:
            die()
    PartialTranscript.record = after
elif point == "charged":
    release._ask_and_publish = die
elif point == "compose":
    release.compose = die
elif point == "published":
    PartialTranscript.remove = die
elif point == "commit":
    from dpsynth_cli.trusted.ledger.ledger import Ledger
    commit = Ledger.commit
    def after(self, *words):
        commit(self, *words)
        die()
    Ledger.commit = after
sys.argv = ["dpsynth", "release", "spec.yaml"]
from dpsynth_cli.cli.main import run
run()
"""


def killed(tmp_path: Path, point: str, count: int = 1) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, point, str(count)], cwd=tmp_path, env=os.environ, capture_output=True
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr


@pytest.mark.parametrize(
    ("point", "count"),
    [("answer", 1), ("answer", 2), ("compose", 1), ("commit", 1), ("published", 1)],
)
def test_killed_anywhere_then_resumed_same_answers_one_charge(dpsynth, people, tmp_path, point, count):
    people("pmm")
    killed(tmp_path, point, count)
    partial = next((tmp_path / "out").glob(".people.*.partial"))
    assert partial.stat().st_mode & 0o077 == 0
    from dpsynth_cli.release.record.transcript import PartialTranscript

    before = PartialTranscript.reopen(partial)
    kept = [answer.values for _, answer in before.answers]
    before.close()
    if point == "answer":
        assert len(kept) == count
        assert not (tmp_path / "out/people.csv").exists()
    ran = dpsynth("release", "spec.yaml", "--resume")
    assert ran.code == 0, ran.err
    after = answers(tmp_path / "out/people.transcript.arrow")
    assert all((one == other).all() for one, other in zip(kept, after, strict=False))
    assert list((tmp_path / "out").glob(".*")) == []
    assert dpsynth("verify", "out/people.audit.json").code == 0
    log = dpsynth("budget", "log", "--json").json
    assert json.dumps(log).count('"reserve"') == 1


def test_nothing_to_resume_is_said(dpsynth, people):
    spec = people("marginals")
    ran = dpsynth("release", spec, "--resume")
    assert ran.code == 2
    assert ran.err == (
        "Error: nothing to resume for people.csv: there is no unfinished release beside it.\n"
        "Nothing was read and nothing was spent.\n"
    )


def test_resuming_with_another_spec_is_refused(dpsynth, people, tmp_path):
    spec = people("marginals")
    killed(tmp_path, "answer")
    ran = dpsynth("release", spec, "--resume", "--set", "privacy.epsilon=2")
    assert ran.code == 2
    assert "another spec" in ran.err


def test_an_older_copy_of_the_unfinished_release_is_refused_so_no_question_gets_a_second_answer(
    dpsynth, people, tmp_path
):
    people("pmm")
    killed(tmp_path, "answer", 1)
    partial = next((tmp_path / "out").glob(".people.*.partial"))
    old = partial.read_bytes()
    assert dpsynth("release", "spec.yaml", "--resume").code == 0
    published = (tmp_path / "out/people.csv").read_bytes()
    partial.write_bytes(old)
    ran = dpsynth("release", "spec.yaml", "--resume")
    assert ran.code == 4
    assert "answers are never drawn a second time" in ran.err
    assert (tmp_path / "out/people.csv").read_bytes() == published
    # Nor in another folder, where the same spec would publish beside it.
    other = tmp_path / "copy" / partial.name
    other.parent.mkdir()
    other.write_bytes(old)
    assert dpsynth("release", "spec.yaml", "--resume", "-o", "copy/people.csv").code == 4
    assert not (tmp_path / "copy/people.csv").exists()


def test_a_refunded_release_reads_no_row(dpsynth, people, tmp_path, monkeypatch):
    import dpsynth_cli.release.table as releases
    from dpsynth_cli.trusted.ledger.ledger import Ledger

    people("marginals")
    created = PartialTranscript.create

    def aborted(path, header, *more):
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            ledger.abort(header["release"]["id"], "somebody else")
        return created(path, header, *more)

    monkeypatch.setattr(PartialTranscript, "create", aborted)
    monkeypatch.setattr(releases, "sum_over", None)
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 4
    assert "no row may be read for it" in ran.err
    assert "Nothing was spent." in ran.err


def test_the_audit_states_epsilon_exactly(dpsynth, people, tmp_path):
    assert dpsynth("release", people("marginals", "1.00000049999999")).code == 0
    audit = json.loads((tmp_path / "out/people.audit.public.json").read_text())
    assert audit["guarantee"]["epsilon"] == "1.00000049999999"
    assert "e^1.00000049999999" in audit["guarantee"]["statement"]


# --- refusals -------------------------------------------------------------------------------------


def spent(dpsynth) -> str:
    return dpsynth("budget", "log", "--json").out


def test_a_release_beyond_the_grant_reads_nothing(dpsynth, people, tmp_path, monkeypatch):
    spec = people("marginals", "0.5")
    assert dpsynth("budget", "grant", "people", "0.2").code == 0
    monkeypatch.setattr("dpsynth_cli.release.table.sum_over", None)
    ran = dpsynth("release", spec)
    assert ran.code == 3
    assert "this release needs epsilon = 0.5, but people has 0.2 left" in ran.err
    assert "Nothing was read and nothing was spent." in ran.err
    assert not list((tmp_path / "out").glob("*"))


def test_a_failure_before_the_first_row_is_refunded(dpsynth, people, tmp_path, monkeypatch):
    spec = people("marginals")
    assert dpsynth("budget", "grant", "people", "1").code == 0

    def full(*words):
        raise OSError(28, "No space left on device", "people")

    with monkeypatch.context() as patched:
        patched.setattr(PartialTranscript, "create", full)
        ran = dpsynth("release", spec)
    assert ran.code == 5
    assert ran.err == "Error: people: No space left on device.\nNothing was spent.\n"
    assert dpsynth("release", spec).code == 0


@pytest.mark.parametrize(
    ("epsilon", "delta", "says"),
    [("1e-7", None, "off by more than a million rows"), ("1e-30", "1e-9", "off by more than a million rows"),
     ("1e100", None, "protects nobody")],
)  # fmt: skip
def test_an_epsilon_that_makes_no_sense_is_refused_and_costs_nothing(dpsynth, people, epsilon, delta, says):
    spec = people("marginals", epsilon, delta=delta)
    for command in ("check", "release"):
        ran = dpsynth(command, spec)
        assert ran.code == 2
        assert says in ran.err
    assert '"reserve"' not in spent(dpsynth)


def test_small_but_sensible_budgets_are_not_refused(dpsynth, people):
    for epsilon, delta in (("0.001", None), ("0.001", "1e-9")):
        assert dpsynth("check", people("marginals", epsilon, delta=delta)).code == 0


@pytest.mark.parametrize(
    "words",
    [("release", "--foo"), ("relase",), ("release",), ("sample", "x", "-n", "0"), ("budget", "grant", "p")],
)
def test_wrong_usage_is_2_and_not_a_bug(dpsynth, words):
    ran = dpsynth(*words)
    assert ran.code == 2
    assert "bug" not in ran.err


def test_whoever_stops_reading_does_no_harm(people, dpsynth, tmp_path):
    people("marginals")
    for words in ("release spec.yaml --json", "check spec.yaml"):
        command = f"{sys.executable} -m dpsynth_cli {words} | true; exit ${{PIPESTATUS[0]}}"
        ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=os.environ, capture_output=True)
        assert (ran.returncode, ran.stderr) == (0, b"")


def test_receipts_of_another_table_are_not_overwritten(dpsynth, people, tmp_path):
    spec = people("marginals")
    assert dpsynth("release", spec, "-o", "o/r.2024.csv").code == 0
    assert dpsynth("release", spec, "-o", "o/r.2025.csv").code == 0
    assert dpsynth("verify", "o/r.2024.audit.json").code == 0
    ran = dpsynth("release", spec, "-o", "o/r.2025.parquet")
    assert ran.code == 2
    assert "belongs to the release of r.2025.csv" in ran.err
    for name, says in (("o/r.2024.csv", "is the table of a release"), ("o/x.txt", "not a .csv or .parquet")):
        ran = dpsynth("sample", "o/r.2024.transcript.arrow", "-o", name)
        assert (ran.code, says in ran.err) == (2, True)
    assert dpsynth("verify", "o/r.2024.audit.json").code == 0


def test_ctrl_c_says_what_it_cost(dpsynth, people, monkeypatch):
    import dpsynth_cli.release.table as releases

    spec = people("marginals")

    def stopped(*words):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(releases, "sum_over", stopped)
        ran = dpsynth("release", spec)
    assert ran.code == 130
    assert ran.err.startswith(
        "Error: interrupted.\nepsilon = 1 of people was spent. Finish it with the same command"
    )
    assert dpsynth("release", spec, "--resume").code == 0


def test_a_failure_after_the_first_row_says_that_it_is_spent(dpsynth, people, tmp_path, monkeypatch):
    spec = people("marginals")

    def full(*words, **more):
        raise OSError(28, "No space left on device", "people.csv")

    with monkeypatch.context() as patched:
        patched.setattr("dpsynth_cli.release.files.write.write_table", full)
        ran = dpsynth("release", spec)
    assert ran.code == 5
    assert "No space left on device" in ran.err
    assert "epsilon = 1 of people was spent." in ran.err
    assert "--resume" in ran.err
    assert not (tmp_path / "out/people.csv").exists()
    assert dpsynth("release", spec, "--resume").code == 0


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (lambda folder: (folder / "people.csv").unlink(), 5, "people.csv"),
        (lambda folder: (folder / "people.csv").write_text(""), 5, "people.csv"),
        (lambda folder: (folder / "people.csv").write_text("age,group\n1,a\n"), 5, "score"),
        (lambda folder: (folder / "people.csv").write_text("age,score,group,age\n1,1,a,2\n"), 5, "age"),
        (lambda folder: (folder / "spec.yaml").write_text("{{{"), 2, "spec.yaml"),
        (lambda folder: (folder / "out").write_text("a file"), 5, "out"),
        (lambda folder: (folder / "ledger.sqlite").write_text("not a ledger" * 1000), 5, "ledger"),
    ],
)
def test_what_does_not_depend_on_rows_is_refused_before_anything_is_spent(
    dpsynth, people, tmp_path, change, code, says
):
    spec = people("marginals")
    change(tmp_path)
    ran = dpsynth("release", spec)
    assert ran.code == code, ran.err
    assert says in ran.err
    assert "Nothing was" in ran.err
    assert "Traceback" not in ran.err
    if says != "ledger":
        assert '"reserve"' not in spent(dpsynth)


BAD_ROWS = [
    b"1,2",  # ragged
    b"1,0.5,a,x,y,z",
    b"\xff\xfe\x00,0.5,a,x",
    b'"1,0.5,a,x',  # stray quote
    b"1,0.5," + b"a" * 10_000_000 + b",x",
    b"old,many,a,x",
    b"nan,nan,a,x",
    b"inf,-inf,a,x",
    b"99999999999999999999999999,1e400,a,x",
    b"5,0.5,purple,x",
    b"",
    b"\r\r\r",
]


@pytest.mark.parametrize("mechanism", EVERY)
def test_bad_rows_never_fail_a_release_and_never_show(dpsynth, people, tmp_path, mechanism):
    more = "strata: group" if mechanism == "lowdim" else ""
    spec = people(mechanism, more=more)
    data = tmp_path / "people.csv"
    data.write_bytes(data.read_bytes() + b"\n".join(BAD_ROWS) + b"\n")
    ran = dpsynth("release", spec)
    assert ran.code == 0, ran.err
    # Standard error counts them for the steward; what is in them is nowhere.
    assert ran.err.startswith("confidential, for the steward only: 9 cells and 4 whole records are not as")
    assert "purple" not in ran.out + ran.err


@pytest.mark.parametrize("mechanism", EVERY)
def test_a_header_without_rows_releases(dpsynth, people, tmp_path, mechanism):
    more = "strata: group" if mechanism == "lowdim" else ""
    spec = people(mechanism, rows=0, more=more)
    for neighbours in ("add_remove", "replace_one"):
        ran = dpsynth("release", spec, "--set", f"privacy.neighbours={neighbours}", "--replace")
        assert ran.code == 0, ran.err
        assert dpsynth("verify", "out/people.audit.json").code == 0


def many_at_once(people, tmp_path, count: int, allowed: int) -> None:
    from dpsynth_cli.trusted.ledger.ledger import Ledger

    people("marginals", "0.1", rows=20)
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.grant("people", str(allowed / 10), "add_remove")
    command = [sys.executable, "-m", "dpsynth_cli", "release", "spec.yaml", "-q", "--again", "--replace"]
    running = [
        subprocess.Popen(command, cwd=tmp_path, env=os.environ, stderr=subprocess.PIPE) for _ in range(count)
    ]
    codes = []
    for process in running:
        _, err = process.communicate()
        codes.append(process.returncode)
        assert process.returncode in (0, 3), err
        assert process.returncode == 0 or b"Nothing was read and nothing was spent." in err
    assert (codes.count(0), codes.count(3)) == (allowed, count - allowed)


def test_many_at_once_never_overdraw(dpsynth, people, tmp_path):
    many_at_once(people, tmp_path, 8, 3)
    assert dpsynth("verify", "out/people.audit.json").code == 0


@pytest.mark.slow
def test_forty_at_once_against_a_grant_for_ten(dpsynth, people, tmp_path):
    many_at_once(people, tmp_path, 40, 10)
    assert dpsynth("verify", "out/people.audit.json").code == 0
    assert dpsynth("budget", "verify").code == 0


def test_a_large_delta_is_warned_of(dpsynth, people, tmp_path):
    large, usual = people("marginals", delta="0.01"), "delta = 0.01 is large"
    assert usual in dpsynth("check", large).out.replace("\n", " ")
    ran = dpsynth("release", large)
    assert usual in ran.out
    assert usual in json.loads((tmp_path / "out/people.audit.public.json").read_text())["warnings"][0]
    assert "is large" not in dpsynth("check", people("marginals", delta="1e-9")).out
