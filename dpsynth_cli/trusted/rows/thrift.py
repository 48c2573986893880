"""Thrift's compact protocol, as far as the headers of Parquet pages and the footers of Parquet files go."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from io import BytesIO
from typing import BinaryIO

import pyarrow as pa

STOP, TRUE, FALSE, BYTE, DOUBLE, TEXT, LIST, SET, STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12  # kinds of values
DEEPEST = 16  # structures and lists inside each other


def fields(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """The number and the kind of each field of a structure; whoever asks reads the field before the next."""
    field = 0
    while (head := _byte(file)) & 15 != STOP:
        field = field + (head >> 4) if head >> 4 else number(file)
        yield field, head & 15


def numbers(file: BinaryIO, wanted: Collection[int]) -> dict[int, int]:
    """The fields of a structure that are wanted and numbers."""
    found = {}
    for field, kind in fields(file):
        if field in wanted and BYTE < kind < DOUBLE:
            found[field] = number(file)
        else:
            skip(file, kind, 1)
    return found


def number(file: BinaryIO) -> int:
    """A whole number with a sign."""
    coded = _length(file)
    return coded >> 1 ^ -(coded & 1)


def skip(file: BinaryIO, kind: int, inside: int = 0) -> None:
    """Go past a value of this kind."""
    if inside > DEEPEST:
        raise pa.ArrowInvalid("too deep")
    if kind in (TRUE, FALSE):  # of a field: its kind is its value
        return
    if kind in (BYTE, DOUBLE):
        for _ in range(1 if kind == BYTE else 8):
            _byte(file)  # not by seeking: a list may say that it has more values than a file has bytes
    elif kind == TEXT:
        file.seek(_size(file), os.SEEK_CUR)
    elif kind in (LIST, SET):
        size, each = _list_head(file)
        for _ in range(size):
            skip(file, BYTE if each in (TRUE, FALSE) else each, inside + 1)
    elif kind == STRUCT:
        for _, each in fields(file):
            skip(file, each, inside + 1)
    elif kind < DOUBLE:
        _length(file)
    else:
        raise pa.ArrowInvalid("not a kind of value")


def without(data: bytes, way: Sequence[int], dropped: Collection[int]) -> bytes:
    """The same structure without some fields of those structures that are found by going this way.

    A way is the numbers of fields that hold a structure, or a list of them, from the outside in.

    >>> without(bytes([0x15, 2, 0x15, 4, 0x15, 6, 0]), (), {2}).hex(" ")  # fields 1, 2, 3 with 1, 2, 3
    '15 02 25 06 00'
    """
    return bytes(_copied(BytesIO(data), data, tuple(way), dropped))


def _copied(file: BytesIO, data: bytes, way: tuple[int, ...], dropped: Collection[int]) -> bytearray:
    copy, last = bytearray(), 0
    for field, kind in fields(file):
        start = file.tell()
        if way and field == way[0] and kind == STRUCT:
            value: bytes | bytearray = _copied(file, data, way[1:], dropped)
        elif way and field == way[0] and kind == LIST:
            size, each = _list_head(file)
            value = bytearray(data[start : file.tell()])
            if each != STRUCT:
                raise pa.ArrowInvalid("not a list of structures")
            for _ in range(size):
                value += _copied(file, data, way[1:], dropped)
        else:
            skip(file, kind)
            value = data[start : file.tell()]
        if way or field not in dropped:
            short = 0 < field - last < 16
            copy += bytes([(field - last) << 4 | kind]) if short else bytes([kind]) + _coded(field)
            copy += value
            last = field
    return copy + bytes([STOP])


def _list_head(file: BinaryIO) -> tuple[int, int]:
    """How many values a list has, and of which kind."""
    head = _byte(file)
    return head >> 4 if head >> 4 < 15 else _size(file), head & 15


def _size(file: BinaryIO) -> int:
    """How many bytes a text has, or values a list: at most 2^31 - 1, as the protocol says."""
    size = _length(file)
    if size >= 2**31:
        raise pa.ArrowInvalid("larger than any")
    return size


def _coded(value: int) -> bytes:
    value, coded = value << 1 if value >= 0 else ~(value << 1), bytearray()
    while value > 127:
        coded.append(value & 127 | 128)
        value >>= 7
    return bytes([*coded, value])


def _byte(file: BinaryIO) -> int:
    one = file.read(1)
    if not one:
        raise pa.ArrowInvalid("the file ends here")
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
