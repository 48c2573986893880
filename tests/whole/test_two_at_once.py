"""Two commands at once, two users, two machines: what is paid for once stays paid for once."""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path

import pytest

import dpsynth_cli.release.stream.start as stream_start
import dpsynth_cli.release.table as releases
from dpsynth_cli.disk import lock
from dpsynth_cli.release.record import unfinished
from dpsynth_cli.release.record.transcript import PartialTranscript
from dpsynth_cli.trusted.ledger.ledger import Ledger
from tests.whole.test_release import answers, killed
from tests.whole.test_second_charge import charges, partials


@pytest.fixture
def left(dpsynth, people, tmp_path) -> Path:
    """What a release that was killed after its first answer left."""
    people("pmm")
    killed(tmp_path, "answer", 1)
    (path,) = partials(tmp_path)
    return path


def test_who_only_looks_does_not_make_it_cost_twice(dpsynth, left, monkeypatch):
    """`dpsynth status` has the file for a moment, just when the same command would go on with it."""
    reopen, looked = PartialTranscript.reopen, []

    def while_somebody_looks(path):
        with open(path, "r+b") as file:
            if not looked:
                lock(file, wait=False, shared=True)
                looked.append(path)
            return reopen(path)

    monkeypatch.setattr(PartialTranscript, "reopen", while_somebody_looks)
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0, ran.err
    assert looked
    assert charges(dpsynth) == 1


def test_two_who_look_do_not_seem_alive_to_each_other(left):
    with open(left, "r+b") as file:
        lock(file, wait=False, shared=True)
        assert unfinished._alive(left) is False
        lock(file, wait=False)
        assert unfinished._alive(left) is True


def test_of_two_that_go_on_at_once_one_is_refused(dpsynth, left, monkeypatch):
    """The other has gone on between this one's look and its lock."""
    looked = unfinished.left_in
    other = []

    def then_taken(*words):
        found = looked(*words)
        other.append(PartialTranscript.reopen(left))
        return found

    monkeypatch.setattr("dpsynth_cli.release.record.again.left_in", then_taken)
    ran = dpsynth("release", "spec.yaml")
    other[0].close()
    assert (ran.code, "is being made by another process right now" in ran.err) == (2, True)
    assert charges(dpsynth) == 1


@pytest.mark.parametrize("how", ["finished", "cut off"])
def test_what_another_process_did_meanwhile_is_seen_before_the_charge(
    dpsynth, people, tmp_path, monkeypatch, how
):
    spec, opened = people("pmm"), releases.open_scan

    def slow(*words):
        monkeypatch.setattr(releases, "open_scan", opened)
        if how == "finished":
            assert dpsynth("release", spec, "-q").code == 0
        else:
            killed(tmp_path, "answer", 1)
        return opened(*words)

    monkeypatch.setattr(releases, "open_scan", slow)
    assert dpsynth("release", spec).code == 2
    assert charges(dpsynth) == 1


