"""What a Parquet file says about itself: its types, the sizes of its row groups and of its pages.

Two things keep what is in a row from deciding whether a file can be read, or in how much memory.

**Labels are numbered in 32 bits**, whatever the writer's own schema says. Beside the Parquet types a writer
stores its Arrow schema, and pyarrow would number the labels of a pandas category by the type named there: one
label more than an int8 holds, and reading fails. So rows are read without that stored schema.

**A page is decompressed whole**, and pages end between cells: a cell of 300 MB is a page of 300 MB, however
little it takes in the file. Sizes of pages are stated in their headers, so a file with a page of text
beyond the limit is refused before anything is charged.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from dpsynth_cli.errors import FileError

# Bytes of text in a page, decompressed. Writers make pages of 2^20; reading takes about six times a page.
LARGEST_PAGE, SMALLEST_LIMIT, TOGETHER = 2**25, 2**22, 2**27
_MAGIC = b"PAR1"
_KEY = b"\x18\x0cARROW:schema"  # as it stands in a footer: a text of 12 bytes


def footer(path: str | Path) -> Any:
    """A file's metadata as if it had been written without an Arrow schema."""
    from pyarrow import parquet

    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - 8))
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if len(end) < 8 or end[4:] != _MAGIC or length > size - 8:
            raise pa.ArrowInvalid("not a Parquet file")
        file.seek(size - 8 - length)
        about = file.read(length)
    before, key, after = about.rpartition(_KEY)  # what rows leave in a footer stands before it
    about = before + key.lower() + after
    return parquet.read_metadata(pa.BufferReader(_MAGIC + about + struct.pack("<I", length) + _MAGIC))


def group_rows(about: Any) -> tuple[int, ...]:
    """The number of rows of each row group."""
    return tuple(about.row_group(i).num_rows for i in range(about.num_row_groups))


def text_bytes(about: Any, names: Sequence[str]) -> tuple[int, ...]:
    """The bytes of these columns in each row group, decompressed, as far as they are text."""
    leaves = _leaves(about, names)
    return tuple(
        sum(about.row_group(i).column(leaf).total_uncompressed_size for leaf in leaves)
        for i in range(about.num_row_groups)
    )


def delta_columns(about: Any, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Which of these columns hold text as differences, in each row group.

    Such pages cannot be read by their labels, and may write a long cell out for every row. Some writers turn
    to them when a dictionary is full: one label more, so that a row decides it.
    """
    leaves = _leaves(about, names)
    chunks = ([about.row_group(i).column(leaf) for leaf in leaves] for i in range(about.num_row_groups))
    return tuple(
        tuple(one.path_in_schema for one in group if any("DELTA" in each for each in one.encodings))
        for group in chunks
    )


def page_limit(columns: int) -> int:
    """How large a page of text may be: one of each column is in memory at a time.

    >>> [page_limit(columns) // 2**20 for columns in (1, 4, 8, 1000)]
    [32, 32, 16, 4]
    """
    return max(SMALLEST_LIMIT, min(LARGEST_PAGE, TOGETHER // max(1, columns)))


def check_pages(path: Path, about: Any, names: Sequence[str]) -> None:
    """Refuse a file in which one of these columns has a page of text that is too large."""
    leaves, limit = _leaves(about, names), page_limit(len(names))
    with open(path, "rb") as file:
        for i in range(about.num_row_groups):
            for leaf in leaves:
                chunk = about.row_group(i).column(leaf)
                if chunk.total_uncompressed_size <= limit:
                    continue  # so no page of it is larger
                try:
                    large = any(size > limit for size in _page_sizes(file, chunk))
                except (ValueError, OverflowError):  # places that no file has
                    raise pa.ArrowInvalid("not a page") from None
                if large:
                    raise FileError(
                        f"column {chunk.path_in_schema!r} of {path} has a page of more than "
                        f"{limit // 2**20} MiB of text.",
                        next_step="Write the file again with smaller pages; if it has cells as long as that, "
                        "cut them, or leave the column out of `columns` in the spec.",
                    )


def _leaves(about: Any, names: Sequence[str]) -> list[int]:
    schema, wanted = about.schema, set(names)
    columns = ((i, schema.column(i)) for i in range(about.num_columns))
    return [i for i, one in columns if one.path in wanted and one.physical_type == "BYTE_ARRAY"]


def _page_sizes(file: BinaryIO, chunk: Any) -> Iterator[int]:
    """How large each page of a column is when it is decompressed."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        at = min(at, chunk.dictionary_page_offset)
    end = at + chunk.total_compressed_size
    while at < end:
        file.seek(at)
        unpacked, packed = _page_header(file)
        if unpacked < 0 or packed < 0:
            raise pa.ArrowInvalid("not a page")
        yield unpacked
        at = file.tell() + packed


# --- Thrift's compact protocol, as far as page headers go ---------------------------------------------

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _TEXT, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12


def _page_header(file: BinaryIO) -> tuple[int, int]:
    """The sizes of the page that begins here, decompressed and as it is; leaves the file after its header."""
    found = {}
    for field, kind in _fields(file):
        if field in (2, 3):
            found[field] = _number(file)
        else:
            _skip(file, kind)
    return found.get(2, -1), found.get(3, -1)


def _fields(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """The number and the kind of each field of a structure; whoever asks reads the field before the next."""
    field = 0
    while (head := _byte(file)) & 15 != _STOP:
        field = field + (head >> 4) if head >> 4 else _number(file)
        yield field, head & 15


def _skip(file: BinaryIO, kind: int, inside: int = 0) -> None:
    if inside > 8:
        raise pa.ArrowInvalid("not a page header")
    if kind in (_TRUE, _FALSE):
        return
    if kind in (_BYTE, _DOUBLE):
        file.seek(1 if kind == _BYTE else 8, os.SEEK_CUR)
    elif kind == _TEXT:
        file.seek(_length(file), os.SEEK_CUR)
    elif kind in (_LIST, _SET):
        head = _byte(file)
        for _ in range(head >> 4 if head >> 4 < 15 else _length(file)):
            _skip(file, head & 15, inside + 1)
    elif kind == _STRUCT:
        for _, each in _fields(file):
            _skip(file, each, inside + 1)
    elif kind < _DOUBLE:
        _length(file)
    else:
        raise pa.ArrowInvalid("not a page header")


def _byte(file: BinaryIO) -> int:
    one = file.read(1)
    if not one:
        raise pa.ArrowInvalid("the file ends inside a page header")
    return one[0]


def _length(file: BinaryIO) -> int:
    value = shift = 0
    while shift < 64:
        byte = _byte(file)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
        shift += 7
    raise pa.ArrowInvalid("not a number")


def _number(file: BinaryIO) -> int:
    coded = _length(file)
    return coded >> 1 ^ -(coded & 1)
