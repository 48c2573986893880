"""Nobody pays twice by accident: what is typed again after a crash, beside an older release, over a lost
state."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import dpsynth_cli.release.table as releases
from dpsynth_cli.release.record.transcript import PartialTranscript
from dpsynth_cli.trusted.ledger.grants import cost_of
from dpsynth_cli.trusted.ledger.ledger import Ledger
from tests.whole.test_release import answers, killed

GOING_ON = "that was cut off: it is paid for, and nothing is charged."


def charges(dpsynth) -> int:
    """Charges that were not given back."""
    assert dpsynth("budget", "verify").code == 0
    kinds = [entry["kind"] for entry in dpsynth("budget", "log", "--json").json["entries"]]
    return kinds.count("reserve") - kinds.count("abort")


def partials(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "out").glob(".people.*.partial"))


@pytest.fixture
def interrupted(dpsynth, people, tmp_path):
    """A release that was paid for and killed after its first answer; that answer."""
    people("pmm")
    killed(tmp_path, "answer", 1)
    (left,) = partials(tmp_path)
    partial = PartialTranscript.reopen(left)
    kept = partial.answers[0][1].values
    partial.close()
    return kept


# --- an unfinished release ---------------------------------------------------------------------------


def test_the_same_command_again_goes_on_and_says_so(dpsynth, interrupted, tmp_path):
    for _ in range(5):  # Ctrl-C, again and again
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(releases, "compose", lambda *words: (_ for _ in ()).throw(KeyboardInterrupt))
            assert dpsynth("release", "spec.yaml").code == 130
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0, ran.err
    assert GOING_ON in ran.err
    assert "spent: epsilon = 1 of people, add_remove, charged when it was begun" in ran.out
    assert (answers(tmp_path / "out/people.transcript.arrow")[0] == interrupted).all()
    assert charges(dpsynth) == 1
    assert partials(tmp_path) == []
    assert dpsynth("verify", "out/people.audit.json").code == 0


def test_again_asks_for_a_new_one_and_the_old_one_can_still_be_finished(dpsynth, interrupted, tmp_path):
    ran = dpsynth("release", "spec.yaml", "--again")
    assert ran.code == 0, ran.err
    assert "is an unfinished release, paid for on" in ran.err
    assert charges(dpsynth) == 2
    assert (answers(tmp_path / "out/people.transcript.arrow")[0] != interrupted).any()
    ran = dpsynth("release", "spec.yaml", "--resume")
    assert ran.code == 0, ran.err
    assert (answers(tmp_path / "out/people.transcript.arrow")[0] == interrupted).all()
    assert charges(dpsynth) == 2
    (kept,) = (tmp_path / "out").glob("people.2*/people.audit.json")
    assert dpsynth("verify", kept).code == 0


def test_again_and_resume_contradict_each_other(dpsynth, people):
    ran = dpsynth("release", people(), "--again", "--resume")
    assert (ran.code, "Drop one of them." in ran.err) == (2, True)


@pytest.mark.parametrize("how", ["written anew", "standard input"])
def test_where_the_input_may_be_another_nothing_is_charged_until_it_is_said(
    dpsynth, people, interrupted, tmp_path, how
):
    words = ["release", "spec.yaml"]
    if how == "written anew":
        os.utime(tmp_path / "people.csv", (1, 1))
    else:
        words += ["-i", "-"]
    ran = dpsynth(*words)
    assert ran.code == 2
    assert "whether its input is still the same cannot be told" in ran.err
    assert "--resume" in ran.err
    assert "--again" in ran.err
    assert charges(dpsynth) == 1
    assert dpsynth("release", "spec.yaml", "--resume").code == 0
    assert charges(dpsynth) == 1


def test_another_input_is_another_release(dpsynth, interrupted, tmp_path):
    shutil.copy(tmp_path / "people.csv", tmp_path / "other.csv")
    ran = dpsynth("release", "spec.yaml", "-i", "other.csv")
    assert ran.code == 0, ran.err
    assert "note: " in ran.err
    assert charges(dpsynth) == 2


def test_another_spec_is_another_release_and_the_unfinished_one_is_explained(dpsynth, interrupted, tmp_path):
    ran = dpsynth("release", "spec.yaml", "--set", "privacy.epsilon=0.5")
    assert ran.code == 0, ran.err
    assert "paid for on" in ran.err
    assert "Finish it: dpsynth release spec.yaml --resume" in ran.err


def test_another_ledger_does_not_pay_for_it_again(dpsynth, interrupted, tmp_path):
    ran = dpsynth("release", "spec.yaml", "--ledger", "other.sqlite")
    assert ran.code == 2
    assert "does not hold the charge of" in ran.err
    assert not Path("other.sqlite").exists() or Ledger("other.sqlite").log() == []


def test_a_refunded_partial_does_not_block_a_paid_one(dpsynth, people, tmp_path):
    """Ctrl-C between the charge and the first row: given back, and its file must not stand in the way."""
    people("pmm")
    killed(tmp_path, "answer", 1)
    (paid,) = partials(tmp_path)
    header = PartialTranscript.peek(paid)[0]
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.reserve("people", "f" * 32, "people", cost_of(ledger.find(header["release"]["id"])[0].payload))
        ledger.abort("f" * 32, "KeyboardInterrupt")
    other = header | {"release": header["release"] | {"id": "f" * 32}}
    stray = paid.with_name(f".people.{'f' * 32}.partial")
    PartialTranscript.create(stray, other, PartialTranscript.peek(paid)[1]).close()
    os.utime(stray, (1, 1))  # the older one: it was looked at first
    ran = dpsynth("release", "spec.yaml", "--resume")
    assert ran.code == 0, ran.err
    assert partials(tmp_path) == []
    assert charges(dpsynth) == 1


def test_ctrl_c_while_the_record_is_begun_leaves_nothing(dpsynth, people, tmp_path, monkeypatch):
    created = PartialTranscript.create

    def stopped(*words):
        created(*words).close()
        raise KeyboardInterrupt

    people()
    with monkeypatch.context() as patched:
        patched.setattr(PartialTranscript, "create", stopped)
        ran = dpsynth("release", "spec.yaml")
    assert (ran.code, ran.err) == (130, "Error: interrupted.\nNothing was spent.\n")
    assert partials(tmp_path) == []
    assert charges(dpsynth) == 0


def test_killed_before_the_record_was_begun_the_charge_is_given_back(dpsynth, people, tmp_path):
    people()
    program = (
        "import os, signal, sys\n"
        "import dpsynth_cli.release.record.transcript as t\n"
        "t.PartialTranscript._start = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.argv = ['dpsynth', 'release', 'spec.yaml']\n"
        "from dpsynth_cli.cli.main import run\nrun()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=os.environ)
    assert ran.returncode == -signal.SIGKILL
    assert charges(dpsynth) == 1
    assert len(list((tmp_path / "out").glob(".*.new"))) == 1
    assert dpsynth("release", "spec.yaml").code == 0
    assert charges(dpsynth) == 1
    assert [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")] == []


def test_what_is_running_is_not_begun_a_second_time(dpsynth, interrupted, tmp_path):
    (left,) = partials(tmp_path)
    running = PartialTranscript.reopen(left)
    try:
        ran = dpsynth("release", "spec.yaml")
        assert ran.code == 2
        assert "is being made by another process right now" in ran.err
        assert charges(dpsynth) == 1
    finally:
        running.close()


def test_nothing_private_of_the_partial_is_published(dpsynth, interrupted, tmp_path):
    assert dpsynth("release", "spec.yaml").code == 0
    for name in ("people.transcript.arrow", "people.audit.public.json", "people.csv"):
        data = (tmp_path / "out" / name).read_bytes()
        for word in (b"dpsynth-private", b"modified", str(tmp_path).encode()):
            assert word not in data


def test_a_killed_last_step_is_finished_or_forgotten_but_never_repeated(dpsynth, people, tmp_path):
    people("pmm")
    killed(tmp_path, "published")
    first = (tmp_path / "out/people.csv").read_bytes()
    ran = dpsynth("release", "spec.yaml")  # the same command, the same input: the same release
    assert (ran.code, (tmp_path / "out/people.csv").read_bytes()) == (0, first)
    assert charges(dpsynth) == 1
    shutil.rmtree(tmp_path / "out")
    killed(tmp_path, "published")
    os.utime(tmp_path / "people.csv", (1, 1))  # next month
    ran = dpsynth("release", "spec.yaml", "--replace")
    assert ran.code == 0, ran.err
    assert charges(dpsynth) == 3
    assert partials(tmp_path) == []


# --- an output that is there -------------------------------------------------------------------------


def test_a_paid_output_is_not_replaced_in_silence(dpsynth, people, tmp_path):
    spec = people()
    assert dpsynth("release", spec).code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    ran = dpsynth("release", spec)
    assert ran.code == 2
    assert "out/people.csv is already released (on 2" in ran.err
    assert "epsilon = 1 of people)" in ran.err
    assert "Nothing was read and nothing was spent. Say --replace" in ran.err
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert charges(dpsynth) == 1


def test_replace_keeps_the_old_release_whole_in_a_dated_folder(dpsynth, people, tmp_path):
    spec = people()
    assert dpsynth("key", "init", "mine.key").code == 0
    assert dpsynth("release", spec, "--sign", "mine.key").code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    audit = json.loads(before["people.audit.public.json"])
    for _ in range(2):
        assert dpsynth("release", spec, "--replace").code == 0
    kept = tmp_path / "out" / f"people.{audit['release']['day']}.{audit['release']['id'][:8]}"
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before
    assert dpsynth("verify", kept / "people.audit.json", "--key", "mine.key.pub").code == 0
    assert (kept / "people.audit.json").stat().st_mode & 0o077 == 0
    assert len([path for path in (tmp_path / "out").iterdir() if path.is_dir()]) == 2
    assert not (tmp_path / "out/people.intoto.jsonl").exists()
    assert dpsynth("verify", "out/people.audit.json").code == 0


def test_an_output_that_nobody_paid_for_is_not_overwritten_either(dpsynth, people, tmp_path):
    spec = people()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/people.csv").write_text("mine")
    ran = dpsynth("release", spec)
    assert (ran.code, "is already there" in ran.err) == (2, True)
    assert (tmp_path / "out/people.csv").read_text() == "mine"
    assert charges(dpsynth) == 0 if (tmp_path / "ledger.sqlite").exists() else True
    assert dpsynth("release", spec, "--replace").code == 0


def test_standard_output_has_receipts_that_are_not_replaced(dpsynth, people):
    spec = people()
    assert dpsynth("release", spec, "-o", "-").code == 0
    ran = dpsynth("release", spec, "-o", "-")
    assert (ran.code, ran.out) == (2, "")
    assert "people.audit.public.json is already released" in ran.err
    assert dpsynth("release", spec, "-o", "-", "--replace").code == 0


def test_the_day_in_the_output(dpsynth, people, tmp_path):
    spec = people()
    text = spec.read_text().replace("out/people.csv", "out/{date}/people-{date}.csv")
    spec.write_text(text)
    assert dpsynth("release", spec).code == 0
    (made,) = (tmp_path / "out").glob("*/*.csv")
    day = json.loads(next((tmp_path / "out").glob("*/*.public.json")).read_bytes())["release"]["day"]
    assert made == tmp_path / f"out/{day}/people-{day}.csv"
    assert dpsynth("release", spec).code == 2
    assert dpsynth("verify", made.with_name(f"people-{day}.audit.json")).code == 0


def test_a_release_of_another_process_meanwhile_is_kept(dpsynth, people, tmp_path, monkeypatch):
    """Two outputs of one name at the same time: both are paid for, so neither is lost."""
    spec, composed = people(), releases.compose

    def slow(*words):
        monkeypatch.setattr(releases, "compose", composed)
        assert dpsynth("release", spec, "--again", "-q").code == 0
        return composed(*words)

    monkeypatch.setattr(releases, "compose", slow)
    assert dpsynth("release", spec).code == 0
    (kept,) = (tmp_path / "out").glob("people.2*/people.audit.json")
    for audit in (kept, "out/people.audit.json"):
        assert dpsynth("verify", audit).code == 0


# --- what is said ------------------------------------------------------------------------------------


def test_the_cost_is_told_with_standard_output_too(dpsynth, people):
    ran = dpsynth("release", people(), "-o", "-")
    assert ran.out.startswith("age,score,group\n")
    assert "spent: epsilon = 1 of people, add_remove (no grant: recorded, not limited)" in ran.err
    assert "people.audit.public.json" in ran.err
    assert "spent" not in ran.out


def test_status_shows_what_is_under_way_and_what_to_type(dpsynth, interrupted, tmp_path, monkeypatch):
    ran = dpsynth("status")
    assert ran.code == 0, ran.err
    assert "epsilon = 1 of people, 1 answers on the disk" in ran.out
    (line,) = dpsynth("status", "--json").json["under_way"]
    assert (line["kind"], line["next"]) == ("release", "dpsynth release spec.yaml --resume")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (line,) = dpsynth("status", "..", "--json").json["under_way"]
    assert line["next"] == f"cd {tmp_path} && dpsynth release spec.yaml --resume"
    (line,) = dpsynth("status", "--json").json["under_way"]  # not in this folder, but in the ledger
    assert (line["kind"], line["state"]) == ("charge", "rows were read, and nothing was published")
    monkeypatch.chdir(tmp_path)
    assert dpsynth("release", "spec.yaml").code == 0
    assert dpsynth("status").out == "Nothing is under way: no unfinished release, no stream.\n"


@pytest.mark.parametrize("wait", [0.05, 0.12, 0.2, 0.3, 0.45])
def test_ctrl_c_while_it_starts_has_no_traceback(people, dpsynth, tmp_path, wait):
    people()
    program = (
        "import os, sys\n"
        "from dpsynth_cli.__main__ import run\n"
        "sys.argv = ['dpsynth', 'release', 'spec.yaml']\n"
        "os.write(1, b'go')\n"  # from here on it is ours; before, Python starts
        "run()\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout.read(2) == b"go"
    with suppress(subprocess.TimeoutExpired):
        running.wait(wait)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate()
    assert b"Traceback" not in err, err
    assert b"nterrupted" in err or b"synthetic rows" in err or running.returncode == 0


# --- streams -----------------------------------------------------------------------------------------

STREAM = """\
dpsynth: 1
name: visits
output: out/visits.csv
privacy: {epsilon: 1.0, dataset: hospital}
mechanism: {name: online}
columns:
  age: {type: integer, bounds: [0, 99]}
