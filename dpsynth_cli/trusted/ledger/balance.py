"""What the entries of one data set, or of all that match a pattern, add up to: grants, charges, what remains.

Pure bookkeeping in Fractions, without a file: `ledger.py` asks it before it writes an entry, and
verification plays every entry through it again.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpsynth_cli.errors import VerificationError
from dpsynth_cli.trusted.ledger.chain import Entry
from dpsynth_cli.trusted.ledger.grants import Cost, Grant, Unit, cost_of, grant_of, price_in

STATES = {"reserve": "reserved", "drawn": "drawn", "commit": "committed", "abort": "aborted"}
BEFORE: dict[str, tuple[str | None, ...]] = {
    "reserve": (None,),
    "drawn": ("reserved",),
    "commit": ("drawn",),
    "abort": ("reserved", "drawn"),
    "refund": ("reserved",),  # an abort, where only that gives the charge back
}
OF_OWNER = ("grant", "revoke", "close")  # entries of whoever owns the budget
COUNTED = (*OF_OWNER, "reserve", "drawn", "abort")
NOT_OURS = (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError)  # payloads of a forger


def covers(name: str, dataset: str) -> bool:
    """Whether a grant of this name is for this data set: its own name, or a pattern with * ? [abc].

    Names that look the same are the same: letters large or small, however they are encoded, with blanks
    around them or not.

    >>> covers("census-*", "census-2026"), covers("census-2026", "census-2027"), covers("census", "Census ")
    (True, False, True)
    """
    name, dataset = _folded(name), _folded(dataset)
    return name == dataset or fnmatchcase(dataset, name)


@lru_cache(maxsize=10_000)
def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


def is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


@dataclass(frozen=True)
class Balance:
    """One data set, or all of a pattern together: its grant if there is one, and what releases cost."""

    dataset: str
    grant: Grant | None
    charged: Fraction | None  # in the grant's unit, conversions included
    remaining: Fraction | None
    spent: dict[Unit, Fraction]  # as the releases stated it, a sum for each unit
    counts: dict[Unit, int]  # how many releases each of these sums has
    releases: int  # that hold a charge
    unbounded: int  # of them, without differential privacy
    stopped: str | None = None  # revoked or closed: nothing more may be spent
    apart: Fraction = Fraction(0)  # of the grant's delta: a rho is worth its epsilon at the rest


class Account:
    """The running sums of one data set or pattern, entry by entry."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.grant: Grant | None = None
        self.charged: Fraction | None = None
        self.stopped: str | None = None
        self.costs: dict[str, Cost] = {}
        self.drawn: set[str] = set()

    @property
    def apart(self) -> Fraction:
        """What releases have set apart of the grant's delta."""
        return sum((cost.apart for cost in self.costs.values()), Fraction(0))

    @property
    def remaining(self) -> Fraction | None:
        """What is left of the grant; None without one."""
        return self.left_for(Fraction(0))

    def left_for(self, apart: Fraction) -> Fraction | None:
        """What is left for a release that sets so much more of its delta apart."""
        if self.grant is None or self.charged is None:
            return None
        return Fraction(0) if self.stopped else self.grant.total_beside(self.apart + apart) - self.charged

    def price(self, cost: Cost) -> tuple[Fraction, str | None] | None:
        """The cost in the grant's unit; None where no conversion is sound."""
        if self.grant is None:
            raise ValueError("without a grant there is nothing to convert to")
        if cost.amount is None or cost.unit is None:
            return (Fraction(0), None) if self.grant.allow_unbounded else None
        return price_in(cost, self.grant.unit)

    def add(self, entry: Entry) -> str | None:
        """Take in one entry; what is wrong with it, if its writer should have refused it."""
        problem = None
        if entry.kind in OF_OWNER:
            if entry.dataset != self.dataset:
                return None  # of another name that this pattern happens to cover
            problem = self._owner(entry.kind, entry.payload)
        elif entry.kind == "reserve":
            problem = self._charge(entry.release, cost_of(entry.payload))
        elif entry.kind == "drawn":
            self.drawn.add(entry.release)
        elif entry.kind == "abort":
            self.refund(entry.release)
        if problem is None and self.grant and self.charged is not None and self._overdrawn():
            return f"{self.dataset} is overdrawn"
        return problem

    def _overdrawn(self) -> bool:
        assert self.grant is not None
        assert self.charged is not None
        return self.grant.total_beside(self.apart) < self.charged

    def _owner(self, kind: str, payload: dict[str, Any]) -> str | None:
        if self.stopped == "closed":
            return f"{self.dataset} was closed before"
        if kind == "grant":
            return self._grant(payload)
        if kind == "revoke" and self.grant is None:
            return f"{self.dataset} has no grant to revoke"
        self.stopped = "revoked" if kind == "revoke" else "closed"
        return None

    def _grant(self, payload: dict[str, Any]) -> str | None:
        new, old = grant_of(payload), self.grant
        if old is not None and not payload.get("replace") and not self.stopped:
            if (old.unit, old.delta) != (new.unit, new.delta):
                return f"{self.dataset} was granted a second kind of budget"
            self.grant = old + new
            return None
        self.grant, self.stopped = new, None
        prices = [self.price(cost) for cost in self.costs.values()]
        self.charged = sum((price[0] for price in prices if price is not None), Fraction(0))
        if None in prices:
            return f"{self.dataset} was granted a budget that cannot count its earlier releases"
        return None

    def _charge(self, release: str, cost: Cost) -> str | None:
        self.costs[release] = cost
        if self.stopped:
            return f"{self.dataset} was {self.stopped} before"
        if self.grant is None or self.charged is None:
            return None
        price = self.price(cost)
        if price is None:
            return f"{self.dataset} was charged in a unit that its grant does not cover"
        self.charged += price[0]
        return None

    def refund(self, release: str) -> None:
        """Give a charge back, unless rows were read."""
        cost = None if release in self.drawn else self.costs.pop(release, None)
        if cost is not None and self.charged is not None:
            price = self.price(cost)
            self.charged -= Fraction(0) if price is None else price[0]

    def balance(self) -> Balance:
        """The account as it stands."""
        spent: dict[Unit, Fraction] = {}
        counts: dict[Unit, int] = {}
        for cost in self.costs.values():
            if cost.amount is not None and cost.unit is not None:
                spent[cost.unit] = spent.get(cost.unit, Fraction(0)) + cost.amount
                counts[cost.unit] = counts.get(cost.unit, 0) + 1
        unbounded = sum(cost.amount is None for cost in self.costs.values())
        return Balance(
            self.dataset,
            self.grant,
            self.charged,
            self.remaining,
            spent,
            counts,
            len(self.costs),
            unbounded,
            self.stopped,
            self.apart,
        )


def account_of(name: str, entries: Iterable[Entry]) -> Account:
    """The account that grants of a name, and charges, draws and refunds of what it covers, make."""
    account = Account(name)
    for entry in entries:
        try:
            account.add(entry)
        except NOT_OURS:
            raise VerificationError(
                f"entry {entry.number} of the ledger is not one that dpsynth writes.",
                "No decision was based on it.",
                "See what else is wrong: dpsynth budget verify",
            ) from None
    return account
