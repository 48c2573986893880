"""What a stream refuses before anything is read or forgotten: noise drawn anew, an id of the other kind, an
output that is not its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dpsynth_cli import disk
from dpsynth_cli.release.stream import stream
from dpsynth_cli.spec.spec import load_spec
from dpsynth_cli.trusted.ledger.ledger import Ledger

SPEC = """\
dpsynth: 1
name: visits
output: out/visits.csv
privacy: {epsilon: 1, delta: 1e-9}
mechanism: {name: online, releases_per_doubling: 10000}
columns:
  hour: {type: continuous, bounds: [0.0, 24.0]}
"""
UNDO = ("stream", "undo", "spec.yaml", "--batch-id", "day 2")


@pytest.fixture
def started(dpsynth, tmp_path) -> Path:
    """A stream with one release of one batch; its folder."""
    (tmp_path / "spec.yaml").write_text(SPEC)
    for day in (1, 2, 3):
        (tmp_path / f"day_{day}.csv").write_text("hour\n" + f"{day}.5\n" * 50)
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    assert push(dpsynth, 1).code == 0
    return tmp_path


def push(dpsynth, day: int, *more: object):
    return dpsynth("stream", "push", "spec.yaml", f"day_{day}.csv", "--batch-id", f"day {day}", *more)


def kept(folder: Path) -> dict[str, bytes]:
    """The state and the ledger, as a backup has them."""
    found = [folder / "ledger.sqlite", *(folder / "ledger.sqlite.streams").iterdir()]
    return {str(path): path.read_bytes() for path in found if path.suffix != ".lock"}


def restore(folder: Path, backup: dict[str, bytes]) -> None:
    shutil.rmtree(folder / "ledger.sqlite.streams")
    (folder / "ledger.sqlite.streams").mkdir(mode=0o700)
    for path, data in backup.items():
        Path(path).write_bytes(data)


def killed(*words: object) -> None:
    raise KeyboardInterrupt


def pushes(dpsynth) -> int:
    return dpsynth("stream", "status", "spec.yaml", "--json").json["pushes"]


# --- no noise is drawn anew --------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["out/visits.csv", "out/other.csv"])
def test_a_release_whose_snapshot_is_there_is_not_undone_though_ledger_and_state_forgot_it(
    dpsynth, started, output
):
    """Else the same batch, pushed again, would be published with a second noise."""
    push(dpsynth, 2)
    backup = kept(started)
    assert dpsynth("stream", "publish", "spec.yaml", "-o", output).code == 0
    restore(started, backup)
    ran = dpsynth(*UNDO)
    assert ran.code == 2
    assert ran.err == (
        "Error: release 2, which the batch day 2 is in, was published.\nNothing was changed. What was "
        "published stays so. Rows that must go can be pushed with --delete.\n"
    )
    assert kept(started) == backup


def test_a_pair_from_before_a_later_release_that_was_published_is_not_undone(dpsynth, started):
    push(dpsynth, 2)
    backup = kept(started)
    push(dpsynth, 3, "--publish")
    restore(started, backup)
    ran = dpsynth(*UNDO)
    assert (ran.code, "it is an older copy" in ran.err) == (4, True)
    assert kept(started) == backup


@pytest.mark.parametrize(
    "audit",
    ["{}", "[]", "no JSON", '{"mechanism": {"chosen": []}}', '{"mechanism": {"chosen": {"stream": "x"}}}'],
)
def test_an_audit_of_something_else_does_not_keep_a_push_from_being_undone(dpsynth, started, audit):
    push(dpsynth, 2)
    (started / "out").mkdir(exist_ok=True)
    (started / "out/visits.audit.public.json").write_text(audit)
    assert dpsynth(*UNDO).code == 0


def test_a_push_is_not_undone_beside_a_snapshot_that_cannot_be_read(dpsynth, started):
    push(dpsynth, 2)
    (started / "out/other.audit.public.json").mkdir(parents=True)
    before = kept(started)
    ran = dpsynth(*UNDO)
    assert (ran.code, "which may be a snapshot: Is a directory.\nNothing was changed." in ran.err) == (
        5,
        True,
    )
    assert kept(started) == before


def test_an_earlier_snapshot_does_not_keep_a_push_from_being_undone(dpsynth, started):
    assert dpsynth("stream", "publish", "spec.yaml").code == 0
    push(dpsynth, 2)
    assert dpsynth(*UNDO).code == 0


@pytest.mark.parametrize("output", ["out/visits.csv", "out/other.csv", "elsewhere/visits.csv"])
def test_a_release_whose_snapshot_was_cut_off_is_not_undone(dpsynth, started, monkeypatch, output):
    """Its files lie there, whole, before the ledger knows what they are; but it knows that they may."""
    push(dpsynth, 2)
    right = Ledger.note

    def killed(self, dataset, release, payload, **more):
        if "public_audit" in payload:
            raise KeyboardInterrupt
        return right(self, dataset, release, payload, **more)

    spec = load_spec(str(started / "spec.yaml"), output=str(started / output))
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "note", killed)
        patched.setattr(disk, "remove", lambda path: None)  # nobody tidies up
        with pytest.raises(KeyboardInterrupt):
            stream.publish(spec, Ledger(started / "ledger.sqlite"))
    folder = (started / output).parent
    assert len(list(folder.glob(".*.tmp"))) == 4
    before = kept(started)
    ran = dpsynth(*UNDO)
    assert ran.code == 2
    assert "a snapshot of release 2, which the batch day 2 is in, was being published" in ran.err
    assert "Finish it with: dpsynth stream publish SPEC" in ran.err
    assert kept(started) == before
    assert dpsynth("stream", "publish", "spec.yaml", "-o", output).code == 0
    assert list(folder.glob(".*.tmp")) == []
    assert "was published" in dpsynth(*UNDO).err


def test_a_snapshot_that_could_not_be_written_may_have_been_seen(dpsynth, started, monkeypatch):
    push(dpsynth, 2)
    with monkeypatch.context() as patched:
        patched.setattr(stream, "compose", lambda *words: 1 / 0)
        assert dpsynth("stream", "publish", "spec.yaml").code == 1
    assert "was being published, and that was cut off" in dpsynth(*UNDO).err
    assert dpsynth("stream", "publish", "spec.yaml").code == 0
    assert dpsynth("verify", "out/visits.audit.public.json").code == 0


# --- ids of the other kind ---------------------------------------------------------------------------


@pytest.mark.parametrize("first", [(), ("--delete",)])
def test_an_id_is_of_one_kind_so_that_no_erasure_is_silently_left_out(dpsynth, started, first):
    other = () if first else ("--delete",)
    assert push(dpsynth, 2, *first).code == 0
    before = kept(started)
    for more in ((), ("--dry-run",)):
        ran = push(dpsynth, 2, *other, *more)
        assert ran.code == 2
        done = "rows to be taken away" if first else "new rows"
        assert f"the id day 2 was counted before, as a batch of {done}." in ran.err
        assert "The batch was not counted, and nothing more was spent. Give it another --batch-id." in ran.err
    assert kept(started) == before
    again = push(dpsynth, 2, *first, "--json")
    assert (again.code, again.json["counted"]) == (0, False)
    assert dpsynth(*UNDO).code == 0
    assert push(dpsynth, 2, *other, "--json").json["counted"] is True  # the id is free again


# --- an output that is not the stream's own ----------------------------------------------------------


def test_a_push_is_not_counted_if_its_snapshot_could_not_be_published(dpsynth, started):
    assert push(dpsynth, 2, "--publish").code == 0
    old = (started / "out/visits.csv").read_bytes()
    assert dpsynth("stream", "init", "spec.yaml", "--start-over").code == 0
    ran = push(dpsynth, 1, "--publish")
    assert ran.code == 2
    assert "is the release of something else than this stream." in ran.err
    assert "The batch was not counted" in ran.err
    assert pushes(dpsynth) == 0
    assert (started / "out/visits.csv").read_bytes() == old
    (started / "out").rename(started / "before")
    assert push(dpsynth, 1, "--publish").code == 0
    assert pushes(dpsynth) == 1


def test_a_push_is_not_counted_if_its_output_cannot_be_written(dpsynth, started):
    (started / "out").write_text("a file")
    ran = push(dpsynth, 2, "--publish")
    assert (ran.code, "cannot write to" in ran.err) == (5, True)
    assert pushes(dpsynth) == 1
    assert push(dpsynth, 2).code == 0  # without --publish nothing is written there


# --- words -------------------------------------------------------------------------------------------


def test_a_push_without_a_batch_says_how_to_name_one(dpsynth, started):
    ran = dpsynth("stream", "push", "spec.yaml", "--batch-id", 2)
    assert ran.code == 2
    assert ran.err == (
        "Error: no batch is named.\nThe batch was not counted, and nothing more was spent. Name its file "
        "after the spec, or `input` in the spec.\n"
    )
    ran = dpsynth("stream", "push", "spec.yaml", "gone.csv", "--batch-id", 2)
    assert ran.code == 5
    assert "there is no file gone.csv." in ran.err
    assert "Name its file after the spec, or `input` in the spec." in ran.err
    assert "--input" not in ran.err


def test_a_window_says_since_when_it_is(dpsynth, started, monkeypatch):
    def window(*more: object):
        return dpsynth("stream", "publish", "spec.yaml", "--last-days", 1, *more)

    assert "  what arrived since the stream began\n" in window().out
    assert window("--json").json["since_day"] is None
    for day in (2, 3):
        with monkeypatch.context() as clock:
            clock.setattr(disk, "today", lambda day=day: f"2099-03-{9 + day}")
            push(dpsynth, day)
    assert "  what arrived since release 2 of 2099-03-11\n" in window().out
    assert window("--json").json["since_day"] == "2099-03-11"
    plain = dpsynth("stream", "publish", "spec.yaml")
    assert "what arrived" not in plain.out
    assert "since_day" not in json.loads(dpsynth("stream", "publish", "spec.yaml", "--json").out)


# --- a stream whose end is known -----------------------------------------------------------------------


@pytest.fixture
def short(tmp_path) -> Path:
    """Three batches of four rows, and the spec of a stream that ends after two pushes."""
    spec = SPEC.replace("releases_per_doubling: 10000", "releases_per_doubling: 10000, horizon: 2")
    (tmp_path / "spec.yaml").write_text(spec)
    for day in (1, 2, 3):
        (tmp_path / f"day_{day}.csv").write_text("hour\n" + f"{day}.5\n" * 4)
    return tmp_path


def test_a_push_beyond_the_horizon_is_refused_in_words_and_nothing_is_counted(dpsynth, short):
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    assert push(dpsynth, 1).code == push(dpsynth, 2).code == 0
    before = kept(short)
    for more in ((), ("--dry-run",), ("--publish",)):
        ran = push(dpsynth, 3, *more)
        assert ran.code == 2
        assert "the stream visits ends after 2 pushes, and 2 are counted." in ran.err
        assert "start a stream of another name" in ran.err
    assert kept(short) == before
    assert push(dpsynth, 2).code == 0  # a batch that is counted already is no further push
    now = dpsynth("stream", "status", "spec.yaml", "--json").json
    assert (now["releases"], now["next_release"]) == (2, None)
    assert "there is no other" in dpsynth("stream", "status", "spec.yaml").out
    assert dpsynth("stream", "publish", "spec.yaml").code == 0
    assert dpsynth("verify", "out/visits.audit.public.json").code == 0
    audit = json.loads((short / "out/visits.audit.public.json").read_text())
    assert audit["spec"]["mechanism"]["horizon"] == 2
    assert dpsynth("stream", "undo", "spec.yaml", "--batch-id", "day 2").code != 0  # it is published


def test_with_public_arrivals_the_horizon_is_of_events(dpsynth, short):
    spec = (short / "spec.yaml").read_text().replace("horizon: 2", "horizon: 8, arrivals: public")
    (short / "spec.yaml").write_text(spec.replace("delta: 1e-9", "delta: 1e-9, neighbours: replace_one"))
    (short / "day_3.csv").write_text("hour\n" + "2.5\n" * 5)
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    assert push(dpsynth, 1).code == 0
    before = kept(short)
    ran = push(dpsynth, 3)
    assert (ran.code, kept(short)) == (2, before)
    assert "ends after 8 events, and 4 are counted; this batch has 5 more." in ran.err
    assert push(dpsynth, 2).code == 0


def test_the_horizon_of_a_stream_under_way_cannot_be_changed_and_less_noise_is_paid_for_by_it(dpsynth, short):
    noise = {}
    for horizon in ("2", "infinite"):
        spec = (short / "spec.yaml").read_text().replace("horizon: 2", f"horizon: {horizon}")
        (short / f"{horizon}.yaml").write_text(spec.replace("visits", f"visits-{horizon}"))
        assert dpsynth("stream", "init", f"{horizon}.yaml").code == 0
        words = ("stream", "push", f"{horizon}.yaml", "day_1.csv", "--batch-id", "1", "--publish")
        assert dpsynth(*words).code == 0
        audit = json.loads((short / f"out/visits-{horizon}.audit.public.json").read_text())
        noise[horizon] = audit["mechanism"]["chosen"]["noise_by_level"]["4"]
    assert noise["2"] < 0.8 * noise["infinite"]
    (short / "2.yaml").write_text((short / "2.yaml").read_text().replace("horizon: 2", "horizon: 3"))
    ran = dpsynth("stream", "push", "2.yaml", "day_2.csv", "--batch-id", "2")
    assert ran.code == 2
    assert "was started with another mechanism" in ran.err
    # A transcript that claims the smaller noise for an endless stream does not pass.
    public = short / "out/visits-2.audit.public.json"
    public.write_text(public.read_text().replace('"horizon": 2', '"horizon": "infinite"'))
    assert dpsynth("verify", str(public)).code != 0
