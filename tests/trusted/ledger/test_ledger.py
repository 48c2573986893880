"""The ledger's claims: exact sums, nothing forgotten, nothing overdrawn, every change found."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsynth_cli.errors import BudgetError, FileError, UsageError, VerificationError
from dpsynth_cli.trusted.core import gaussian
from dpsynth_cli.trusted.ledger import chain, sqlite_file
from dpsynth_cli.trusted.ledger.grants import UNBOUNDED, Cost, Unit, converted
from dpsynth_cli.trusted.ledger.ledger import Ledger, ledger_path

TENTH = Fraction(1, 10)


SYNCHRONOUS = sqlite_file.SYNCHRONOUS


@pytest.fixture(autouse=True)
def _no_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a ledger says does not depend on syncing; the processes that are started below do sync."""
    monkeypatch.setattr(sqlite_file, "SYNCHRONOUS", "OFF")


@pytest.fixture(autouse=True)
def _short_numbers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rho is a fiftieth of its epsilon, so that sums can be read; tests of real ones say `real_rho`."""
    if "real_rho" not in request.fixturenames:
        monkeypatch.setattr(gaussian, "rho_of_epsilon", lambda epsilon, delta: epsilon / 50)
        monkeypatch.setattr(gaussian, "epsilon_of_rho", lambda rho, delta: rho * 50)
        monkeypatch.setattr(gaussian, "rho_of_pure", lambda epsilon: epsilon**2 / 2)


@pytest.fixture
def real_rho() -> None:
    """The conversions as they are."""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite", timeout=20)


def pure(ledger: Ledger, release: str, amount: Fraction, dataset: str = "census", **other: Any) -> Any:
    """Reserve a pure epsilon under add_remove, unless told otherwise."""
    words = {"neighbours": "add_remove", "epsilon": str(float(amount)), **other}
    cost = Cost(amount, Unit("epsilon", words["neighbours"]), words["epsilon"])
    return ledger.reserve(dataset, release, "release", cost)


def zcdp(ledger: Ledger, release: str, amount: Fraction, dataset: str = "census", **other: Any) -> Any:
    """Reserve a rho under add_remove, unless told otherwise."""
    words = {"neighbours": "add_remove", "epsilon": "1", "delta": "1e-9", **other}
    cost = Cost(amount, Unit("rho", words["neighbours"]), words["epsilon"], words["delta"])
    return ledger.reserve(dataset, release, "release", cost)


def grant(ledger: Ledger, amount: str, dataset: str = "census", neighbours: str = "add_remove") -> None:
    ledger.grant(dataset, amount, neighbours)


def edit(path: Path, sql: str, *values: object) -> None:
    """Change the file behind the ledger's back, as somebody with an SQL prompt would."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("DROP TRIGGER IF EXISTS never_edited")
        db.execute("DROP TRIGGER IF EXISTS never_removed")
        db.execute(sql, values)


# --- exact sums --------------------------------------------------------------------------------------


def test_ten_tenths_exhaust_one_and_not_a_hair_more_is_left(ledger: Ledger) -> None:
    grant(ledger, "1")
    left = [pure(ledger, f"r{i}", TENTH).remaining for i in range(10)]
    assert left == [Fraction(9 - i, 10) for i in range(10)]
    with pytest.raises(BudgetError):
        pure(ledger, "one too many", Fraction(1, 10**30))
    assert ledger.balance("census").charged == 1
    assert ledger.head()[0] == 11  # a refusal writes no entry


def test_a_difference_that_no_float_can_see_is_refused(ledger: Ledger) -> None:
    grant(ledger, "1")
    with pytest.raises(BudgetError) as refused:
        pure(ledger, "r", 1 + Fraction(1, 10**30))
    assert str(refused.value) == (
        "this release needs epsilon = about 1.00001, but census has 1 left.\n"
        "Nothing was read and nothing was spent. Lower privacy.epsilon, or ask the owner of the ledger for "
        "more: dpsynth budget grant census 1e-30"
    )


def test_a_float_is_not_a_charge(ledger: Ledger) -> None:
    with pytest.raises(TypeError, match="floats do not add up"):
        pure(ledger, "r", 0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize("amount", [Fraction(0), Fraction(-1)])
def test_a_charge_is_positive(ledger: Ledger, amount: Fraction) -> None:
    with pytest.raises(ValueError, match="positive"):
        pure(ledger, "r", amount)
    with pytest.raises(ValueError, match="positive"):
        grant(ledger, str(amount))


def test_grants_of_one_kind_add_up(ledger: Ledger) -> None:
    grant(ledger, "0.1")
    grant(ledger, "0.2")
    assert pure(ledger, "r", Fraction(3, 10)).remaining == 0


def test_without_a_grant_charges_are_recorded_and_not_limited(ledger: Ledger) -> None:
    assert pure(ledger, "r1", Fraction(1000)).remaining is None
    zcdp(ledger, "r2", Fraction(1, 3))
    zcdp(ledger, "r3", Fraction(1, 3), delta="1e-6")
    pure(ledger, "r4", TENTH, neighbours="replace_one")
    ledger.reserve("census", "r5", "groups", UNBOUNDED)
    balance = ledger.balance("census")
    assert balance.spent == {
        Unit("epsilon", "add_remove"): 1000,
        Unit("rho", "add_remove"): Fraction(2, 3),
        Unit("epsilon", "replace_one"): TENTH,
    }
    assert (balance.grant, balance.remaining) == (None, None)
    assert (balance.releases, balance.unbounded) == (5, 1)


def test_data_sets_do_not_share_a_budget(ledger: Ledger) -> None:
    grant(ledger, "1", "a")
    grant(ledger, "1", "b")
    pure(ledger, "r1", Fraction(1), "a")
    assert pure(ledger, "r2", Fraction(1), "b").remaining == 0
    assert ledger.datasets() == ["a", "b"]
    assert [entry.dataset for entry in ledger.log("a")] == ["a", "a"]


# --- units and conversions ---------------------------------------------------------------------------

HALF = Fraction(1, 2)
THIRD = Fraction(1, 3)
ONE_TO_TWO = "2 x epsilon from add_remove to replace_one"
TO_RHO = "epsilon to the rho that covers it"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (("epsilon", "add_remove"), ("epsilon", "add_remove"), (THIRD, None)),
        (("epsilon", "replace_one"), ("epsilon", "replace_one"), (THIRD, None)),
        (("rho", "add_remove"), ("rho", "add_remove"), (THIRD, None)),
        (("rho", "replace_one"), ("rho", "replace_one"), (THIRD, None)),
        (("epsilon", "add_remove"), ("epsilon", "replace_one"), (Fraction(2, 3), ONE_TO_TWO)),
        (
            ("rho", "add_remove"),
            ("rho", "replace_one"),
            (Fraction(4, 3), ONE_TO_TWO.replace("2 x epsilon", "4 x rho")),
        ),
        (("epsilon", "add_remove"), ("rho", "add_remove"), (Fraction(1, 18), TO_RHO)),
        (("epsilon", "replace_one"), ("rho", "replace_one"), (Fraction(1, 18), TO_RHO)),
        (
            ("epsilon", "add_remove"),
            ("rho", "replace_one"),
            (Fraction(2, 9), f"{ONE_TO_TWO}, then {TO_RHO}"),
        ),
        (("epsilon", "replace_one"), ("epsilon", "add_remove"), None),
        (("rho", "replace_one"), ("rho", "add_remove"), None),
        (("epsilon", "replace_one"), ("rho", "add_remove"), None),
        (("rho", "replace_one"), ("epsilon", "add_remove"), None),
        (("rho", "add_remove"), ("epsilon", "add_remove"), None),
        (("rho", "replace_one"), ("epsilon", "replace_one"), None),
        (("rho", "add_remove"), ("epsilon", "replace_one"), None),
    ],
)
def test_every_pair_of_units_is_converted_soundly_or_refused(
    source: tuple[str, str], target: tuple[str, str], expected: object, ledger: Ledger
) -> None:
    assert converted(THIRD, Unit(*source), Unit(*target)) == expected
    delta = {"epsilon": None, "rho": "1e-9"}
    ledger.grant("d", "10" if target[0] == "epsilon" else "500", target[1], delta[target[0]])
    words = ("0.3333", delta[source[0]])
    if expected is None:
        with pytest.raises(BudgetError):
            ledger.reserve("d", "r", "n", Cost(THIRD, Unit(*source), *words))
        assert ledger.head()[0] == 1
    else:
        charged, conversion = expected  # type: ignore[misc]
        reservation = ledger.reserve("d", "r", "n", Cost(THIRD, Unit(*source), *words))
        assert (reservation.charged, reservation.conversion) == (charged, conversion)
        assert reservation.remaining == 10 - charged
        payload = ledger.find("r")[0].payload
        assert (payload["amount"], payload["charged"], payload["conversion"]) == (
            "1/3",
            str(charged),
            conversion,
        )
    assert ledger.verify() == []


