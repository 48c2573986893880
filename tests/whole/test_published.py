"""What is published tells what was paid for, and no running time, no failed attempt, no guessable hash."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from dpsynth_cli.release.stream.step import read_batch
from dpsynth_cli.trusted.ledger import chain
from dpsynth_cli.trusted.ledger.ledger import Ledger

SECONDS = 4  # that the attacker allows for each step
SALTS = ("", "0" * 32)  # that the attacker tries, each for all entries


def public_files(folder: Path) -> tuple[dict, bytes]:
    """All that anybody has: the public audit, and the transcript."""
    return (
        json.loads((folder / "people.audit.public.json").read_bytes()),
        (folder / "people.transcript.arrow").read_bytes(),
    )


def times_found(first: dict, last: dict, entries: list[chain.Entry], salts: list[str]) -> list[list[str]]:
    """The attack: from the first published hash to the last, every second of every entry between is tried.

    The attacker is given all that is in the entries but their times and salts: the kinds, data set, ids and
    payloads, which follow from published files. With the true `salts`, which are secret, it must succeed:
    else this would be a test that cannot fail.
    """
    goal = last["budget"]["ledger"]["hash"]
    between = [entry for entry in entries if first["entry"] < entry.number <= last["entry"]]
    start = datetime.strptime(entries[first["entry"] - 1].time, "%Y-%m-%dT%H:%M:%SZ")
    known = {(first["budget"]["ledger"]["hash"], start): ()}
    for salt, entry in zip(salts, between, strict=True):
        payload = chain.canonical(entry.payload).decode()
        following = {}
        for (previous, before), path in known.items():
            for late in range(SECONDS):
                at = before + timedelta(seconds=late)
                text = at.strftime("%Y-%m-%dT%H:%M:%SZ")
                own = chain.entry_hash(
                    entry.number, text, entry.dataset, entry.kind, entry.release, payload, salt, previous
                )
                following[own, at] = (*path, text)
        known = following
    return [list(path) for (own, _), path in known.items() if own == goal]


def test_no_time_can_be_found_from_published_hashes(dpsynth, people, tmp_path):
    spec, ledger = people(), Ledger(tmp_path / "ledger.sqlite")
    audits = []
    for _ in range(2):
        assert dpsynth("release", spec, "--replace").code == 0
        audit, _ = public_files(tmp_path / "out")
        number = next(e.number for e in ledger.log() if e.hash == audit["budget"]["ledger"]["hash"])
        audits.append(audit | {"entry": number})
    entries = ledger.log()
    assert len(entries) > 6
    secret = [entry.salt for entry in entries if audits[0]["entry"] < entry.number <= audits[1]["entry"]]
    real = [entry.time for entry in entries if audits[0]["entry"] < entry.number <= audits[1]["entry"]]
    assert times_found(*audits, entries, secret) == [real]
    for guess in SALTS:
        assert times_found(*audits, entries, [guess] * len(secret)) == []


def test_a_failed_attempt_leaves_no_trace_in_what_is_published(dpsynth, people, tmp_path, monkeypatch):
    spec = people()
    assert dpsynth("budget", "grant", "people", "9").code == 0
    with monkeypatch.context() as once:
        once.setattr("dpsynth_cli.trusted.sums.passes.Passes.sums", lambda *words: 1 / 0)
        assert dpsynth("release", spec).code == 1  # charged, and not given back
    assert dpsynth("release", spec, "--again").code == 0
    audit, transcript = public_files(tmp_path / "out")
    assert audit["budget"]["ledger"].keys() == {"dataset", "hash", "charged", "conversion"}
    steward = json.loads((tmp_path / "out/people.audit.json").read_bytes())
    assert steward["ledger"]["remaining"] == "7"
    assert steward["ledger"]["entry"] > 2
    assert b'"remaining"' not in transcript
    assert b'"entry"' not in transcript


@pytest.mark.parametrize("command", ["release", "publish", "push"])
def test_published_files_are_dated_to_when_the_command_began(dpsynth, people, tmp_path, monkeypatch, command):
    from dpsynth_cli.release.files import write

    slow = write.write_table

    def slow_read(*words):
        time.sleep(1.2)
        return read_batch(*words)

    def slowly(*words, **more):
        time.sleep(1.2)
        return slow(*words, **more)

    monkeypatch.setattr(write, "write_table", slowly)
    monkeypatch.setattr("dpsynth_cli.release.stream.stream.read_batch", slow_read)
    if command == "release":
        spec = people()
        began = time.time()
        assert dpsynth("release", spec).code == 0
    else:
        spec = people("online")
        assert dpsynth("stream", "init", spec).code == 0
        if command == "publish":
            assert dpsynth("stream", "push", spec, "people.csv", "--batch-id", "1").code == 0
            words = ("stream", "publish", spec)
        else:
            words = ("stream", "push", spec, "people.csv", "--batch-id", "1", "--publish")
        began = time.time()
        assert dpsynth(*words).code == 0
    assert time.time() - began > 1.2
    dates = {path.stat().st_mtime for path in (tmp_path / "out").iterdir()}
    assert len(dates) == 1
    assert -1 <= dates.pop() - began < 1  # a release is dated to its charge, to the second


def test_a_resumed_release_is_dated_to_its_charge(dpsynth, people, tmp_path, monkeypatch):
    spec = people()
    with monkeypatch.context() as once:
        once.setattr("dpsynth_cli.trusted.sums.passes.Passes.sums", lambda *words: 1 / 0)
        assert dpsynth("release", spec).code == 1
    time.sleep(2.1)
    assert dpsynth("release", spec, "--resume").code == 0
    charged = Ledger(tmp_path / "ledger.sqlite").log()[0].time
    at = datetime.strptime(charged, "%Y-%m-%dT%H:%M:%S%z").timestamp()
    assert {path.stat().st_mtime for path in (tmp_path / "out").iterdir()} == {at}


def test_a_snapshot_is_of_the_day_on_which_its_push_began(dpsynth, people, tmp_path, monkeypatch):
    from dpsynth_cli.release.stream import stream

    class Clock(datetime):
        day = "2026-03-01"

        @classmethod
        def now(cls, zone=None):
            return datetime.fromisoformat(cls.day).replace(tzinfo=timezone.utc)

    read = stream.read_batch

    def past_midnight(*words):
        Clock.day = "2026-03-02"
        return read(*words)

    spec = people("online")
    assert dpsynth("stream", "init", spec).code == 0
    monkeypatch.setattr("dpsynth_cli.disk.datetime", Clock)
    monkeypatch.setattr(stream, "read_batch", past_midnight)
    assert dpsynth("stream", "push", spec, "people.csv", "--batch-id", "1", "--publish").code == 0
    assert public_files(tmp_path / "out")[0]["release"]["day"] == "2026-03-01"
