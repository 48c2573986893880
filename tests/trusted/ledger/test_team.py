"""A ledger for a team: grants that are replaced, revoked and closed, patterns, rules, copies; in a file and
in PostgreSQL."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import count

import pytest

from dpsynth_cli import disk
from dpsynth_cli.errors import BudgetError, FileError, VerificationError
from dpsynth_cli.trusted.ledger import sqlite_file
from dpsynth_cli.trusted.ledger.grants import UNBOUNDED, Cost, Unit
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.ledger.policy import Policy

NUMBERS = count()


@pytest.fixture(params=["sqlite", "postgres"])
def book(request, tmp_path, monkeypatch) -> Ledger:
    monkeypatch.setattr(sqlite_file, "SYNCHRONOUS", "OFF")
    if request.param == "sqlite":
        return Ledger(tmp_path / "ledger.sqlite")
    server = request.getfixturevalue("server")
    return Ledger(server.database(f"team{next(NUMBERS)}"))


def pure(epsilon: str) -> Cost:
    return Cost(Fraction(epsilon), Unit("epsilon", "add_remove"), epsilon)


def rho(amount: str, epsilon: str = "1", delta: str = "1e-09") -> Cost:
    return Cost(Fraction(amount), Unit("rho", "add_remove"), epsilon, delta)


def released(book: Ledger, dataset: str, epsilon: str) -> str:
    release = f"release-{next(NUMBERS)}"
    book.reserve(dataset, release, "name", pure(epsilon))
    return release


def refused(book: Ledger, dataset: str, cost: Cost) -> str:
    before = book.head()
    with pytest.raises(BudgetError) as error:
        book.reserve(dataset, f"release-{next(NUMBERS)}", "name", cost)
    assert book.head() == before, "a refusal wrote an entry"
    with pytest.raises(BudgetError) as quoted:
        book.quote(dataset, cost)
    assert str(quoted.value) == str(error.value)
    return str(error.value)


# --- grants ------------------------------------------------------------------------------------------


def test_the_protocol_is_the_same_in_both(book):
    book.grant("census", "1", "add_remove")
    one = released(book, "census", "0.5")
    book.drawn(one)
    book.note("census", one, {"answers": 1, "sha256": "x"}, follows=0)
    with pytest.raises(VerificationError):
        book.note("census", one, {"answers": 1, "sha256": "y"}, follows=0)
    book.commit(one, {"output": "a"})
    two = released(book, "census", "0.5")
    assert "has 0 left" in refused(book, "census", pure("0.1"))
    assert book.abort(two, "why") is True
    with pytest.raises(VerificationError):
        book.drawn(two)
    assert book.balance("census").remaining == Fraction(1, 2)
    assert book.verify() == []
    assert book.verify(book.head()[1]) == []
    assert "was cut off" in book.verify("f" * 64)[0]


def test_a_grant_of_another_kind_replaces_and_counts_what_was_spent(book):
    """A grant without a delta and a spec with one: they collide, but not for ever."""
    book.grant("data", "2", "add_remove")
    released(book, "data", "0.05")
    said = refused(book, "data", rho("0.01"))
    assert "the one does not imply the other at any price" in said
    assert said.endswith("dpsynth budget grant data 2 --delta 1e-9 --replace")
    balance = book.grant("data", "2", "add_remove", "1e-9", replace=True)
    assert balance.charged is not None
    assert balance.charged > 0
    book.reserve("data", "with-delta", "name", rho("0.01"))
    assert book.verify() == []
    with pytest.raises(BudgetError, match="already charged"):
        book.grant("data", "0.0001", "add_remove", "1e-9", replace=True)


def test_revoked_nothing_more_until_a_new_grant_which_is_a_total(book):
    book.grant("census", "2", "add_remove")
    under_way = released(book, "census", "0.5")
    assert book.revoke("census").remaining == 0
    assert refused(book, "census", pure("0.1")).startswith("the budget of census was revoked.")
    book.drawn(under_way)  # what was paid for goes on
    with pytest.raises(BudgetError, match="already charged"):
        book.grant("census", "0.4", "add_remove")
    assert book.grant("census", "0.7", "add_remove").remaining == Fraction(1, 5)
    released(book, "census", "0.2")
    assert book.verify() == []
    with pytest.raises(BudgetError, match="has no grant"):
        book.revoke("other")


def test_closed_is_for_ever(book):
    book.grant("census", "2", "add_remove")
    book.close("census")
    assert "is closed: nothing more is released from it" in refused(book, "census", pure("0.1"))
    for replace in (False, True):
        with pytest.raises(BudgetError, match="closed, for ever"):
            book.grant("census", "5", "add_remove", replace=replace)
    book.close("never granted")
    refused(book, "never granted", pure("0.1"))
    assert book.verify() == []


def test_a_pattern_is_one_budget_for_all_that_match(book):
    """So that a new name is no new budget."""
    released(book, "people", "0.5")  # before the grant: it counts
    book.grant("people*", "2", "add_remove")
    released(book, "people2", "1")
    said = refused(book, "people3", pure("0.6"))
    assert "people* (all that match, together) has 0.5 left" in said
    released(book, "people3", "0.5")
    released(book, "trips", "9")
    assert book.balance("people4").remaining == 0
    assert book.verify() == []


def test_every_grant_that_covers_a_data_set_holds(book):
    book.grant("census-2026", "5", "add_remove")
    book.grant("census-*", "1", "add_remove")
    book.grant("*", "10", "add_remove")
    released(book, "census-2026", "0.75")
    assert "census-* (all that match, together) has 0.25 left" in refused(book, "census-2026", pure("0.5"))
    book.reserve("census-2026", "r", "n", pure("0.25"))
    assert book.find("r")[0].payload["charged"] == "1/4"
    book.revoke("*")
    assert "budget of * (all that match, together) was revoked" in refused(book, "new", pure("0.1"))
    assert book.verify() == []


@pytest.mark.parametrize("epsilon", ["2", "0.2"])
def test_a_forged_charge_beyond_a_pattern_is_found(book, epsilon):
    from dpsynth_cli.trusted.ledger import chain

    book.grant("people*", "1", "add_remove")
    with book.place.transaction(write=True) as db:
        chain.append(
            db, "people2", "reserve", "r", {"name": "n", **pure(epsilon).as_json(), "charged": "1/5"}
        )
    said = {"2": ["entry 2: people* is overdrawn"], "0.2": []}
    assert book.verify() == said[epsilon]


@pytest.mark.parametrize("name", ["Census", "census ", "\uff43ensus", "CENSUS"])
def test_a_name_that_looks_the_same_is_no_other_budget(book, name):
    book.grant("census", "1", "add_remove")
    released(book, name, "0.75")
    refused(book, name, pure("0.5"))
    refused(book, "census", pure("0.5"))
    book.close("census")
    refused(book, name, pure("0.1"))
    assert book.verify() == []


def test_a_refund_by_hand_does_not_end_what_has_read_rows(book):
    """It was looked at before, and has read a row since."""
    release = released(book, "census", "1")
    book.drawn(release)
    with pytest.raises(VerificationError, match="cannot be marked given back"):
        book.refund(release, "given back by hand")
    book.commit(release, {})
    book.refund(released(book, "census", "1"), "given back by hand")
    assert book.balance("census").releases == 1
    assert book.verify() == []


# --- rules -------------------------------------------------------------------------------------------


def test_without_a_grant_nothing_is_released_where_the_ledger_says_so(book):
    released(book, "loose", "1")
    book.set_policy(Policy(require_grant=True))
    said = refused(book, "renamed", pure("0.1"))
    assert said.startswith("renamed has no grant, and this ledger releases nothing without one.")
    assert "privacy.dataset" in said
    book.grant("renamed", "1", "add_remove")
    released(book, "renamed", "0.1")
    assert book.verify() == []


def test_the_most_that_one_release_may_cost(book):
    book.set_policy(Policy(most_epsilon=Fraction(1), most_delta=Fraction("1e-6")))
    released(book, "census", "1")
    assert "has epsilon = 1.5, and this ledger allows you at most 1" in refused(book, "census", pure("1.5"))
    assert "delta = 0.001, and this ledger allows you at most" in refused(
        book, "census", rho("0.01", delta="0.001")
    )
    book.reserve("census", "small", "n", rho("0.01", delta="1e-06"))
    assert "no epsilon at all" in refused(book, "census", UNBOUNDED)
    book.set_policy(Policy(most_delta=Fraction(0)))
    refused(book, "census", rho("0.01"))
    assert "no delta at all" in refused(book, "census", UNBOUNDED)
    assert book.verify() == []


def test_a_rule_that_is_not_named_stays_as_it_is(book):
    """Whatever it was when the command began: two owners may change rules at once."""
    book.set_policy(Policy(require_grant=True, most_epsilon=Fraction(1)))
    book.set_policy(Policy(most_delta=Fraction(0)), only=["most_delta"])
    assert book.policy() == Policy(True, Fraction(1), Fraction(0))


def test_a_rule_for_one_person_goes_before_the_rule_for_all(book, monkeypatch):
    for person, most in (("", "1"), ("ann", "5")):
        book.set_policy(Policy(most_epsilon=Fraction(most)), person)
    for name in ("ledger", "reading"):
        monkeypatch.setattr(f"dpsynth_cli.trusted.ledger.{name}.who", lambda: "ann")
    release = released(book, "census", "4")
    assert book.find(release)[0].payload["by"] == "ann"
    for name in ("ledger", "reading"):
        monkeypatch.setattr(f"dpsynth_cli.trusted.ledger.{name}.who", lambda: "bob")
    refused(book, "census", pure("4"))
    assert book.verify() == []


def test_a_charge_against_the_rules_is_found(book):
    from dpsynth_cli.trusted.ledger import chain

    book.set_policy(Policy(require_grant=True))
    with book.place.transaction(write=True) as db:
        chain.append(db, "x", "reserve", "r", {"name": "n", **pure("1").as_json()})
    assert book.verify() == ["entry 2: x was charged against the ledger's own rules"]


# --- copies ------------------------------------------------------------------------------------------


def test_a_copy_moves_with_its_chain_whole(book, tmp_path, request):
    book.grant("census", "1", "add_remove")
    release = released(book, "census", "0.25")
    copy = tmp_path / "copy.jsonl"
    assert (book.export(copy), book.export(copy)) == (2, 0)
    book.drawn(release)
    assert book.export(copy) == 1
    assert copy.stat().st_mode & 0o077 == 0
    other = Ledger(tmp_path / "other.sqlite")
    assert (other.take(copy), other.take(copy)) == (3, 0)
    assert other.head() == book.head()
    assert other.verify(book.head()[1]) == []
    other.commit(release, {})
    assert other.balance("census").remaining == Fraction(3, 4)
    # And back into an empty one of the first kind.
    assert other.export(copy) == 1
    if not isinstance(book.path, str):
        back = Ledger(tmp_path / "back.sqlite")
    else:
        back = Ledger(request.getfixturevalue("server").database(f"team{next(NUMBERS)}"))
    assert back.take(copy) == 4
    assert (back.head(), back.verify()) == (other.head(), [])


def test_two_ledgers_cannot_be_made_one(book, tmp_path):
    book.grant("census", "1", "add_remove")
    other = Ledger(tmp_path / "other.sqlite")
    other.grant("census", "1", "add_remove")
    book.export(tmp_path / "copy.jsonl")
    with pytest.raises(VerificationError, match="Two ledgers cannot be made one"):
        raise_words(lambda: other.take(tmp_path / "copy.jsonl"))
    with pytest.raises(VerificationError, match="is not a copy of the beginning"):
        other.export(tmp_path / "copy.jsonl")


def raise_words(work) -> None:
    try:
        work()
    except VerificationError as error:
        raise VerificationError(str(error)) from None


def test_an_edited_or_cut_copy_is_refused(book, tmp_path):
    book.grant("census", "1", "add_remove")
    released(book, "census", "0.25")
    copy, other = tmp_path / "copy.jsonl", Ledger(tmp_path / "other.sqlite")
    book.export(copy)
    lines = copy.read_text().splitlines(keepends=True)
    for wrong in (
        [lines[1]],
        [lines[0].replace("census", "Census"), lines[1]],
        ["{}\n"],
        ["x\n"],
        [lines[0].replace('"number":1', '"number":"1"')],
    ):
        copy.write_text("".join(wrong))
        with pytest.raises(VerificationError):
            other.take(copy)
    copy.write_text("".join(lines) + lines[1][:20])  # a crash while it was written: mended by the next export
    released(book, "census", "0.25")
    assert book.export(copy) == 1
    assert [json.loads(line)["number"] for line in copy.read_text().splitlines()] == [1, 2, 3]


@pytest.mark.parametrize("other", [b"one\ntwo", b"\x00", b"one\n", b"{"])
def test_a_file_that_is_something_else_is_left_as_it_is(book, tmp_path, other):
    book.grant("census", "1", "add_remove")
    (tmp_path / "mine").write_bytes(other * 2)
    with pytest.raises(VerificationError, match="is not a copy of the beginning"):
        book.export(tmp_path / "mine")
    assert (tmp_path / "mine").read_bytes() == other * 2


def test_a_ledger_is_not_exported_onto_itself(tmp_path):
    book = Ledger(tmp_path / "ledger.sqlite")
    book.grant("census", "1", "add_remove")
    with pytest.raises(VerificationError):
        book.export(tmp_path / "ledger.sqlite")
    assert book.verify() == []


def test_every_entry_is_mirrored_for_auditors(book, tmp_path, monkeypatch):
    mirror = tmp_path / "audit" / "mirror.jsonl"
    monkeypatch.setenv("DPSYNTH_LEDGER_MIRROR", str(mirror))
    watched = Ledger(book.path if not isinstance(book.path, str) else book.place._url)
    watched.grant("census", "1", "add_remove")
    released(watched, "census", "0.25")
    assert [json.loads(line)["kind"] for line in mirror.read_text().splitlines()] == ["grant", "reserve"]
    # What was written without it is caught up with; a mirror that was edited stops the next charge.
    released(book, "census", "0.25")
    released(watched, "census", "0.25")
    assert len(mirror.read_text().splitlines()) == 4
    mirror.write_text(mirror.read_text().replace("census", "sensus", 1))
    with pytest.raises(VerificationError, match="not a copy of the beginning"):
        released(watched, "census", "0.25")
    assert watched.balance("census").remaining == Fraction(1, 4)
    mirror.unlink()
    mirror.mkdir()
    with pytest.raises(FileError):
        released(watched, "census", "0.25")


def test_a_mirror_that_another_process_has_brought_further_is_no_alarm(book, tmp_path, monkeypatch):
    """It is locked before the ledger is read: so nothing can be added between the two."""
    book.grant("census", "1", "add_remove")
    mirror, locked = tmp_path / "mirror.jsonl", disk.lock

    def after_another(file):
        monkeypatch.setattr(disk, "lock", locked)
        released(book, "census", "0.25")
        book.export(mirror)
        return locked(file)

    monkeypatch.setattr(disk, "lock", after_another)
    assert book.export(mirror) == 0
    assert len(mirror.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:se@secret@127.0.0.1:1/budget",
        "postgresql://ann@127.0.0.1:1/budget?password=secret&connect_timeout=1",
        "postgresql:///budget?host=127.0.0.1&port=1&sslpassword=secret",
    ],
)
def test_a_password_elsewhere_in_an_address_is_not_shown(url):
    assert "secret" not in str(Ledger(url).path)
    assert "secret" not in str(Ledger(url).place.private)


def test_the_password_is_shown_nowhere():
    pytest.importorskip("psycopg")
    ledger = Ledger("postgresql://ann:secret@127.0.0.1:1/budget", timeout=1)
    assert str(ledger.path) == "postgresql://ann@127.0.0.1:1/budget"
    assert re.fullmatch(r"[\w.-]+", ledger.place.private.name)
    with pytest.raises(FileError) as error:
        ledger.head()
    assert "secret" not in str(error.value)
    assert "cannot be reached" in str(error.value)


@pytest.mark.parametrize(("kind", "was"), [("revoke", "revoked"), ("close", "closed")])
def test_a_charge_after_the_end_is_found(book, kind, was):
    from dpsynth_cli.trusted.ledger import chain

    book.grant("census", "5", "add_remove")
    getattr(book, kind)("census")
    with book.place.transaction(write=True) as db:
        chain.append(db, "census", "reserve", "r", {"name": "n", **pure("1").as_json(), "charged": "1"})
    assert book.verify() == [f"entry 3: census was {was} before"]
