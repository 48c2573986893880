"""Entries looked up in an open ledger: accounts that cover a data set, steps and notes of a release."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsynth_cli.trusted.ledger import chain, refusals
from dpsynth_cli.trusted.ledger.balance import COUNTED, OF_OWNER, Account, Balance, account_of, covers
from dpsynth_cli.trusted.ledger.chain import Db, Entry
from dpsynth_cli.trusted.ledger.grants import Cost
from dpsynth_cli.trusted.ledger.policy import Policy, policies_of, policy_for
from dpsynth_cli.trusted.ledger.replay import in_order


class Books:
    """All accounts that a data set's releases are counted in: its own first, then patterns, longest first."""

    def __init__(self, accounts: Sequence[Account], policies: dict[str, Policy]) -> None:
        self.accounts, self.policies = list(accounts), policies

    @property
    def limit(self) -> Account | None:
        """The first that has a grant: what a charge is stated in."""
        return next((account for account in self.accounts if account.grant is not None), None)

    @property
    def remaining(self) -> Fraction | None:
        return None if self.limit is None else self.limit.remaining

    def price(self, cost: Cost, person: str | None) -> tuple[Fraction | None, str | None]:
        """What a release would be charged, and how that came about; BudgetError if it is not allowed."""
        own, policy = self.accounts[0], policy_for(person, self.policies)
        for account in self.accounts:
            if account.stopped:
                raise refusals.stopped(account)
        if rule := policy.forbids(cost, self.limit is not None):
            raise refusals.against_the_rules(rule, own.dataset, cost, policy)
        first: tuple[Fraction | None, str | None] | None = None
        for account in self.accounts:
            if account.grant is None:
                continue
            price = account.price(cost)
            if price is None:
                raise refusals.not_covered(account.dataset, cost, account.grant)
            charged, conversion = price
            left = account.left_for(cost.apart)
            if left is not None and cost.amount is not None and charged > left:
                raise refusals.too_little(account, cost, charged, conversion)
            first = first or price
        return first or (cost.amount, None)

    def add(self, entry: Entry) -> None:
        for account in self.accounts:
            account.add(entry)

    def refund(self, releases: Sequence[str]) -> None:
        for account in self.accounts:
            for release in releases:
                account.refund(release)

    def balance(self) -> Balance:
        return (self.limit or self.accounts[0]).balance()


def books(db: Db, dataset: str) -> Books:
    """The accounts and rules that hold for a data set."""
    names = {dataset} | {name for name in _names(db, OF_OWNER) if covers(name, dataset)}
    accounts = {name: account(db, name) for name in names}
    return Books(in_order(accounts, dataset), policies(db))


def account(db: Db, name: str) -> Account:
    """The account of a data set, or of a pattern."""
    covered = sorted({name} | {dataset for dataset in _names(db, COUNTED) if covers(name, dataset)})
    clause = f"WHERE dataset IN ({_marks(covered)}) AND kind IN ({_marks(COUNTED)}) ORDER BY number"
    return account_of(name, chain.entries(db, clause, *covered, *COUNTED))


def policies(db: Db) -> dict[str, Policy]:
    """The ledger's own rules, by person."""
    return policies_of(chain.entries(db, "WHERE kind = 'policy' ORDER BY number"))


def of_release(db: Db, release_id: str) -> list[Entry]:
    """The steps of a release; its notes, which may be many, are left out."""
    clause = "WHERE release = ? AND kind IN ('reserve', 'drawn', 'commit', 'abort') ORDER BY number"
    return chain.entries(db, clause, release_id)


def last_note(db: Db, release_id: str) -> Entry | None:
    clause = "WHERE release = ? AND kind = 'note' ORDER BY number DESC LIMIT 1"
    return next(iter(chain.entries(db, clause, release_id)), None)


def open_charges(db: Db) -> list[Entry]:
    """The charges of what was neither committed nor aborted."""
    ended = "SELECT release FROM entries WHERE kind IN ('commit', 'abort')"
    return chain.entries(db, f"WHERE kind = 'reserve' AND release NOT IN ({ended}) ORDER BY number")


def is_stream(charge: Entry, last: Entry | None) -> bool:
    return bool(charge.payload.get("stream")) or (last is not None and "generation" in last.payload)


def _names(db: Db, kinds: Sequence[str]) -> list[str]:
    return [
        row[0]
        for row in db.execute(f"SELECT DISTINCT dataset FROM entries WHERE kind IN ({_marks(kinds)})", kinds)
    ]


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
