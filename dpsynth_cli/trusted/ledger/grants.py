"""What amounts are counted in, what a release costs, and what a data set was granted. Exact fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpsynth_cli.trusted.core import gaussian

CURRENCIES = ("epsilon", "rho")
RELATIONS = ("add_remove", "replace_one")


@dataclass(frozen=True)
class Unit:
    """What an amount is counted in; amounts of different units never add up. `protects` names the column
    whose equal cells are one person's rows; without it one row is protected."""

    currency: str
    neighbours: str
    protects: str = ""

    def __post_init__(self) -> None:
        if self.currency not in CURRENCIES or self.neighbours not in RELATIONS:
            raise ValueError(f"no such unit: {self.currency} under {self.neighbours}")

    def __str__(self) -> str:
        kind = "pure epsilon" if self.currency == "epsilon" else "rho (Gaussian)"
        return f"{kind} under {self.neighbours}{by_unit(self.protects)}"


def by_unit(protects: str) -> str:
    """Who is protected, behind the neighbour relation, where it is not one row."""
    return f" by {protects}" if protects else ""


@dataclass(frozen=True)
class Cost:
    """What one release costs, in its own unit; no unit and no amount: it has no epsilon at all.

    `epsilon` and `delta` are the release's own, as stated: for messages and the record. `apart` is the part
    of that delta which is not in the amount: what labels above a threshold cost.
    """

    amount: Fraction | None
    unit: Unit | None
    epsilon: str | None = None
    delta: str | None = None
    apart: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.apart < 0 or (self.apart and self.delta is None):
            raise ValueError("what is set apart is a part of a delta")
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
            **({"unit": self.unit.protects} if self.unit.protects else {}),
            **({"delta_apart": str(self.apart)} if self.apart else {}),
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
    protects: str = ""

    @property
    def unit(self) -> Unit:
        return Unit("epsilon" if self.delta is None else "rho", self.neighbours, self.protects)

    @cached_property
    def total(self) -> Fraction:
        """In the grant's unit."""
        return self.total_beside(Fraction(0))

    def total_beside(self, apart: Fraction) -> Fraction:
        """In the grant's unit, where releases have spent so much of its delta apart: rho is worth the
        epsilon at the rest."""
        if self.delta is None:
            return self.epsilon
        return (
            gaussian.rho_of_epsilon(self.epsilon, self.delta - apart) if apart < self.delta else Fraction(0)
        )

    def __add__(self, more: Grant) -> Grant:
        return Grant(
            self.epsilon + more.epsilon,
            self.delta,
            self.neighbours,
            self.allow_unbounded or more.allow_unbounded,
            self.protects,
        )

    def epsilon_of(self, amount: Fraction, apart: Fraction = Fraction(0)) -> Fraction:
        """What an amount in the grant's unit is worth as an epsilon at its delta, or at what is left of that
        beside what is set apart, rounded up."""
        if self.delta is None or amount <= 0:
            return amount
        return gaussian.epsilon_of_rho(amount, self.delta - apart)

    def more_for(self, needed: Fraction, apart: Fraction = Fraction(0)) -> Fraction:
        """The epsilon that must be granted, at least, so that the total is not below what is needed."""
        if self.delta is None:
            return needed - self.epsilon
        # Both conversions round in the safe direction, so that a few last digits may be missing.
        more = max(self.epsilon_of(needed, apart) - self.epsilon, Fraction(1, 10**12))
        while gaussian.rho_of_epsilon(self.epsilon + more, self.delta - apart) < needed:
            more = more * 2 if more < Fraction(1, 10**9) else more * (1 + Fraction(1, 10**9))
        return more


def converted(amount: Fraction, source: Unit, target: Unit) -> tuple[Fraction, str | None] | None:
    """The amount in another unit, and how it came about in words; None where nothing is implied.

    Claim: a release that costs `amount` in `source` costs at most the result in `target`. A pure
    epsilon has the rho of randomised response; add_remove twice is replace_one, so 2 epsilon, or 4 rho. Never
    the reverse. A row that comes or goes replaces its unit, and one that is replaced may replace two; a row's
    price says nothing of a unit, which may have any number of rows.

    >>> converted(Fraction(1, 2), Unit("epsilon", "add_remove"), Unit("rho", "replace_one"))[1]
    '2 x epsilon from add_remove to replace_one, then epsilon to the rho that covers it'
    """
    steps, times = [], 1
    if source.protects != target.protects:
        if target.protects:
            return None
        times = (1 + (source.neighbours == "add_remove")) * (1 + (target.neighbours == "replace_one"))
        said = f"from {source.neighbours}{by_unit(source.protects)} to {target.neighbours} by rows"
    elif source.neighbours != target.neighbours:
        if source.neighbours == "replace_one":
            return None
        times, said = 2, "from add_remove to replace_one"
    if times > 1:
        factor = times if source.currency == "epsilon" else times**2
        amount *= factor
        steps.append(f"{factor} x {source.currency} {said}")
    if source.currency != target.currency:
        if source.currency == "rho":
            return None
        amount = gaussian.rho_of_pure(amount)
        steps.append("epsilon to the rho that covers it")
    return amount, ", then ".join(steps) or None


def price_in(cost: Cost, target: Unit) -> tuple[Fraction, str | None] | None:
    """`converted`, of a release. What it sets apart of its delta stays the same: a row that is replaced takes
    one label away and brings one. But it may change two units, which may bring the same new label together,
    and the threshold is for one: then nothing is implied."""
    assert cost.amount is not None
    assert cost.unit is not None
    if cost.apart and cost.unit.protects != target.protects and target.neighbours == "replace_one":
        return None
    return converted(cost.amount, cost.unit, target)


def cost_of(payload: dict[str, Any]) -> Cost:
    """The cost that a reserve entry records."""
    if payload["currency"] == "unbounded":
        return UNBOUNDED
    unit = Unit(payload["currency"], payload["neighbours"], payload.get("unit", ""))
    apart = Fraction(payload.get("delta_apart", 0))
    return Cost(Fraction(payload["amount"]), unit, payload["epsilon"], payload["delta"], apart)


def grant_of(payload: dict[str, Any]) -> Grant:
    """The grant that a grant entry records."""
    delta = None if payload["delta"] is None else Fraction(payload["delta"])
    grant = Grant(
        Fraction(payload["epsilon"]),
        delta,
        payload["neighbours"],
        payload["allow_unbounded"],
        payload.get("unit", ""),
    )
    if grant.epsilon <= 0 or grant.unit.currency != payload["currency"]:
        raise ValueError("a grant is of a positive epsilon, in rho if and only if it has a delta")
    return grant
