"""An append-only, hash-chained list of entries in one SQLite file.

Claim: an entry is durable before the call that appended it returns, any number of processes may append
at once, and `problems` names every entry that was edited, removed, reordered or inserted since. Only a
cut-off tail leaves a shorter list that is whole in itself; it is found by the hash of any later entry
that is known from elsewhere. What the entries mean is `ledger.py`'s idea, not this file's.

Claim: the hash of an entry tells nothing about what is in it, or in the entries before it. Each entry has
128 secret random bits of its own, which are hashed with it and stay in the file. Without them a hash that is
published could be tried out: all words of an entry but its time may be known, and a time has few values.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dpsynth_cli.errors import NOTHING_SPENT, FileError, UsageError, VerificationError
from dpsynth_cli.hashing import canonical, sha256

FORMAT = 3  # 2 had rho of zCDP, which a Gaussian profile does not follow from
START = "0" * 64
APPLICATION = 0x64707379  # "dpsy" in the header of the file: never write into another program's database
# With a rollback journal FULL does not sync the folder after a commit, and a power cut could undo it.
SYNCHRONOUS = "EXTRA"
COLUMNS = "number, time, dataset, kind, release, payload, salt, previous, hash"

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


@dataclass(frozen=True)
class Entry:
    """One line of the ledger, as it was written."""

    number: int
    time: str
    dataset: str
    kind: str
    release: str
    payload: dict[str, Any]
    salt: str
    previous: str
    hash: str


def entry_hash(
    number: int, time: str, dataset: str, kind: str, release: str, payload: str, salt: str, previous: str
) -> str:
    """SHA-256 of the canonical JSON of all fields; the payload goes in as its stored text, to the byte."""
    said = {
        "number": number,
        "time": time,
        "dataset": dataset,
        "kind": kind,
        "release": release,
        "payload": payload,
        "salt": salt,
        "previous": previous,
    }
    return sha256(canonical(said))


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
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
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


class NoLedger(FileError):
    """There is no file, or one in which no ledger has been made yet."""

    def __init__(self, path: Path, cost: str) -> None:
        next_step = (
            "Make one with: dpsynth budget init, or name the right file with --ledger or $DPSYNTH_LEDGER."
        )
        super().__init__(f"there is no ledger at {path}.", cost, next_step)


@contextmanager
def _failures_told(path: Path, timeout: float, cost: str) -> Iterator[None]:
    """Every failure of SQLite or of the file system, as a FileError that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        reason = str(error)
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


# --- entries -----------------------------------------------------------------------------------------


def check_name(what: str, name: str) -> None:
    """Refuse a name that would garble the record or its listing."""
    if not 0 < len(name) <= 200 or not name.isprintable():
        raise UsageError(
            f"the {what} must be one line of 1 to 200 printable characters; it is {name[:200]!r}.",
            next_step="Choose another name.",
        )


def append(db: sqlite3.Connection, dataset: str, kind: str, release: str, payload: dict[str, Any]) -> Entry:
    """Write the next entry, inside the caller's write transaction."""
    number, previous = head(db)
    time = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    text, salt = canonical(payload).decode(), secrets.token_hex(16)
    own = entry_hash(number + 1, time, dataset, kind, release, text, salt, previous)
    row = (number + 1, time, dataset, kind, release, text, salt, previous, own)
    db.execute(f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    return Entry(number + 1, time, dataset, kind, release, json.loads(text), salt, previous, own)


def head(db: sqlite3.Connection) -> tuple[int, str]:
    """The number and hash of the last entry; of an empty ledger, 0 and sixty-four zeros."""
    last = entries(db, "ORDER BY number DESC LIMIT 1")
    return (last[0].number, last[0].hash) if last else (0, START)


def entries(db: sqlite3.Connection, clause: str, *values: object) -> list[Entry]:
    """The entries that an SQL clause selects, each checked against its own hash as it is read."""
    found = []
    for row in db.execute(f"SELECT {COLUMNS} FROM entries {clause}", values):
        entry = _read(row)
        if entry is None:
            raise VerificationError(
                f"entry {row[0]} of the ledger was changed after it was written.",
                "No decision was based on it.",
                "See what else was changed: dpsynth budget verify",
            )
        found.append(entry)
    return found


def _read(row: tuple[Any, ...]) -> Entry | None:
    """The entry, if the row is still what was hashed, in value and in type."""
    number, time, dataset, kind, release, text, salt, previous, own = row
    if type(number) is not int or any(type(value) is not str for value in row[1:]):
        return None
    if entry_hash(number, time, dataset, kind, release, text, salt, previous) != own:
        return None
    try:
        payload = json.loads(text)
    except ValueError:
        return None
    return Entry(number, time, dataset, kind, release, payload, salt, previous, own)


def problems(db: sqlite3.Connection, known: str | None = None) -> list[str]:
    """Every break of the chain in words; none if the list is whole and holds the entry of the known hash."""
    found = [
        f"the file is damaged: {row[0]}" for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"
    ]
    expected, previous = 1, START
    hashes: set[object] = set()
    # By rowid, not through an index: an index may be damaged or doctored.
    for row in db.execute(f"SELECT {COLUMNS} FROM entries NOT INDEXED ORDER BY number"):
        number, own = row[0], row[-1]
        if number < expected:
            found.append(f"entry {number} does not belong here")
        elif number > expected:
            found.append(f"entries are missing before entry {number}, from entry {expected} on")
        elif row[-2] != previous:
            found.append(f"entry {number} does not follow from the entry before it")
        if _read(row) is None:
            found.append(f"entry {number} was changed after it was written")
        expected, previous = number + 1, own
        hashes.add(own)
    if known is not None and known not in hashes:
        found.append(
            f"the entry {known} is known elsewhere and is not here: this ledger, which ends with entry "
            f"{expected - 1}, was cut off, or is an older copy or another ledger"
        )
    return found
