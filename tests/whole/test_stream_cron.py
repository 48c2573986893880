"""What a nightly job needs: a batch tried before it is pushed, undone, taken away; windows; what to watch."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth_cli import disk
from dpsynth_cli.release.stream import stream
from dpsynth_cli.spec.spec import load_spec
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.stream.state import StreamState

SPEC = """\
dpsynth: 1
name: visits
output: out/visits.csv
privacy: {{epsilon: 100000, neighbours: {neighbours}{delta}}}
mechanism: {{name: online, releases_per_doubling: {releases}{more}}}
columns:
  hour: {{type: continuous, bounds: [0.0, 24.0]}}
  ward: {{type: nominal, categories: [a, b, c]}}
sampling: {{seed: 7}}
"""


@pytest.fixture
def started(dpsynth, tmp_path):
    """A stream whose noise is nothing, and day_1.csv .. day_6.csv with 100 rows in another hour each."""

    def start(neighbours="add_remove", delta=", delta: 1e-9", releases=10_000, more="") -> None:
        text = SPEC.format(neighbours=neighbours, delta=delta, releases=releases, more=more)
        (tmp_path / "spec.yaml").write_text(text)
        for day in range(1, 7):
            lines = [f"{3 * day + i / 100},{'abc'[i % 3]}" for i in range(100)]
            (tmp_path / f"day_{day}.csv").write_text("\n".join(["hour,ward", *lines]) + "\n")
        assert dpsynth("stream", "init", "spec.yaml").code == 0

    return start


def push(dpsynth, day: int, *more: object):
    return dpsynth("stream", "push", "spec.yaml", f"day_{day}.csv", "--batch-id", f"day {day}", *more)


def hours(folder: Path, name: str = "visits") -> list[int]:
    """How many rows of a snapshot are in each of the days' hours."""
    made = pd.read_csv(folder / f"out/{name}.csv")
    return np.bincount((made["hour"] // 3).astype(int), minlength=8)[1:7].tolist()


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "lock" not in path.name
    }


# --- a batch is tried --------------------------------------------------------------------------------


def test_a_dry_run_tells_the_steward_and_changes_nothing(dpsynth, started, tmp_path):
    started()
    push(dpsynth, 1, "--publish")
    (tmp_path / "day_2.csv").write_text("hour,ward\n1,a\nx,a\n2,purple\n99,b\n")
    before = everything(tmp_path)
    ran = push(dpsynth, 2, "--dry-run")
    assert ran.code == 0
    assert "Batch day 2 can be read; nothing was counted." in ran.out
    assert "Cells that a release would change (confidential: for the steward only)" in ran.err
    assert "4 rows, 0 of them ragged" in ran.err
    assert "purple" not in ran.out + ran.err
    said = push(dpsynth, 2, "--dry-run", "--json").json
    assert (said["counted"], said["pushes"]) == (False, 1)
    assert everything(tmp_path) == before
    ran = push(dpsynth, 2, "--dry-run", "--publish")
    assert (ran.code, "--dry-run counts nothing to --publish" in ran.err) == (2, True)
    ran = dpsynth("stream", "push", "spec.yaml", "no.csv", "--batch-id", 2, "--dry-run")
    assert (ran.code, "The batch was not counted" in ran.err) == (5, True)


def test_a_dry_run_of_a_strict_push_refuses_what_it_would(dpsynth, started, tmp_path):
    started()
    (tmp_path / "day_1.csv").write_text("hour,ward\n" + "x,purple\n" * 50)
    assert push(dpsynth, 1, "--dry-run", "--strict").code == 5
    assert push(dpsynth, 1, "--dry-run").code == 0


# --- a push is undone --------------------------------------------------------------------------------


@pytest.mark.parametrize("releases", [1, 10_000])
def test_the_last_push_is_undone_as_if_it_had_never_been(dpsynth, started, tmp_path, releases):
    """Also where it made a release: that was never published."""
    started(releases=releases)
    for day in (1, 2):
        assert push(dpsynth, day).code == 0
    assert push(dpsynth, 3).code == 0
    ran = dpsynth("stream", "undo", "spec.yaml", "--batch-id", "day 3", "--json")
    assert (ran.code, ran.json["pushes"]) == (0, 2)
    push(dpsynth, 4, "--publish")
    if releases > 1:
        assert hours(tmp_path) == [100, 100, 0, 100, 0, 0]
    assert dpsynth("verify", "out/visits.audit.json").code == 0
    assert dpsynth("budget", "verify").code == 0
    assert push(dpsynth, 3, "--json").json["counted"] is True  # its id is free again
    ran = dpsynth("stream", "undo", "spec.yaml", "--batch-id", "day 1")
    assert ran.code == 2
    assert ran.err == (
        "Error: the batch day 1 is not the last one that was counted.\nNothing was changed. Only the last "
        "push can be undone. Rows that must go can be pushed with --delete.\n"
    )


def test_a_push_is_not_undone_twice_nor_what_was_published(dpsynth, started, tmp_path):
    started()
    for day in (1, 2, 3):
        push(dpsynth, day)
    assert dpsynth("stream", "undo", "spec.yaml", "--batch-id", "day 3").code == 0
    ran = dpsynth("stream", "undo", "spec.yaml", "--batch-id", "day 2")
    assert (ran.code, "is not kept any more" in ran.err) == (2, True)
    push(dpsynth, 3, "--publish")
    before = everything(tmp_path)
    ran = dpsynth("stream", "undo", "spec.yaml", "--batch-id", "day 3")
    assert ran.code == 2
    assert ran.err == (
        "Error: release 3, which the batch day 3 is in, was published.\nNothing was changed. What was "
        "published stays so. Rows that must go can be pushed with --delete.\n"
    )
    assert everything(tmp_path) == before


def test_a_window_that_was_published_is_not_undone(dpsynth, started, tmp_path):
    started()
    push(dpsynth, 1)
    assert dpsynth("stream", "publish", "spec.yaml", "--last-days", 1, "-o", "out/w.csv").code == 0
    assert dpsynth("stream", "undo", "spec.yaml", "--batch-id", "day 1").code == 2


def test_a_copy_put_in_the_place_of_the_generation_before_is_not_gone_back_to(dpsynth, started, tmp_path):
    started()
    push(dpsynth, 1)
    place = tmp_path / "ledger.sqlite.streams/visits.state"
    old = place.with_name(place.name + ".before")
    shutil.copy(old, tmp_path / "older")  # of before the first push
    push(dpsynth, 2)
    for damaged in ((tmp_path / "older").read_bytes(), old.read_bytes()[:-1], b""):
        old.write_bytes(damaged)
        assert dpsynth("stream", "undo", "spec.yaml", "--batch-id", "day 2").code == 2


# --- rows are taken away -----------------------------------------------------------------------------


@pytest.mark.parametrize("delta", ["", ", delta: 1e-9"])
def test_rows_that_are_taken_away_are_gone_whatever_came_between(dpsynth, started, tmp_path, delta):
    started(delta=delta)
    for day in (1, 2, 3):
        push(dpsynth, day)
    ran = dpsynth("stream", "push", "spec.yaml", "day_2.csv", "--batch-id", "gone", "--delete", "--publish")
    assert ran.code == 0, ran.err
    assert hours(tmp_path) == [100, 0, 100, 0, 0, 0]
    assert dpsynth("verify", "out/visits.audit.json").code == 0
    push(dpsynth, 4, "--publish")
    assert hours(tmp_path) == [100, 0, 100, 100, 0, 0]


@pytest.mark.parametrize("more", ["", ", arrivals: public", ", algorithm: sparse, arrivals: public"])
def test_where_a_row_may_be_replaced_or_counts_only_grow_nothing_is_taken_away(dpsynth, started, more):
    """Under replace_one a row that comes instead of one that goes moves C_i + C_j, not C_i - C_j."""
    started(neighbours="replace_one", delta="", more=more)
    ran = push(dpsynth, 1, "--delete")
    assert (ran.code, "rows can be taken away only under add_remove" in ran.err) == (2, True)


# --- windows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [{}, {"neighbours": "replace_one", "more": ", arrivals: public"}])
def test_a_window_has_what_arrived_in_its_days_and_verifies(dpsynth, started, tmp_path, monkeypatch, kind):
    started(**kind)
    spec, ledger = load_spec(str(tmp_path / "spec.yaml")), Ledger(tmp_path / "ledger.sqlite")
    for day in range(1, 7):
        with monkeypatch.context() as clock:
            clock.setattr(disk, "today", lambda day=day: f"2026-03-{9 + day}")
            stream.push(spec, ledger, str(tmp_path / f"day_{day}.csv"), f"day {day}")
    for last, expected in ((1, [0, 0, 0, 0, 0, 100]), (2, [0, 0, 0, 0, 100, 100]), (90, [100] * 6)):
        ran = dpsynth("stream", "publish", "spec.yaml", "--last-days", last, "-o", f"out/last_{last}.csv")
        assert ran.code == 0, ran.err
        assert hours(tmp_path, f"last_{last}") == expected
        ran = dpsynth("verify", f"out/last_{last}.audit.public.json", "--json")
        assert "the synthetic file: rebuilt from the transcript, the same bytes" in ran.json["findings"]
        audit = json.loads((tmp_path / f"out/last_{last}.audit.public.json").read_text())
        chosen = audit["mechanism"]["chosen"]
        assert chosen["since_release"] == {1: 5, 2: 4, 90: 0}[last]
        assert chosen["since_day"] == {1: "2026-03-14", 2: "2026-03-13", 90: None}[last]
        assert 0 < max(chosen["noise_by_level"].values()) < 1  # what rounding to whole rows makes
        assert audit["budget"]["spent"] == audit["budget"]["total"]


def test_sparse_counting_has_no_windows(dpsynth, started):
    started(neighbours="replace_one", delta="", more=", algorithm: sparse, arrivals: public")
    push(dpsynth, 1)
    ran = dpsynth("stream", "publish", "spec.yaml", "--last-days", 3)
    assert (ran.code, "has snapshots of everything so far only" in ran.err) == (2, True)


# --- what to watch -----------------------------------------------------------------------------------


def test_status_says_what_a_monitor_needs_and_nothing_of_rows(dpsynth, started):
    started(releases=1)
    now = dpsynth("stream", "status", "spec.yaml", "--json").json
    assert (now["releases"], now["last_release_day"], now["last_release_at"]) == (0, None, 0)
    for day in (1, 2, 3):
        push(dpsynth, day)
    now = dpsynth("stream", "status", "spec.yaml", "--json").json
    assert (now["pushes"], now["releases"], now["last_release_at"], now["next_release"]) == (3, 2, 2, 4)
    assert now["last_release_day"] is not None
    assert now["events"] is None


def test_late_batches_are_counted_when_they_come(dpsynth, started, tmp_path):
    started()
    for day in (3, 1, 2):
        push(dpsynth, day, "--publish")
    assert hours(tmp_path) == [100, 100, 100, 0, 0, 0]


def test_the_generation_before_is_as_private_as_the_state(dpsynth, started, tmp_path):
    started()
    push(dpsynth, 1)
    (before,) = (tmp_path / "ledger.sqlite.streams").glob("*.before")
    assert before.stat().st_mode & 0o777 == 0o600
    assert StreamState.of_bytes(before.read_bytes()).batches == []
