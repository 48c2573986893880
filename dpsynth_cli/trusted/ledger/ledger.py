"""Budgets per data set across releases: charge before looking, and never forget a charge.

Claim: `reserve` is durable before it returns; with any number of processes, each killed at any moment,
the charges of a data set never add up to more than its grant, exactly, and only `abort` before
`drawn` gives a charge back. A release goes reserve -> drawn -> commit; a crash leaves it charged.

Entries hold public words only: no path of an input, nothing computed from rows, no hash of either.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpsynth_cli.errors import NOTHING_SPENT, VerificationError
from dpsynth_cli.trusted.ledger import chain, refusals
from dpsynth_cli.trusted.ledger.balance import (
    BEFORE,
    STATES,
    Account,
    Balance,
    Cost,
    account_of,
    grant_of,
    wrong_sums,
)
from dpsynth_cli.trusted.ledger.chain import Entry

STAYS_CHARGED = "What this release was charged stays charged."


@dataclass(frozen=True)
class Reservation:
    """A charge that is on disk; `charged` and `remaining` are in the unit of the grant, if there is one."""

    number: int
    hash: str
    charged: Fraction | None
    remaining: Fraction | None
    conversion: str | None


def ledger_path(option: str | None = None) -> Path:
    """Where the ledger is: the option, else $DPSYNTH_LEDGER, else the user's data folder."""
    named = option or os.environ.get("DPSYNTH_LEDGER")
    if named:
        return Path(named).expanduser()
    if os.environ.get("XDG_DATA_HOME"):
        folder = Path(os.environ["XDG_DATA_HOME"])
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        folder = Path.home() / ".local" / "share"
    return folder / "dpsynth" / "ledger.sqlite"


