"""How many cells are not as declared: for the steward's eyes, never for a file."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dpsynth_cli.domain import Column
from dpsynth_cli.trusted.scan import Scan
from dpsynth_cli.trusted.values import UNLISTED, from_arrow, is_missing, is_text, plain_binary, trimmed


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
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    values = from_arrow(array, column)
    absent = int(np.count_nonzero(is_missing(values)))
    if column.categorical:
        return {"missing": absent, "unlisted": int(np.count_nonzero(values == UNLISTED))}
    empty = trimmed(plain_binary(array)).null_count if is_text(array.type) else absent
    there = values[~is_missing(values)]
    there = np.rint(there) if column.type == "integer" else there
    outside = int(np.count_nonzero((there < column.lower) | (there > column.upper)))
    return {"missing": empty, "unparseable": absent - empty, "out of bounds": outside}