def test_rho_adds_up_whatever_the_deltas_and_the_grant_keeps_its_own(ledger: Ledger) -> None:
    ledger.grant("census", "5", "add_remove", "1e-9")
    zcdp(ledger, "r1", TENTH / 2, delta="1e-5")
    assert zcdp(ledger, "r2", TENTH / 2, delta="1e-12").remaining == 0
    kept = ledger.balance("census").grant
    assert kept is not None
    assert kept.delta == Fraction(1, 10**9)


def test_the_same_delta_may_be_written_in_two_ways(ledger: Ledger) -> None:
    ledger.grant("census", "5", "add_remove", "1e-9")
    balance = ledger.grant("census", "5", "add_remove", "0.000000001")
    assert balance.remaining == TENTH * 2


def test_groups_are_refused_unless_a_grant_allows_them_in_words(ledger: Ledger) -> None:
    grant(ledger, "1")
    with pytest.raises(BudgetError) as refused:
        ledger.reserve("census", "r1", "groups", UNBOUNDED)
    assert str(refused.value) == (
        "this release has no differential privacy, and census has a budget that does not allow that.\n"
        "Nothing was read and nothing was spent. Choose a mechanism that is differentially private, or ask "
        "the owner of the ledger to allow it: dpsynth budget grant census EPSILON --allow-groups"
    )
    ledger.grant("census", "1", "add_remove", allow_unbounded=True)
    assert ledger.reserve("census", "r1", "groups", UNBOUNDED).remaining == 2
    grant(ledger, "1")  # what was allowed stays allowed
    ledger.reserve("census", "r2", "groups", UNBOUNDED)
    assert ledger.balance("census").unbounded == 2
    assert ledger.verify() == []


# --- refusals, word by word --------------------------------------------------------------------------


def test_too_little_left_says_what_is_missing(ledger: Ledger) -> None:
    grant(ledger, "1", "census-2026")
    pure(ledger, "r1", Fraction(8, 10), "census-2026")
    with pytest.raises(BudgetError) as refused:
        pure(ledger, "r2", HALF, "census-2026")
    assert str(refused.value) == (
        "this release needs epsilon = 0.5, but census-2026 has 0.2 left.\n"
        "Nothing was read and nothing was spent. Lower privacy.epsilon, or ask the owner of the ledger for "
        "more: dpsynth budget grant census-2026 0.3"
    )
    assert refused.value.exit_code == 3


def test_the_grant_that_a_refusal_asks_for_is_enough(ledger: Ledger) -> None:
    grant(ledger, "1")
    pure(ledger, "r1", Fraction(2, 3))
    with pytest.raises(BudgetError) as refused:
        pure(ledger, "r2", Fraction(5, 7))
    assert str(refused.value).splitlines()[0] == (
        "this release needs epsilon = about 0.714286, but census has about 0.333333 left."
    )
    grant(ledger, str(refused.value).rsplit(" ", 1)[1])
    pure(ledger, "r2", Fraction(5, 7))


def test_too_little_left_after_a_conversion_says_how_it_came_about(ledger: Ledger) -> None:
    grant(ledger, "1", "my census", "replace_one")
    with pytest.raises(BudgetError) as refused:
        pure(ledger, "r1", Fraction(6, 10), "my census")
    assert str(refused.value) == (
        "this release needs epsilon = 1.2 (its epsilon = 0.6: 2 x epsilon from add_remove to replace_one), "
        "but my census has 1 left.\n"
        "Nothing was read and nothing was spent. Lower privacy.epsilon, or ask the owner of the ledger for "
        "more: dpsynth budget grant 'my census' 0.2 --neighbours replace_one"
    )


def test_too_little_rho_is_explained_in_epsilon_and_delta(ledger: Ledger) -> None:
    ledger.grant("census", "1", "add_remove", "1e-9")
    with pytest.raises(BudgetError) as refused:
        zcdp(ledger, "r1", Fraction(3, 100), epsilon="1.5", delta="1e-09")
    assert str(refused.value) == (
        "this release needs rho = 0.03 (its epsilon = 1.5 at delta = 1e-9), but census has 0.02 left "
        "(epsilon 1).\n"
        "Nothing was read and nothing was spent. Lower privacy.epsilon, or ask the owner of the ledger for "
        "more: dpsynth budget grant census 0.5 --delta 1e-9"
    )


