"""Releases by units that are killed, resumed, and made forty at once: paid for once, with the same rows."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from dpsynth_cli.release.record.transcript import PartialTranscript
from tests.whole.test_faults import struck_anywhere
from tests.whole.test_release import answers, killed

SPEC = """
dpsynth: 1
name: people
input: people.csv
output: out/people.csv
privacy: {{epsilon: 1, unit: {{column: pid, rows: 3, order: year}}}}
mechanism: {{name: {mechanism}}}
evaluate: {{metrics: none}}
columns:
  pid: {{key: true}}
  year: {{type: integer, bounds: [2000, 2019]}}
  sex: {{type: nominal, categories: [F, M], of: unit}}
  visit: {{type: ordinal, categories: [a, b, c]}}
"""


@pytest.fixture
def panel(tmp_path):
    def write(mechanism="marginals", rows=40):
        rng = np.random.default_rng(8)
        lines = [
            f"p{who},{year},{'FM'[who % 2]},{'abc'[who % 3]}"
            for who, year in zip(rng.integers(0, 12, rows), rng.integers(2000, 2020, rows), strict=True)
        ]
        (tmp_path / "people.csv").write_text("\n".join(["pid,year,sex,visit", *lines, ""]))
        (tmp_path / "spec.yaml").write_text(SPEC.format(mechanism=mechanism))
        return tmp_path / "spec.yaml"

    return write


@pytest.mark.parametrize(("point", "count"), [("answer", 2), ("answer", 6), ("compose", 1)])
def test_killed_and_resumed_a_release_by_units_has_the_same_answers_and_one_charge(
    dpsynth, panel, tmp_path, point, count
):
    panel()
    killed(tmp_path, point, count)
    (path,) = (tmp_path / "out").glob(".people.*.partial")
    before = PartialTranscript.reopen(path)
    kept, key = [answer.values for _, answer in before.answers], before.private["unit_key"]
    before.close()
    assert path.stat().st_mode & 0o077 == 0
    ran = dpsynth("release", "spec.yaml", "--resume")
    assert ran.code == 0, ran.err
    after = answers(tmp_path / "out/people.transcript.arrow")
    assert all((one == other).all() for one, other in zip(kept, after, strict=False))
    assert dpsynth("verify", "out/people.audit.json").code == 0
    assert (
        sum(entry["kind"] == "reserve" for entry in dpsynth("budget", "log", "--json").json["entries"]) == 1
    )
    assert all(key.encode() not in one.read_bytes() for one in (tmp_path / "out").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["kill", "term"])
def test_a_release_by_units_is_stopped_at_many_random_points(dpsynth, panel, tmp_path, monkeypatch, fault):
    struck_anywhere(dpsynth, panel, tmp_path, monkeypatch, fault, 60, "marginals")


@pytest.mark.slow
def test_of_forty_releases_by_units_at_once_as_many_are_made_as_the_budget_pays_for(dpsynth, panel, tmp_path):
    spec = panel()
    assert dpsynth("budget", "grant", "people", "10", "--unit", "pid").code == 0
    words = [sys.executable, "-m", "dpsynth_cli", "release", str(spec), "--quiet"]
    running = [
        subprocess.Popen(
            [*words, "--output", f"out/people-{n}.csv"],
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        for n in range(40)
    ]
    codes = [one.wait() for one in running]
    assert sorted(codes) == [0] * 10 + [3] * 30
    made = [n for n, code in enumerate(codes) if code == 0]
    for n in made:
        assert dpsynth("verify", f"out/people-{n}.audit.json").code == 0
    first = {answers(tmp_path / f"out/people-{n}.transcript.arrow")[1].tobytes() for n in made}
    assert len(first) == 10  # each has its own noise
    shown = dpsynth("budget", "show", "--json").json["datasets"][0]
    assert float(shown["charged"]) == 10
    assert dpsynth("budget", "verify").code == 0
