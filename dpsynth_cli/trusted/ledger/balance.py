"""What the entries of one data set add up to: grants, charges, and what remains.

Pure bookkeeping in Fractions, without a file: `ledger.py` asks it before it writes an entry, and
verification plays every entry through it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpsynth_cli.errors import VerificationError
from dpsynth_cli.trusted.core import gaussian
from dpsynth_cli.trusted.ledger.chain import Entry

CURRENCIES = ("epsilon", "rho")
RELATIONS = ("add_remove", "replace_one")
STATES = {"reserve": "reserved", "drawn": "drawn", "commit": "committed", "abort": "aborted"}
BEFORE: dict[str, tuple[str | None, ...]] = {
    "reserve": (None,),
    "drawn": ("reserved",),
    "commit": ("drawn",),
    "abort": ("reserved", "drawn"),
}
NOT_OURS = (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError)  # payloads of a forger


@dataclass(frozen=True)
class Unit:
    """What an amount is counted in; amounts of different units never add up."""

    currency: str
    neighbours: str

    def __post_init__(self) -> None:
        if self.currency not in CURRENCIES or self.neighbours not in RELATIONS:
            raise ValueError(f"no such unit: {self.currency} under {self.neighbours}")

    def __str__(self) -> str:
        kind = "pure epsilon" if self.currency == "epsilon" else "rho (Gaussian)"
        return f"{kind} under {self.neighbours}"


@dataclass(frozen=True)
class Cost:
    """What one release costs, in its own unit; no unit and no amount: it has no epsilon at all.

    `epsilon` and `delta` are the release's own, as stated: for messages and the record.
    """

    amount: Fraction | None
    unit: Unit | None
    epsilon: str | None = None
    delta: str | None = None

    def __post_init__(self) -> None:
        if self.amount is None or self.unit is None:
            return
        if not isinstance(self.amount, Fraction):
            raise TypeError("a charge is a Fraction: floats do not add up")
        if self.amount <= 0 or (self.delta is None) != (self.unit.currency == "epsilon"):
            raise ValueError("a charge is positive, and has a delta if and only if it is a rho")

    def as_json(self) -> dict[str, Any]:
        """As a reserve entry records it."""
        if self.amount is None or self.unit is None:
            return {"currency": "unbounded"}
        return {
            "amount": str(self.amount),
            "currency": self.unit.currency,
            "neighbours": self.unit.neighbours,
            "epsilon": self.epsilon,
            "delta": self.delta,
        }


UNBOUNDED = Cost(None, None)  # a release without differential privacy


@dataclass(frozen=True)
class Grant:
    """What all releases of a data set together may spend: the sum of the epsilons that its owner stated.

    With a delta it is counted in rho: the rho that this epsilon allows at this delta, and not a sum of rhos,
    which would be worth another epsilon than the one that was stated.
    """

    epsilon: Fraction
    delta: Fraction | None
    neighbours: str
    allow_unbounded: bool

    @property
    def unit(self) -> Unit:
        return Unit("epsilon" if self.delta is None else "rho", self.neighbours)

    @cached_property
    def total(self) -> Fraction:
        """In the grant's unit."""
        if self.delta is None:
            return self.epsilon
        return gaussian.rho_of_epsilon(self.epsilon, self.delta)

    def __add__(self, more: Grant) -> Grant:
        return Grant(
            self.epsilon + more.epsilon,
            self.delta,
            self.neighbours,
            self.allow_unbounded or more.allow_unbounded,
        )

    def epsilon_of(self, amount: Fraction) -> Fraction:
        """What an amount in the grant's unit is worth as an epsilon at its delta, rounded up."""
        if self.delta is None or amount <= 0:
            return amount
        return gaussian.epsilon_of_rho(amount, self.delta)

    def more_for(self, needed: Fraction) -> Fraction:
        """The epsilon that must be granted, at least, so that the total is not below what is needed."""
        if self.delta is None:
            return needed - self.epsilon
        # Both conversions round in the safe direction, so that a few last digits may be missing.
        more = max(self.epsilon_of(needed) - self.epsilon, Fraction(1, 10**12))
        while gaussian.rho_of_epsilon(self.epsilon + more, self.delta) < needed:
            more = more * 2 if more < Fraction(1, 10**9) else more * (1 + Fraction(1, 10**9))
        return more


@dataclass(frozen=True)
class Balance:
    """One data set: its grant if there is one, and what its releases were charged."""

    dataset: str
    grant: Grant | None
    charged: Fraction | None  # in the grant's unit, conversions included
    remaining: Fraction | None
    spent: dict[Unit, Fraction]  # as the releases stated it, a sum for each unit
    counts: dict[Unit, int]  # how many releases each of these sums has
    releases: int  # that hold a charge
    unbounded: int  # of them, without differential privacy


def converted(amount: Fraction, source: Unit, target: Unit) -> tuple[Fraction, str | None] | None:
    """The amount in another unit, and how it came about in words; None where nothing is implied.

    Claim: a release that costs `amount` in `source` costs at most the result in `target`. A pure
    epsilon has the rho of randomised response; add_remove twice is replace_one, so 2 epsilon, or 4 rho. Never
    the reverse.

    >>> converted(Fraction(1, 2), Unit("epsilon", "add_remove"), Unit("rho", "replace_one"))[1]
    '2 x epsilon from add_remove to replace_one, then epsilon to the rho that covers it'
    """
    steps = []
    if source.neighbours != target.neighbours:
        if source.neighbours == "replace_one":
            return None
        factor = 2 if source.currency == "epsilon" else 4
        amount *= factor
        steps.append(f"{factor} x {source.currency} from add_remove to replace_one")
    if source.currency != target.currency:
        if source.currency == "rho":
            return None
        amount = gaussian.rho_of_pure(amount)
        steps.append("epsilon to the rho that covers it")
    return amount, ", then ".join(steps) or None


