"""CodesByColumn on the unit scale, and the cells that marginals are counted in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.numeric.partition import even_edges
from dpsynth_cli.questions import Bins, Floats


def ordered(domain: Domain) -> tuple[Column, ...]:
    """The columns whose values lie on a line: numbers, times, ordinal categories."""
    return tuple(c for c in domain if c.type not in ("nominal", "boolean"))


def unit(codes: NDArray[Any], column: Column) -> Floats:
    """The place between the column's bounds, from 0 to 1; missing is in the middle."""
    x = codes / max(1, column.size - 1)
    return np.where(codes == column.size, 0.5, x) if column.nullable else x


def missing(codes: NDArray[Any], column: Column) -> NDArray[np.bool_]:
    return np.asarray(codes == column.size if column.nullable else np.zeros(len(codes), bool))


def share(flags: NDArray[np.bool_]) -> float:
    """The part of the rows that are flagged; of no rows, none."""
    return float(flags.mean()) if len(flags) else 0.0


def cells(column: Column, numeric: int, categories: int) -> Bins:
    """A column in at most so many even cells; missing has one of its own."""
    count = min(column.size, categories if column.categorical else numeric)
    return Bins(column.name, tuple(even_edges((column.size, column.nullable), count).tolist()))
