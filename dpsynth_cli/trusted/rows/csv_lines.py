"""CSV bytes to cells, one line a record, whatever the bytes are.

The claim of this module: **what a line becomes depends on that line alone.** A line break always ends
the record, so a stray quote swallows no neighbour; nothing here raises because of what a line
contains; and where the blocks of a file are cut changes nothing. `split_line` says in words of one
line what `cells` does for millions.

A line is read as follows. Its last \\r is dropped; any other \\r and any \\x1f is a space. If its
quotes are well formed (RFC 4180: a field is quoted whole or not at all, and a quote inside is
doubled), delimiters inside quotes are content; else quotes are ordinary characters in that line. A
line with another number of fields than the header, or longer than the limit, is *ruined*: a row of
missing values. A blank line is a row of empty cells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

NEWLINE, RETURN, QUOTE, SEPARATOR = b'\n\r"\x1f'
BOM = b"\xef\xbb\xbf"
_SPACES = bytes.maketrans(b"\r\x1f", b"  ")


def split_line(line: bytes, delimiter: bytes) -> list[bytes]:
    """The fields of one line without its line break: the definition that `cells` must agree with.

    >>> split_line(b'1,"a, ""b"" c",', b",")
    [b'1', b'a, "b" c', b'']
    >>> split_line(b'5" pipe,3', b",")
    [b'5" pipe', b'3']
    """
    line = line.removesuffix(b"\r").translate(_SPACES)
    d = re.escape(delimiter)
    field = re.compile(rb'(?:"((?:[^"]|"")*)"|([^"' + d + rb"]*))(" + d + rb"|\Z)")
    fields, at = [], 0
    while match := field.match(line, at):
        quoted, plain, end = match.groups()
        fields.append(plain if quoted is None else quoted.replace(b'""', b'"'))
        if not end:
            return fields
        at = match.end()
    return line.split(delimiter)


def cells(
    block: bytes | bytearray, delimiter: bytes, fields: int, wanted: Sequence[int]
) -> tuple[list[pa.Array], int]:
    """The wanted fields of each line, as bytes, null where empty; and the number of ruined lines left out."""
    if b"\r" in block:
        block = _without_returns(block)
    if SEPARATOR in block:
        block = block.translate(_SPACES)
    if QUOTE not in block and (arrays := _parse(block, delimiter, fields, wanted)):
        return arrays, 0
    tidy, ruined = _tidy(block, delimiter[0], fields)
    if arrays := _parse(tidy, bytes([SEPARATOR]), fields, wanted):
        return arrays, ruined
    return _one_by_one(block, delimiter, fields, wanted)  # no content is known to lead here


def _without_returns(block: bytes | bytearray) -> bytes | bytearray:
    """The block without the \\r before each line break, and with spaces for any other."""
    a = np.frombuffer(block, np.uint8)
    after = a[np.flatnonzero(a == RETURN) + 1]
    if (after == NEWLINE).all():
        return block.translate(None, b"\r")
    return block.replace(b"\r\n", b"\n").translate(_SPACES)


def _parse(
    block: bytes | bytearray, delimiter: bytes, fields: int, wanted: Sequence[int]
) -> list[pa.Array] | None:
    """What Arrow reads from lines without quotes or \\r; None if one has not the right number of fields."""
    from pyarrow import csv

    if not block:
        return [pa.array([], pa.binary()) for _ in wanted]
    marked = block[:3] == BOM  # Arrow would drop it; a blank line before it prevents that
    data = b"\n" + bytes(block) if marked else block
    names = [str(i) for i in range(fields)]
    include = [names[i] for i in wanted]
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(data)),
            read_options=csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            parse_options=csv.ParseOptions(
                delimiter=delimiter.decode("ascii"),
                quote_char=False,
                escape_char=False,
                newlines_in_values=False,
                ignore_empty_lines=False,
            ),
            convert_options=csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(include, pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                include_columns=include,
            ),
        )
    except pa.ArrowInvalid:  # its text quotes the line: never shown
        return None
    return [_one_chunk(table.column(name)).slice(1 if marked else 0) for name in include]


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _tidy(block: bytes | bytearray, delimiter: int, fields: int) -> tuple[bytes, int]:
    """The same lines without quoting: real delimiters are SEPARATOR, quotes that quote are gone.

    Lines with another number of fields are left out and counted. Every step looks at the bytes of
    one line and their neighbours in it.
    """
    a = np.frombuffer(block, np.uint8).copy()
    at = np.flatnonzero((a == NEWLINE) | (a == QUOTE) | (a == delimiter))
    kind = a[at]
    ends, quotes = np.flatnonzero(kind == NEWLINE), np.flatnonzero(kind == QUOTE)
    line = np.cumsum(kind == NEWLINE, dtype=np.int32) - (kind == NEWLINE)
    end = at[ends]
    start = np.append(0, end[:-1] + 1)

    # Inside quotes: an odd number of quotes since the start of the line, this one included.
    seen = np.cumsum(kind == QUOTE, dtype=np.int32)
    before = np.append(np.int32(0), seen[ends[:-1]])
    odd = (seen - before[line]) & 1 == 1

    # Well formed: what opens follows, and what closes precedes, an edge of a field or another quote.
    # (The byte before the first is the block's last: a line break, as it should be.)
    q, q_line, opens = at[quotes], line[quotes], odd[quotes]
    beside = a[np.where(opens, q - 1, q + 1)]
    astray = (beside != QUOTE) & (beside != delimiter) & (beside != NEWLINE)
    plain = odd[ends]
    plain[q_line[astray]] = True

    real = np.flatnonzero((kind == delimiter) & ~(odd & ~plain[line]))
    whole = np.bincount(line[real], minlength=len(end)) + 1 == fields
    whole |= start == end
    doubled = opens & (beside == QUOTE)  # the second of two inside a quoted field is content

    # What is left out becomes \r, of which there is no other, and goes all at once.
    a[at[real]] = SEPARATOR
    a[q[np.flatnonzero(~(doubled | plain[q_line]))]] = RETURN
    if not whole.all():
        a[np.repeat(~whole, end - start + 1)] = RETURN
    return a.tobytes().translate(None, b"\r"), int(np.count_nonzero(~whole))


def _one_by_one(
    block: bytes | bytearray, delimiter: bytes, fields: int, wanted: Sequence[int]
) -> tuple[list[pa.Array], int]:
    every = bytes(block).split(b"\n")[:-1]
    rows = [split_line(line, delimiter) if line else [b""] * fields for line in every]
    whole = [row for row in rows if len(row) == fields]
    return [pa.array([row[i] or None for row in whole], pa.binary()) for i in wanted], len(rows) - len(whole)
