"""Every mechanism has a config that runs on the sample data, and a test file."""

from __future__ import annotations

import runpy

import numpy as np
import pytest
import yaml

from dpsynth_cli.mechanisms.registry import mechanisms
from tests.conftest import ROOT

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


def test_every_mechanism_has_a_config_and_a_test_file():
    named = {yaml.safe_load(path.read_text())["mechanism"]["name"] for path in CONFIGS}
    assert named == set(mechanisms())
    tests = {path.name for path in (ROOT / "tests/mechanisms").rglob("test_*.py")}
    assert {f"test_{name}.py" for name in mechanisms()} <= tests


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_releases_and_verifies(dpsynth, tmp_path, path):
    name = yaml.safe_load(path.read_text())["mechanism"]["name"]
    if mechanisms()[name].stream:
        assert dpsynth("stream", "init", path).code == 0
        ran = dpsynth(
            "stream", "push", path, "--batch-id", "1", "--publish", "-o", tmp_path / "made.csv", "--json"
        )
        rows = ran.json["snapshot"]["rows"]
    else:
        ran = dpsynth("release", path, "-o", tmp_path / "made.csv", "--json")
        rows = ran.json["rows"]
    assert ran.code == 0, ran.err
    assert rows > 1000
    assert dpsynth("verify", tmp_path / "made.audit.public.json").code == 0


def test_sample_tables_are_what_their_script_makes(tmp_path, monkeypatch):
    """Households too: their members name a household that there is."""
    made = runpy.run_path(str(ROOT / "sample_data/make.py"))
    homes, members = made["households"](np.random.default_rng(7))
    made["write_plain_csv"](homes, tmp_path / "households.csv")
    made["write_plain_csv"](members, tmp_path / "members.csv")
    for name in ("households.csv", "members.csv"):
        assert (tmp_path / name).read_bytes() == (ROOT / "sample_data" / name).read_bytes()
    assert set(members["household_id"].to_pylist()) == set(homes["household_id"].to_pylist())
