"""A first look at a table, for drafting a spec: its columns, and if wanted the form of its first cells.

Of a CSV file the header is read, of a Parquet file the schema; of the rows at most the first four megabytes,
and of these only what `forms.py` says leaves this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from dpsynth_cli.cell_format import PLAIN, CellFormat
from dpsynth_cli.domain import Column, CsvOptions
from dpsynth_cli.trusted.rows.csv_lines import cells
from dpsynth_cli.trusted.rows.forms import Look, look
from dpsynth_cli.trusted.rows.header import LOOKED, header, no_header, opened, parquet_schema, start
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.values import readable

FIRST_BYTES = 2**22
FIRST_ROWS = 2**16
_MOST_EXACT = 2**53


@dataclass(frozen=True)
class Seen:
    """A column by its name, its look, and for Parquet its type."""

    name: str
    look: Look
    type: Any = None


@dataclass(frozen=True)
class Glance:
    """The columns of a table; why others are left out; how CSV is written; whether rows were looked at."""

    columns: list[Seen]
    left_out: list[str]
    csv: CsvOptions
    rows: bool


def glance(path: str, *, rows: bool, certain: bool = False) -> Glance:
    """A look at a table: without `rows` at its header or schema alone."""
    if os.path.isdir(path) or path.lower().endswith(".parquet"):
        return _parquet(path, rows)
    with opened(path) as file:
        begun = start(file, FIRST_BYTES if rows else 0)
        names, delimiter = header(path, begun.line, certain, begun.sign)
    arrays = _cells(begun.block, delimiter, len(names)) if begun.block else []
    if not certain and is_row(names, arrays):
        raise no_header(path, "most names in it are values of their columns", LOOKED)
    looks = [look(array) for array in arrays] or [Look("unknown")] * len(names)
    left_out = [f"field {i} of the header has no name" for i, name in enumerate(names, 1) if not name]
    seen = [Seen(name, own) for name, own in zip(names, looks, strict=True) if name]
    return Glance(seen, left_out, CsvOptions(delimiter=delimiter, encoding=begun.encoding), bool(begun.block))


def _cells(block: bytes, delimiter: str, fields: int) -> list[pa.Array]:
    if len(block) >= FIRST_BYTES:  # the last line may be cut
        block = block[: block.rfind(b"\n") + 1]
    block = block if block.endswith(b"\n") else block + b"\n"
    return cells(block, delimiter.encode(), fields, range(fields))[0]


def is_row(names: Sequence[str], arrays: Sequence[pa.Array]) -> bool:
    """Whether a first line of labels is a row: at least half of its names are among their columns' cells.

    A few may be by right: the column Python of a survey holds Python, or nothing.

    >>> is_row(["anna", "f"], [pa.array([b"otto", b"eva"]), pa.array([b"m", b"f"])])
    True
    """
    from pyarrow import compute as pc

    pairs = [(name, array) for name, array in zip(names, arrays, strict=False) if name]
    again = sum(
        bool(pc.any(pc.equal(array, pa.scalar(name.encode(), array.type))).as_py()) for name, array in pairs
    )
    return again > 0 and 2 * again >= len(pairs)


# --- Parquet ------------------------------------------------------------------------------------------


def _parquet(path: str, rows: bool) -> Glance:
    seen, left_out = [], []
    for field in parquet_schema(path):
        kind = kind_of(field.type)
        if kind is None:
            left_out.append(f"{field.name} has type {field.type}")
        elif not field.name:
            left_out.append("a column without a name")
        else:
            seen.append(Seen(field.name, _of_schema(field, kind), field.type))
    if rows and seen and len({column.name for column in seen}) == len(seen):
        arrays = next(_first_cells(path, seen), {})
        seen = [Seen(one.name, look(arrays[one.name]), one.type) if arrays else one for one in seen]
    return Glance(seen, left_out, CsvOptions(), rows)


def _of_schema(field: Any, kind: str) -> Look:
    """What the schema says by itself: nobody looked whether cells are missing."""
    own = look(pa.array([], field.type))
    form = (
        {"continuous": "number", "nominal": "label"}.get(kind, own.form) if own.form == "empty" else own.form
    )
    return replace(own, form=form, missing=None if field.nullable else False)


def _first_cells(path: str, seen: list[Seen]) -> Iterator[dict[str, pa.Array]]:
    with closing(open_scan(path, [widest(one.name, kind_of(one.type) or "") for one in seen])) as scan:
        for piece in scan.pieces():
            arrays, _ = scan.cells(piece)
            yield {name: array[:FIRST_ROWS] for name, array in arrays.items()}


def widest(name: str, kind: str, form: CellFormat = PLAIN) -> Column:
    """A column of a type that takes all its values: to read cells before anything is declared."""
    ends = (1 - _MOST_EXACT, _MOST_EXACT - 1)
    return Column(name, kind, *ends, categories=("",), nullable=True, format=form)


def fits_type(arrow: Any, kind: str) -> bool:
    """Whether cells of an Arrow type can be read as this type: a fact of the schema."""
    return readable(arrow, widest("", kind))


def kind_of(arrow: Any) -> str | None:
    """The type of a column that cells of an Arrow type usually have; None if they cannot be read.

    >>> kind_of(pa.int16()), kind_of(pa.decimal128(9, 2)), kind_of(pa.list_(pa.int8()))
    ('integer', 'continuous', None)
    """
    t = pa.types
    if t.is_dictionary(arrow):
        arrow = arrow.value_type
        return "nominal" if t.is_string(arrow) or t.is_large_string(arrow) else None
    tests: dict[str, tuple[Callable[[Any], bool], ...]] = {
        "boolean": (t.is_boolean,),
        "integer": (t.is_integer,),
        "continuous": (t.is_floating, t.is_decimal),
        "date": (t.is_date,),
        "datetime": (t.is_timestamp,),
        "nominal": (t.is_string, t.is_large_string),
    }
    return next((kind for kind, checks in tests.items() if any(check(arrow) for check in checks)), None)
