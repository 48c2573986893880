"""A ledger on a real PostgreSQL server: many machines at once, and kill -9 of client and server between any
two statements."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from fractions import Fraction
from itertools import count
from pathlib import Path

import pytest

from dpsynth_cli.errors import DpsynthError, FileError
from dpsynth_cli.trusted.ledger.grants import Cost, Unit
from dpsynth_cli.trusted.ledger.ledger import Ledger

NUMBERS = count()
TENTH = Cost(Fraction(1, 10), Unit("epsilon", "add_remove"), "0.1")


@pytest.fixture
def database(server) -> str:
    name = f"many{next(NUMBERS)}"
    server.database(name)
    return name


RUSH = """
import sys
from fractions import Fraction
from dpsynth_cli.errors import BudgetError
from dpsynth_cli.trusted.ledger.grants import Cost, Unit
from dpsynth_cli.trusted.ledger.ledger import Ledger
ledger = Ledger(sys.argv[1], timeout=120)
sys.stdin.readline()
try:
    ledger.reserve("census", sys.argv[2], "n", Cost(Fraction(1, 10), Unit("epsilon", "add_remove"), "0.1"))
    ledger.drawn(sys.argv[2])
except BudgetError:
    sys.exit(3)
"""


def rush(addresses: list[str], count: int) -> list[int]:
    """So many processes, each waiting for the word, and then all at once."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RUSH, addresses[i % len(addresses)], f"r{i}"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )
        for i in range(count)
    ]
    codes = []
    for process in running:
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in running:
        _, err = process.communicate()
        assert process.returncode in (0, 3), err.decode()
        codes.append(process.returncode)
    return codes


@pytest.mark.parametrize(("processes", "fit"), [(10, 4), pytest.param(40, 11, marks=pytest.mark.slow)])
def test_exactly_as_many_succeed_as_fit(server, database, processes, fit):
    """Half of them over the network, all at one grant."""
    book = Ledger(server.url(database))
    book.grant("census", f"{fit / 10 + 0.05:.2f}", "add_remove")
    codes = rush([server.url(database), server.network(database)], processes)
    assert (codes.count(0), codes.count(3)) == (fit, processes - fit)
    assert book.balance("census").remaining == Fraction(5, 100)
    assert book.verify() == []


def test_many_make_the_tables_at_once_and_they_are_made_once(server, database):
    codes = rush([server.url(database), server.network(database)], 6)
    assert codes == [0] * 6
    assert Ledger(server.url(database)).verify() == []
    assert len(Ledger(server.url(database)).log()) == 12


DYING = """
import os, signal, sys
from fractions import Fraction
from dpsynth_cli.trusted.ledger import postgres
from dpsynth_cli.trusted.ledger.grants import Cost, Unit
from dpsynth_cli.trusted.ledger.ledger import Ledger
import psycopg
left = int(sys.argv[2])
execute = psycopg.Connection.execute
def counted(self, *words, **more):
    global left
    if left == 0:
        os.write(1, b"here")
        if sys.argv[3] == "client":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdin.read(1)
    left -= 1
    return execute(self, *words, **more)
psycopg.Connection.execute = counted
ledger = Ledger(sys.argv[1], timeout=10)
cost = Cost(Fraction(1, 10), Unit("epsilon", "add_remove"), "0.1")
ledger.reserve("census", "r", "n", cost)
os.write(1, b"reserved;")
ledger.drawn("r")
os.write(1, b"drawn;")
ledger.commit("r", {})
os.write(1, b"committed;over")
"""


def steps(book: Ledger) -> list[str]:
    assert book.verify() == []
    return [entry.kind for entry in book.find("r")]


def check_durable(book: Ledger, said: str) -> None:
    """What the process was told is done is done; at most one step more is."""
    told = [word for word in ("reserved", "drawn", "committed") if f"{word};" in said]
    found = {"reserve": "reserved", "drawn": "drawn", "commit": "committed"}
    here = [found[kind] for kind in steps(book)]
    assert here[: len(told)] == told
    assert len(here) <= len(told) + 1
    spent = Fraction(1, 10) if here else Fraction(0)
    assert book.balance("census").remaining == 1 - spent


def test_a_client_killed_between_any_two_statements(server, database):
    at, said = 0, ""
    while "over" not in said:
        name = database
        book = Ledger(server.emptied(name), timeout=10)
        book.grant("census", "1", "add_remove")
        ran = subprocess.run(
            [sys.executable, "-c", DYING, server.url(name), str(at), "client"], capture_output=True
        )
        said = ran.stdout.decode()
        assert ran.returncode == (-signal.SIGKILL if "here" in said else 0), ran.stderr.decode()
        check_durable(book, said)
        at += 1
    assert at > 20


@pytest.fixture(scope="module")
def mortal(server):
    """A server of its own, with one database: it is back the sooner."""
    from tests.postgres import Server

    own = Server()
    own.database("budget")
    yield own
    own.close()


EVERY = [pytest.param(at, marks=[] if at in (1, 9, 17, 24) else pytest.mark.slow) for at in range(29)]


