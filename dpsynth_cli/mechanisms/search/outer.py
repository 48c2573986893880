"""What is declared of private columns: stand-ins before, and all that may be while they are looked for."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpsynth_cli.domain import OCTAVES, SECOND, Column, Domain, exact

FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # of the years 1 to 9999
DAY = 86_400 * SECOND
EXACT = 2**53 - 1  # whole numbers up to here are exact in a float64

# Bounds of a private column that nothing has been asked of: for predictions, never for a release.
STAND_INS: dict[str, tuple[float | int, float | int]] = {
    "continuous": (0.0, 1000.0),
    "integer": (0, 1000),
    "date": (7305, 25_566),
    "datetime": (7305 * DAY, 25_566 * DAY),
}
STAND_IN_STEPS = 100, 2**20  # how many there are then, at least and at most
STAND_IN_LABELS = tuple(f"label {number}" for number in range(1, 21))  # likewise, of open columns


def stand_ins(kind: str, step: Fraction | None) -> tuple[float | int, float | int]:
    """Bounds for predictions, of a type of column, on the grid of a step if there is one.

    >>> stand_ins("continuous", Fraction(3, 10)), stand_ins("integer", Fraction(100))
    ((0.0, 999.9), (0, 10000))
    """
    low, high = STAND_INS[kind]
    if step is None:
        return low, high
    first, (least, most) = math.ceil(exact(low) / step), STAND_IN_STEPS
    last = first + min(max(math.floor((exact(high) - exact(low)) / step), least), most)
    as_bound = float if kind == "continuous" else int
    return as_bound(first * step), as_bound(last * step)


def outer(omega: Domain) -> Domain:
    """The domain that is asked first: every private column as wide as its type, or with all its candidates.

    A cell that says nothing, or no candidate, is missing there, so that it counts for no bound and no label.
    """
    return replace(omega, columns=tuple(map(_outer, omega.columns)))


def private(omega: Domain) -> list[Column]:
    return [column for column in omega if column.private]


def _outer(column: Column) -> Column:
    if not column.private:
        return column
    if column.categorical:
        return replace(column, nullable=True, other=None)
    free = replace(column, nullable=True, step=None, decimals=None)
    if column.type in OCTAVES:
        most = EXACT if column.type == "integer" else 2.0 ** OCTAVES["continuous"][1]
        return replace(free, octaves=True, lower=-most, upper=most)
    unit = 1 if column.type == "date" else DAY
    last = LAST_DAY if column.type == "date" else (LAST_DAY + 1) * DAY - 1
    return replace(free, lower=FIRST_DAY * unit, upper=last)
