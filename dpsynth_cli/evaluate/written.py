"""How many decimals numbers are written with: by the text of the first cells of a file, not by codes."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pyarrow as pa

from dpsynth_cli.cell_format import PLAIN, CellFormat
from dpsynth_cli.domain import CsvOptions, Domain
from dpsynth_cli.trusted.rows.formatted import plain_text
from dpsynth_cli.trusted.rows.read import open_scan

LOOK = 2_000  # cells of a column
LONGEST = 40  # characters of a number that is looked at
MOST_HAVE = 0.95


def decimals_as_written(path: str, domain: Domain, csv: CsvOptions) -> dict[str, int]:
    """By column of numbers that are not whole: the decimals that no more than one cell in twenty exceeds."""
    columns = tuple(column for column in domain if column.type == "continuous")
    if not columns or path == "-":
        return {}
    found = {}
    with closing(open_scan(path, columns, csv)) as scan:
        for piece in scan.pieces():
            arrays, _ = scan.cells(piece)
            for column in columns:
                digits = [
                    decimals
                    for cell in texts(arrays[column.name], column.format)
                    if (decimals := decimals_of(cell)) >= 0
                ]
                if digits:
                    found[column.name] = int(np.quantile(digits, MOST_HAVE, method="inverted_cdf"))
            break
    return found


def texts(array: pa.Array, form: CellFormat = PLAIN) -> list[str]:
    """The first cells as text, whatever they are: bytes that are no text are left out, and a format is
    undone, so that 1.234,5 is 1234.5."""
    few = array[:LOOK].drop_null()
    if pa.types.is_dictionary(few.type):
        few = few.dictionary_decode()
    if pa.types.is_floating(few.type) or pa.types.is_integer(few.type) or pa.types.is_decimal(few.type):
        return [repr(cell) if isinstance(cell, float) else str(cell) for cell in few.to_pylist()]
    if not (
        pa.types.is_string(few.type) or pa.types.is_large_string(few.type) or pa.types.is_binary(few.type)
    ):
        return []
    if form != PLAIN:
        few = plain_text(few, form).drop_null()
    raw = few.cast(pa.large_binary()).to_pylist()
    return [cell.decode("ascii", "replace").strip() for cell in raw if len(cell) <= LONGEST]


def decimals_of(text: str) -> int:
    """The decimals of a number, zeros at its end not counted; -1 where it is none.

    >>> [decimals_of(text) for text in ("12.50", "-3", "1e-3", "2.5e2", "n/a", "")]
    [1, 0, 3, 0, -1, -1]
    """
    mantissa, _, exponent = text.lower().lstrip("+-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    shift = exponent.lstrip("+-") or "0"
    if not (whole + fraction).isascii() or not (whole + fraction).isdigit() or not shift.isdigit():
        return -1
    by = min(int(shift), 999) * (-1 if exponent.startswith("-") else 1)
    return max(0, len(fraction.rstrip("0")) - by)
