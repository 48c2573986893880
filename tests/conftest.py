"""Running the command line in process, on files of the test's own."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from dpsynth_cli.__main__ import BLAS_THREADS

os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))  # as the command line does, before numpy is imported

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent

# A job in the background may inherit a Ctrl-C that is ignored; tests of it, and their children, must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection() -> None:
    """Import now what pytest rewrites as it is imported: Python 3.11 before 3.11.8 may fail at that in the
    middle of a test, where the stack is deep (SystemError: AST constructor recursion depth mismatch).
    """
    with suppress(ImportError):
        import_module("hypothesis.strategies._internal.regex")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)


@pytest.fixture
def dpsynth(monkeypatch, capfd, tmp_path) -> Callable[..., Ran]:
    """`dpsynth("release", "spec.yaml")` in the test's own folder, with a ledger of its own."""
    from dpsynth_cli.cli.main import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.setenv("COLUMNS", "200")

    def go(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["dpsynth", *map(str, words)])
        capfd.readouterr()
        try:
            run()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return go


SPEC = """\
dpsynth: 1
name: people
input: people.csv
output: out/people.csv
privacy: {{epsilon: {epsilon}, neighbours: {neighbours}{delta}}}
mechanism: {{name: {mechanism}{more}}}
columns:
  age:   {{type: integer, bounds: [0, 99], nullable: true}}
  score: {{type: continuous, bounds: [0.0, 1.0]}}
  group: {{type: nominal, categories: [a, b, "c,d"]}}
"""


@pytest.fixture
def people(tmp_path) -> Callable[..., Path]:
    """Write people.csv (300 rows) and a spec for it; returns the spec's path."""

    def write(
        mechanism: str = "marginals",
        epsilon: object = "1.0",
        neighbours: str = "add_remove",
        delta: str | None = None,
        more: str = "",
        rows: int = 300,
    ) -> Path:
        rng = np.random.default_rng(3)
        lines = ["age,score,group,left out"]
        for _ in range(rows):
            age = "" if rng.random() < 0.1 else str(rng.integers(18, 80))
            group = rng.choice(["a", "b", '"c,d"'])
            lines.append(f"{age},{rng.random():.4f},{group},private-{rng.integers(10**9)}")
        (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
        spec = tmp_path / "spec.yaml"
        wanted = f", delta: {delta}" if delta else ""
        extra = f", {more}" if more else ""
        spec.write_text(
            SPEC.format(epsilon=epsilon, neighbours=neighbours, delta=wanted, mechanism=mechanism, more=extra)
        )
        return spec

    return write
