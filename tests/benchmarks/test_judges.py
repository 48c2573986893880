"""Judges of others: equal tables, nothing released is held out, and figures are those of the judge."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import judges
from benchmarks.__main__ import benchmark, parser_of
from benchmarks.outside import three_tables

FAKE = """
from three_tables import given, say
tables = given()
held, released = set(tables.held_out["id"]), set(tables.released["id"])
say({
    "rows": len(tables.made), "shared": len(held & released),
    "copied": len(set(tables.made["id"]) & released),
    "held out and made": len(held & set(tables.made["id"])), "numbers": tables.made["id"].dtype.kind == "f",
})
"""


def environment(folder: Path) -> None:
    """That of the tests, under another name: a link would forget its packages."""
    python = folder / "bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)


@pytest.fixture
def given(tmp_path) -> argparse.Namespace:
    rows = pd.DataFrame({"id": np.arange(400), "kind": np.where(np.arange(400) % 3, "a", "")})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "spec.yaml").write_text(
        "dpsynth: 1\nname: t\ninput: rows.csv\noutput: out.csv\nprivacy: {epsilon: 1}\n"
        "mechanism: {name: marginals}\ncolumns:\n"
        "  id: {type: integer, bounds: [0, 399]}\n  kind: {type: nominal, categories: [a], nullable: true}\n"
    )
    environment(tmp_path / "environments/sdmetrics")
    parser = parser_of("judges", benchmark("judges"))
    words = ["--table", str(tmp_path / "spec.yaml"), "--environments", str(tmp_path / "environments")]
    found = parser.parse_args([*words, "--mechanism", "marginals", "--judge", "sdmetrics", "anonymeter"])
    found.folder = tmp_path / "kept"
    found.folder.mkdir()
    return found


@pytest.fixture
def fake(tmp_path, monkeypatch) -> Path:
    """A judge that says what it was given; the environment is that of the tests."""
    folder = tmp_path / "outside"
    folder.mkdir()
    shutil.copy(three_tables.__file__, folder)
    (folder / "by_sdmetrics.py").write_text(FAKE)
    (folder / "by_anonymeter.py").write_text("raise SystemExit(3)")
    monkeypatch.setattr(judges, "HERE", folder)
    return folder


def test_every_judge_has_a_script_and_is_pinned():
    scripts = {path.stem.removeprefix("by_") for path in judges.HERE.glob("by_*.py")}
    assert scripts == set(judges.JUDGES)
    assert all("==" in package for package in judges.JUDGES.values())


def test_judges_see_equal_tables_and_nothing_released_is_held_out(given, fake):
    first, *lines = judges.judge(given)
    assert "1 release(s) of 200 rows, 200 held out; judges see 100 rows of each" in first
    found = {line["sdmetrics==0.32.0"]: line for line in lines if isinstance(line, dict)}
    assert list(found) == ["the release", "other real rows", "a copy", "shuffled columns"]
    assert {line["rows"] for line in found.values()} == {100}
    assert {line["shared"] for line in found.values()} == {0}
    assert {line["numbers"] for line in found.values()} == {1}
    assert found["a copy"]["copied"] == found["shuffled columns"]["copied"] == 100
    assert found["other real rows"]["copied"] == found["other real rows"]["held out and made"] == 0
    assert lines[-1].startswith("anonymeter: no environment")


def test_a_judge_that_fails_is_named_and_the_others_go_on(given, fake):
    environment(given.environments / "anonymeter")
    lines = list(judges.judge(given))
    assert "anonymeter failed on a copy: exit code 3." in lines
    assert sum(isinstance(line, dict) for line in lines) == 4


def test_a_release_that_there_is_already_is_judged(given, fake, tmp_path):
    made = pd.DataFrame({"id": np.arange(300), "kind": ["a"] * 300})
    made.to_parquet(tmp_path / "made.parquet")
    pd.DataFrame({"id": np.arange(1000, 1200), "kind": ["a"] * 200}).to_csv(
        tmp_path / "others.csv", index=False
    )
    given.made, given.held_out = tmp_path / "made.parquet", tmp_path / "others.csv"
    first, line, *_ = judges.judge(given)
    assert first.startswith("`made.parquet`, a release of 400 rows of `spec`; judges see 100 rows of each")
    assert (line["rows"], line["held out and made"]) == (100, 0)
    given.held_out = None
    with pytest.raises(SystemExit, match="--held-out"):
        list(judges.judge(given))


def test_cells_come_as_judges_take_them(tmp_path):
    (tmp_path / "t.csv").write_text("n,k,when\n1.5,a,1970-01-02\n,,\n")
    kinds = {"n": "numerical", "k": "categorical", "when": "datetime"}
    frame = three_tables.read(str(tmp_path / "t.csv"), kinds)
    assert frame["n"].tolist()[0] == 1.5
    assert np.isnan(frame["n"].tolist()[1])
    assert frame["k"].tolist() == ["a", three_tables.MISSING]
    assert frame["when"].tolist()[0] == 86_400.0
    assert three_tables.filled(frame, ["n", "when"]).isna().sum().sum() == 0


def test_figures_are_the_last_line(capsys):
    print("a judge says much")
    three_tables.say({"score": np.float32(0.5)})
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"score": 0.5}


def test_types_in_the_words_of_judges():
    assert [judges.kind(t) for t in ("nominal", "boolean", "integer", "date")] == [
        "categorical", "categorical", "numerical", "datetime",
    ]  # fmt: skip
