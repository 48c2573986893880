"""Columns of numbers that may be groups: their values, as they are written."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.questions import Floats
from dpsynth_cli.values import numbers_of

WIDEST = 200  # values of a column of numbers that may be groups


def few_values(column: Column) -> Floats | None:
    """All values of a column of numbers, where they are few.

    >>> few_values(Column("wind", "continuous", lower=0.0, upper=1.5, decimals=1))[:3].tolist()
    [0.0, 0.1, 0.2]
    """
    if column.type not in ("integer", "continuous") or column.size > WIDEST:
        return None
    return np.asarray(numbers_of(np.arange(column.size), column))


def label_of(value: float | int) -> str:
    """A number in the fewest digits that are this number."""
    return np.format_float_positional(value, trim="-") if isinstance(value, float) else str(int(value))
