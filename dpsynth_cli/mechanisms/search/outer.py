"""What is declared of private columns: stand-ins before, and all that may be while they are looked for."""

from __future__ import annotations

from dataclasses import replace

from dpsynth_cli.domain import OCTAVES, SECOND, Column, Domain

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
STAND_IN_LABELS = tuple(f"label {number}" for number in range(1, 21))  # likewise, of open columns


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
    if column.type in OCTAVES:
        most = EXACT if column.type == "integer" else 2.0 ** OCTAVES["continuous"][1]
        return replace(column, nullable=True, octaves=True, lower=-most, upper=most)
    unit = 1 if column.type == "date" else DAY
    last = LAST_DAY if column.type == "date" else (LAST_DAY + 1) * DAY - 1
    return replace(column, nullable=True, lower=FIRST_DAY * unit, upper=last)
