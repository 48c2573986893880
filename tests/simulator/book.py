"""The place of a simulated ledger: each transaction is durable or never was; entries can be restored from an
older copy. SQLite in memory does the reading and the writing, so that every statement of the code is run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpsynth_cli.errors import NOTHING_SPENT
from dpsynth_cli.trusted.ledger import chain
from dpsynth_cli.trusted.ledger.sqlite_file import SCHEMA, _failures_told
from tests.simulator.machine import Machine

_empty = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
for statement in SCHEMA:
    _empty.execute(statement)


class Book:
    """A `Place`. `history` is every entry that ever was written, whatever is restored."""

    entries = "entries"

    def __init__(self, machine: Machine, path: str) -> None:
        self.machine, self._path = machine, Path(path)
        self.history: list[chain.Entry] = []
        self.db = _copy(_empty)

    @property
    def path(self) -> Path:
        return self._path

    @property
    def private(self) -> Path:
        return self._path

    def exists(self) -> bool:
        return True

    def damage(self, db: Any) -> list[str]:
        return []

    @contextmanager
    def transaction(
        self, *, write: bool = False, create: bool = False, timeout: float = 30.0, cost: str = NOTHING_SPENT
    ) -> Iterator[Any]:
        self.machine.step("ledger", self._path)
        with _failures_told(self._path, timeout, cost):
            if write and not self.machine.room():
                raise sqlite3.OperationalError("database or disk is full")
            db = self.db
            db.execute("BEGIN")
            before, _ = chain.head(db) if write else (0, "")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
            if write:
                self.history += chain.entries(db, "WHERE number > ? ORDER BY number", before)
        self.machine.step("ledger", self._path)

    def backup(self) -> sqlite3.Connection:
        return _copy(self.db)

    def restore(self, older: sqlite3.Connection) -> None:
        self.db = _copy(older)


def _copy(db: sqlite3.Connection) -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.backup(made)
    return made
