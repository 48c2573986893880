"""Every mechanism has a config that runs on the sample data, and a test file."""

from __future__ import annotations

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
