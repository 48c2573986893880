"""A ledger in one SQLite file: its form, its transactions, and every failure of it in words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

from dpsynth_cli import disk
from dpsynth_cli.errors import NOTHING_SPENT, FileError
from dpsynth_cli.trusted.ledger.chain import FORMAT, Db, NoLedger

APPLICATION = 0x64707379  # "dpsy" in the header of the file: never write into another program's database
# With a rollback journal FULL does not sync the folder after a commit, and a power cut could undo it.
SYNCHRONOUS = "EXTRA"

SCHEMA = (
    """CREATE TABLE entries (
         number INTEGER PRIMARY KEY, time TEXT NOT NULL, dataset TEXT NOT NULL, kind TEXT NOT NULL,
         release TEXT NOT NULL, payload TEXT NOT NULL, salt TEXT NOT NULL, previous TEXT NOT NULL,
         hash TEXT NOT NULL)""",
    "CREATE INDEX entries_by_dataset ON entries (dataset, kind)",
    "CREATE INDEX entries_by_release ON entries (release, kind)",
    # Against accidents with an SQL prompt; against intent there is the chain.
    "CREATE TRIGGER never_edited BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER never_removed BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)


# --- the file ----------------------------------------------------------------------------------------


@contextmanager
def transaction(
    path: Path,
    *,
    write: bool = False,
    create: bool = False,
    timeout: float = 30.0,
    cost: str = NOTHING_SPENT,
) -> Iterator[sqlite3.Connection]:
    """One transaction on the file at path: all of it durable when the block ends, or none of it.

    A connection lives for one transaction only, so nothing is carried across a fork or left open, and
    a block that raises (or is killed) is rolled back by SQLite.
    """
    with _failures_told(path, timeout, cost):
        if create:
            _make_file(path)
        elif not path.exists():
            raise NoLedger(path, cost)
        uri = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)) as db:
            # Text that is not UTF-8 must come back, so that `problems` can say where it is.
            db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            db.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            _check_format(db, path, create, cost)
            yield db
            db.execute("COMMIT")


def _make_file(path: Path) -> None:
    """Make an empty file that only its owner may read, unless there is one; SQLite fills it."""
    if not path.exists():
        disk.make_folder(path.parent, 0o700)  # durable: SQLite syncs the file's folder, not the one above
    # O_EXCL: opening and closing a file that exists would drop this process's own locks on it.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _check_format(db: sqlite3.Connection, path: Path, create: bool, cost: str) -> None:
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application == APPLICATION and version == FORMAT:
        return
    if application == APPLICATION:
        raise FileError(
            f"the ledger {path} has format {version}, and this dpsynth knows format {FORMAT}.",
            cost,
            "Use the dpsynth that made it: a new ledger (--ledger, $DPSYNTH_LEDGER) would not know what "
            "this one charged.",
        )
    if application or version or db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise FileError(
            f"{path} is a database of another program, not a ledger.",
            cost,
            "Name the right file with --ledger or $DPSYNTH_LEDGER.",
        )
    if not create:
        raise NoLedger(path, cost)
    for statement in SCHEMA:
        db.execute(statement)


@contextmanager
def _failures_told(path: Path, timeout: float, cost: str) -> Iterator[None]:
    """Every failure of SQLite or of the file system, as a FileError that says what to do."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # SQLite's own words about a damaged file may quote bytes that are no text.
        reason = "it holds what is no text" if isinstance(error, UnicodeDecodeError) else str(error)
        for sign, happened, next_step in (
            (
                "locked",
                f"the ledger {path} was locked by another process for {timeout:g} seconds.",
                "Wait for the other dpsynth to finish, or end it if it hangs, and run this again.",
            ),
            (
                "not a database",
                f"{path} is not a ledger: it is not an SQLite database.",
                "Name the right file with --ledger or $DPSYNTH_LEDGER.",
            ),
            (
                "readonly",
                f"the ledger {path} cannot be written by this user.",
                "Make the file and its folder writable: SQLite keeps a journal beside the file.",
            ),
            (
                "unable to open",
                f"the ledger {path} cannot be opened by this user.",
                "Check that it is a file, and that this user may read and write it and its folder.",
            ),
            (
                "full",
                f"the ledger {path} cannot be written: the disk is full.",
                "Make room and run this again.",
            ),
            (
                "I/O",
                f"the ledger {path} cannot be read or written: {reason}.",
                "Check its disk and run this again.",
            ),
            (
                "",
                f"the ledger {path} is damaged ({reason}).",
                "Restore it from a backup and compare that with the newest published audit: "
                "dpsynth budget verify --head HASH",
            ),
        ):
            if sign in reason:
                raise FileError(happened, cost, next_step) from error
    except OSError as error:
        raise FileError(
            f"the ledger {path} cannot be used: {error.strerror or error}.",
            cost,
            "Make its folder writable for this user, or name another file with --ledger or $DPSYNTH_LEDGER.",
        ) from error


class SqliteFile:
    """The place of a ledger that is one file."""

    entries = "entries NOT INDEXED"  # by rowid, not through an index: an index may be damaged or doctored

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        return self._path

    @property
    def private(self) -> Path:
        """What is as private as the ledger is kept under names that begin like this."""
        return self.path

    def exists(self) -> bool:
        return self.path.exists()

    def transaction(
        self, *, write: bool = False, create: bool = False, timeout: float = 30.0, cost: str = NOTHING_SPENT
    ) -> AbstractContextManager[Db]:
        return transaction(self.path, write=write, create=create, timeout=timeout, cost=cost)

    def damage(self, db: Db) -> list[str]:
        """What SQLite itself finds wrong with its file."""
        return [
            f"the file is damaged: {row[0]}" for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"
        ]