class Ledger:
    """The ledger in one file. It holds nothing open between calls, so it may cross a fork."""

    def __init__(self, path: str | Path, timeout: float = 30.0) -> None:
        self.path, self.timeout = Path(path), timeout

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing to close: each call is one transaction on its own connection."""

    # --- a release -----------------------------------------------------------------------------------

    def reserve(
        self, dataset: str, release_id: str, name: str, cost: Cost, stream: bool = False
    ) -> Reservation:
        """Charge a release before any row is read; BudgetError, and no entry, if the grant is too small."""
        chain.check_name("data set", dataset)
        chain.check_name("release's id", release_id)
        payload: dict[str, Any] = {"name": name, **cost.as_json(), **({"stream": True} if stream else {})}
        with chain.transaction(self.path, write=True, create=True, timeout=self.timeout) as db:
            self._check_move(db, "reserve", release_id, NOTHING_SPENT)
            account = _account(db, dataset)
            charged, conversion = _price(account, cost)
            if account.grant is not None:
                payload |= {"charged": str(charged), "conversion": conversion}
            entry = chain.append(db, dataset, "reserve", release_id, payload)
            account.add("reserve", release_id, entry.payload)
        return Reservation(entry.number, entry.hash, charged, account.remaining, conversion)

    def quote(self, dataset: str, cost: Cost, without: Sequence[str] = ()) -> Balance:
        """The balance, if a release of this cost would be allowed now; BudgetError as `reserve` says it.
        Nothing is written. `without`: as if these releases had been given back."""
        with self._reading() as db:
            account = _account(db, dataset)
        for release_id in without:
            account.add("abort", release_id, {})
        _price(account, cost)
        return account.balance()

    def drawn(self, release_id: str) -> Entry:
        """Mark, before the first row is read, that rows are read: from here there is no refund."""
        return self._move("drawn", release_id, {}, f"No row was read. {STAYS_CHARGED}")

    def commit(self, release_id: str, payload: dict[str, Any]) -> Entry:
        """Record what was published (SHA-256 of output, transcript, public audit): published things only."""
        return self._move("commit", release_id, payload, STAYS_CHARGED)

    def abort(self, release_id: str, why: str) -> bool:
        """End a release; whether its charge was given back: only if no row was read.

        `why` goes into the record: words of ours, never the text of a foreign exception.
        """
        with chain.transaction(self.path, write=True, timeout=self.timeout, cost=STAYS_CHARGED) as db:
            history = self._check_move(db, "abort", release_id, STAYS_CHARGED)
            refunded = history[-1].kind == "reserve"
            chain.append(db, history[0].dataset, "abort", release_id, {"why": why, "refunded": refunded})
        return refunded

    def _move(self, kind: str, release_id: str, payload: dict[str, Any], cost: str) -> Entry:
        with chain.transaction(self.path, write=True, timeout=self.timeout, cost=cost) as db:
            history = self._check_move(db, kind, release_id, cost)
            return chain.append(db, history[0].dataset, kind, release_id, payload)

    def _check_move(self, db: sqlite3.Connection, kind: str, release_id: str, cost: str) -> list[Entry]:
        """The release's entries so far, if the next one may be of this kind.

        No step can be taken twice: of two processes that resume one release, one is refused.
        """
        history = _of_release(db, release_id)
        state = STATES[history[-1].kind] if history else None
        if state not in BEFORE[kind]:
            where = f"is {state} in the ledger {self.path}" if state else f"is not in the ledger {self.path}"
            raise VerificationError(
                f"release {release_id} {where}, so it cannot be marked {STATES[kind]}.",
                cost,
                "See what was recorded: dpsynth budget log",
            )
        return history

    def note(
        self, dataset: str, release_id: str, payload: dict[str, Any], follows: int | None = None
    ) -> Entry:
        """Record something else of a release, such as the commitment to a stream's state.

        With `follows`, the number of the release's last note (0: none yet), it is refused if somebody
        has written another one since: a restored old state cannot go on.
        """
        chain.check_name("data set", dataset)
        chain.check_name("release's id", release_id)
        with chain.transaction(
            self.path, write=True, create=True, timeout=self.timeout, cost=STAYS_CHARGED
        ) as db:
            last = _last_note(db, release_id)
            number = last.number if last else 0
            if follows is not None and follows != number:
                raise VerificationError(
                    f"release {release_id} has gone on since entry {follows}: its last note in the ledger "
                    f"is entry {number}.",
                    STAYS_CHARGED,
                    "Use its newest state, never a copy from before.",
                )
            return chain.append(db, dataset, "note", release_id, payload)

    def last_note(self, release_id: str) -> Entry | None:
        """The newest note of a release."""
        with self._reading() as db:
            return _last_note(db, release_id)

    # --- budgets -------------------------------------------------------------------------------------

    def create(self) -> bool:
        """Make the ledger if there is none; whether it was made now."""
        new = not self.path.exists()
        with chain.transaction(self.path, write=True, create=True, timeout=self.timeout):
            return new

    def grant(
        self,
        dataset: str,
        epsilon: str,
        neighbours: str,
        delta: str | None = None,
        allow_unbounded: bool = False,
    ) -> Balance:
        """Limit a data set to a total, or add to it; what was recorded before counts against it.

        With a delta it is counted in rho: as much as the epsilons of all grants together allow at it.
        """
        payload = {
            "epsilon": epsilon,
            "delta": delta,
            "currency": "epsilon" if delta is None else "rho",
            "neighbours": neighbours,
            "allow_unbounded": allow_unbounded,
        }
        chain.check_name("data set", dataset)
        new = grant_of(payload)
        cost = "Nothing was granted."
        with chain.transaction(self.path, write=True, create=True, timeout=self.timeout, cost=cost) as db:
            account = _account(db, dataset)
            refusals.check_grant(account, new, cost)
            entry = chain.append(db, dataset, "grant", "", payload)
            account.add("grant", "", entry.payload)
        return account.balance()

    def balance(self, dataset: str) -> Balance:
        """What the data set was granted and charged."""
        with self._reading() as db:
            return _account(db, dataset).balance()

    def receipt(self, dataset: str, release_id: str) -> dict[str, Any]:
        """For the steward's copy: the entry of a charge and what remains. Both count failed attempts, too."""
        balance, charge = self.balance(dataset), self.find(release_id)[0]
        grant, remaining = balance.grant, balance.remaining
        receipt = {
            "confidential": True,
            "entry": charge.number,
            "remaining": None if remaining is None else str(remaining),
        }
        if (
            grant is None
            or grant.delta is None
            or remaining is None
            or charge.payload["currency"] == "unbounded"
        ):
            return receipt
        return receipt | {"remaining_epsilon": str(grant.epsilon_of(remaining))}

    def charged_at(self, release_id: str) -> float:
        """When a release was charged, in seconds since 1970: before it read a row, and the same if it was
        resumed."""
        time = self.find(release_id)[0].time
        return datetime.strptime(time, "%Y-%m-%dT%H:%M:%S%z").timestamp()

    def streams(
        self, dataset: str | None = None, name: str | None = None
    ) -> list[tuple[Entry, Entry | None]]:
        """The streams that go on, of this data set and name or all: the charge of each, and its last
        generation if it has one."""
        with self._reading() as db:
            found = []
            for entry in _open_charges(db):
                if dataset not in (None, entry.dataset) or name not in (None, entry.payload.get("name")):
                    continue
                last = _last_note(db, entry.release)
                if _is_stream(entry, last):
                    found.append((entry, last))
        return found

    def unfinished(self) -> list[Entry]:
        """The charges of releases, not streams, that were neither published nor given up."""
        with self._reading() as db:
            return [
                entry for entry in _open_charges(db) if not _is_stream(entry, _last_note(db, entry.release))
            ]

    # --- reading -------------------------------------------------------------------------------------

    def state(self, release_id: str) -> str | None:
        """How far a release has come: reserved, drawn, committed or aborted; None if it is not here."""
        with self._reading() as db:
            history = _of_release(db, release_id)
        return STATES[history[-1].kind] if history else None

    def head(self) -> tuple[int, str]:
        """The number and hash of the last entry. The hash pins all entries before it."""
        with self._reading() as db:
            return chain.head(db)

    def find(self, release_id: str) -> list[Entry]:
        """All entries of a release, in order."""
        with self._reading() as db:
            return chain.entries(db, "WHERE release = ? AND release != '' ORDER BY number", release_id)

    def entry(self, own: str) -> Entry | None:
        """The entry of this hash."""
        with self._reading() as db:
            return next(iter(chain.entries(db, "WHERE hash = ?", own)), None)

    def datasets(self) -> list[str]:
        """Every data set that has an entry, in order of their names."""
        with self._reading() as db:
            return [row[0] for row in db.execute("SELECT DISTINCT dataset FROM entries ORDER BY dataset")]

    def log(self, dataset: str | None = None) -> list[Entry]:
        """The entries, in order, of one data set or of all."""
        with self._reading() as db:
            if dataset is None:
                return chain.entries(db, "ORDER BY number")
            return chain.entries(db, "WHERE dataset = ? ORDER BY number", dataset)

    def verify(self, known: str | None = None) -> list[str]:
        """Everything that is wrong with the ledger, in words; an empty list if it is whole.

        `known` is the hash in any published audit: a cut-off tail or a restored old copy is whole in
        itself, and only such a hash finds it.
        """
        with self._reading() as db:
            broken = chain.problems(db, known)
            return broken or wrong_sums(chain.entries(db, "ORDER BY number"))

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        return chain.transaction(self.path, timeout=self.timeout)