"""


@pytest.fixture
def stream(dpsynth, tmp_path):
    """A stream with one push; its state's file."""
    (tmp_path / "stream.yaml").write_text(STREAM)
    (tmp_path / "day.csv").write_text("age\n" + "\n".join(str(i % 90) for i in range(200)) + "\n")
    assert dpsynth("stream", "init", "stream.yaml").code == 0
    assert dpsynth("stream", "push", "stream.yaml", "day.csv", "--batch-id", "1", "--publish").code == 0
    return tmp_path / "ledger.sqlite.streams/visits.state"


def test_a_stream_whose_state_is_lost_is_not_charged_again(dpsynth, stream):
    kept = stream.read_bytes()
    stream.unlink()
    ran = dpsynth("stream", "init", "stream.yaml")
    assert ran.code == 3
    assert "was charged on 2" in ran.err
    assert "has gone on to generation 2" in ran.err
    assert "Nothing was charged. Put its newest state back there" in ran.err
    assert charges(dpsynth) == 1
    (line,) = dpsynth("status", "--json").json["under_way"]
    assert (line["kind"], line["state"]) == ("stream", "its state is not here")
    stream.write_bytes(kept)
    assert dpsynth("stream", "init", "stream.yaml").code == 0
    assert "next: dpsynth stream push SPEC" in dpsynth("status").out
    assert charges(dpsynth) == 1


