"""Shares of a budget that never add up to more than it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def divide(amount: Fraction, weights: Sequence[float]) -> list[Fraction]:
    """Divide amount in proportion to positive weights; the shares add up to exactly amount.

    >>> sum(divide(Fraction(1, 10), [1, 2, 0.1]))
    Fraction(1, 10)
    """
    exact = [Fraction(weight) for weight in weights]
    if not exact or min(exact) <= 0:
        raise ValueError("weights must be positive")
    total = sum(exact)
    # Rounded to 40 binary digits so that shares print; the rounding goes to the last share.
    shares = [amount * Fraction(round(weight / total * 2**40), 2**40) for weight in exact[:-1]]
    last = amount - sum(shares, Fraction(0))
    if last <= 0 or min(shares, default=last) <= 0:
        shares = [amount * weight / total for weight in exact[:-1]]
        last = amount - sum(shares, Fraction(0))
    return [*shares, last]
