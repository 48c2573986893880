"""The documents: links, commands, specs and code in them are true, and no mechanism or key is left out."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import dpsynth_cli.mechanisms
from dpsynth_cli.cli.main import app
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.spec.columns import KEYS as COLUMN_KEYS
from dpsynth_cli.spec.document import DOCUMENT
from dpsynth_cli.spec.keys import Section
from dpsynth_cli.spec.mechanism import SHARED
from dpsynth_cli.spec.spec import load_spec
from tests.conftest import ROOT

TOP = [ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")]
BESIDE = [ROOT / f"dpsynth_cli/trusted/{name}" for name in ("README.md", "engines/README.md")]
PAGES = [*TOP, *BESIDE, *sorted((ROOT / "docs").rglob("*.md"))]
DEVELOPMENT = ROOT / "docs/development.md"


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


every_page = pytest.mark.parametrize("path", PAGES, ids=name_of)


# --- the parts of a page ------------------------------------------------------------------------------


def fenced(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page: (language, content)."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def without_fences(text: str) -> str:
    return re.sub(r"^```\w*\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def code_lines(text: str) -> Iterator[str]:
    """The lines of shell blocks: fenced without another language, or indented by four."""
    for language, content in fenced(text):
        if language in ("", "sh", "bash", "console"):
            yield from content.splitlines()
    for line in without_fences(text).splitlines():
        if line.startswith("    "):
            yield line.strip()


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    found: dict[str, int] = {}
    made = set()
    for heading in re.findall(r"^#+ (.+)$", without_fences(path.read_text()), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).strip().replace(" ", "-")
        made.add(slug if slug not in found else f"{slug}-{found[slug]}")
        found[slug] = found.get(slug, 0) + 1
    return made


# --- links --------------------------------------------------------------------------------------------


@every_page
def test_every_link_leads_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_fences(path.read_text())):
        if re.match(r"https?://", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), f"{name_of(path)}: {target}"
        assert there.is_relative_to(ROOT), f"{name_of(path)}: {target} is outside the repository"
        if anchor:
            assert anchor in anchors(there), f"{name_of(path)}: {target} has no such heading"


@every_page
def test_every_path_of_the_repository_that_is_named_exists(path):
    folders = "tests|docs|dpsynth_cli|configs|benchmarks|sample_data"
    for named in re.findall(rf"`((?:{folders})/[^`\s*]*)`", without_fences(path.read_text())):
        if "NAME" not in named:
            assert (ROOT / named).exists(), f"{name_of(path)}: {named}"


def test_every_page_can_be_reached_from_the_readme():
    seen, new = set[Path](), {ROOT / "README.md"}
    while new:
        path = new.pop()
        seen.add(path)
        links = re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", path.read_text())
        new |= {(path.parent / link).resolve() for link in links if "://" not in link} - seen
    assert set(PAGES) <= seen, [name_of(path) for path in set(PAGES) - seen]


# --- commands -----------------------------------------------------------------------------------------


def commands_in(line: str) -> Iterator[list[str]]:
    """The words of each `dpsynth ...` in a line of shell: after pipes, `&&` and `cd`, before comments."""
    if not re.search(r"\bdpsynth\b", line):
        return
    words = shlex.shlex(line, posix=True, punctuation_chars="|&<>;")
    words.whitespace_split = True
    words.commenters = "#"
    command: list[str] = []
    for word in [*words, ";"]:
        if re.fullmatch(r"[|&<>;]+", word):
            if command[:1] == ["dpsynth"]:
                yield command[1:]
            command = []
        else:
            command.append(word)


def problem_of(words: list[str]) -> str | None:
    """What is wrong with a command line, found by parsing it without running it."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words:
        first, *rest = words
        if first.startswith("-"):
            known = {option for one in command.params for option in one.opts}
            return None if first in known | {"--help", "-h"} else f"no option {first}"
        if first not in command.commands:
            return f"no command {first}"
        command, words = command.commands[first], rest
    try:
        command.make_context(command.name, list(words))
    except Exception as error:  # Typer's own, in whichever library it keeps them
        if type(error).__name__ != "Exit":  # --help
            return f"{type(error).__name__}: {getattr(error, 'message', error)}"
    return None