def test_the_next_state_alone_is_enough_to_go_on(dpsynth, stream):
    """A crash between the note and the renaming, and then the old file was lost."""
    stream.rename(stream.with_name("visits.state.next"))
    ran = dpsynth("stream", "init", "stream.yaml")
    assert (ran.code, "goes on: it was charged before" in ran.out) == (0, True)
    assert stream.exists()
    assert charges(dpsynth) == 1


def test_start_over_gives_the_old_stream_up_in_so_many_words(dpsynth, stream):
    kept = stream.read_bytes()
    stream.unlink()
    assert dpsynth("stream", "init", "stream.yaml", "--start-over").code == 0
    log = dpsynth("budget", "log", "--json").json["entries"]
    assert [e["payload"]["refunded"] for e in log if e["kind"] == "abort"] == [False]  # rows were read
    assert len([e for e in log if e["kind"] == "reserve"]) == 2
    new = stream.read_bytes()
    stream.write_bytes(kept)  # the old one turns up: it may not go on
    ran = dpsynth("stream", "push", "stream.yaml", "day.csv", "--batch-id", "2")
    assert (ran.code, "was aborted in the ledger" in ran.err) == (3, True)
    stream.write_bytes(new)
    assert dpsynth("stream", "push", "stream.yaml", "day.csv", "--batch-id", "1").code == 0


