"""The ends and the labels of a table that is PUBLIC already, such as last year's file.

Nothing here is private: what is found is the highest and lowest value and every label. `draft/like.py` gives
it the file that a steward named as public, and refuses the file that is to be released.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dpsynth_cli.cell_format import CellFormat
from dpsynth_cli.domain import Column, CsvOptions
from dpsynth_cli.trusted.rows.look import widest
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.text import MARKS, trimmed
from dpsynth_cli.trusted.rows.values import from_arrow, is_missing, is_text, plain_binary

MOST_LABELS = 10_000


@dataclass
class Range:
    """What occurs in a column: its ends in its own unit, or its labels; whether cells are missing."""

    lower: float | int | None = None
    upper: float | int | None = None
    labels: set[str] = field(default_factory=set)
    missing: bool = False
    too_many: bool = False


def ranges(path: str, kinds: Mapping[str, tuple[str, CellFormat]], csv: CsvOptions) -> dict[str, Range]:
    """What occurs in each column of a public table, read as a column of such a type and format."""
    columns = [widest(name, kind, form) for name, (kind, form) in kinds.items()]
    found = {column.name: Range() for column in columns}
    with closing(open_scan(path, columns, csv)) as scan:
        for piece in scan.pieces():
            arrays, _ = scan.cells(piece)
            for column in columns:
                _add(found[column.name], arrays[column.name], column)
    return found


def _add(found: Range, array: pa.Array, column: Column) -> None:
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if column.categorical:
        _add_labels(found, array)
        return
    values = from_arrow(array, column)
    absent = is_missing(values)
    found.missing |= bool(absent.any())
    there = values[~absent]
    there = there[np.isfinite(there)] if there.dtype == np.float64 else there
    if len(there):
        low, high = there.min().item(), there.max().item()
        found.lower = low if found.lower is None else min(found.lower, low)
        found.upper = high if found.upper is None else max(found.upper, high)


def _add_labels(found: Range, array: pa.Array) -> None:
    if not is_text(array.type):
        if pa.types.is_floating(array.type):
            found.too_many = True  # numbers that are no labels
            return
        array = array.cast(pa.string())
    text = trimmed(plain_binary(array)).unique()
    for cell in text.cast(pa.large_binary()).to_pylist():
        label = "" if cell is None else cell.decode("utf-8", "replace")
        if not label or label in MARKS:
            found.missing = True
        elif len(found.labels) < MOST_LABELS:
            found.labels.add(label)
        else:
            found.too_many = True
