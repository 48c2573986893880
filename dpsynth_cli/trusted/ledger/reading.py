"""What a ledger says: balances, entries, what is under way, and whether it is whole. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

from dpsynth_cli.trusted.ledger import chain, copies
from dpsynth_cli.trusted.ledger.balance import STATES, Balance
from dpsynth_cli.trusted.ledger.books import (
    account,
    books,
    is_stream,
    last_note,
    of_release,
    open_charges,
    policies,
)
from dpsynth_cli.trusted.ledger.chain import Db, Entry
from dpsynth_cli.trusted.ledger.grants import Cost
from dpsynth_cli.trusted.ledger.places import mirror_path, place_at
from dpsynth_cli.trusted.ledger.policy import Policy, policy_for, who
from dpsynth_cli.trusted.ledger.replay import wrong_sums


class Reading:
    """A ledger in one place. It holds nothing open between calls, so it may cross a fork."""

    def __init__(self, path: str | Path, timeout: float = 30.0, mirror: Path | None = None) -> None:
        self.place, self.timeout = place_at(path), timeout
        self.mirror = mirror or mirror_path()

    @property
    def path(self) -> Path | str:
        """Where it is; of a server, without the password."""
        return self.place.path

    def exists(self) -> bool:
        """Whether there is a ledger."""
        return self.place.exists()

    # --- budgets -------------------------------------------------------------------------------------

    def quote(self, dataset: str, cost: Cost, without: Sequence[str] = ()) -> Balance:
        """The balance, if a release of this cost would be allowed now; BudgetError as `reserve` says it.
        Nothing is written. `without`: as if these releases had been given back."""
        with self._reading() as db:
            found = books(db, dataset)
        found.refund(without)
        found.price(cost, who())
        return found.balance()

    def policy(self, person: str | None = None) -> Policy:
        """The rules that hold for a person; None: whoever runs this."""
        with self._reading() as db:
            return policy_for(person or who(), policies(db))

    def policies(self) -> dict[str, Policy]:
        """All rules, by person; those for everybody under an empty name."""
        with self._reading() as db:
            return policies(db)

    def balance(self, dataset: str) -> Balance:
        """What the data set was granted and charged; without a grant of its own, by the pattern that covers
        it."""
        with self._reading() as db:
            return books(db, dataset).balance()

    def own_balance(self, name: str) -> Balance:
        """The same of a name alone, without patterns that cover it."""
        with self._reading() as db:
            return account(db, name).balance()

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
        return receipt | {"remaining_epsilon": str(grant.epsilon_of(remaining, balance.apart))}

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
            for entry in open_charges(db):
                if dataset not in (None, entry.dataset) or name not in (None, entry.payload.get("name")):
                    continue
                last = last_note(db, entry.release)
                if is_stream(entry, last):
                    found.append((entry, last))
        return found

    def unfinished(self) -> list[Entry]:
        """The charges of releases, not streams, that were neither published nor given up."""
        with self._reading() as db:
            return [entry for entry in open_charges(db) if not is_stream(entry, last_note(db, entry.release))]

    # --- reading -------------------------------------------------------------------------------------

    def state(self, release_id: str) -> str | None:
        """How far a release has come: reserved, drawn, committed or aborted; None if it is not here."""
        with self._reading() as db:
            history = of_release(db, release_id)
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
            return [
                row[0]
                for row in db.execute(
                    "SELECT DISTINCT dataset FROM entries WHERE kind != 'policy' ORDER BY dataset"
                )
            ]

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
            stored = chain.rows(db, self.place.entries)
            broken = self.place.damage(db) + chain.problems(stored, known)
        return broken or wrong_sums([entry for row in stored if (entry := chain.entry_of(row))])

    def last_note(self, release_id: str) -> Entry | None:
        """The newest note of a release."""
        with self._reading() as db:
            return last_note(db, release_id)

    def export(self, path: Path) -> int:
        """Bring a copy of all entries in a file up to date; how many it got."""

        def rows() -> list[chain.Row]:
            with self._reading() as db:
                return chain.rows(db)

        if not self.exists():
            raise chain.NoLedger(self.path, "Nothing was copied.")
        return copies.bring_up_to_date(path, rows)

    def _reading(self) -> AbstractContextManager[Db]:
        return self.place.transaction(timeout=self.timeout)