@every_page
def test_every_command_line_has_a_command_and_options_that_exist(path):
    for line in code_lines(path.read_text()):
        for words in commands_in(line):
            assert problem_of(words) is None, f"{name_of(path)}: {line}"


@pytest.mark.parametrize(
    "line",
    [
        "dpsynth relase spec.yaml",
        "dpsynth release spec.yaml --engin dask",
        "dpsynth release",
        "dpsynth release one.yaml two.yaml",
        "dpsynth stream pull spec.yaml",
        "dpsynth check spec.yaml --n many",
        "dpsynth --colour",
        "gzip -dc day.csv.gz | dpsynth sample -x | head",
    ],
)
def test_a_wrong_command_line_is_found(line):
    (words,) = commands_in(line)
    assert problem_of(words) is not None


def test_command_lines_are_found_in_the_pages():
    found = {
        words[0] for path in PAGES for line in code_lines(path.read_text()) for words in commands_in(line)
    }
    assert found >= set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


# --- specs --------------------------------------------------------------------------------------------


@pytest.fixture
def toy(monkeypatch, tmp_path) -> str:
    """The example mechanism of the development guide, in its place; its name."""
    code = named_block("dpsynth_cli/mechanisms/")
    name = re.search(r"mechanisms/(\w+)\.py", code).group(1)  # type: ignore[union-attr]
    place = f"dpsynth_cli.mechanisms.{name}"
    file = tmp_path / f"{name}.py"
    file.write_text(code)
    found = importlib.util.spec_from_file_location(place, file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, place, module)
    monkeypatch.setattr(dpsynth_cli.mechanisms, name, module, raising=False)
    found.loader.exec_module(module)
    monkeypatch.setitem(mechanisms(), name, module.MECHANISM)
    return name


def named_block(start: str) -> str:
    """The block of the development guide whose first line is a path that begins so."""
    (code,) = [content for _, content in fenced(DEVELOPMENT.read_text()) if content.startswith(f"# {start}")]
    return code


@every_page
def test_every_whole_spec_is_valid_and_every_other_yaml_is_yaml(path, toy, tmp_path):
    for language, content in fenced(path.read_text()):
        if language == "yaml":
            document = yaml.safe_load(content)
            if "dpsynth" in document:
                (tmp_path / "spec.yaml").write_text(content)
                load_spec(str(tmp_path / "spec.yaml"))


def test_every_key_of_a_spec_is_in_the_reference():
    heads = re.split(r"^## (.+)$", (ROOT / "docs/spec.md").read_text(), flags=re.MULTILINE)
    parts = dict(zip(heads[1::2], heads[2::2], strict=True))
    sections = {key.name: {own.name for own in key.keys} for key in DOCUMENT if isinstance(key, Section)}
    sections["Top level"] = {key.name for key in DOCUMENT}
    sections["mechanism"] = {key.name for key in SHARED}
    sections["columns"] = set(COLUMN_KEYS) | {key.name for keys in COLUMN_KEYS.values() for key in keys}
    for section, keys in sections.items():
        listed = set(re.findall(r"^\| `(\w+)` \|", parts[section], re.MULTILINE))
        assert listed == keys, section


# --- what must be there -------------------------------------------------------------------------------


def page_of(name: str) -> Path:
    return ROOT / ("docs/streams.md" if mechanisms()[name].stream else f"docs/mechanisms/{name}.md")


