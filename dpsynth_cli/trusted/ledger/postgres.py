"""A ledger in a PostgreSQL database, for many machines: the same entries and the same chain.

Claim: writers go one after the other, each seeing all that was committed before. A write transaction is
serialisable and first locks the table against other writers; PostgreSQL takes its view of the data at the
first statement after that, so nothing can be decided on an older one. What is committed is on the server's
disk when the call returns. A client or server that is killed leaves the transaction done or not done at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth_cli.errors import NOTHING_SPENT, FileError, UsageError
from dpsynth_cli.trusted.ledger.addresses import without_password
from dpsynth_cli.trusted.ledger.chain import FORMAT, Db, NoLedger

if TYPE_CHECKING:
    import psycopg

UNKNOWN = "Whether the last step was recorded is not known."  # the server was gone before it could answer
MAKING = 0x64707379  # the advisory lock of whoever makes the tables

SCHEMA = (
    "CREATE SCHEMA dpsynth",
    """CREATE TABLE dpsynth.entries (
         number BIGINT PRIMARY KEY, time TEXT NOT NULL, dataset TEXT NOT NULL, kind TEXT NOT NULL,
         release TEXT NOT NULL, payload TEXT NOT NULL, salt TEXT NOT NULL, previous TEXT NOT NULL,
         hash TEXT NOT NULL)""",
    "CREATE INDEX entries_by_dataset ON dpsynth.entries (dataset, kind)",
    "CREATE INDEX entries_by_release ON dpsynth.entries (release, kind)",
    # Against accidents with an SQL prompt; against intent there is the chain.
    """CREATE FUNCTION dpsynth.never() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN RAISE EXCEPTION ''append-only''; END'""",
    """CREATE TRIGGER never_edited BEFORE UPDATE OR DELETE OR TRUNCATE ON dpsynth.entries
         FOR EACH STATEMENT EXECUTE FUNCTION dpsynth.never()""",
    f"COMMENT ON TABLE dpsynth.entries IS 'ledger of dpsynth, format {FORMAT}'",
)


class Server:
    """The place of a ledger that is in a database."""

    entries = "entries"

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder

    @property
    def path(self) -> str:
        """Its address without the password."""
        return without_password(self._url)

    @property
    def private(self) -> Path:
        """What is as private as the ledger stays with the user, on this machine."""
        address = re.sub(r"[^A-Za-z0-9._-]+", "-", re.sub(r"^[a-z]+://([^/@]*@)?", "", self.path))
        return self._folder / f"postgresql-{address}"

    def exists(self) -> bool:
        with self._told(10.0, NOTHING_SPENT), self._connected(10.0) as db:
            return _format(db) is not None

    @contextmanager
    def transaction(
        self, *, write: bool = False, create: bool = False, timeout: float = 30.0, cost: str = NOTHING_SPENT
    ) -> Iterator[Db]:
        """One transaction on its own connection: all of it durable when the block ends, or none of it."""
        with self._told(timeout, cost), self._connected(timeout) as db:
            self._check_format(db, create, cost)
            kind = "SERIALIZABLE" if write else "REPEATABLE READ, READ ONLY"
            db.execute(f"BEGIN ISOLATION LEVEL {kind}")
            if write:
                db.execute("LOCK TABLE dpsynth.entries IN EXCLUSIVE MODE")
            yield _Statements(db)
            with self._told(timeout, UNKNOWN if write else cost):
                db.execute("COMMIT")

    def damage(self, db: Db) -> list[str]:
        """The server looks after its own files."""
        return []

    def _check_format(self, db: psycopg.Connection[Any], create: bool, cost: str) -> None:
        found = _format(db)
        if found is None and create:
            db.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            db.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING,))
            if _format(db) is None:  # else somebody else was faster
                for statement in SCHEMA:
                    db.execute(statement)
            db.execute("COMMIT")
            found = FORMAT
        if found is None:
            raise NoLedger(self.path, cost)
        if found != FORMAT:
            raise FileError(
                f"the ledger {self.path} is not of format {FORMAT}, which this dpsynth knows.",
                cost,
                "Use the dpsynth that made it: a new ledger would not know what this one charged.",
            )

    def _connected(self, timeout: float) -> AbstractContextManager[psycopg.Connection[Any]]:
        try:
            import psycopg
        except ImportError:
            raise UsageError(
                "a ledger in PostgreSQL needs the package psycopg.",
                next_step="Install it: pip install 'dpsynth-cli[postgres]'",
            ) from None
        wait = max(1, round(timeout * 1000))
        # A machine that vanishes inside a transaction must not keep the others waiting for hours.
        idle = max(60_000, 2 * wait)
        options = (
            f"-c lock_timeout={wait} -c idle_in_transaction_session_timeout={idle} "
            "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3 "
            "-c synchronous_commit=on -c search_path=dpsynth"
        )
        return _closing(
            psycopg.connect(
                self._url, autocommit=True, connect_timeout=max(2, round(timeout)), options=options
            )
        )

    @contextmanager
    def _told(self, timeout: float, cost: str) -> Iterator[None]:
        """Every failure of the server or the network, as a FileError that says what to do."""
        try:
            yield
        except Exception as error:
            if not type(error).__module__.startswith("psycopg"):
                raise
            raise _failure(self.path, error, timeout, cost) from None


class _Statements:
    """SQL with question marks, as the ledger writes it."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any:
        return self._db.execute(sql.replace("?", "%s"), list(values))


@contextmanager
def _closing(db: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """Closed without a commit: what is not committed by then is rolled back by the server."""
    try:
        yield db
    finally:
        db.close()


def _format(db: psycopg.Connection[Any]) -> int | None:
    """The format of the ledger in this database; None if there is none, 0 if it is something else."""
    # By the tables of the catalogue: what knows names, such as to_regclass, may remember what was before.
    row = db.execute(
        "SELECT obj_description(c.oid, 'pg_class') FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
        "ON n.oid = c.relnamespace WHERE n.nspname = 'dpsynth' AND c.relname = 'entries'"
    ).fetchone()
    if row is None:
        return None
    match = re.fullmatch(r"ledger of dpsynth, format (\d+)", str(row[0]))
    return int(match[1]) if match else 0


def _failure(path: str, error: Exception, timeout: float, cost: str) -> FileError:
    """The server's code, never its text: that may quote what was sent."""
    code = getattr(error, "sqlstate", None) or ""
    if code == "55P03":
        happened = f"the ledger {path} was locked by another process for {timeout:g} seconds."
        next_step = "Wait for the other dpsynth to finish, or end it if it hangs, and run this again."
    elif code.startswith("28") or code == "42501":
        happened = f"the ledger {path} refuses this user."
        next_step = "Ask whoever runs the server for the right to read and add entries in the schema dpsynth."
    elif code in ("40001", "40P01"):
        happened = f"the ledger {path} was busy."
        next_step = "Run this again."
    elif code in ("", "57P01", "57P02", "57P03") or code.startswith("08"):
        happened = f"the ledger {path} cannot be reached, or the connection was lost."
        next_step = (
            "See that its server runs, that the database is there and that this user may log in; then "
            "`dpsynth budget log` says what was recorded."
        )
    else:
        happened = f"the ledger {path} cannot be used (PostgreSQL error {code})."
        next_step = "See the server's log."
    return FileError(happened, cost, next_step)
