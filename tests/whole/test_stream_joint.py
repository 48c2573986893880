"""Streams of more than five columns from the command line: pushed, published, verified, queried, undone."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpsynth_cli.mechanisms.online import tables
from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.trusted.stream.state import StreamState

SPEC = """\
dpsynth: 1
name: visits
output: out/visits.csv
privacy: {{epsilon: {epsilon}{delta}}}
mechanism: {{name: online, algorithm: joint, releases_per_doubling: 10000}}
columns:
  hour: {{type: integer, bounds: [0, 23]}}
  paid: {{type: integer, bounds: [0, 9999], nullable: true}}
  ward: {{type: nominal, categories: [a, b, c]}}
  next: {{type: nominal, categories: [a, b, c]}}
  sex:  {{type: boolean}}
  seen: {{type: date, bounds: [2026-01-01, 2026-12-31]}}
sampling: {{seed: 7}}
"""
QUIET = {"epsilon": 100000, "delta": ", delta: 1e-9"}


@pytest.fixture
def started(dpsynth, tmp_path):
    """day_1.csv .. day_6.csv with 200 rows each, in which `next` follows `ward`."""

    def start(**budget) -> None:
        (tmp_path / "spec.yaml").write_text(SPEC.format(**(QUIET | budget)))
        for day in range(1, 7):
            lines = [
                f"{3 * day + i % 2},{'' if i % 7 == 0 else i},{'abc'[i % 3]},{'bca'[i % 3]},"
                f"{'true' if i % 2 else 'false'},2026-0{day}-{1 + i % 28:02}"
                for i in range(200)
            ]
            (tmp_path / f"day_{day}.csv").write_text(
                "\n".join(["hour,paid,ward,next,sex,seen", *lines]) + "\n"
            )
        ran = dpsynth("stream", "init", "spec.yaml")
        assert ran.code == 0, ran.err

    return start


def push(dpsynth, day: int, *more: object):
    ran = dpsynth("stream", "push", "spec.yaml", f"day_{day}.csv", "--batch-id", f"day {day}", *more)
    assert ran.code == 0, ran.err
    return ran


def state_of(folder) -> StreamState:
    return StreamState.of_bytes((folder / "ledger.sqlite.streams/visits.state").read_bytes())


@pytest.mark.parametrize("delta", ["", ", delta: 1e-9"])
def test_a_snapshot_has_the_links_of_everything_so_far_and_verifies(dpsynth, started, tmp_path, delta):
    started(delta=delta)
    for day in range(1, 4):
        push(dpsynth, day)
    push(dpsynth, 4, "--publish")
    made = pd.read_csv(tmp_path / "out/visits.csv")
    assert abs(len(made) - 800) <= 3
    follows = made["ward"].map({"a": "b", "b": "c", "c": "a"})
    assert (follows == made["next"]).mean() > 0.97
    assert np.abs(np.bincount(made["hour"] // 3, minlength=5)[1:] - 200).max() < 12
    assert dpsynth("verify", "out/visits.audit.public.json").code == 0
    audit = json.loads((tmp_path / "out/visits.audit.public.json").read_text())
    assert ["ward", "next"] in audit["mechanism"]["chosen"]["links"]
    asked = [line["question"] for line in audit["budget"]["charges"]]
    assert {"Total", "CellCounts", "Misfit"} <= set(asked)
    ran = dpsynth("query", "out/visits.transcript.arrow", "count() by ward", "--json")
    for one, exact in zip(ran.json, (268, 268, 264), strict=True):
        assert one["low"] <= one["estimate"] <= one["high"]
        assert abs(one["estimate"] - exact) <= 2
        assert one["from"] == "measured"


def test_a_push_can_be_rehearsed_undone_repeated_and_taken_away(dpsynth, started, tmp_path):
    started()
    push(dpsynth, 1)
    push(dpsynth, 2, "--dry-run")
    push(dpsynth, 2)
    assert dpsynth("stream", "undo", "spec.yaml", "--batch-id", "day 2").code == 0
    push(dpsynth, 3)
    push(dpsynth, 3)  # counted before
    gone = dpsynth("stream", "push", "spec.yaml", "day_1.csv", "--batch-id", "gone", "--delete", "--publish")
    assert gone.code == 0
    made = pd.read_csv(tmp_path / "out/visits.csv")
    assert abs(len(made) - 200) <= 3
    assert (made["hour"] // 3 == 3).mean() > 0.97
    refused = dpsynth("stream", "publish", "spec.yaml", "--last-days", "7")
    assert refused.code == 2
    assert "a stream by joint has snapshots of everything so far only" in refused.err


def test_rows_are_kept_until_tables_are_chosen_and_not_after(dpsynth, started, tmp_path, monkeypatch):
    started()
    monkeypatch.setattr(tables, "is_ready", lambda ask, plan, rows, epoch: rows > 300)
    push(dpsynth, 1, "--publish")
    words, _ = state_of(tmp_path).counters
    assert (words["chosen_for"], len(state_of(tmp_path).counters[1][words["signs"]])) == (0, 200)
    note = json.loads((tmp_path / "out/visits.audit.public.json").read_text())
    assert tables.ALONE in str(note)
    push(dpsynth, 2, "--publish")
    words, arrays = state_of(tmp_path).counters
    assert words["chosen_for"] > 300
    assert len(arrays[words["signs"]]) == 0
    assert dpsynth("verify", "out/visits.audit.public.json").code == 0


def test_when_an_epoch_has_outgrown_its_choice_the_next_one_begins(dpsynth, started, tmp_path, monkeypatch):
    started()
    monkeypatch.setattr(tables, "GROWTH", 2)
    for day in range(1, 6):
        push(dpsynth, day)
    push(dpsynth, 6, "--publish")
    assert dpsynth("verify", "out/visits.audit.public.json").code == 0
    assert len(state_of(tmp_path).release["epochs"]) == 2
    made = pd.read_csv(tmp_path / "out/visits.csv")
    assert np.abs(np.bincount(made["hour"] // 3, minlength=7)[1:] - 200).max() < 15
    (mean,) = dpsynth("query", "out/visits.transcript.arrow", "mean(hour)", "--json").json
    assert mean["low"] <= mean["estimate"] <= mean["high"]
    assert abs(mean["estimate"] - 11) < 0.1


def test_a_transcript_with_other_answers_is_refused(dpsynth, started, tmp_path):
    """A count moved by one row, or noise that is less than was paid for."""
    started(epsilon=1)
    push(dpsynth, 1, "--publish")
    transcript, _ = load(tmp_path / "out/visits.transcript.arrow")
    question, answer = transcript.answers[-1]
    for wrong in (replace(answer, sd=answer.sd / 2), replace(answer, values=answer.values + 40)):
        changed = replace(transcript, answers=(*transcript.answers[:-1], (question, wrong)))
        (tmp_path / "out/visits.transcript.arrow").write_bytes(changed.as_bytes())
        ran = dpsynth("verify", "out/visits.audit.public.json")
        assert ran.code == 4


def test_a_stream_of_six_columns_by_a_tree_is_told_what_to_set(dpsynth, tmp_path):
    text = SPEC.format(**QUIET).replace("algorithm: joint", "algorithm: blocks")
    (tmp_path / "spec.yaml").write_text(text)
    ran = dpsynth("check", "spec.yaml")
    assert ran.code == 2
    assert "online takes 1 to 5 columns by a tree, not 6; set mechanism.algorithm to joint" in ran.err