def test_a_stream_is_not_given_up_while_its_snapshot_is_half_in_place(dpsynth, stream, tmp_path):
    assert dpsynth("stream", "publish", "stream.yaml").code == 0
    output = next(tmp_path.rglob("*.transcript.arrow")).with_name("visits.csv")
    output.unlink()
    ran = dpsynth("stream", "init", "stream.yaml", "--start-over")
    assert ran.code == 2
    assert ran.err == (
        "Error: the files of out/visits.csv are not of one snapshot: its publishing was cut off.\n"
        "Nothing was charged. Finish it with: dpsynth stream publish SPEC. If the stream's state is lost, "
        "move those files away.\n"
    )
    assert charges(dpsynth) == 1
    assert dpsynth("stream", "publish", "stream.yaml").code == 0
    assert dpsynth("stream", "init", "stream.yaml", "--start-over").code == 0


def test_starting_over_before_a_row_was_read_costs_once_and_too_little_budget_changes_nothing(
    dpsynth, tmp_path
):
    (tmp_path / "stream.yaml").write_text(STREAM)
    assert dpsynth("budget", "grant", "hospital", "1").code == 0
    for words in ((), ("--start-over",)):
        assert dpsynth("stream", "init", "stream.yaml", *words).code == 0
    assert dpsynth("budget", "show", "--json").json["datasets"][0]["remaining"] == "0"
    before = (tmp_path / "ledger.sqlite.streams/visits.state").read_bytes()
    ran = dpsynth("stream", "init", "stream.yaml", "--start-over", "--set", "privacy.epsilon=2")
    assert ran.code == 3
    assert (tmp_path / "ledger.sqlite.streams/visits.state").read_bytes() == before
    assert dpsynth("stream", "status", "stream.yaml").code == 0


def test_a_snapshot_replaces_the_one_before_and_nothing_else(dpsynth, people, stream, tmp_path):
    for _ in range(2):
        assert dpsynth("stream", "publish", "stream.yaml").code == 0
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_dir()] == []
    assert dpsynth("release", people()).code == 0
    ran = dpsynth("stream", "publish", "stream.yaml", "-o", "out/people.csv")
    assert (ran.code, "is the release of something else than this stream" in ran.err) == (2, True)
    assert dpsynth("verify", "out/people.audit.json").code == 0
    ran = dpsynth("release", "spec.yaml", "-o", "out/visits.csv")
    assert (ran.code, "is already released" in ran.err) == (2, True)