@pytest.mark.usefixtures("real_rho")
@pytest.mark.parametrize(("epsilon", "delta"), [("1.5", "1e-9"), ("0.2", "1e-3"), ("1e-6", "1e-3")])
def test_the_epsilon_that_a_refusal_asks_for_is_enough_rho(ledger: Ledger, epsilon: str, delta: str) -> None:
    ledger.grant("census", epsilon, "add_remove", delta)
    needed = gaussian.rho_of_epsilon(Fraction("1.7"), Fraction(1, 10**6))
    zcdp(ledger, "r0", ledger.balance("census").grant.total / 3)
    with pytest.raises(BudgetError) as refused:
        zcdp(ledger, "r1", needed, epsilon="1.7", delta="1e-6")
    command = str(refused.value).rsplit("dpsynth budget grant census ", 1)[1].split()
    assert command[1:] == ["--delta", delta if delta == "1e-9" else "0.001"]
    ledger.grant("census", command[0], "add_remove", delta)
    left = zcdp(ledger, "r1", needed).remaining
    assert 0 <= left < needed / 1000  # and not much more than enough


@pytest.mark.usefixtures("real_rho")
def test_a_pure_release_is_charged_a_rho_that_covers_it(ledger: Ledger) -> None:
    ledger.grant("census", "9", "add_remove", "1e-9")
    pure(ledger, "r", Fraction(1))
    # Half of epsilon squared covers it in zCDP, but not as a Gaussian.
    assert ledger.balance("census").charged == gaussian.rho_of_pure(Fraction(1)) > HALF


@pytest.mark.usefixtures("real_rho")
def test_grants_at_a_delta_are_worth_the_sum_of_their_epsilons_and_no_more(ledger: Ledger) -> None:
    ledger.grant("census", "1.5", "add_remove", "1e-9")
    balance = ledger.grant("census", "3", "add_remove", "1e-9")
    assert balance.grant.epsilon == Fraction("4.5")
    assert balance.grant.total == gaussian.rho_of_epsilon(Fraction("4.5"), Fraction(1, 10**9))
    # A tiny epsilon at a large delta is a rho far above its hundredth part: hundred of them are not hundred.
    for _ in range(100):
        balance = ledger.grant("trips", "1e-6", "add_remove", "1e-3")
    assert gaussian.epsilon_of_rho(balance.grant.total, Fraction(1, 1000)) <= Fraction(1, 10**4)
    with pytest.raises(BudgetError):
        zcdp(ledger, "r", gaussian.rho_of_epsilon(Fraction("0.025"), Fraction(1, 1000)), "trips")
    assert ledger.verify() == []


def test_no_two_entries_have_the_same_salt_and_each_has_128_bits(written: Ledger) -> None:
    salts = [entry.salt for entry in written.log()]
    assert len({*salts}) == len(salts) == 8
    assert all(len(bytes.fromhex(salt)) == 16 for salt in salts)


@pytest.mark.parametrize(
    ("kept", "asked", "words", "change"),
    [
        (
            Unit("epsilon", "add_remove"),
            Unit("epsilon", "replace_one"),
            "pure epsilon under replace_one, but the budget of d is pure epsilon under add_remove",
            "set privacy.neighbours to add_remove",
        ),
        (
            Unit("epsilon", "replace_one"),
            Unit("rho", "add_remove"),
            "rho (Gaussian) under add_remove, but the budget of d is pure epsilon under replace_one",
            "leave out privacy.delta",
        ),
        (
            Unit("epsilon", "add_remove"),
            Unit("rho", "replace_one"),
            "rho (Gaussian) under replace_one, but the budget of d is pure epsilon under add_remove",
            "set privacy.neighbours to add_remove and leave out privacy.delta",
        ),
        (
            Unit("rho", "add_remove"),
            Unit("rho", "replace_one"),
            "rho (Gaussian) under replace_one, but the budget of d is rho (Gaussian) under add_remove "
            "at delta = 1e-9",
            "set privacy.neighbours to add_remove",
        ),
    ],
)
def test_a_unit_that_implies_nothing_is_refused_with_what_to_change(
    ledger: Ledger, kept: Unit, asked: Unit, words: str, change: str
) -> None:
    delta = {"epsilon": None, "rho": "1e-9"}
    ledger.grant("d", "10", kept.neighbours, delta[kept.currency])
    with pytest.raises(BudgetError) as refused:
        ledger.reserve("d", "r", "n", Cost(TENTH, asked, "0.1", delta[asked.currency]))
    assert str(refused.value) == (
        f"this release is counted in {words}: the one does not imply the other at any price.\n"
        f"Nothing was read and nothing was spent. In the spec, {change}. Or ask the owner of the ledger for "
        "another budget in its place, what was spent included: dpsynth budget grant d 10"
        f"{' --delta 1e-9' if 'rho' in (kept.currency, asked.currency) else ''}"
        f"{' --neighbours replace_one' if 'replace_one' in (kept.neighbours, asked.neighbours) else ''} "
        "--replace"
    )


@pytest.mark.parametrize(
    ("neighbours", "delta", "kind"),
    [
        ("replace_one", None, "pure epsilon under replace_one"),
        ("add_remove", "1e-6", "rho (Gaussian) under add_remove at delta = 0.000001"),
    ],
)
def test_grants_of_two_kinds_do_not_add_up(
    ledger: Ledger, neighbours: str, delta: str | None, kind: str
) -> None:
    ledger.grant("census", "5", "add_remove", "1e-9")
    with pytest.raises(BudgetError) as refused:
        ledger.grant("census", "1", neighbours, delta)
    assert str(refused.value) == (
        f"the budget of census is rho (Gaussian) under add_remove at delta = 1e-9, and this grant is {kind}: "
        "they do not add up.\n"
        "Nothing was granted. Grant more of the same kind: dpsynth budget grant census EPSILON --delta 1e-9. "
        "Or put this one in its place, what was spent included: dpsynth budget grant census 1"
        f"{' --delta 0.000001' if delta else ' --neighbours replace_one'} --replace"
    )
    assert ledger.head()[0] == 1