@pytest.mark.parametrize("name", mechanisms())
def test_every_mechanism_has_a_page_that_lists_its_parameters(name):
    text = page_of(name).read_text()
    assert f'generate.parameters("{name}")' in text
    for document in ("docs/mechanisms/README.md", "docs/spec.md"):
        linked = re.findall(rf"\[`{name}`\]\(([^)#]+)", (ROOT / document).read_text())
        assert {((ROOT / document).parent / one).resolve() for one in linked} == {page_of(name)}, document


def test_every_page_of_a_mechanism_is_about_one_that_exists():
    assert {path.stem for path in (ROOT / "docs/mechanisms").glob("*.md")} - {"README"} <= set(mechanisms())


def test_the_readme_is_short_and_begins_with_the_two_commands():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    commands = [line.split("#")[0].strip() for line in code_lines("\n".join(lines))]
    assert commands[:2] == ["make demo", "make test"]


def test_the_newest_version_of_the_changelog_is_that_of_the_package():
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == dpsynth_cli.__version__


def test_every_test_that_a_page_names_exists():
    known = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    for path in (ROOT / "tests").rglob("test_*.py"):
        known |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    known.add(re.search(r"(test_\w+)\.py", named_block("tests/")).group())  # type: ignore[union-attr]
    known |= set(re.findall(r"^def (test_\w+)", named_block("tests/"), re.MULTILINE))
    for path in PAGES:
        named = set(re.findall(r"\btest_\w+(?:\.py)?", path.read_text()))
        assert named <= known, (name_of(path), named - known)


def test_the_code_cites_errata_that_are_in_the_page_on_privacy():
    listed = set(re.findall(r"^\| (E\d+) \|", (ROOT / "docs/privacy.md").read_text(), re.MULTILINE))
    assert listed == {f"E{number}" for number in range(1, 42)}
    cited = set()
    for path in [*(ROOT / "dpsynth_cli").rglob("*.py"), *(ROOT / "docs/mechanisms").glob("*.md")]:
        text = path.read_text()
        cited |= set(re.findall(r"(?<![\w.])E[1-9]\d?\b(?!-)", text))
        if path.suffix == ".py":
            assert "privacy.md" not in text.replace("docs/privacy.md", ""), name_of(path)
    assert len(cited) > 25
    assert cited <= listed


def test_the_page_on_formats_has_the_versions_of_the_code():
    from dpsynth_cli.release.documents import audit
    from dpsynth_cli.release.record import transcript
    from dpsynth_cli.spec import spec
    from dpsynth_cli.trusted.ledger import sqlite_file
    from dpsynth_cli.trusted.stream import state

    rows = (ROOT / "docs/formats.md").read_text()
    for name, version in [
        ("dpsynth:", spec.VERSION),
        ("dpsynth_transcript:", transcript.VERSION),
        ("dpsynth_audit:", audit.VERSION),
        ("dpsynth_stream:", state.VERSION),
    ]:
        assert re.search(rf"\| `{name} {version}` \|", rows), name
    assert f"| `user_version` {sqlite_file.FORMAT} |" in rows
    assert hex(sqlite_file.APPLICATION) in rows


# --- the example of the development guide -------------------------------------------------------------


def test_the_example_mechanism_releases_and_verifies(dpsynth, toy, tmp_path):
    text = named_block("configs/").replace("../sample_data", str(ROOT / "sample_data"))
    config = tmp_path / "spec.yaml"
    config.write_text(text.replace("../out", str(tmp_path)))
    assert dpsynth("check", config, "--runs", "1").code == 0
    ran = dpsynth("release", config, "--json")
    assert ran.code == 0, ran.err
    assert 7000 < ran.json["rows"] < 9000
    assert dpsynth("verify", tmp_path / f"people_{toy}.audit.public.json").code == 0


def test_the_test_of_the_example_passes(toy):
    names: dict[str, Any] = {}
    exec(compile(named_block("tests/"), "test_example.py", "exec"), names)
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    for neighbours in ("add_remove", "replace_one"):
        test(neighbours)
