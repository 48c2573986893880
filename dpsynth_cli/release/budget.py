"""What a release may spend, in its currency, and what is no release: an epsilon too large or too small."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dpsynth_cli.errors import UsageError
from dpsynth_cli.numbers import exact
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.ledger.grants import UNBOUNDED, Cost, Unit

LARGEST_EPSILON = 1_000_000
LARGEST_NOISE = 10**6  # rows


def accountant_of(spec: Spec) -> Accountant:
    """One currency a release: pure epsilon, or rho where the spec has a delta.

    Refuses what would be no release: an epsilon that protects nobody, or one whose noise drowns every table.
    """
    privacy, at = spec.privacy, spec.places.get("privacy.epsilon", "privacy.epsilon")
    if privacy.budget > LARGEST_EPSILON:
        raise UsageError(
            f"{at}: epsilon is above {LARGEST_EPSILON:,}, which protects nobody.",
            next_step="An epsilon of 1 is usual, and more than 10 is hard to defend.",
        )
    try:
        if privacy.delta is None:
            accountant = Accountant.pure(privacy.budget)
        else:
            accountant = Accountant.gaussian(privacy.budget, privacy.delta, privacy.apart)
        noise = accountant.price(Fraction(1), 1, 1).sd  # of one count that gets the whole budget
    except ValueError:  # it does not fit in 64 bits
        noise = math.inf
    if noise > LARGEST_NOISE:
        raise UsageError(
            f"{at}: epsilon is too small: even one count with the whole budget would be off by more than a "
            "million rows.",
            next_step="Raise privacy.epsilon.",
        )
    return accountant


def cost_of(spec: Spec) -> Cost:
    """What the release costs, as the ledger counts it."""
    privacy = spec.privacy
    if privacy.epsilon is None:
        return UNBOUNDED
    accountant = accountant_of(spec)
    return Cost(
        accountant.total,
        Unit(accountant.currency, privacy.neighbours, privacy.unit.protects if privacy.unit else ""),
        exact(privacy.budget),
        None if privacy.delta is None else str(float(privacy.delta)),
        privacy.apart,
    )


def budget_of(accountant: Accountant) -> dict[str, Any]:
    """Total and spent, as exact strings and as floats; and the delta that is set apart, if any."""
    apart = {"delta_of_labels": exact(accountant.apart)} if accountant.apart else {}
    return {
        "currency": accountant.currency,
        "total": str(accountant.total),
        "total_float": float(accountant.total),
        "spent": str(accountant.spent),
        "spent_float": float(accountant.spent),
    } | apart