class Account:
    """The running sums of one data set, entry by entry."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.grant: Grant | None = None
        self.charged: Fraction | None = None
        self.costs: dict[str, Cost] = {}
        self.drawn: set[str] = set()

    @property
    def remaining(self) -> Fraction | None:
        """What is left of the grant; None without one."""
        return None if self.grant is None or self.charged is None else self.grant.total - self.charged

    def price(self, cost: Cost) -> tuple[Fraction, str | None] | None:
        """The cost in the grant's unit; None where no conversion is sound."""
        if self.grant is None:
            raise ValueError("without a grant there is nothing to convert to")
        if cost.amount is None or cost.unit is None:
            return (Fraction(0), None) if self.grant.allow_unbounded else None
        return converted(cost.amount, cost.unit, self.grant.unit)

    def add(self, kind: str, release: str, payload: dict[str, Any]) -> str | None:
        """Take in one entry; what is wrong with it, if its writer should have refused it."""
        problem = None
        if kind == "grant":
            problem = self._grant(payload)
        elif kind == "reserve":
            problem = self._charge(release, cost_of(payload), payload.get("charged"))
        elif kind == "drawn":
            self.drawn.add(release)
        elif kind == "abort" and release not in self.drawn:
            self._refund(release)
        if problem is None and (self.remaining or 0) < 0:
            return f"{self.dataset} is overdrawn"
        return problem

    def _grant(self, payload: dict[str, Any]) -> str | None:
        new = grant_of(payload)
        old = self.grant
        if old is not None:
            if (old.unit, old.delta) != (new.unit, new.delta):
                return f"{self.dataset} was granted a second kind of budget"
            new = old + new
        self.grant = new
        if old is None:
            prices = [self.price(cost) for cost in self.costs.values()]
            self.charged = sum((price[0] for price in prices if price is not None), Fraction(0))
            if None in prices:
                return f"{self.dataset} was granted a budget that cannot count its earlier releases"
        return None

    def _charge(self, release: str, cost: Cost, stated: object) -> str | None:
        self.costs[release] = cost
        if self.grant is None or self.charged is None:
            return None if stated is None else f"{self.dataset} has no grant to charge"
        price = self.price(cost)
        if price is None:
            return f"{self.dataset} was charged in a unit that its grant does not cover"
        self.charged += price[0]
        if stated != str(price[0]):
            return f"{self.dataset} was charged another amount than the release costs"
        return None

    def _refund(self, release: str) -> None:
        cost = self.costs.pop(release, None)
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
        )


def cost_of(payload: dict[str, Any]) -> Cost:
    """The cost that a reserve entry records."""
    if payload["currency"] == "unbounded":
        return UNBOUNDED
    unit = Unit(payload["currency"], payload["neighbours"])
    return Cost(Fraction(payload["amount"]), unit, payload["epsilon"], payload["delta"])


def grant_of(payload: dict[str, Any]) -> Grant:
    """The grant that a grant entry records."""
    delta = None if payload["delta"] is None else Fraction(payload["delta"])
    grant = Grant(Fraction(payload["epsilon"]), delta, payload["neighbours"], payload["allow_unbounded"])
    if grant.epsilon <= 0 or grant.unit.currency != payload["currency"]:
        raise ValueError("a grant is of a positive epsilon, in rho if and only if it has a delta")
    return grant


def account_of(dataset: str, entries: list[Entry]) -> Account:
    """The account that the data set's grants, charges, draws and refunds make."""
    account = Account(dataset)
    for entry in entries:
        try:
            account.add(entry.kind, entry.release, entry.payload)
        except NOT_OURS:
            raise VerificationError(
                f"entry {entry.number} of the ledger is not one that dpsynth writes.",
                "No decision was based on it.",
                "See what else is wrong: dpsynth budget verify",
            ) from None
    return account


def wrong_sums(entries: list[Entry]) -> list[str]:
    """Entries that no dpsynth would have written, in a chain that is whole."""
    accounts: dict[str, Account] = {}
    last: dict[str, Entry] = {}
    found = []
    for entry in entries:
        problem: str | None = None
        before = last.get(entry.release)
        if entry.kind in STATES:
            state = STATES[before.kind] if before else None
            if state not in BEFORE[entry.kind] or (before and before.dataset != entry.dataset):
                problem = f"release {entry.release} cannot be {STATES[entry.kind]} here"
            last[entry.release] = entry
        elif entry.kind not in ("grant", "note"):
            problem = "there is no such kind of entry"
        account = accounts.setdefault(entry.dataset, Account(entry.dataset))
        try:
            problem = problem or account.add(entry.kind, entry.release, entry.payload)
        except NOT_OURS:
            problem = "it is not one that dpsynth writes"
        if problem:
            found.append(f"entry {entry.number}: {problem}")
    return found