@pytest.mark.parametrize("at", EVERY)
def test_a_server_killed_between_any_two_statements(mortal, at):
    """The client fails in words, and what it was told is done is there when the server is back."""
    server, name = mortal, "budget"
    book = Ledger(server.emptied(name), timeout=10)
    book.grant("census", "1", "add_remove")
    running = subprocess.Popen(
        [sys.executable, "-c", DYING, server.url(name), str(at), "server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    said = b""
    while b"here" not in said and (more := running.stdout.read(1)):
        said += more
    server.kill()
    rest, err = running.communicate(b"\n")
    with pytest.raises(FileError, match="cannot be reached"):
        book.head()
    server.start()
    assert b"FileError" in err
    assert b"cannot be reached, or the connection was lost" in err
    check_durable(book, (said + rest).decode())


def test_a_lock_that_is_held_is_waited_for_and_told(server, database):
    import psycopg

    book = Ledger(server.url(database), timeout=0.5)
    book.grant("census", "1", "add_remove")
    with psycopg.connect(server.url(database)) as other:
        other.execute("LOCK TABLE dpsynth.entries IN EXCLUSIVE MODE")
        with pytest.raises(FileError, match=r"was locked by another process for 0\.5 seconds"):
            book.reserve("census", "r", "n", TENTH)
        assert book.balance("census").remaining == 1  # reading does not wait
    book.reserve("census", "r", "n", TENTH)


def test_entries_are_not_edited_by_accident_and_found_if_on_purpose(server, database):
    import psycopg

    book = Ledger(server.url(database))
    book.grant("census", "1", "add_remove")
    book.reserve("census", "r", "n", TENTH)
    for sql in ("UPDATE dpsynth.entries SET kind = 'x'", "DELETE FROM dpsynth.entries",
                "TRUNCATE dpsynth.entries"):  # fmt: skip
        with psycopg.connect(server.url(database)) as db, pytest.raises(psycopg.DatabaseError):
            db.execute(sql)
    with psycopg.connect(server.url(database)) as db:
        db.execute("ALTER TABLE dpsynth.entries DISABLE TRIGGER ALL")
        db.execute("UPDATE dpsynth.entries SET dataset = 'other' WHERE number = 2")
    assert book.verify() == ["entry 2 was changed after it was written"]
    with pytest.raises(DpsynthError, match="was changed after it was written"):
        book.log()


def test_the_rights_that_users_need(server, database):
    """As docs/ledger.md has them: less is refused, and more is not needed."""
    import psycopg

    book = Ledger(server.url(database))
    book.grant("census", "1", "add_remove")
    theirs = server.url(database).replace("dpsynth@", f"{database}@", 1)
    with psycopg.connect(server.url(database), autocommit=True) as db:
        db.execute(f"CREATE ROLE {database} LOGIN")
        db.execute(f"GRANT USAGE ON SCHEMA dpsynth TO {database}")
        db.execute(f"GRANT SELECT, INSERT ON dpsynth.entries TO {database}")
        assert Ledger(theirs).verify() == []
        with pytest.raises(FileError, match="refuses this user"):
            Ledger(theirs).reserve("census", "r", "n", TENTH)
        db.execute(f"GRANT UPDATE ON dpsynth.entries TO {database}")
        Ledger(theirs).reserve("census", "r", "n", TENTH)
        with psycopg.connect(theirs) as other, pytest.raises(psycopg.errors.RaiseException):
            other.execute("UPDATE dpsynth.entries SET dataset = 'x'")


def test_a_client_that_hangs_inside_a_transaction_does_not_stop_the_others_for_ever(server, database):
    book = Ledger(server.url(database))
    book.grant("census", "1", "add_remove")
    with book.place.transaction(write=True) as db:
        assert db.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("1min",)


def test_a_release_and_a_stream_with_a_ledger_on_a_server(
    dpsynth, people, server, database, tmp_path, monkeypatch
):
    monkeypatch.setenv("DPSYNTH_LEDGER", server.network(database))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    assert dpsynth("budget", "init").code == 0
    assert dpsynth("budget", "grant", "people", "1.5").code == 0
    spec = people()
    ran = dpsynth("release", spec)
    assert ran.code == 0, ran.err
    assert "epsilon = 0.5 left" in ran.out
    assert dpsynth("release", spec, "--replace").code == 3
    ran = dpsynth("verify", "out/people.audit.json")
    assert ran.code == 0, ran.err
    assert "an unbroken chain" in ran.out
    for words in (("status",), ("budget", "show"), ("budget", "log"), ("budget", "verify")):
        ran = dpsynth(*words)
        assert ran.code == 0, ran.err
        assert "secret" not in ran.out
    text = spec.read_text().replace("marginals", "online").replace("input: people.csv\n", "")
    Path("stream.yaml").write_text(text.replace("name: people", "name: visits").replace("out/", "s/"))
    assert dpsynth("stream", "init", "stream.yaml").code == 0
    assert dpsynth("stream", "push", "stream.yaml", "people.csv", "--batch-id", "1", "--publish").code == 0
    assert list((tmp_path / "home/dpsynth").glob("postgresql-*.streams/visits.state"))
    ran = dpsynth("verify", "out/people.audit.json", "--ledger", server.url("none"))
    assert ran.code == 5
    assert "that the database is there" in ran.err
