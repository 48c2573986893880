"""Verification: every entry of a whole chain played again, to find what no dpsynth would have written."""

from __future__ import annotations

from collections.abc import Sequence

from dpsynth_cli.trusted.ledger.balance import (
    BEFORE,
    COUNTED,
    NOT_OURS,
    OF_OWNER,
    STATES,
    Account,
    covers,
)
from dpsynth_cli.trusted.ledger.chain import Entry
from dpsynth_cli.trusted.ledger.grants import cost_of
from dpsynth_cli.trusted.ledger.policy import Policy, policy_for


class Replay:
    """The accounts of all names, and the rules, as they stood at each entry."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.policies: dict[str, Policy] = {}
        self.last: dict[str, Entry] = {}
        self.counted: list[Entry] = []

    def add(self, entry: Entry) -> str | None:
        """What is wrong with the next entry."""
        try:
            if entry.kind == "policy":
                self.policies[entry.payload["person"]] = Policy.of(entry.payload)
                return None
            if entry.kind == "note":
                return None
            if entry.kind not in COUNTED and entry.kind not in STATES:
                return "there is no such kind of entry"
            wrong_step = self._step(entry) if entry.kind in STATES else None
            return wrong_step or self._count(entry)
        except NOT_OURS:
            return "it is not one that dpsynth writes"

    def _step(self, entry: Entry) -> str | None:
        before = self.last.get(entry.release)
        self.last[entry.release] = entry
        state = STATES[before.kind] if before else None
        if state not in BEFORE[entry.kind] or (before and before.dataset != entry.dataset):
            return f"release {entry.release} cannot be {STATES[entry.kind]} here"
        return None

    def _count(self, entry: Entry) -> str | None:
        problem = self._stated(entry) if entry.kind == "reserve" else None
        if entry.dataset not in self.accounts:
            self.accounts[entry.dataset] = self._account(entry.dataset)
        self.counted.append(entry)
        for name, account in self.accounts.items():
            if name == entry.dataset or (entry.kind not in OF_OWNER and covers(name, entry.dataset)):
                problem = account.add(entry) or problem
        return problem

    def _account(self, name: str) -> Account:
        """A name that is new: what it covers was counted before."""
        account = Account(name)
        for entry in self.counted:
            if entry.kind not in OF_OWNER and covers(name, entry.dataset):
                account.add(entry)
        return account

    def _stated(self, entry: Entry) -> str | None:
        """A charge states what the first grant that covers it counts, and keeps the rules."""
        cost, stated = cost_of(entry.payload), entry.payload.get("charged")
        covering = in_order(self.accounts, entry.dataset)
        granted = [account for account in covering if account.grant is not None]
        if policy_for(entry.payload.get("by"), self.policies).forbids(cost, bool(granted)):
            return f"{entry.dataset} was charged against the ledger's own rules"
        if not granted:
            return None if stated is None else f"{entry.dataset} has no grant to charge"
        price = granted[0].price(cost)
        if price is not None and stated != str(price[0]):
            return f"{entry.dataset} was charged another amount than the release costs"
        return None


def in_order(accounts: dict[str, Account], dataset: str) -> list[Account]:
    """The accounts that cover a data set: its own first, then patterns, longest first."""
    names = sorted(
        (name for name in accounts if covers(name, dataset)),
        key=lambda name: (name != dataset, -len(name), name),
    )
    return [accounts[name] for name in names]


def wrong_sums(entries: Sequence[Entry]) -> list[str]:
    """Entries that no dpsynth would have written."""
    replay = Replay()
    return [
        f"entry {entry.number}: {problem}" for entry in entries if (problem := replay.add(entry)) is not None
    ]
