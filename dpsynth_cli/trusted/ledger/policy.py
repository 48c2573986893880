"""The ledger's own rules: what no release may do, whatever grants say; for everybody, or for one person."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsynth_cli.trusted.ledger.chain import Entry
from dpsynth_cli.trusted.ledger.grants import Cost

EVERYBODY = ""
RULES = ("require_grant", "most_epsilon", "most_delta")


@dataclass(frozen=True)
class Policy:
    """None: nothing is said about it. `require_grant`: a data set without a grant is not released at all."""

    require_grant: bool | None = None
    most_epsilon: Fraction | None = None  # of one release
    most_delta: Fraction | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "require_grant": self.require_grant,
            "most_epsilon": None if self.most_epsilon is None else str(self.most_epsilon),
            "most_delta": None if self.most_delta is None else str(self.most_delta),
        }

    @classmethod
    def of(cls, payload: dict[str, Any]) -> Policy:
        epsilon, delta = payload["most_epsilon"], payload["most_delta"]
        required = payload["require_grant"]
        if required is not None and type(required) is not bool:
            raise TypeError("a rule is kept or not")
        return cls(
            required,
            None if epsilon is None else Fraction(epsilon),
            None if delta is None else Fraction(delta),
        )

    def over(self, general: Policy) -> Policy:
        """A person's own rules, and where they say nothing those for everybody."""
        values = {}
        for rule in RULES:
            own = getattr(self, rule)
            values[rule] = getattr(general, rule) if own is None else own
        return Policy(**values)

    def forbids(self, cost: Cost, granted: bool) -> str | None:
        """The rule that a release breaks; None if there is none."""
        if self.require_grant and not granted:
            return "require_grant"
        if cost.epsilon is None:  # by groups: neither bounds it, and only a grant can allow it
            limited = [rule for rule in ("most_epsilon", "most_delta") if getattr(self, rule) is not None]
            return None if granted or not limited else limited[0]
        if self.most_epsilon is not None and Fraction(cost.epsilon) > self.most_epsilon:
            return "most_epsilon"
        if self.most_delta is not None and cost.delta and Fraction(cost.delta) > self.most_delta:
            return "most_delta"
        return None


def policies_of(entries: Iterable[Entry]) -> dict[str, Policy]:
    """The rules as they stand, by person."""
    return {entry.payload["person"]: Policy.of(entry.payload) for entry in entries}


def policy_for(person: str | None, policies: dict[str, Policy]) -> Policy:
    """The rules that hold for somebody."""
    general = policies.get(EVERYBODY, Policy())
    return policies.get(person, Policy()).over(general) if person else general


def who() -> str | None:
    """Who runs this, as the operating system says it and no variable can; None where it does not."""
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):
        return None