def _open_charges(db: sqlite3.Connection) -> list[Entry]:
    """The charges of what was neither committed nor aborted."""
    ended = "SELECT release FROM entries WHERE kind IN ('commit', 'abort')"
    return chain.entries(db, f"WHERE kind = 'reserve' AND release NOT IN ({ended}) ORDER BY number")


def _is_stream(charge: Entry, last: Entry | None) -> bool:
    return bool(charge.payload.get("stream")) or (last is not None and "generation" in last.payload)


def _price(account: Account, cost: Cost) -> tuple[Fraction | None, str | None]:
    """What a release would be charged, and how that came about; BudgetError if it is not allowed."""
    if account.grant is None:
        return cost.amount, None
    price = account.price(cost)
    if price is None:
        raise refusals.not_covered(account.dataset, cost, account.grant)
    charged, conversion = price
    left = account.remaining
    if left is not None and cost.amount is not None and charged > left:
        raise refusals.too_little(account.dataset, cost, charged, conversion, account.grant, left)
    return charged, conversion


def _of_release(db: sqlite3.Connection, release_id: str) -> list[Entry]:
    """The steps of a release; its notes, which may be many, are left out."""
    clause = "WHERE release = ? AND kind IN ('reserve', 'drawn', 'commit', 'abort') ORDER BY number"
    return chain.entries(db, clause, release_id)


def _account(db: sqlite3.Connection, dataset: str) -> Account:
    clause = "WHERE dataset = ? AND kind IN ('grant', 'reserve', 'drawn', 'abort') ORDER BY number"
    return account_of(dataset, chain.entries(db, clause, dataset))


def _last_note(db: sqlite3.Connection, release_id: str) -> Entry | None:
    clause = "WHERE release = ? AND kind = 'note' ORDER BY number DESC LIMIT 1"
    return next(iter(chain.entries(db, clause, release_id)), None)
