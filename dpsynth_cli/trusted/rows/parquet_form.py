"""What a Parquet file says about itself in its footer.

**Labels are numbered in 32 bits**, whatever the writer's own schema says. Beside the Parquet types a writer
stores its Arrow schema, and pyarrow would number the labels of a pandas category by the type named there: one
label more than an int8 holds, and reading fails. So rows are read without that stored schema.

**A decimal has a fixed number of bytes.** In one stored as BYTE_ARRAY each cell has a length of its own, and
pyarrow fails at a cell of none or of too many: such a column is refused by its type, whatever is in it.

**Statistics are left out**: smallest, largest and missing values, histograms of lengths. Nothing here needs
what a footer says about cells, and pyarrow ends the process where they do not fit their column.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsynth_cli.trusted.rows.thrift import without

_MAGIC = b"PAR1"
_KEY = b"\x18\x0cARROW:schema"  # as it stands in a footer: a text of 12 bytes
_COLUMN = (4, 1, 3)  # fields of a footer: row groups, their columns, what is said of a column
_STATISTICS = (12, 16, 17)  # of a column: of values, of sizes, of places on a map


def footer(path: str | Path, arrow_schema: bool = False) -> Any:
    """A file's metadata as if it had been written without statistics, and without an Arrow schema.

    With `arrow_schema`, types are as the writer meant them.
    """
    from pyarrow import parquet

    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - 8))
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if len(end) < 8 or end[4:] != _MAGIC or length > size - 8:
            raise pa.ArrowInvalid("not a Parquet file")
        file.seek(size - 8 - length)
        about = without(file.read(length), _COLUMN, _STATISTICS)
    if not arrow_schema:
        before, key, after = about.rpartition(_KEY)  # what rows leave in a footer stands before it
        about = before + key.lower() + after
    return parquet.read_metadata(pa.BufferReader(_MAGIC + about + struct.pack("<I", len(about)) + _MAGIC))


def stored_schema(path: str | Path) -> pa.Schema:
    """The types of a file's columns as the writer meant them."""
    schema: pa.Schema = footer(path, arrow_schema=True).schema.to_arrow_schema()
    schema.names  # noqa: B018  decoded now: in a damaged file they may be no text
    return schema


def byte_arrays(about: Any, names: Sequence[str]) -> dict[str, int]:
    """The places of those of these columns whose cells have lengths of their own."""
    schema, wanted = about.schema, set(names)
    columns = ((i, schema.column(i)) for i in range(about.num_columns))
    return {one.path: i for i, one in columns if one.path in wanted and one.physical_type == "BYTE_ARRAY"}