def test_an_unfinished_release_of_another_user_is_not_paid_for_again(dpsynth, left, monkeypatch):
    """It is for its owner only, so it cannot even be read."""

    def forbidden(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(PartialTranscript, "peek", forbidden)
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 5
    assert "is an unfinished release that this user cannot open" in ran.err
    assert charges(dpsynth) == 1
    assert dpsynth("status").code == 0


def test_going_on_does_not_take_the_place_of_another_release_in_silence(dpsynth, left, tmp_path):
    assert dpsynth("release", "spec.yaml", "--again").code == 0
    kept = (tmp_path / "out/people.csv").read_bytes()
    ran = dpsynth("release", "spec.yaml")
    assert (ran.code, "is already released" in ran.err) == (2, True)
    assert (tmp_path / "out/people.csv").read_bytes() == kept
    assert dpsynth("release", "spec.yaml", "--replace").code == 0
    assert charges(dpsynth) == 2


def test_of_two_unfinished_releases_the_one_of_this_input_is_resumed(dpsynth, left, tmp_path, monkeypatch):
    shutil.copy(tmp_path / "people.csv", tmp_path / "other.csv")
    with monkeypatch.context() as patched:
        patched.setattr(releases, "compose", lambda *words: (_ for _ in ()).throw(KeyboardInterrupt))
        assert dpsynth("release", "spec.yaml", "-i", "other.csv").code == 130
    (other,) = (path for path in partials(tmp_path) if path != left)
    os.utime(left, (1, 1))
    kept = PartialTranscript.reopen(other)
    first = kept.answers[0][1].values
    kept.close()
    assert dpsynth("release", "spec.yaml", "-i", "other.csv", "--resume").code == 0
    assert (answers(tmp_path / "out/people.transcript.arrow")[0] == first).all()
    assert partials(tmp_path) == [left]


def test_a_file_moved_into_a_folder_is_another_input(tmp_path):
    part = tmp_path / "table/year=2025"
    part.mkdir(parents=True)
    (part / "a.parquet").write_bytes(b"a")
    before = unfinished.place_of(str(tmp_path / "table"))
    assert unfinished.place_of(str(tmp_path / "table")) == before
    (tmp_path / "old.parquet").write_bytes(b"b")
    os.utime(tmp_path / "old.parquet", (1, 1))
    os.replace(tmp_path / "old.parquet", part / "a.parquet")
    assert unfinished.place_of(str(tmp_path / "table")) != before


@pytest.mark.parametrize("output", ["out/{date}/people.csv", "out/people-{date}.csv", "p-{date}.csv"])
def test_after_midnight_the_release_of_the_day_before_is_finished(
    dpsynth, people, tmp_path, monkeypatch, output
):
    people("pmm")
    words = ("release", "spec.yaml", "-o", output)
    with monkeypatch.context() as patched:
        patched.setattr("dpsynth_cli.disk.datetime", Yesterday)
        patched.setattr(releases, "compose", lambda *words: (_ for _ in ()).throw(KeyboardInterrupt))
        assert dpsynth(*words).code == 130
    ran = dpsynth(*words)
    assert ran.code == 0, ran.err
    assert Path(output.replace("{date}", "2020-02-29")).exists()
    assert charges(dpsynth) == 1
    ran = dpsynth(*words)  # and this is today's
    assert ran.code == 0, ran.err
    assert charges(dpsynth) == 2
    assert dpsynth(*words).code == 2


class Yesterday:
    @staticmethod
    def now(zone) -> datetime:
        return datetime(2020, 2, 29, 23, 59, tzinfo=zone)


def test_what_other_commands_made_of_a_release_goes_aside_with_it(dpsynth, people, tmp_path):
    spec = people()
    assert dpsynth("release", spec).code == 0
    assert dpsynth("record", "out/people.audit.json").code == 0
    made = {path.name for path in (tmp_path / "out").glob("people.*.json")}
    assert {"people.croissant.json", "people.dcat.json", "people.schema.json"} < made
    assert dpsynth("release", spec, "--replace").code == 0
    (kept,) = (tmp_path / "out").glob("people.2*/")
    assert {path.name for path in kept.glob("people.*.json")} == made
    assert not (tmp_path / "out/people.croissant.json").exists()


def test_releases_whose_receipts_are_damaged_are_kept_apart(dpsynth, people, tmp_path):
    spec, tables = people(), set()
    for _ in range(3):
        assert dpsynth("release", spec, "--replace").code == 0
        tables.add((tmp_path / "out/people.csv").read_bytes())
        for name in ("people.audit.json", "people.audit.public.json"):
            (tmp_path / "out" / name).write_bytes((tmp_path / "out" / name).read_bytes()[1:])
    kept = [path.read_bytes() for path in (tmp_path / "out").rglob("people.csv")]
    assert (len(kept), set(kept)) == (3, tables)


# --- streams -----------------------------------------------------------------------------------------


@pytest.fixture
def stream(people) -> str:
    text = people().read_text().replace("marginals", "online").replace("input: people.csv\n", "")
    Path("stream.yaml").write_text(text.replace("name: people", "name: visits").replace("out/", "s/"))
    return "stream.yaml"


def test_two_machines_that_start_one_stream_at_once_pay_once(dpsynth, stream, tmp_path, monkeypatch):
    """Both have looked, and there was none; states are on their own disks, and only the ledger is shared."""
    assert dpsynth("stream", "init", stream).code == 0
    shutil.rmtree(tmp_path / "ledger.sqlite.streams")
    monkeypatch.setattr(stream_start, "_refuse_lost", lambda *words: None)
    ran = dpsynth("stream", "init", stream)
    assert ran.code == 3
    assert "is charged already" in ran.err
    assert charges(dpsynth) == 1


def test_starting_over_under_another_data_set_ends_the_stream_that_is_here(dpsynth, stream):
    assert dpsynth("stream", "init", stream).code == 0
    words = ("stream", "init", stream, "--set", "privacy.dataset=others", "--start-over")
    assert dpsynth(*words).code == 0
    (line,) = dpsynth("status", "--json").json["under_way"]
    assert line["dataset"] == "others"
    assert charges(dpsynth) == 1


# --- whose budget it is ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["a link", "a file of a folder"])
def test_what_a_file_says_it_is_holds_by_a_link_and_in_its_folder(dpsynth, people, tmp_path, how):
    spec = people()
    (tmp_path / "data").mkdir()
    shutil.move(tmp_path / "people.csv", tmp_path / "data/people.csv")
    if how == "a link":
        (tmp_path / "data/people.csv.dataset").write_text("census\n")
        (tmp_path / "people.csv").symlink_to("data/people.csv")
        ran = dpsynth("release", spec)
    else:
        (tmp_path / "data.dataset").write_text("census\n")
        ran = dpsynth("release", spec, "-i", "data/people.csv")
    assert "census" in ran.out + ran.err
    assert dpsynth("budget", "show", "people").code != 0


@pytest.mark.parametrize("resumed", [False, True])
def test_a_charge_is_given_back_before_anybody_else_can_go_on(
    dpsynth, people, tmp_path, monkeypatch, resumed
):
    people("pmm")
    if resumed:
        killed(tmp_path, "charged")
    locked, refund = [], Ledger.refund

    def watched(self, release_id, why):
        locked.append(PartialTranscript.reopen(partials(tmp_path)[0]) is None)
        refund(self, release_id, why)

    monkeypatch.setattr(Ledger, "refund", watched)
    monkeypatch.setattr(releases, "_ask_and_publish", stopped)
    ran = dpsynth("release", "spec.yaml")
    assert (ran.code, ran.err.splitlines()[-1]) == (130, "Nothing was spent.")
    assert locked == [True]
    assert not partials(tmp_path)
    assert Ledger(tmp_path / "ledger.sqlite").log()[-1].payload["refunded"]


def test_what_another_process_reads_rows_for_is_not_ended(dpsynth, people, tmp_path, monkeypatch):
    """It has begun to between this one's look at the ledger and its refund."""
    people("pmm")
    look = Ledger.state

    def then_drawn(self, release_id):
        found = look(self, release_id)
        if found == "reserved":
            self.drawn(release_id)
        return found

    monkeypatch.setattr(Ledger, "state", then_drawn)
    monkeypatch.setattr(releases, "_ask_and_publish", stopped)
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 130
    assert "epsilon = 1 of people was spent." in ran.err
    assert [entry.kind for entry in Ledger(tmp_path / "ledger.sqlite").log()] == ["reserve", "drawn"]
    assert len(partials(tmp_path)) == 1


def stopped(*_):
    raise KeyboardInterrupt
