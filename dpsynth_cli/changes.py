"""How far a column's value goes from one row to the next, as a code of its own.

No change is `change_zero`, a change of c codes is c // `change_step` above it, and the last code, where the
column is nullable, is a change from or to missing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import GRID, Column


def change_step(column: Column) -> int:
    """How many codes a change is counted in: one, or two of the finest grid, so that changes fit in 2**30."""
    return 1 if column.size <= GRID // 2 else 2


def change_zero(column: Column) -> int:
    """The code of no change."""
    return -((1 - column.size) // change_step(column))


def change_codes(column: Column) -> int:
    """The number of codes of changes.

    >>> age = Column("age", "integer", lower=0, upper=120, nullable=True)
    >>> change_zero(age), change_codes(age)
    (120, 242)
    """
    return change_zero(column) + (column.size - 1) // change_step(column) + 1 + column.nullable


def changes(column: Column, before: NDArray[np.integer], after: NDArray[np.integer]) -> NDArray[np.int64]:
    """The codes of changes from one value to another."""
    made = (after.astype(np.int64) - before) // change_step(column) + change_zero(column)
    missing = (before >= column.size) | (after >= column.size)
    return np.where(missing, change_codes(column) - 1, made)
