"""The accountant that a spec asks for, and its totals as an audit shows them. No file is touched here."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dpsynth_cli.errors import UsageError
from dpsynth_cli.spec import Spec
from dpsynth_cli.trusted.accountant import Accountant

LARGEST_EPSILON = 1_000_000
LARGEST_NOISE = 10**6  # rows


def accountant_of(spec: Spec) -> Accountant:
    """One currency a release: pure epsilon, or rho where the spec has a delta.

    Refuses what would be no release: an epsilon that protects nobody, or one whose noise drowns every table.
    """
    privacy, at = spec.privacy, spec.places.get("privacy.epsilon", "privacy.epsilon")
    if privacy.epsilon > LARGEST_EPSILON:
        raise UsageError(
            f"{at}: epsilon is above {LARGEST_EPSILON:,}, which protects nobody.",
            next_step="An epsilon of 1 is usual, and more than 10 is hard to defend.",
        )
    if privacy.delta is None:
        accountant = Accountant.pure(privacy.epsilon)
    else:
        accountant = Accountant.zcdp(privacy.epsilon, privacy.delta)
    if _noise(accountant) > LARGEST_NOISE:
        raise UsageError(
            f"{at}: epsilon is too small: even one count with the whole budget would be off by more than a "
            "million rows.",
            next_step="Raise privacy.epsilon.",
        )
    return accountant


def _noise(accountant: Accountant) -> float:
    """The standard deviation of one count that gets the whole budget."""
    try:
        return accountant.price(Fraction(1), 1, 1).sd
    except ValueError:
        return math.inf


def budget_of(accountant: Accountant) -> dict[str, Any]:
    """Total and spent, as exact strings and as floats."""
    return {
        "currency": accountant.currency,
        "total": str(accountant.total),
        "total_float": float(accountant.total),
        "spent": str(accountant.spent),
        "spent_float": float(accountant.spent),
    }
