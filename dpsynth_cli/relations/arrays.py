"""Values of an expression or a column, one a row: arrays of them, and which are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column
from dpsynth_cli.relations.kinds import Facts
from dpsynth_cli.values import numbers_of

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Values:
    """A value a row: numbers, days or microseconds since 1970, booleans, or places in `labels`."""

    kind: str
    data: Array
    missing: NDArray[np.bool_]
    labels: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    @property
    def facts(self) -> Facts:
        return Facts(self.kind, labels=self.labels, order=self.order)


def of_codes(codes: Array, column: Column) -> Values:
    """The values that codes of a column stand for, as they are written."""
    missing = codes == column.size if column.nullable else np.zeros(len(codes), bool)
    if column.type == "boolean":
        return Values("boolean", codes == 1, missing)
    if column.categorical:
        order = column.categories if column.type == "ordinal" else ()
        return Values("text", np.where(missing, 0, codes), missing, column.categories, order)
    return Values(column.type, numbers_of(codes, column), missing)
