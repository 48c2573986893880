"""An append-only, hash-chained list of entries, in one SQLite file or in a PostgreSQL database.

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
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dpsynth_cli import disk
from dpsynth_cli.errors import FileError, UsageError, VerificationError
from dpsynth_cli.hashing import canonical, sha256

FORMAT = 3  # 2 had rho of zCDP, which a Gaussian profile does not follow from
START = "0" * 64
COLUMNS = "number, time, dataset, kind, release, payload, salt, previous, hash"
Row = tuple[Any, ...]  # the columns of one entry, as they are stored


class Db(Protocol):
    """What entries are read from and written to, inside one transaction; values stand for question marks."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any: ...


class Place(Protocol):
    """Where a ledger is."""

    entries: str  # the table, as it is read in order

    @property
    def path(self) -> Path | str: ...

    @property
    def private(self) -> Path: ...

    def exists(self) -> bool: ...

    def transaction(
        self, *, write: bool = False, create: bool = False, timeout: float = ..., cost: str = ...
    ) -> AbstractContextManager[Db]:
        """All of it is durable when the block ends, or none of it; writers go one after the other."""

    def damage(self, db: Db) -> list[str]: ...


class NoLedger(FileError):
    """There is no file or table, or one in which no ledger has been made yet."""

    def __init__(self, place: object, cost: str) -> None:
        next_step = (
            "Make one with: dpsynth budget init, or name the right file with --ledger or $DPSYNTH_LEDGER."
        )
        super().__init__(f"there is no ledger at {place}.", cost, next_step)


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


# --- entries -----------------------------------------------------------------------------------------


def check_name(what: str, name: str) -> None:
    """Refuse a name that would garble the record or its listing."""
    if not 0 < len(name) <= 200 or not name.isprintable():
        raise UsageError(
            f"the {what} must be one line of 1 to 200 printable characters; it is {name[:200]!r}.",
            next_step="Choose another name.",
        )


def append(db: Db, dataset: str, kind: str, release: str, payload: dict[str, Any]) -> Entry:
    """Write the next entry, inside the caller's write transaction."""
    number, previous = head(db)
    time = disk.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    text, salt = canonical(payload).decode(), secrets.token_hex(16)
    own = entry_hash(number + 1, time, dataset, kind, release, text, salt, previous)
    insert(db, (number + 1, time, dataset, kind, release, text, salt, previous, own))
    return Entry(number + 1, time, dataset, kind, release, json.loads(text), salt, previous, own)


def insert(db: Db, row: Row) -> None:
    """Write an entry as it is."""
    db.execute(f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def head(db: Db) -> tuple[int, str]:
    """The number and hash of the last entry; of an empty ledger, 0 and sixty-four zeros."""
    last = entries(db, "ORDER BY number DESC LIMIT 1")
    return (last[0].number, last[0].hash) if last else (0, START)


def entries(db: Db, clause: str, *values: object) -> list[Entry]:
    """The entries that an SQL clause selects, each checked against its own hash as it is read."""
    found = []
    for row in db.execute(f"SELECT {COLUMNS} FROM entries {clause}", values):
        entry = entry_of(row)
        if entry is None:
            raise VerificationError(
                f"entry {row[0]} of the ledger was changed after it was written.",
                "No decision was based on it.",
                "See what else was changed: dpsynth budget verify",
            )
        found.append(entry)
    return found


def entry_of(row: Row) -> Entry | None:
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


def rows(db: Db, table: str = "entries") -> list[Row]:
    """All entries in order, as they are stored."""
    return [tuple(row) for row in db.execute(f"SELECT {COLUMNS} FROM {table} ORDER BY number")]


def problems(stored: Sequence[Row], known: str | None = None) -> list[str]:
    """Every break of the chain in words; none if the list is whole and holds the entry of the known hash."""
    found = []
    expected, previous = 1, START
    hashes: set[object] = set()
    for row in stored:
        number, own = row[0], row[-1]
        if type(number) is not int:  # a damaged file may have anything there
            found.append(f"an entry behind entry {expected - 1} has no number")
            continue
        if number < expected:
            found.append(f"entry {number} does not belong here")
        elif number > expected:
            found.append(f"entries are missing before entry {number}, from entry {expected} on")
        elif row[-2] != previous:
            found.append(f"entry {number} does not follow from the entry before it")
        if entry_of(row) is None:
            found.append(f"entry {number} was changed after it was written")
        expected, previous = number + 1, own
        hashes.add(own)
    if known is not None and known not in hashes:
        found.append(
            f"the entry {known} is known elsewhere and is not here: this ledger, which ends with entry "
            f"{expected - 1}, was cut off, or is an older copy or another ledger"
        )
    return found
