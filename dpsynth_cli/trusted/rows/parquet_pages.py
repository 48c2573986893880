"""The pages of a column of a Parquet file, by their headers: nothing is decompressed, and no cell is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa


@dataclass(frozen=True)
class Page:
    """How many bytes a page has when it is decompressed, and how many rows: a dictionary has none.

    In a page that is `coded` a cell is a number, and its text stands in the dictionary.
    """

    size: int
    rows: int = 0
    coded: bool = False
    dictionary: bool = False


def pages(file: BinaryIO, chunk: Any) -> list[Page]:
    """The pages of one column in one row group; raises ArrowInvalid where the headers are none."""
    try:
        found = list(_pages(file, chunk))
    except (ValueError, OverflowError):  # places that no file has
        raise pa.ArrowInvalid("not a page") from None
    if sum(page.rows for page in found) != chunk.num_values:
        raise pa.ArrowInvalid("pages of other rows")
    return found


def _pages(file: BinaryIO, chunk: Any) -> Iterator[Page]:
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        at = min(at, chunk.dictionary_page_offset)
    end = at + chunk.total_compressed_size
    while at < end:
        file.seek(at)
        packed, page = _page_header(file)
        if page.size < 0 or packed < 0 or page.rows < 0:
            raise pa.ArrowInvalid("not a page")
        yield page
        at = file.tell() + packed


# --- Thrift's compact protocol, as far as page headers go ---------------------------------------------

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _TEXT, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_SIZE, _PACKED, _DATA, _DICTIONARY, _DATA_2 = 2, 3, 5, 7, 8  # fields of a header
_ENCODING = {_DATA: 2, _DATA_2: 4}  # fields of these; the first is the number of values
_CODED = (2, 8)  # PLAIN_DICTIONARY, RLE_DICTIONARY


def _page_header(file: BinaryIO) -> tuple[int, Page]:
    """The page that begins here, and its size as it is; leaves the file after its header."""
    found, rows, coded, dictionary = {_SIZE: -1, _PACKED: -1}, 0, False, False
    for field, kind in _fields(file):
        if field in found and kind not in (_TRUE, _FALSE):
            found[field] = _number(file)
        elif field in _ENCODING and kind == _STRUCT:
            inside = _numbers(file, (1, _ENCODING[field]))
            rows, coded = inside.get(1, -1), inside.get(_ENCODING[field]) in _CODED
        else:
            dictionary |= field == _DICTIONARY
            _skip(file, kind)
    return found[_PACKED], Page(found[_SIZE], rows, coded, dictionary)


def _numbers(file: BinaryIO, wanted: tuple[int, ...]) -> dict[int, int]:
    """The fields of a structure that are wanted and numbers."""
    found = {}
    for field, kind in _fields(file):
        if field in wanted and _BYTE < kind < _DOUBLE:
            found[field] = _number(file)
        else:
            _skip(file, kind, 1)
    return found


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