def test_a_first_grant_counts_what_was_spent_before_it(ledger: Ledger) -> None:
    pure(ledger, "r1", Fraction(8, 10))
    with pytest.raises(BudgetError) as refused:
        grant(ledger, "0.5")
    assert str(refused.value) == (
        "census was already charged epsilon = 0.8, more than this grant of 0.5.\n"
        "Nothing was granted. Grant what was spent and what may still be spent, together."
    )
    balance = ledger.grant("census", "100", "replace_one", "1e-9")
    assert balance.charged == Fraction(128, 100)
    assert balance == ledger.balance("census")
    assert ledger.verify() == []


def test_a_first_grant_that_cannot_count_what_was_spent_is_refused(ledger: Ledger) -> None:
    pure(ledger, "r1", TENTH, neighbours="replace_one")
    with pytest.raises(BudgetError) as refused:
        grant(ledger, "5")
    assert str(refused.value) == (
        "census already has a release counted in pure epsilon under replace_one, which a budget in pure "
        "epsilon under add_remove cannot count.\n"
        "Nothing was granted. Grant one that can: with --neighbours replace_one it counts both relations, "
        "with --delta both currencies."
    )
    ledger.reserve("census", "r2", "groups", UNBOUNDED)
    with pytest.raises(BudgetError) as refused:
        grant(ledger, "5", neighbours="replace_one")
    assert str(refused.value) == (
        "census already has a release without differential privacy.\n"
        "Nothing was granted. If the budget is to stand beside it, say so with --allow-groups."
    )
    balance = ledger.grant("census", "5", "replace_one", allow_unbounded=True)
    assert balance.remaining == Fraction(49, 10)


@pytest.mark.parametrize("name", ["", "two\nlines", "\x1b[2J", "a" * 201, "not \udcff text"])
def test_a_name_that_would_garble_the_record_is_refused(ledger: Ledger, name: str) -> None:
    with pytest.raises(UsageError) as refused:
        grant(ledger, "1", name)
    assert str(refused.value) == (
        f"the data set must be one line of 1 to 200 printable characters; it is {name[:200]!r}.\n"
        "Nothing was read and nothing was spent. Choose another name."
    )
    for release_of in (lambda: pure(ledger, name, TENTH), lambda: ledger.note("census", name, {})):
        with pytest.raises(UsageError, match="the release's id must be one line"):
            release_of()
    assert not ledger.path.exists()


# --- the steps of a release --------------------------------------------------------------------------


def test_a_release_goes_reserved_drawn_committed(ledger: Ledger) -> None:
    grant(ledger, "1")
    assert ledger.state("r") is None
    reservation = pure(ledger, "r", TENTH)
    assert ledger.head() == (reservation.number, reservation.hash)
    assert ledger.state("r") == "reserved"
    ledger.drawn("r")
    assert ledger.state("r") == "drawn"
    ledger.commit("r", {"output_sha256": "ab" * 32})
    assert ledger.state("r") == "committed"
    assert [entry.kind for entry in ledger.find("r")] == ["reserve", "drawn", "commit"]
    last = ledger.find("r")[-1]
    assert last.payload == {"output_sha256": "ab" * 32}
    assert ledger.head() == (4, last.hash)
    assert ledger.entry(last.hash) == last
    assert ledger.entry("0" * 64) is None


def test_abort_gives_back_what_was_not_drawn(ledger: Ledger) -> None:
    grant(ledger, "1")
    pure(ledger, "r", Fraction(1))
    assert ledger.abort("r", "no such file")
    assert ledger.state("r") == "aborted"
    assert ledger.balance("census").remaining == 1
    assert pure(ledger, "again", Fraction(1)).remaining == 0
    assert ledger.verify() == []


def test_abort_after_drawn_gives_nothing_back(ledger: Ledger) -> None:
    grant(ledger, "1")
    pure(ledger, "r", Fraction(1))
    ledger.drawn("r")
    assert not ledger.abort("r", "disk full")
    assert ledger.state("r") == "aborted"
    assert ledger.balance("census").remaining == 0
    assert ledger.verify() == []


def test_a_refund_returns_the_converted_amount(ledger: Ledger) -> None:
    ledger.grant("census", "50", "replace_one", "1e-9")
    pure(ledger, "r", Fraction(1, 4))  # twice that, squared, halved: 1/8
    zcdp(ledger, "s", Fraction(1, 16))
    assert ledger.balance("census").remaining == Fraction(5, 8)
    ledger.abort("r", "no such file")
    assert ledger.balance("census").remaining == Fraction(3, 4)


STEPS: dict[str, Callable[[Ledger], object]] = {
    "reserved": lambda ledger: pure(ledger, "r", TENTH),
    "drawn": lambda ledger: ledger.drawn("r"),
    "committed": lambda ledger: ledger.commit("r", {}),
    "aborted": lambda ledger: ledger.abort("r", "why"),
}
NO_ROW = "No row was read. What this release was charged stays charged."
CHARGED = "What this release was charged stays charged."
COSTS = {"reserved": "Nothing was read and nothing was spent.", "drawn": NO_ROW, "committed": CHARGED}


@pytest.mark.parametrize(
    ("before", "step"),
    [
        ([], "drawn"),
        ([], "committed"),
        ([], "aborted"),
        (["reserved"], "reserved"),
        (["reserved"], "committed"),
        (["reserved", "drawn"], "reserved"),
        (["reserved", "drawn"], "drawn"),
        (["reserved", "aborted"], "reserved"),
        (["reserved", "aborted"], "drawn"),
        (["reserved", "aborted"], "aborted"),
        (["reserved", "drawn", "aborted"], "committed"),
        (["reserved", "drawn", "committed"], "drawn"),
        (["reserved", "drawn", "committed"], "committed"),
        (["reserved", "drawn", "committed"], "aborted"),
    ],
)
def test_a_step_out_of_order_is_refused(ledger: Ledger, before: list[str], step: str) -> None:
    grant(ledger, "1")
    for name in before:
        STEPS[name](ledger)
    head = ledger.head()
    with pytest.raises(VerificationError) as refused:
        STEPS[step](ledger)
    where = f"is {before[-1]}" if before else "is not"
    assert str(refused.value) == (
        f"release r {where} in the ledger {ledger.path}, so it cannot be marked {step}.\n"
        f"{COSTS.get(step, CHARGED)} See what was recorded: dpsynth budget log"
    )
    assert ledger.head() == head


def test_notes_leave_a_release_and_its_budget_alone(ledger: Ledger) -> None:
    grant(ledger, "1")
    pure(ledger, "stream", TENTH)
    ledger.drawn("stream")
    first = ledger.note("census", "stream", {"generation": 1}, follows=0)
    second = ledger.note("census", "stream", {"generation": 2}, follows=first.number)
    assert ledger.last_note("stream") == second
    assert ledger.last_note("other") is None
    assert ledger.state("stream") == "drawn"
    assert ledger.balance("census").remaining == Fraction(9, 10)
    ledger.commit("stream", {})
    assert ledger.verify() == []


