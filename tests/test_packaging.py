"""What is shipped: the package and nothing else, from pinned parts; and documents that do not rot."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

DOCUMENT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = DOCUMENT["project"]
LOCK = (ROOT / "requirements-dev.lock").read_text()


def name_of(requirement: str) -> str:
    return re.split(r"[<>=!~\[; ]", requirement)[0].lower().replace("_", "-")


def test_the_lock_pins_every_dependency_with_hashes_and_names_no_registry():
    pinned = re.findall(r"^([a-z0-9][a-z0-9.-]*)==\S+", LOCK, re.MULTILINE)
    wanted = {name_of(each) for each in PROJECT["dependencies"] + DOCUMENT["dependency-groups"]["dev"]}
    assert wanted <= set(pinned)
    entries = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in LOCK


def test_the_lock_for_users_pins_what_the_package_needs_as_the_tests_had_it():
    """Every pin with hashes, and the same pin as in the lock of the tests."""
    lock = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^([a-z0-9][a-z0-9.-]*==\S+)", lock, re.MULTILINE)
    assert {name_of(each) for each in PROJECT["dependencies"]} <= {name_of(pin) for pin in pins}
    assert all(f"\n{pin} " in f"\n{LOCK}" for pin in pins)
    build = (ROOT / "requirements-build.lock").read_text()
    assert name_of(DOCUMENT["build-system"]["requires"][0]) == name_of(build)
    for text in (lock, build):
        entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
        assert all("--hash=sha256:" in entry for entry in entries)
        assert "://" not in text


def test_the_bill_of_materials_has_every_pin_with_its_hashes():
    """CycloneDX; the same bytes every time."""
    made = [subprocess.run([sys.executable, ROOT / ".ci/sbom.py"], capture_output=True).stdout for _ in "12"]
    assert made[0] == made[1]
    document = json.loads(made[0])
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    lock = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^([a-z0-9][a-z0-9.-]*)==(\S+)", lock, re.MULTILINE)
    assert [(part["name"], part["version"]) for part in document["components"]] == pins
    hashes = [
        one["hashes"][0]["content"] for part in document["components"] for one in part["externalReferences"]
    ]
    assert hashes == re.findall("sha256:([0-9a-f]{64})", lock)
    refs = [part["bom-ref"] for part in document["components"]]
    assert len(set(refs)) == len(refs)
    assert document["dependencies"][0]["dependsOn"] == refs


def test_security_md_gives_a_reason_for_every_dependency():
    text = (ROOT / "SECURITY.md").read_text()
    assert all(f"| `{name_of(each)}` |" in text for each in PROJECT["dependencies"])


def test_the_claims_of_the_trusted_core_name_tests_that_exist():
    known = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    for path in (ROOT / "tests").rglob("test_*.py"):
        known |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    for document in ("dpsynth_cli/trusted/README.md", "SECURITY.md"):
        text = (ROOT / document).read_text()
        named = re.findall(r"test_\w+(?:\.py)?", text)
        assert named
        assert set(named) <= known, set(named) - known
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / document).parent.joinpath(link).exists(), link


def built(folder: Path, age: int) -> bytes:
    """A wheel of a copy of the sources whose files are so many seconds old."""
    ignored = shutil.ignore_patterns(".*", "out", "dist", "build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, folder / "sources", ignore=ignored)
    for path in (folder / "sources").rglob("*"):
        os.utime(path, (1_700_000_000 - age,) * 2)
    words = [sys.executable, "-m", "pip", "wheel", folder / "sources", "--no-deps", "-w", folder]
    ran = subprocess.run(
        words, capture_output=True, text=True, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    )
    assert ran.returncode == 0, ran.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel.read_bytes()


@pytest.mark.slow
def test_two_builds_of_a_wheel_have_the_same_bytes(tmp_path):
    """In another folder, from files of another date."""
    made = []
    for age in (10, 1_000_000):
        folder = tmp_path / f"built{age}"
        folder.mkdir()
        made.append(built(folder, age))
    assert made[0] == made[1]


@pytest.mark.slow
def test_a_wheel_without_tests_installs_and_runs_in_an_empty_environment(tmp_path):
    def run(*words: object, **more) -> str:
        ran = subprocess.run([*map(str, words)], capture_output=True, text=True, **more)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    run(sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "-w", tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"dpsynth_cli"}
    assert not [name for name in names if "test" in Path(name).name]
    assert "dpsynth_cli/trusted/README.md" in names
    run(sys.executable, "-m", "venv", tmp_path / "empty")
    run(tmp_path / "empty/bin/pip", "install", "--quiet", wheel)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    clean["DPSYNTH_LEDGER"] = str(tmp_path / "ledger.sqlite")
    dpsynth = tmp_path / "empty/bin/dpsynth"
    assert run(dpsynth, "--version", cwd=tmp_path, env=clean).startswith("dpsynth ")
    config = ROOT / "configs/people_marginals.yaml"
    run(dpsynth, "release", config, "-o", tmp_path / "people.csv", cwd=tmp_path, env=clean)
    out = run(dpsynth, "verify", tmp_path / "people.audit.json", cwd=tmp_path, env=clean)
    assert out.endswith("Verified.\n")
