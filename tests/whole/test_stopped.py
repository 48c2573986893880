"""Ctrl-C and SIGTERM where they are easily lost: between the charge and the first row, in clean-ups, while
the ledger is made."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dpsynth_cli.trusted.ledger import sqlite_file
from dpsynth_cli.trusted.ledger.ledger import Ledger
from tests.whole.stricken import STRUCK, struck
from tests.whole.test_faults import charges, copies, job


@pytest.mark.parametrize(("after", "steps"), [("begin", 24), ("drawn", 4)])
def test_stopped_at_every_step_from_the_charge_to_the_first_row(people, tmp_path, after, steps):
    """No step is outside of what gives the charge back, or says that it is spent."""
    people("marginals", rows=40)
    points = range(1, steps + 1)
    folders = copies(tmp_path, steps)
    jobs = [job(folder, "term", at) | {"after": after} for folder, at in zip(folders, points, strict=True)]
    for folder, (code, said), at in zip(folders, struck(jobs), points, strict=True):
        where = f"step {at} after {after}: {code} {said}"
        assert code == 143, where
        assert STRUCK in said, where
        kept = charges(folder)
        assert kept == len(list((folder / "out").glob(".people.*.partial"))), where
        cost = "epsilon = 1 of people was spent. Finish it" if kept else "Nothing was spent."
        assert f"Error: interrupted.\n{cost}" in said, where
        assert kept or after == "begin", where


@pytest.mark.parametrize("words", [["release", "spec.yaml", "--resume"], ["check", "spec.yaml"]])
def test_stopped_before_anything_is_charged_it_says_so_in_a_word(people, tmp_path, words):
    """Outside of what guards a charge, a signal ends a command as Ctrl-C does."""
    people("marginals", rows=40)
    points = [12, 60, 400]
    folders = copies(tmp_path, len(points))
    jobs = [job(folder, "term", at, words) for folder, at in zip(folders, points, strict=True)]
    for folder, (code, said), at in zip(folders, struck(jobs), points, strict=True):
        where = f"call {at}: {code} {said}"
        assert (code, said.rsplit(STRUCK)[-1]) == (143, "Interrupted.\n"), where
        assert not (folder / "ledger.sqlite").exists(), where


def test_stopped_while_the_ledger_is_made(dpsynth, people, tmp_path, monkeypatch):
    """The file is there, and no ledger in it yet: interrupted and nothing spent, not a missing ledger."""
    spec = people("marginals", rows=40)

    def stopped(db, *_):
        raise SystemExit(143)

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "_check_format", stopped)
        patch.setattr(Ledger, "reserve", lambda self, *_: self.create())
        patch.setattr(Ledger, "state", lambda self, release: undone(self, release, patch))
        ran = dpsynth("release", spec)
    assert (ran.code, ran.err) == (143, "Error: interrupted.\nNothing was spent.\n")
    assert (tmp_path / "ledger.sqlite").stat().st_size == 0
    assert dpsynth("release", spec).code == 0


def undone(ledger: Ledger, release: str, patch: pytest.MonkeyPatch) -> str | None:
    patch.undo()
    return ledger.state(release)


@pytest.mark.parametrize(("signal", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_during_a_clean_up_is_not_forgotten(signal, code):
    """Raised in a destructor, Python drops it and goes on; we stop all the same, without a traceback."""
    program = f"""
import os, signal, sys, time
from dpsynth_cli.cli import stopping
class Object:
    def __del__(self):
        os.kill(os.getpid(), signal.{signal})
stopping.watch()
try:
    Object()
    time.sleep(20)
except KeyboardInterrupt:
    sys.exit(130)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=15)
    assert (ran.returncode, ran.stderr) == (code, "")


def test_what_a_clean_up_says_is_not_shown():
    program = """
from dpsynth_cli.cli import stopping
class Object:
    def __del__(self):
        raise ValueError("cell 4711")
stopping.watch()
Object()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "Warning: a clean-up failed: ValueError.\n")