def test_a_restored_old_state_cannot_write_the_next_note(ledger: Ledger) -> None:
    first = ledger.note("census", "stream", {"generation": 1}, follows=0)
    ledger.note("census", "stream", {"generation": 2}, follows=first.number)
    with pytest.raises(VerificationError) as refused:
        ledger.note("census", "stream", {"generation": 2}, follows=first.number)
    assert str(refused.value) == (
        "release stream has gone on since entry 1: its last note in the ledger is entry 2.\n"
        "What this release was charged stays charged. Use its newest state, never a copy from before."
    )


# --- many processes, killed at any moment ------------------------------------------------------------

ONE_CHARGE = """
import sys
from fractions import Fraction
from dpsynth_cli.errors import BudgetError
from dpsynth_cli.trusted.ledger.grants import Cost, Unit
from dpsynth_cli.trusted.ledger.ledger import Ledger
TENTH = Cost(Fraction(1, 10), Unit("epsilon", "add_remove"), "0.1")
path, release = sys.argv[1:]
sys.stdin.read()  # all start together
try:
    Ledger(path).reserve("census", release, "n", TENTH)
    print("charged")
except BudgetError:
    print("refused")
"""

MANY_RELEASES = """
import itertools, os, sys
from fractions import Fraction
from dpsynth_cli.errors import BudgetError
from dpsynth_cli.trusted.ledger.grants import Cost, Unit
from dpsynth_cli.trusted.ledger.ledger import Ledger
TENTH = Cost(Fraction(1, 10), Unit("epsilon", "add_remove"), "0.1")
path, receipts, worker = sys.argv[1:]
ledger = Ledger(path)
out = os.open(receipts, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def receipt(kind, release, number):
    os.write(out, f"{kind} {release} {number}\\n".encode())  # kept by the system even if we are killed next
print("ready", flush=True)
for i in itertools.count():
    release = f"{worker}-{i}"
    try:
        done = ledger.reserve("census", release, "n", TENTH)
    except BudgetError:
        break
    receipt("reserve", release, done.number)
    if i % 3 == 2:
        ledger.abort(release, "why")
        receipt("abort", release, 0)
        continue
    receipt("drawn", release, ledger.drawn(release).number)
    receipt("commit", release, ledger.commit(release, {"output": release}).number)
"""


Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def run() -> Iterator[Run]:
    """Start a script in a process of its own; none outlives its test."""
    started = []

    def start(script: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", script, *map(str, arguments)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_of_forty_processes_at_once_a_grant_for_ten_lets_exactly_ten_through(
    ledger: Ledger, run: Run
) -> None:
    grant(ledger, "1")
    processes = [run(ONE_CHARGE, ledger.path, f"r{i}") for i in range(40)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    answers = sorted(process.communicate(timeout=60)[0].strip() for process in processes)
    assert answers == ["charged"] * 10 + ["refused"] * 30
    assert ledger.balance("census").remaining == 0
    assert ledger.verify() == []


def test_processes_that_make_the_ledger_at_once_make_one(ledger: Ledger, run: Run) -> None:
    processes = [run(ONE_CHARGE, ledger.path, f"r{i}") for i in range(6)]
    answers = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert answers == ["charged"] * 6
    assert ledger.head()[0] == 6
    assert ledger.verify() == []


def kill_and_compare(ledger: Ledger, run: Run, folder: Path, grant_for: int, rounds: int, seed: int) -> int:
    """Rounds of three workers, all but the last one killed; the receipts against the ledger."""
    grant(ledger, f"{grant_for / 10:g}")
    chance = random.Random(seed)
    killed = 0
    for number in range(rounds):
        workers = [
            run(MANY_RELEASES, ledger.path, folder / f"{number}-{i}", f"{number}-{i}") for i in range(3)
        ]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            time.sleep(chance.uniform(0, 0.12))
            worker.kill()
            worker.communicate()
            killed += worker.returncode == -signal.SIGKILL
        assert ledger.verify() == []
    run(MANY_RELEASES, ledger.path, folder / "last", "last").communicate(timeout=300)

    promised = [line.split() for file in folder.iterdir() for line in file.read_text().splitlines()]
    assert promised
    kept = {(entry.kind, entry.release): entry.number for entry in ledger.log()}
    for kind, release, number in promised:
        assert (kind, release) in kept
        assert kind == "abort" or kept[kind, release] == int(number)
    # The last worker went on until it was refused: every tenth is charged, and none twice.
    assert ledger.balance("census").remaining == 0
    charged = sum(entry.kind == "reserve" for entry in ledger.log())
    refunded = sum(entry.kind == "abort" and entry.payload["refunded"] for entry in ledger.log())
    assert charged - refunded == grant_for
    assert ledger.verify() == []
    return killed


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
def test_killed_at_any_moment_nothing_is_lost_and_nothing_overdrawn(
    ledger: Ledger, run: Run, tmp_path: Path
) -> None:
    receipts = tmp_path / "receipts"
    receipts.mkdir()
    assert kill_and_compare(ledger, run, receipts, grant_for=60, rounds=5, seed=11) > 1


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
def test_killed_at_any_moment_many_times(ledger: Ledger, run: Run, tmp_path: Path) -> None:
    receipts = tmp_path / "receipts"
    receipts.mkdir()
    assert kill_and_compare(ledger, run, receipts, grant_for=400, rounds=60, seed=12) > 100


DIES_BEFORE_COMMIT = """
import os, signal, sys
from fractions import Fraction
from dpsynth_cli.trusted.ledger import chain, sqlite_file
from dpsynth_cli.trusted.ledger.grants import Cost, Unit
from dpsynth_cli.trusted.ledger.ledger import Ledger
TENTH = Cost(Fraction(1, 10), Unit("epsilon", "add_remove"), "0.1")
append = chain.append
def dying(*arguments):
    append(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
chain.append = dying
Ledger(sys.argv[1]).reserve("census", "r2", "n", TENTH)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
def test_an_entry_whose_writer_died_before_the_end_is_not_there(ledger: Ledger, run: Run) -> None:
    pure(ledger, "r1", TENTH)
    head = ledger.head()
    process = run(DIES_BEFORE_COMMIT, ledger.path)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert ledger.head() == head
    assert pure(ledger, "r2", TENTH).number == 2
    assert ledger.verify() == []


def test_an_entry_is_synced_to_disk_before_its_transaction_ends(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "SYNCHRONOUS", SYNCHRONOUS)
    with sqlite_file.transaction(ledger.path, write=True, create=True) as db:
        assert db.execute("PRAGMA synchronous").fetchone()[0] == 3  # EXTRA: file and folder
        assert db.execute("PRAGMA journal_mode").fetchone()[0] == "delete"


# --- every change is found ---------------------------------------------------------------------------


@pytest.fixture
def written(ledger: Ledger) -> Ledger:
    """A ledger with every kind of entry, and two data sets."""
    grant(ledger, "1")
    pure(ledger, "r1", TENTH)
    ledger.drawn("r1")
    ledger.commit("r1", {"output_sha256": "ab" * 32})
    zcdp(ledger, "r2", TENTH, "trips")
    ledger.abort("r2", "no such file")
    ledger.note("trips", "stream", {"generation": 1})
    pure(ledger, "r3", TENTH, "census")
    assert ledger.verify(ledger.head()[1]) == []
    return ledger


COLUMNS = ["number", "time", "dataset", "kind", "release", "payload", "salt", "previous", "hash"]


@pytest.mark.parametrize("column", COLUMNS)
def test_an_edit_of_any_column_of_any_entry_is_found(written: Ledger, tmp_path: Path, column: str) -> None:
    copy = Ledger(tmp_path / "copy.sqlite")
    changes = [
        f"{column} || ' '",
        f"CAST({column} AS BLOB)",
        "'x'",
        f"upper({column}) || 'A'",
        "x'ff'",
        "CAST(x'ff' AS TEXT)",
    ]
    if column == "number":
        changes = ["number + 100", "-number", "0"]
    for number in range(1, written.head()[0] + 1):
        for change in changes:
            shutil.copy(written.path, copy.path)
            edit(copy.path, f"UPDATE entries SET {column} = {change} WHERE number = ?", number)
            assert copy.verify() != [], (number, change)


def test_an_edited_entry_is_named_and_no_decision_rests_on_it(written: Ledger) -> None:
    edit(written.path, "UPDATE entries SET payload = replace(payload, '1/10', '1/11') WHERE number = 2")
    assert written.verify() == ["entry 2 was changed after it was written"]
    with pytest.raises(VerificationError) as refused:
        pure(written, "r9", TENTH)
    assert str(refused.value) == (
        "entry 2 of the ledger was changed after it was written.\n"
        "No decision was based on it. See what else was changed: dpsynth budget verify"
    )


def rehash(path: Path, number: int) -> None:
    """What a careful forger does after an edit: make the entry's own hash right again."""
    with closing(sqlite3.connect(path)) as db:
        row = db.execute(f"SELECT {', '.join(COLUMNS)} FROM entries WHERE number = ?", (number,)).fetchone()
    edit(path, "UPDATE entries SET hash = ? WHERE number = ?", chain.entry_hash(*row[:-1]), number)


def test_an_edit_with_its_hash_made_right_is_found_by_the_next_entry(written: Ledger) -> None:
    head = written.head()
    for number in range(1, head[0]):
        before = written.path.read_bytes()
        edit(written.path, "UPDATE entries SET time = '2020-01-01T00:00:00Z' WHERE number = ?", number)
        rehash(written.path, number)
        assert written.verify() == [f"entry {number + 1} does not follow from the entry before it"]
        written.path.write_bytes(before)
    edit(written.path, "UPDATE entries SET time = '2020-01-01T00:00:00Z' WHERE number = ?", head[0])
    rehash(written.path, head[0])
    assert written.verify() == []  # the last entry has no next one: only a known head finds it
    assert written.verify(head[1]) == [not_here(head[1], head[0])]


def test_sixty_four_zeros_are_no_entry_of_a_ledger(written: Ledger) -> None:
    assert written.verify(chain.START) == [not_here(chain.START, 8)]


def not_here(known: str, last: int) -> str:
    return (
        f"the entry {known} is known elsewhere and is not here: this ledger, which ends with entry {last}, "
        "was cut off, or is an older copy or another ledger"
    )


def test_a_removed_entry_is_found(written: Ledger) -> None:
    before = written.path.read_bytes()
    for number in range(1, written.head()[0]):
        edit(written.path, "DELETE FROM entries WHERE number = ?", number)
        assert written.verify() == [f"entries are missing before entry {number + 1}, from entry {number} on"]
        edit(written.path, "UPDATE entries SET number = number - 1 WHERE number > ?", number)
        assert written.verify() != []  # closing the gap does not help
        written.path.write_bytes(before)


def test_two_entries_that_changed_places_are_found(written: Ledger) -> None:
    last = written.head()[0]
    before = written.path.read_bytes()
    for number in range(1, last):
        for sql in (
            "UPDATE entries SET number = -1 WHERE number = ?1",
            "UPDATE entries SET number = ?1 WHERE number = ?1 + 1",
            "UPDATE entries SET number = ?1 + 1 WHERE number = -1",
        ):
            edit(written.path, sql.replace("?1", str(number)))
        assert written.verify() != []
        written.path.write_bytes(before)


def test_an_inserted_entry_is_found(written: Ledger) -> None:
    last = written.head()[0]
    before = written.path.read_bytes()
    columns = ", ".join(COLUMNS[1:])
    for place in (-1, 0, last + 1, last + 7):
        edit(written.path, f"INSERT INTO entries SELECT {place}, {columns} FROM entries WHERE number = 2")
        assert written.verify() != []
        written.path.write_bytes(before)


def test_an_entry_before_the_first_is_found_though_its_hash_is_right(ledger: Ledger) -> None:
    ledger.create()
    said = (0, "2026-01-31T12:00:00Z", "census", "note", "r", "{}", "ab" * 16, chain.START)
    sql = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    edit(ledger.path, sql, *said, chain.entry_hash(*said))
    assert ledger.verify() == ["entry 0 does not belong here"]


def test_a_cut_off_tail_is_found_by_any_published_head(written: Ledger) -> None:
    number, known = written.head()
    for kept in reversed(range(number)):
        edit(written.path, "DELETE FROM entries WHERE number > ?", kept)
        assert written.verify() == []  # whole in itself
        assert written.verify(known) == [not_here(known, kept)]


def test_a_restored_old_copy_that_went_on_is_found_by_a_published_head(
    written: Ledger, tmp_path: Path
) -> None:
    copy = tmp_path / "backup"
    shutil.copy(written.path, copy)
    pure(written, "r4", TENTH)
    published = written.head()
    shutil.copy(copy, written.path)
    pure(written, "r5", TENTH)
    assert written.verify() == []
    assert written.verify(published[1]) == [not_here(published[1], published[0])]


def forged(ledger: Ledger, *entries: tuple[str, str, str, dict[str, Any]]) -> list[str]:
    """The problems of a chain that is whole but was not written by dpsynth's rules."""
    with sqlite_file.transaction(ledger.path, write=True, create=True) as db:
        for entry in entries:
            chain.append(db, *entry)
    return ledger.verify()


TERMS = {
    "amount": "1",
    "currency": "epsilon",
    "neighbours": "add_remove",
    "epsilon": "1",
    "delta": None,
    "allow_unbounded": False,
    "charged": "1",
}


def granted(**other: Any) -> tuple[str, str, str, dict[str, Any]]:
    return "d", "grant", "", {**TERMS, **other}


def reserved(release: str = "r", **other: Any) -> tuple[str, str, str, dict[str, Any]]:
    return "d", "reserve", release, {**TERMS, **other}


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([granted(), reserved(), reserved("s")], "entry 3: d is overdrawn"),
        ([reserved(charged=None), granted(epsilon="1/2")], "entry 2: d is overdrawn"),
        ([reserved()], "entry 1: d has no grant to charge"),
        ([granted(), reserved(), reserved()], "entry 3: release r cannot be reserved here"),
        ([granted(), ("d", "drawn", "r", {})], "entry 2: release r cannot be drawn here"),
        ([granted(), reserved(), ("e", "drawn", "r", {})], "entry 3: release r cannot be drawn here"),
        ([granted(), reserved(), ("d", "commit", "r", {})], "entry 3: release r cannot be committed here"),
        (
            [granted(), reserved(charged="1/2")],
            "entry 2: d was charged another amount than the release costs",
        ),
        (
            [granted(), reserved(neighbours="replace_one")],
            "entry 2: d was charged in a unit that its grant does not cover",
        ),
        (
            [granted(), reserved(currency="unbounded")],
            "entry 2: d was charged in a unit that its grant does not cover",
        ),
        (
            [granted(), granted(neighbours="replace_one")],
            "entry 2: d was granted a second kind of budget",
        ),
        (
            [granted(currency="rho", delta="1e-9"), granted(currency="rho", delta="1e-6")],
            "entry 2: d was granted a second kind of budget",
        ),
        (
            [reserved(charged=None, currency="rho", delta="1e-9"), granted()],
            "entry 2: d was granted a budget that cannot count its earlier releases",
        ),
        ([granted(), ("d", "reserve", "r", {})], "entry 2: it is not one that dpsynth writes"),
        ([granted(), reserved(amount="x")], "entry 2: it is not one that dpsynth writes"),
        ([granted(), ("d", "gift", "", {})], "entry 2: there is no such kind of entry"),
    ],
)
def test_an_entry_that_breaks_the_rules_is_found_in_a_chain_that_is_whole(
    ledger: Ledger, entries: list[tuple[str, str, str, dict[str, Any]]], problem: str
) -> None:
    assert forged(ledger, *entries) == [problem]


