"""How many cells are not as declared: for the steward's eyes, never for a file."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.arrow import to_numpy
from dpsynth_cli.domain import Column
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.rows.text import UNLISTED, empty
from dpsynth_cli.trusted.rows.values import from_arrow, is_missing, is_text, plain_binary


@dataclass
class Problems:
    """How many rows and ruined records a table has, and by column how many cells are not as declared.

    Private: for the steward's terminal, never for a file.
    """

    rows: int = 0
    ruined: int = 0
    columns: dict[str, dict[str, int]] = field(default_factory=dict)


def count_problems(scan: Scan) -> Problems:
    """Count the cells that are missing, unparseable, out of bounds or unlisted, ruined records apart."""
    kinds = ("missing", "unparseable", "out of bounds", "unlisted")
    problems = Problems(columns={column.name: dict.fromkeys(kinds, 0) for column in scan.columns})
    for piece in scan.pieces():
        arrays, ruined = scan.cells(piece)
        problems.rows += ruined + len(next(iter(arrays.values())))
        problems.ruined += ruined
        for column in scan.columns:
            for kind, count in _problems(arrays[column.name], column).items():
                problems.columns[column.name][kind] += count
    return problems


def _problems(array: pa.Array, column: Column) -> dict[str, int]:
    times: NDArray[np.int64] | None = None
    nulls = 0
    if pa.types.is_dictionary(array.type):  # never written out: a long label may be in every row
        there = to_numpy(array.indices.drop_null()).astype(np.int64)
        nulls, array = array.null_count, array.dictionary
        times = np.bincount(there, minlength=len(array))
    values = from_arrow(array, column)

    def count(which: NDArray[np.bool_]) -> int:
        return int(np.count_nonzero(which) if times is None else times[which].sum())

    absent = is_missing(values)
    if column.categorical:
        return {"missing": count(absent) + nulls, "unlisted": count(values == UNLISTED)}
    blank = empty(plain_binary(array)) if is_text(array.type) else absent
    with np.errstate(invalid="ignore"):
        whole = np.rint(values) if column.type == "integer" else values
    outside = ~absent & ((whole < column.lower) | (whole > column.upper))
    return {
        "missing": count(blank) + nulls,
        "unparseable": count(absent & ~blank),
        "out of bounds": count(outside),
    }
