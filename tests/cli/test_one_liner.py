"""Claims about releases without a spec file, specs on standard input, JSON lines and completion."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpsynth_cli.cli import completion
from dpsynth_cli.cli.json_lines import with_numbers
from dpsynth_cli.cli.one_liner import MARK
from dpsynth_cli.spec.spec import load_spec, public_document
from dpsynth_cli.trusted.ledger.ledger import Ledger
from tests.conftest import ROOT

BOOK = (
    "name,type,min,max,categories,nullable\n"
    "age,integer,0,99,,yes\nscore,number,0,1,,no\ngroup,nominal,,,\"a|b|c,d\",no\n"
)  # fmt: skip


@pytest.fixture
def table(people, tmp_path: Path) -> Path:
    """people.csv and a codebook of it; no spec."""
    people().unlink()
    (tmp_path / "book.csv").write_text(BOOK)
    return tmp_path / "people.csv"


WORDS = ("NoSuchOption", "MissingParameter")  # of the command line itself


def one_line(out: str) -> dict:
    assert out.count("\n") == 1
    assert out.endswith("\n")
    return json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


# --- without a spec file ------------------------------------------------------------------------------


def test_a_table_is_released_verified_and_repeated_without_a_spec_file(dpsynth, table):
    ran = dpsynth("release", "people.csv", "--epsilon", 2, "--delta", "1e-9", "--mechanism", "marginals",
                  "--strata", "group", "--neighbours", "replace_one", "--dataset", "people-2026",
                  "--rows", 50, "--codebook", "book.csv", "-o", "out/made.parquet")  # fmt: skip
    assert ran.code == 0, ran.err
    assert "  its spec:        out/made.spec.yaml\n" in ran.out
    assert "  left out: left out (no public source describes it)\n" in ran.out
    assert dpsynth("verify", "out/made.audit.public.json").code == 0
    spec = load_spec("out/made.spec.yaml")
    assert (spec.input, spec.output, spec.rows) == ("people.csv", "out/made.parquet", 50)
    assert (spec.mechanism.name, spec.domain.strata) == ("marginals", "group")
    assert (str(spec.privacy.epsilon), spec.privacy.neighbours) == ("2", "replace_one")
    assert spec.privacy.dataset == "people-2026"
    assert os.stat("out/made.spec.yaml").st_mode & 0o777 == 0o600  # it says where the data are
    audit = json.loads(Path("out/made.audit.json").read_text())
    assert audit["spec"] == public_document(spec.effective)
    assert dpsynth("release", "out/made.spec.yaml", "-o", "out/again.parquet").code == 0


def test_no_row_is_looked_at_before_the_charge(dpsynth, table, monkeypatch):
    monkeypatch.setattr("dpsynth_cli.trusted.rows.look.look", lambda array: pytest.fail("a row is looked at"))
    ran = dpsynth("release", "people.csv", "--epsilon", 1, "--codebook", "book.csv")
    assert ran.code == 0, ran.err
    assert "no row was looked at" in Path("people.synthetic.spec.yaml").read_text()


def test_a_public_table_can_stand_for_the_codebook(dpsynth, table):
    lines = table.read_text().splitlines(keepends=True)
    Path("last.csv").write_text("".join(lines[:200]))
    ran = dpsynth("release", "people.csv", "--epsilon", 1, "--like", "last.csv", "-o", "made.csv", "--json")
    assert ran.code == 0, ran.err
    assert one_line(ran.out)["files"]["spec"] == "made.spec.yaml"
    ran = dpsynth("release", "people.csv", "--epsilon", 1, "--like", "people.csv", "-o", "other.csv")
    assert ran.code == 2
    assert "is the table itself, or a copy of it" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "people.csv is a table, not a spec."),
        (["--epsilon", "1"], "nothing says the bounds and categories of people.csv."),
        (["--epsilon", "-1"], "--epsilon must be a decimal number above 0, such as 0.5; it is '-1'."),
        (
            ["--epsilon", "1", "--delta", "2"],
            "--delta must be a decimal number between 0 and 1, such as 1e-9; it is '2'.",
        ),
        (
            ["--epsilon", "1", "--codebook", "book.csv", "-i", "x.csv"],
            "people.csv and --input both name the table.",
        ),
        (
            ["--epsilon", "1", "--codebook", "half.csv"],
            "half.csv does not say all that a release needs. Missing are\n"
            "  age: the lowest and highest value possible (codebook, law, field width); or bounds: private",
        ),
        (
            ["--epsilon", "1", "--codebook", "ends.csv"],
            "ends.csv does not say all that a release needs. Missing are\n"
            "  age: the type: integer or continuous",
        ),
        (
            ["--epsilon", "1", "--codebook", "book.csv", "--mechanism", "jiont"],
            "the drafted spec, line 18: mechanism.name is jiont; it must be one of auto, factor, joint, "
            "lowdim, marginals, microaggregation, online, pmm, psmm (did you mean joint?)",
        ),
    ],
)
def test_what_a_release_without_a_spec_needs(dpsynth, table, words, said):
    Path("half.csv").write_text("name,type\nage,integer\n")
    Path("ends.csv").write_text("name,min,max\nage,0,99\n")
    ran = dpsynth("release", "people.csv", *words, "--json")
    assert ran.code == 2
    assert one_line(ran.out)["error"]["happened"] == said
    assert ran.err.startswith(f"Error: {said}\n")
    assert not list(Path().glob("*.spec.yaml"))


def test_the_draft_that_is_advised_keeps_what_the_codebook_says(dpsynth, table):
    Path("half.csv").write_text("name,type,categories\nage,integer,\ngroup,nominal,a|b\n")
    ran = dpsynth("release", "people.csv", "--epsilon", 1, "--codebook", "half.csv")
    assert ran.code == 2
    advised = "dpsynth init people.csv --codebook half.csv -o spec.yaml"
    assert ran.err.endswith(f"Complete it, or draft a spec and fill these in: {advised}\n")
    assert dpsynth(*advised.split()[1:]).code == 0
    assert "categories: [a, b]" in Path("spec.yaml").read_text()


def test_a_first_line_that_may_be_a_row_is_not_repeated(dpsynth, table):
    Path("rows.csv").write_text("Jane Doe,Springfield\nJohn Doe,Shelbyville\n")
    ran = dpsynth("release", "rows.csv", "--epsilon", 1, "--codebook", "book.csv")
    assert ran.code == 2
    assert "Doe" not in ran.err + ran.out


def test_a_spec_that_somebody_wrote_is_not_replaced(dpsynth, table):
    Path("made.spec.yaml").write_text("mine")
    ran = dpsynth("release", "people.csv", "--epsilon", 1, "--codebook", "book.csv", "-o", "made.csv")
    assert (ran.code, Path("made.spec.yaml").read_text()) == (2, "mine")
    assert ran.err.startswith("Error: made.spec.yaml is already there, and was not written by a release.\n")
    Path("made.spec.yaml").write_text(MARK + "old")
    ran = dpsynth("release", "people.csv", "--epsilon", 1, "--codebook", "book.csv", "-o", "made.csv")
    assert ran.code == 0, ran.err
    assert "\n  epsilon: 1 " in Path("made.spec.yaml").read_text()


def test_options_of_a_table_are_refused_for_a_spec(dpsynth, people):
    ran = dpsynth("release", people(), "--epsilon", 1)
    assert (ran.code, ran.out) == (2, "")
    assert "--epsilon is for a table without a spec, and" in ran.err


# --- a spec on standard input -------------------------------------------------------------------------


def test_a_spec_comes_from_standard_input(dpsynth, people, monkeypatch):
    def standard_input(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    text = people().read_text()
    standard_input(text)
    assert dpsynth("check", "-", "--runs", 1).code == 0
    standard_input(text)
    assert dpsynth("release", "-").code == 0
    standard_input(text.replace("epsilon: 1.0", "epsilon: -1"))
    ran = dpsynth("check", "-")
    assert ran.code == 2
    assert ran.err.startswith("Error: standard input, line 5: privacy.epsilon is -1;")
    standard_input(text)
    ran = dpsynth("release", "-", "-i", "-")
    assert ran.code == 2
    assert ran.err.startswith("Error: the spec and the table both want standard input.\n")


# --- JSON lines ---------------------------------------------------------------------------------------


def test_json_is_one_line_of_every_command(dpsynth, people):
    spec = people()
    for words in (
        ["check", spec, "--runs", 1],
        ["plan", spec, "--target", "w1=0.2", "--runs", 1],
        ["release", spec],
        ["verify", "out/people.audit.json"],
        ["sample", "out/people.transcript.arrow", "-n", 5, "-o", "more.csv"],
        ["evaluate", spec, "out/people.csv", "--metrics", "w1"],
        ["record", "out/people.audit.json"],
        ["budget", "grant", "people", 5],
        ["budget", "show"],
        ["budget", "log"],
        ["budget", "verify"],
        ["mechanisms"],
        ["mechanisms", "pmm"],
    ):
        ran = dpsynth(*words, "--json")
        assert ran.code == 0, ran.err
        one_line(ran.out)


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (["check", "no.yaml"], 5, "FileError"),
        (["release", "spec.yaml", "--set", "privacy.epsilon=-1"], 2, "UsageError"),
        (["release", "spec.yaml", "--set", "privacy.epsilon=9"], 3, "BudgetError"),
        (["verify", "broken.json"], 4, "VerificationError"),
        (["release", "spec.yaml", "--engin", "x"], 2, "NoSuchOption"),
        (["check"], 2, "MissingParameter"),
        (["budget", "show", "nobody"], 2, "UsageError"),
        (["mechanisms", "nobody"], 2, "UsageError"),
    ],
)
def test_an_error_is_one_line_of_json_too(dpsynth, people, words, code, kind):
    people()
    assert dpsynth("budget", "grant", "people", 1).code == 0
    Path("broken.json").write_text("{}")
    plain, ran = dpsynth(*words), dpsynth(*words, "--json")
    assert (plain.code, plain.out) == (code, "")
    assert (ran.code, ran.err) == (code, plain.err)  # people read the same
    error = one_line(ran.out)["error"]
    assert (error["exit_code"], error["kind"]) == (code, kind)
    assert error["happened"]
    assert error["happened"].split("\n")[0] in ran.err
    assert error["cost"] == ("Nothing was read and nothing was spent." if kind in WORDS else error["cost"])
    assert error["next_step"] in " ".join(ran.err.split())


def test_a_bug_and_short_memory_are_one_line_too(dpsynth, people, monkeypatch):
    spec = people()
    for error, code in ((RuntimeError("a cell's SECRET"), 1), (MemoryError(), 5)):

        def fail(*_: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr("dpsynth_cli.cli.check.loaded", fail)
        ran = dpsynth("check", spec, "--json")
        assert ran.code == code
        assert one_line(ran.out)["error"]["exit_code"] == code
        assert "SECRET" not in ran.out + ran.err


def test_amounts_are_numbers_beside_exact_text(dpsynth, people):
    assert dpsynth("budget", "grant", "people", "2.5").code == 0
    made = one_line(dpsynth("release", people(epsilon="0.1"), "--json").out)
    assert (made["spent"], made["spent_float"]) == ("1/10", 0.1)
    assert (made["guarantee"]["epsilon"], made["guarantee"]["epsilon_float"]) == ("0.1", 0.1)
    assert (made["ledger"]["remaining"], made["ledger"]["remaining_float"]) == ("12/5", 2.4)
    checked = one_line(dpsynth("check", people(), "--runs", 0, "--json").out)
    assert (checked["total"], checked["total_float"]) == ("1", 1.0)
    assert math.isclose(sum(charge["cost_float"] for charge in checked["charges"]), 1)
    assert "epsilon_float" not in checked["spec"]["privacy"]  # a document that can be read again


def test_numbers_that_json_has_not_are_null():
    assert with_numbers([math.inf, {"a": (math.nan, 1.5)}]) == [None, {"a": [None, 1.5]}]
    assert with_numbers({"epsilon": "much", "cost": "1/0", "delta": None}) == {
        "epsilon": "much",
        "cost": "1/0",
        "delta": None,
    }


# --- completion ---------------------------------------------------------------------------------------


def test_words_are_completed(tmp_path, monkeypatch):
    path = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("DPSYNTH_LEDGER", str(path))
    assert completion.datasets("") == []
    assert not path.exists()
    Ledger(path).grant("census", "1", "add_remove", None, False)
    Ledger(path).grant("trips", "1", "add_remove", None, False)
    assert completion.datasets("c") == ["census"]
    path.write_bytes(b"no ledger")
    assert completion.datasets("") == []
    assert completion.mechanisms("p") == ["pmm", "psmm"]
    assert completion.engines("d") == ["dask"]
    assert completion.metrics("w1,m") == ["w1,marginals", "w1,moments", "w1,matches"]
    assert "tvd2=" in completion.targets("tvd")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dpsynth mechanisms p", ["pmm", "psmm"]),
        ("dpsynth audit-mechanism mar", ["marginals"]),
        ("dpsynth release data.csv --mechanism jo", ["joint"]),
        ("dpsynth release spec.yaml --engine d", ["dask"]),
        ("dpsynth evaluate spec.yaml made.csv --metrics prop", ["propensity"]),
        ("dpsynth budget show cen", ["census"]),
        ("dpsynth release data.csv --dataset cen", ["census"]),
    ],
)
def test_the_shell_gets_them(tmp_path, line, expected):
    Ledger(tmp_path / "ledger.sqlite").grant("census", "1", "add_remove", None, False)
    environment = {
        "PYTHONPATH": str(ROOT),
        "DPSYNTH_LEDGER": str(tmp_path / "ledger.sqlite"),
        "_DPSYNTH_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }
    code = "import sys; sys.argv = ['dpsynth']; from dpsynth_cli.cli.main import run; run()"
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=tmp_path
    )
    assert (ran.stdout.split(), ran.stderr) == (expected, "")
