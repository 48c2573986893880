"""The pages of a column of a Parquet file, by their headers: nothing is decompressed, and no cell is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from dpsynth_cli.trusted.rows.thrift import FALSE, STRUCT, TRUE, fields, number, numbers, skip

_SIZE, _PACKED, _DATA, _DICTIONARY, _DATA_2 = 2, 3, 5, 7, 8  # fields of a header
_ENCODING = {_DATA: 2, _DATA_2: 4}  # fields of these; the first is the number of values
_CODED = (2, 8)  # PLAIN_DICTIONARY, RLE_DICTIONARY


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


def _page_header(file: BinaryIO) -> tuple[int, Page]:
    """The page that begins here, and its size as it is; leaves the file after its header."""
    found, rows, coded, dictionary = {_SIZE: -1, _PACKED: -1}, 0, False, False
    for field, kind in fields(file):
        if field in found and kind not in (TRUE, FALSE):
            found[field] = number(file)
        elif field in _ENCODING and kind == STRUCT:
            inside = numbers(file, (1, _ENCODING[field]))
            rows, coded = inside.get(1, -1), inside.get(_ENCODING[field]) in _CODED
        else:
            dictionary |= field == _DICTIONARY
            skip(file, kind)
    return found[_PACKED], Page(found[_SIZE], rows, coded, dictionary)
