"""`dpsynth budget`, command by command: whole outputs, whole errors, on real files."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpsynth_cli.cli.budget import app
from dpsynth_cli.errors import BudgetError, DpsynthError, FileError, UsageError, VerificationError
from dpsynth_cli.trusted.core import gaussian
from dpsynth_cli.trusted.ledger.grants import UNBOUNDED, Cost, Unit
from dpsynth_cli.trusted.ledger.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the environment says the ledger is."""
    path = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("DPSYNTH_LEDGER", str(path))
    monkeypatch.setattr("dpsynth_cli.trusted.ledger.ledger.who", lambda: None)
    return path


@pytest.fixture(autouse=True)
def _rho_is_a_tenth_of_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The accountant's conversion has its own tests; here any rho will do."""
    monkeypatch.setattr(gaussian, "rho_of_epsilon", lambda epsilon, delta: epsilon / 10)
    monkeypatch.setattr(gaussian, "epsilon_of_rho", lambda rho, delta: rho * 10)
    monkeypatch.setattr(gaussian, "rho_of_pure", lambda epsilon: epsilon**2 / 2)


def said(*arguments: str) -> str:
    """What a command that succeeds prints on standard output, without the blanks of a table."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return "\n".join(line.rstrip() for line in result.stdout.strip("\n").splitlines()).strip("\n")


def refused(kind: type[DpsynthError], *arguments: str) -> str:
    """The whole text of the error that a command ends in."""
    with pytest.raises(kind) as error:
        CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return str(error.value)


def charge(path: Path, release: str, dataset: str, amount: str, neighbours: str = "add_remove") -> None:
    cost = Cost(Fraction(amount), Unit("epsilon", neighbours), amount)
    Ledger(path).reserve(dataset, release, "n", cost)


def test_init_makes_a_ledger_once_and_says_where(path: Path, tmp_path: Path) -> None:
    assert said("init") == f"Made an empty ledger: {path}"
    assert said("init") == f"There is a ledger with 0 entries: {path}"
    said("grant", "census", "1")
    assert said("init") == f"There is a ledger with 1 entry: {path}"
    other = tmp_path / "folder" / "other.sqlite"
    assert json.loads(said("init", "--ledger", str(other), "--json")) == {
        "ledger": str(other),
        "created": True,
        "head": {"entry": 0, "hash": "0" * 64},
    }


def test_grant_says_what_may_be_spent_in_all(path: Path) -> None:
    assert said("grant", "census", "0.1") == (
        "census may spend 0.1 in all, counted in pure epsilon under add_remove; 0.1 is left."
    )
    charge(path, "r", "census", "0.05")
    assert said("grant", "census", "0.2") == (
        "census may spend 0.3 in all, counted in pure epsilon under add_remove; 0.25 is left."
    )


def test_grant_with_a_delta_is_counted_in_rho(path: Path) -> None:
    arguments = ["grant", "trips", "1.5", "--delta", "1e-9", "--neighbours", "replace_one"]
    assert said(*arguments) == (
        "trips may spend 0.15 (epsilon 1.5) in all, counted in rho (Gaussian) under replace_one at delta = "
        "1e-9; 0.15 (epsilon 1.5) is left."
    )
    assert json.loads(said(*arguments, "--allow-groups", "--json")) == {
        "ledger": str(path),
        "dataset": "trips",
        "grant": {
            "total": "3/10",
            "total_float": 0.3,
            "currency": "rho",
            "neighbours": "replace_one",
            "epsilon": "3",
            "epsilon_float": 3.0,
            "delta": "1/1000000000",
            "delta_float": 1e-9,
            "allow_groups": True,
        },
        "charged": "0",
        "charged_float": 0.0,
        "charged_epsilon": "0",
        "charged_epsilon_float": 0.0,
        "remaining": "3/10",
        "remaining_float": 0.3,
        "remaining_epsilon": "3",
        "remaining_epsilon_float": 3.0,
        "spent": [],
        "releases": 0,
        "unbounded": 0,
    }


def test_epsilon_is_read_exactly(path: Path) -> None:
    for text, exact in (("1e-30", "1/" + "1" + "0" * 30), (".5", "1/2"), ("2E+1", "20"), ("007", "7")):
        assert json.loads(said("grant", text, text, "--json"))["grant"]["total"] == exact


@pytest.mark.parametrize(
    "text", ["0", "0.000", "nan", "inf", "1/3", "1e9999", "", "one", "0x1", "1_0", "1,5", "١"]
)
def test_an_epsilon_that_is_no_positive_decimal_is_refused(path: Path, text: str) -> None:
    assert refused(UsageError, "grant", "census", text) == (
        f"epsilon must be a decimal number above 0, such as 0.5; it is {text!r}.\nNothing was granted."
    )
    assert not path.exists()


def test_a_grant_that_protects_nobody_is_refused(path: Path) -> None:
    for more in ((), ("--delta", "1e-6")):
        assert refused(UsageError, "grant", "census", "1e200", *more) == (
            "epsilon is above 1,000,000, which protects nobody.\nNothing was granted."
        )
    assert not path.exists()


@pytest.mark.parametrize("text", ["1", "2.5"])
def test_a_delta_of_one_or_more_is_refused(path: Path, text: str) -> None:
    assert refused(UsageError, "grant", "census", "1", "--delta", text) == (
        f"delta must be a decimal number between 0 and 1, such as 1e-9; it is {text!r}.\nNothing was granted."
    )
    assert "delta must be a decimal number above 0" in refused(
        UsageError, "grant", "census", "1", "--delta", "0"
    )
    assert not path.exists()


def test_a_grant_of_another_kind_is_refused(path: Path) -> None:
    said("grant", "census", "1")
    assert refused(BudgetError, "grant", "census", "1", "--delta", "1e-9") == (
        "the budget of census is pure epsilon under add_remove, and this grant is rho (Gaussian) under "
        "add_remove at delta = 1e-9: they do not add up.\n"
        "Nothing was granted. Grant more of the same kind: dpsynth budget grant census EPSILON. Or put this "
        "one in its place, what was spent included: dpsynth budget grant census 1 --delta 1e-9 --replace"
    )


@pytest.fixture
def used(path: Path) -> Path:
    """A ledger with two budgets, and a data set without one."""
    said("grant", "census", "1")
    said("grant", "trips", "2", "--delta", "1e-9", "--neighbours", "replace_one", "--allow-groups")
    ledger = Ledger(path)
    charge(path, "r1", "census", "0.1")
    ledger.drawn("r1")
    ledger.commit("r1", {"output_sha256": "ab" * 32})
    charge(path, "r2", "trips", "0.1")
    ledger.reserve("trips", "r3", "groups", UNBOUNDED)
    charge(path, "r4", "loose [red]", "0.5")
    charge(path, "r5", "loose [red]", "0.5", "replace_one")
    ledger.abort("r5", "no such file")
    ledger.reserve("loose [red]", "r6", "n", Cost(Fraction(1, 3), Unit("rho", "add_remove"), "1", "1e-6"))
    ledger.drawn("r6")
    ledger.abort("r6", "disk full")
    return path


TABLE = """\
  data set      counted in                                         granted           spent                left                 releases
 ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
  census        pure epsilon under add_remove                      1                 0.1                  0.9                  1
  loose [red]   pure epsilon under add_remove                      no limit          0.5                                       1
  loose [red]   rho (Gaussian) under add_remove                    no limit          about 0.333334                            1
  trips         rho (Gaussian) under replace_one at delta = 1e-9   0.2 (epsilon 2)   0.02 (epsilon 0.2)   0.18 (epsilon 1.8)   1
  trips         no differential privacy                                              unbounded                                 1"""  # noqa: E501


def test_show_adds_up_each_unit_on_its_own(used: Path) -> None:
    assert said("show") == TABLE
    assert "trips" not in said("show", "census")


def test_show_in_json_is_exact(used: Path) -> None:
    shown = json.loads(said("show", "--json"))
    assert shown["ledger"] == str(used)
    assert [one["dataset"] for one in shown["datasets"]] == ["census", "loose [red]", "trips"]
    assert shown["datasets"][1] == {
        "dataset": "loose [red]",
        "grant": None,
        "charged": None,
        "charged_epsilon": None,
        "remaining": None,
        "remaining_epsilon": None,
        "spent": [
            {"currency": "epsilon", "neighbours": "add_remove", "amount": "1/2", "amount_float": 0.5},
            {"currency": "rho", "neighbours": "add_remove", "amount": "1/3", "amount_float": 1 / 3},
        ],
        "releases": 2,
        "unbounded": 0,
    }
    assert shown["datasets"][2]["remaining"] == "9/50"


def test_log_lists_every_entry_in_order(used: Path) -> None:
    lines = said("log").splitlines()
    assert lines[0].split() == ["entry", "time", "data", "set", "kind", "release", "what"]
    time = Ledger(used).log()[0].time
    assert len(time) == len("2026-01-31T12:00:00Z")
    shown = [line.split("   ") for line in lines[2:]]
    assert [[cell.strip() for cell in line if cell.strip()][2:] for line in shown] == [
        ["census", "grant", "epsilon = 1 under add_remove"],
        ["trips", "grant", "epsilon = 2 at delta = 1e-9 under replace_one"],
        ["census", "reserve", "r1", "epsilon = 0.1 under add_remove"],
        ["census", "drawn", "r1"],
        ["census", "commit", "r1"],
        [
            "trips",
            "reserve",
            "r2",
            "epsilon = 0.1 under add_remove (2 x epsilon from add_remove to replace_one, "
            "then epsilon to the rho that covers it)",
        ],
        ["trips", "reserve", "r3", "no differential privacy"],
        ["loose [red]", "reserve", "r4", "epsilon = 0.5 under add_remove"],
        ["loose [red]", "reserve", "r5", "epsilon = 0.5 under replace_one"],
        ["loose [red]", "abort", "r5", "no such file (refunded)"],
        ["loose [red]", "reserve", "r6", "rho = about 0.333334 (epsilon 1 at delta = 1e-6) under add_remove"],
        ["loose [red]", "drawn", "r6"],
        ["loose [red]", "abort", "r6", "disk full (not refunded: rows were read)"],
    ]


def test_log_in_json_has_all_that_is_hashed(used: Path) -> None:
    logged = json.loads(said("log", "census", "--json"))
    assert logged == {"ledger": str(used), "entries": [vars(entry) for entry in Ledger(used).log("census")]}
    assert logged["entries"][3]["payload"] == {"output_sha256": "ab" * 32}
    assert set(logged["entries"][0]) == {
        "number", "time", "dataset", "kind", "release", "payload", "salt", "previous", "hash",
    }  # fmt: skip


@pytest.mark.parametrize("command", ["show", "log"])
def test_a_data_set_that_is_not_there_is_told(used: Path, command: str) -> None:
    assert refused(UsageError, command, "cencus") == (
        f"the ledger {used} has no data set 'cencus'.\n"
        "Nothing was changed. It has census, loose [red], trips."
    )


@pytest.mark.parametrize("command", ["show", "log"])
def test_an_empty_ledger_says_so(path: Path, command: str) -> None:
    said("init")
    assert said(command) == f"The ledger is empty: {path}"


def test_verify_finds_the_ledger_whole_and_gives_its_head(used: Path) -> None:
    own = Ledger(used).head()[1]
    assert said("verify") == f"The ledger is whole, 13 entries: {used}\nHead: {own}"
    assert said("verify", "--head", own) == said("verify")
    assert json.loads(said("verify", "--json")) == {"ledger": str(used), "ok": True, "problems": []}


def test_verify_names_every_problem_and_fails(used: Path) -> None:
    own = Ledger(used).head()[1]
    with closing(sqlite3.connect(used)) as db, db:
        db.execute("DROP TRIGGER never_edited")
        db.execute("DROP TRIGGER never_removed")
        db.execute("UPDATE entries SET payload = '{}' WHERE number = 3")
        db.execute("DELETE FROM entries WHERE number > 10")
    problems = [
        "entry 3 was changed after it was written",
        f"the entry {own} is known elsewhere and is not here: this ledger, which ends with entry 10, was cut "
        "off, or is an older copy or another ledger",
    ]
    text = (
        f"the ledger {used} is not as it was written:\n  {problems[0]}\n  {problems[1]}\n"
        "Nothing was changed. Keep this file as it is, and compare it with its backups and with published "
        "audits."
    )
    assert refused(VerificationError, "verify", "--head", own) == text
    result = CliRunner().invoke(app, ["verify", "--head", own, "--json"])
    assert result.stdout == ""  # the one line is that of the error
    assert isinstance(result.exception, VerificationError)
    assert result.exception.found == {"ledger": str(used), "ok": False, "problems": problems}
    assert result.exception.exit_code == 4


@pytest.mark.parametrize("text", ["12", "1:" + "a" * 64, "g" * 64, "abc", "a" * 63])
def test_a_head_that_is_no_hash_is_refused(used: Path, text: str) -> None:
    assert refused(UsageError, "verify", f"--head={text}") == (
        f"--head must be a hash of 64 hexadecimal digits; it is {text!r}.\n"
        "Nothing was checked. Every published audit has one: budget.ledger.hash."
    )


@pytest.mark.parametrize("command", [["show"], ["log"], ["verify"]])
def test_reading_a_ledger_that_is_not_there_fails_and_makes_none(path: Path, command: list[str]) -> None:
    assert refused(FileError, *command) == (
        f"there is no ledger at {path}.\n"
        "Nothing was read and nothing was spent. Make one with: dpsynth budget init, or name the right file "
        "with --ledger or $DPSYNTH_LEDGER."
    )
    assert not path.exists()


def test_every_command_takes_ledger_and_json() -> None:
    commands: dict[str, Any] = {}
    for command in ("init", "grant", "show", "log", "verify"):
        commands[command] = said(command, "--help")
    for text in commands.values():
        assert "--ledger" in text
        assert "--json" in text
