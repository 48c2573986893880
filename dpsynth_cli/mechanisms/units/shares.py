"""What part of the budget pays for units."""

from __future__ import annotations

from fractions import Fraction

from dpsynth_cli.domain import Domain

SIZES = Fraction(1, 20)
SIZES_AND_PAIRS = Fraction(1, 4)


def of_units(omega: Domain) -> Fraction:
    """Of the budget, where units are released: for how many rows they have, and how they follow."""
    return SIZES if omega.unit_order is None else SIZES_AND_PAIRS
