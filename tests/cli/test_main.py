"""The command line as a whole: one command is looked at, and nobody can tell."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.main import get_command

from dpsynth_cli.__main__ import BLAS_THREADS
from dpsynth_cli.cli.main import app, narrowed
from tests.conftest import ROOT


def commands(group) -> set[str]:
    return set(group.commands)


def test_only_the_command_that_is_asked_for_is_built():
    assert commands(get_command(narrowed(app, ["check", "spec.yaml"]))) == {"check"}
    streams = get_command(narrowed(app, ["stream", "push", "spec.yaml"]))
    assert commands(streams) == {"stream"}
    assert commands(streams.commands["stream"]) == {"push"}


@pytest.mark.parametrize("words", [[], ["--help"], ["stream"], ["stream", "--help"], ["push"]])
def test_where_no_command_is_asked_for_all_are_there(words):
    whole, narrow = get_command(app), get_command(narrowed(app, words))
    if words[:1] == ["stream"]:
        whole, narrow = whole.commands["stream"], narrow.commands["stream"]
    assert commands(narrow) == commands(whole)
    assert len(commands(whole)) > 3


def test_narrowing_leaves_the_whole_as_it_was(dpsynth):
    before = dpsynth("--help").out
    alone = dpsynth("stream", "push", "--help").out
    assert dpsynth("mechanisms").code == 0
    assert (dpsynth("--help").out, dpsynth("stream", "push", "--help").out) == (before, alone)
    assert "dpsynth stream push [OPTIONS] {SPEC} [BATCH]" in alone


def test_a_push_of_numbers_imports_only_what_it_needs(tmp_path):
    (tmp_path / "spec.yaml").write_text(
        "dpsynth: 1\nname: plain\noutput: out.csv\nprivacy: {epsilon: 1.0}\nmechanism: {name: online}\n"
        "columns:\n  x: {type: continuous, bounds: [0, 1]}\n"
    )
    (tmp_path / "day.csv").write_text("x\n0.25\n0.5\n")
    push = ["push", "spec.yaml", "day.csv", "--batch-id", "1"]
    code = f"""
import sys
from dpsynth_cli.cli.main import run
for words in (["init", "spec.yaml"], {push}):
    sys.argv = ["dpsynth", "stream", *words, "--ledger", "ledger.sqlite", "--quiet"]
    try:
        run()
    except SystemExit as stop:
        assert not stop.code
slow = ("numpy.random", "scipy", "rich", "dpsynth_cli.evaluate.metrics.metrics")
print([name for name in slow if name in sys.modules])
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True
    )
    assert (ran.stdout, ran.stderr) == (b"[]\n", b"")


@pytest.mark.parametrize(("stated", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_products_of_matrices_take_one_thread_unless_stated(stated, threads):
    told = subprocess.run(
        [sys.executable, "-c", BLAS],
        env={key: value for key, value in os.environ.items() if key not in BLAS_THREADS} | stated,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told.splitlines()[-1] == threads


BLAS = """\
import os, sys
from dpsynth_cli.__main__ import run
assert "numpy" not in sys.modules  # it reads the variable as it is imported
sys.argv = ["dpsynth", "mechanisms"]
try:
    run()
except SystemExit:
    pass
print(os.environ["OPENBLAS_NUM_THREADS"])
"""