def test_what_dpsynth_did_not_write_is_no_ground_for_a_decision(ledger: Ledger) -> None:
    forged(ledger, ("census", "reserve", "r", {}))
    with pytest.raises(VerificationError) as refused:
        pure(ledger, "s", TENTH)
    assert str(refused.value) == (
        "entry 1 of the ledger is not one that dpsynth writes.\n"
        "No decision was based on it. See what else is wrong: dpsynth budget verify"
    )


def test_an_sql_prompt_cannot_edit_by_accident(written: Ledger) -> None:
    with closing(sqlite3.connect(written.path)) as db:
        for sql in ("UPDATE entries SET time = ''", "DELETE FROM entries"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                db.execute(sql)


# --- the file ----------------------------------------------------------------------------------------


def test_the_ledger_is_made_on_first_use_for_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = Ledger(tmp_path / "new" / "folders" / "ledger #1?.sqlite")
        assert ledger.create()
        assert not ledger.create()
    finally:
        os.umask(before)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(ledger.path.parent.stat().st_mode) == 0o700
    assert ledger.head() == (0, "0" * 64)
    assert sorted(path.name for path in ledger.path.parent.iterdir()) == ["ledger #1?.sqlite"]


def test_an_empty_file_becomes_a_ledger(ledger: Ledger) -> None:
    ledger.path.touch()
    with pytest.raises(FileError):
        ledger.head()
    grant(ledger, "1")
    assert ledger.head()[0] == 1


def test_the_ledger_is_where_the_option_or_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPSYNTH_LEDGER", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setattr(sys, "platform", "linux")
    assert ledger_path(None) == Path("/home/ada/.local/share/dpsynth/ledger.sqlite")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert ledger_path(None) == Path("/home/ada/Library/Application Support/dpsynth/ledger.sqlite")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert ledger_path(None) == Path("/data/dpsynth/ledger.sqlite")
    monkeypatch.setenv("DPSYNTH_LEDGER", "/srv/ledger")
    assert ledger_path(None) == Path("/srv/ledger")
    assert ledger_path("~/mine") == Path("/home/ada/mine")


def told(path: Path, action: Callable[[Ledger], object]) -> str:
    """The text of the FileError that the action ends in."""
    with pytest.raises(FileError) as refused:
        action(Ledger(path, timeout=0.2))
    assert refused.value.exit_code == 5
    return str(refused.value)


def test_a_missing_ledger_is_not_made_by_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "typo.sqlite"
    assert told(path, Ledger.verify) == (
        f"there is no ledger at {path}.\n"
        "Nothing was read and nothing was spent. Make one with: dpsynth budget init, or name the right file "
        "with --ledger or $DPSYNTH_LEDGER."
    )
    assert not path.exists()


def test_a_locked_ledger_says_who_to_wait_for_and_what_it_cost(written: Ledger) -> None:
    pure(written, "r9", TENTH)
    with closing(sqlite3.connect(written.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for action, cost in (
            (lambda ledger: pure(ledger, "r10", TENTH), "Nothing was read and nothing was spent."),
            (lambda ledger: grant(ledger, "1"), "Nothing was granted."),
            (lambda ledger: ledger.drawn("r9"), NO_ROW),
            (lambda ledger: ledger.commit("r9", {}), CHARGED),
            (lambda ledger: ledger.abort("r9", "why"), CHARGED),
            (lambda ledger: ledger.note("census", "r9", {}), CHARGED),
        ):
            assert told(written.path, action) == (
                f"the ledger {written.path} was locked by another process for 0.2 seconds.\n"
                f"{cost} Wait for the other dpsynth to finish, or end it if it hangs, and run this again."
            )
        assert Ledger(written.path, timeout=0.2).verify() == []  # reading goes on beside a writer
    assert written.state("r9") == "reserved"


def test_a_file_that_is_no_database_is_told_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a ledger " * 200)
    before = path.read_bytes()
    for action in (Ledger.verify, lambda ledger: pure(ledger, "r", TENTH)):
        assert told(path, action) == (
            f"{path} is not a ledger: it is not an SQLite database.\n"
            "Nothing was read and nothing was spent. Name the right file with --ledger or $DPSYNTH_LEDGER."
        )
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "photos.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE photos (name)")
    before = path.read_bytes()
    assert told(path, lambda ledger: pure(ledger, "r", TENTH)) == (
        f"{path} is a database of another program, not a ledger.\n"
        "Nothing was read and nothing was spent. Name the right file with --ledger or $DPSYNTH_LEDGER."
    )
    assert path.read_bytes() == before


# Format 2 had charges in rho of zCDP, of which the epsilon of a Gaussian profile does not follow.
@pytest.mark.parametrize("version", [2, 4])
def test_an_older_or_newer_format_is_refused(written: Ledger, version: int) -> None:
    edit(written.path, f"PRAGMA user_version = {version}")
    assert told(written.path, lambda ledger: pure(ledger, "r10", TENTH)) == (
        f"the ledger {written.path} has format {version}, and this dpsynth knows format 3.\n"
        "Nothing was read and nothing was spent. Use the dpsynth that made it: a new ledger (--ledger, "
        "$DPSYNTH_LEDGER) would not know what this one charged."
    )


def test_a_damaged_ledger_says_how_to_restore_it(written: Ledger) -> None:
    edit(written.path, "DROP TABLE entries")
    for action in (Ledger.head, Ledger.verify, lambda ledger: pure(ledger, "r10", TENTH)):
        assert told(written.path, action) == (
            f"the ledger {written.path} is damaged (no such table: entries).\n"
            "Nothing was read and nothing was spent. Restore it from a backup and compare that with the "
            "newest published audit: dpsynth budget verify --head HASH"
        )


def test_overwritten_pages_are_never_a_traceback(written: Ledger) -> None:
    whole = written.path.read_bytes()
    chance = random.Random(5)
    for start in range(0, len(whole), 512):
        junk = bytes(chance.randrange(256) for _ in range(512))
        written.path.write_bytes(whole[:start] + junk + whole[start + 512 :])
        try:
            problems = written.verify()
        except FileError:
            problems = ["damaged"]
        assert problems or not any(whole[start : start + 512])  # in free space junk harms nothing
        with suppress(FileError, VerificationError):
            pure(written, f"r{start}", Fraction(1, 1000))


def test_a_truncated_ledger_is_never_a_traceback(written: Ledger) -> None:
    whole = written.path.read_bytes()
    for length in range(1, len(whole), 1500):
        written.path.write_bytes(whole[:length])
        try:
            problems = written.verify()
        except FileError:
            continue
        assert problems


def test_a_folder_in_place_of_the_ledger_is_told(tmp_path: Path) -> None:
    assert told(tmp_path, lambda ledger: pure(ledger, "r", TENTH)) == (
        f"the ledger {tmp_path} cannot be opened by this user.\n"
        "Nothing was read and nothing was spent. Check that it is a file, and that this user may read and "
        "write it and its folder."
    )


def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "ledger.sqlite"
    assert told(path, lambda ledger: pure(ledger, "r", TENTH)) == (
        f"the ledger {path} cannot be used: File exists.\n"
        "Nothing was read and nothing was spent. Make its folder writable for this user, or name another "
        "file with --ledger or $DPSYNTH_LEDGER."
    )


def as_ordinary_user(action: Callable[[], object]) -> str:
    """What the action raises in a child process that may not write everywhere: root may."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a test runner's threads do not matter here
        child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            action()
            said = "no error"
        except FileError as error:
            said = str(error)
        except BaseException as error:
            said = repr(error)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter: those of the test runner are closed to all but one."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o700)


@pytest.mark.skipif(os.name != "posix", reason="permissions and fork are POSIX")
def test_a_ledger_or_folder_that_may_not_be_written_is_told(open_folder: Path) -> None:
    ledger = Ledger(open_folder / "ledger.sqlite", timeout=0.2)
    grant(ledger, "1")
    ledger.path.chmod(0o444)
    open_folder.chmod(0o555)
    assert as_ordinary_user(lambda: pure(ledger, "r", TENTH)) == (
        f"the ledger {ledger.path} cannot be written by this user.\n"
        "Nothing was read and nothing was spent. Make the file and its folder writable: SQLite keeps a "
        "journal beside the file."
    )
    assert as_ordinary_user(ledger.verify) == "no error"  # reading needs no right to write
    other = Ledger(open_folder / "other.sqlite")
    assert as_ordinary_user(lambda: pure(other, "r", TENTH)) == (
        f"the ledger {other.path} cannot be used: Permission denied.\n"
        "Nothing was read and nothing was spent. Make its folder writable for this user, or name another "
        "file with --ledger or $DPSYNTH_LEDGER."
    )
    ledger.path.chmod(0o000)
    assert as_ordinary_user(ledger.head) == (
        f"the ledger {ledger.path} cannot be opened by this user.\n"
        "Nothing was read and nothing was spent. Check that it is a file, and that this user may read and "
        "write it and its folder."
    )
    ledger.path.chmod(0o600)
    assert ledger.head()[0] == 1


def test_importing_the_ledger_is_light() -> None:
    code = (
        "import sys, dpsynth_cli.trusted.ledger.ledger\n"
        "print({'numpy', 'pyarrow', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_an_entry_can_be_checked_by_hand(written: Ledger) -> None:
    """SHA-256 of the JSON of all other fields, sorted and without spaces."""
    entry = written.log()[3]
    text = json.dumps(entry.payload, sort_keys=True, separators=(",", ":"))
    said = {**vars(entry), "payload": text}
    del said["hash"]
    by_hand = hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    assert entry.hash == by_hand
    assert entry.payload == {"output_sha256": "ab" * 32}


@pytest.mark.parametrize("number", [None, "3", 2.0, b"\x00"])
def test_an_entry_whose_number_is_none_is_told(number):
    """Found by fuzzing: a damaged database file may have anything in a column."""
    assert chain.problems([(number, *["x"] * 8)]) == ["an entry behind entry 0 has no number"]
