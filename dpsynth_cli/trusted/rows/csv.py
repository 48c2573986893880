"""CSV, plain, gzipped or on standard input: one record a line, whatever is in it (`csv_lines.py`).

What a record contains cannot raise, print, or change another record.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import Any, BinaryIO

import pyarrow as pa

from dpsynth_cli.domain import Column, CsvOptions
from dpsynth_cli.encodings import UTF_16
from dpsynth_cli.errors import NOTHING_SPENT, FileError, UsageError
from dpsynth_cli.trusted.rows import csv_lines as lines
from dpsynth_cli.trusted.rows.csv_encoding import decoded, separator_line
from dpsynth_cli.trusted.rows.csv_stream import Joined, Until, cut_lines, line_blocks, skip_line
from dpsynth_cli.trusted.rows.encode import Codes
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import (
    Piece,
    Scan,
    check_names,
    check_unchanged,
    encoded,
    reading,
    reason,
    stamp_of,
)

BLOCK = 2**21  # bytes of a CSV file in one piece: little enough that the next one gets the same memory
MAX_LINE = 2**20  # a longer line is a ruined record
MAX_HEADER = 2**24


class CsvScan:
    """A CSV file, compressed or not, or a stream: copied to a private temporary file in the first pass."""

    def __init__(
        self, path: str, columns: tuple[Column, ...], csv: CsvOptions, block: int, max_line: int
    ) -> None:
        self.path, self.columns, self.csv = path, columns, csv
        self.shown = "standard input" if path == "-" else path
        self._block, self._max_line = block, max_line
        self._delimiter = _delimiter(csv)
        self._range: tuple[int, int] | None = None  # of a part: the bytes of its lines
        self._stream: BinaryIO | None = None  # what can be read only once: standard input, a pipe
        self._copy: BinaryIO | None = None
        with reading(self.shown, NOTHING_SPENT):
            if path == "-":
                self._stream = decoded(_unpacked(sys.stdin.buffer), csv.encoding)
            elif not stat.S_ISREG(os.stat(path).st_mode):
                self._stream = decoded(_unpacked(open(path, "rb")), csv.encoding)  # noqa: SIM115 (closed by close)
            self._stamp = None if self._stream else stamp_of(path)
            if self._stream is not None:
                first = self._skip_header(self._stream)
            else:
                with open(path, "rb") as raw:
                    first = self._skip_header(decoded(self._decompressed(raw), csv.encoding))
                with open(path, "rb") as raw:  # as many bytes as the header has in the file, for `parts`
                    bare = self._decompressed(raw)
                    self._skip_header(bare)
                    self._header = bare.tell()
        self.names = self._split_header(first)
        check_names(self.shown, columns, self.names, self._other_delimiter(first))
        self._want(columns)

    def _want(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self._places = [self.names.index(column.name) for column in columns]

    def only(self, names: Collection[str]) -> Scan:
        self._keep_stream()
        narrow = copy(self)
        narrow._want(tuple(column for column in self.columns if column.name in names))
        return narrow

    def declared(self, columns: Sequence[Column]) -> Scan:
        self._keep_stream()
        other = copy(self)
        other._want(tuple(columns))
        return other

    def count_rows(self) -> int:
        return sum(piece.data.count(b"\n") + piece.ruined for piece in self.pieces())

    def _keep_stream(self) -> None:
        if self._stream is not None and self._copy is None:
            with reading(self.shown, ""):
                self._copy = self._copied(self._stream)

    @property
    def size(self) -> int | None:
        if self._copy is not None:
            return os.fstat(self._copy.fileno()).st_size
        if self._range is not None:
            return self._range[1] - self._range[0]
        return self._stamp[0] if self._stamp else None

    @property
    def whole(self) -> str:
        if self._stream is not None:
            return "standard input or a pipe"
        if self.path.lower().endswith(".gz"):
            return "compressed CSV"
        if self.csv.encoding in UTF_16:
            return f"CSV in {self.csv.encoding}"
        return "CSV with csv.multiline" if self.csv.multiline else ""

    def parts(self, size: int) -> Iterator[Scan]:
        assert not self.whole, "this file can only be read whole"
        assert self._stamp is not None
        with reading(self.shown, ""), open(self.path, "rb") as raw:
            start = self._header
            while start < self._stamp[0]:
                raw.seek(start + size)
                skip_line(raw, self._max_line)
                part = copy(self)
                part.path = os.path.abspath(self.path)
                part._range = start, min(raw.tell(), self._stamp[0])
                yield part
                start = part._range[1]

    def pieces(self) -> Iterator[Piece]:
        with reading(self.shown, ""):
            if self._stream is not None:
                self._keep_stream()
                assert self._copy is not None
                self._copy.seek(0)
                yield from self._blocks(self._copy, self._copy)
                return
            with open(self.path, "rb", buffering=0) as raw:
                if self._range is None:
                    stream = decoded(self._decompressed(raw), self.csv.encoding)
                    self._skip_header(stream)
                else:
                    raw.seek(self._range[0])
                    part: Any = io.BufferedReader(Until(raw, self._range[1]))
                    stream = decoded(part, self.csv.encoding)
                yield from self._blocks(raw, stream, self._range[0] if self._range else 0)
            check_unchanged(self.path, self._stamp)

    def cells(self, piece: Piece) -> tuple[dict[str, pa.Array], int]:
        arrays, ruined = lines.cells(piece.data, self._delimiter, len(self.names), self._places)
        by_name = {column.name: array for column, array in zip(self.columns, arrays, strict=True)}
        return by_name, piece.ruined + ruined

    def encode(self, piece: Piece, counted: Problems | None = None) -> dict[str, Codes]:
        return encoded(self.columns, *self.cells(piece), counted)

    def close(self) -> None:
        for stream in (self._copy, self._stream if self.path != "-" else None):
            if stream is not None:
                stream.close()

    def _blocks(self, raw: Any, stream: Any, at: int = 0) -> Iterator[Piece]:
        block = self._block
        if self.size is not None and not isinstance(stream, gzip.GzipFile):
            block = min(block, max(self.size, 2**16))  # a small file needs no more room than it has bytes
        if self._stream is None:
            stream = self._records(stream, block)
        for data, ruined in line_blocks(stream, block, self._max_line):
            before, at = at, raw.tell()
            yield Piece(data, at - before, ruined)

    def _skip_header(self, stream: Any) -> bytes:
        """The line that names the columns; a line before it that only names the delimiter is passed over."""
        first: bytes = stream.readline(MAX_HEADER + 1)
        sign = separator_line(first)
        if sign is None:
            return first
        if sign != self._delimiter:
            said = sign.decode("latin-1")
            raise FileError(
                f"the first line of {self.shown} says that fields are separated by {said!r}.",
                next_step=f"Set csv: {{delimiter: {_in_yaml(said)}}} in the spec.",
            )
        return bytes(stream.readline(MAX_HEADER + 1))

    def _records(self, stream: Any, block: int) -> Any:
        """A stream in which every line break ends a record."""
        if not self.csv.multiline:
            return stream
        return io.BufferedReader(Joined(stream, self._delimiter, block, self._max_line))

    def _decompressed(self, raw: Any) -> Any:
        if self.path.lower().endswith(".gz"):
            return gzip.GzipFile(fileobj=raw)
        return raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)

    def _copied(self, stream: BinaryIO) -> BinaryIO:
        """The records after the header, as far as they count, in a file that only this process can find."""
        copy = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        for chunk in cut_lines(self._records(stream, self._block), self._max_line):
            try:
                copy.write(chunk)
                copy.flush()
            except OSError as error:
                raise FileError(
                    f"cannot copy {self.shown} to a temporary file: {reason(error)}.",
                    "",
                    "Set TMPDIR to a private folder with more room.",
                ) from None
        return copy

    def _split_header(self, first: bytes) -> list[str]:
        if not first:
            raise FileError(
                f"{self.shown} is empty: it does not even have a header.",
                next_step="The first line of a CSV file must name its columns.",
            )
        if len(first) > MAX_HEADER:
            raise FileError(
                f"the first line of {self.shown} is longer than {MAX_HEADER // 2**20} MiB: not a header.",
                next_step="The first line of a CSV file must name its columns.",
            )
        line = first.removesuffix(b"\n").removeprefix(lines.BOM)
        return [name.decode("utf-8", "replace") for name in lines.split_line(line, self._delimiter)]

    def _other_delimiter(self, first: bytes) -> str:
        """What to do next if the header has all columns with another delimiter."""
        line = first.removesuffix(b"\n").removeprefix(lines.BOM)
        for other in ";\t|,":
            names = {name.decode("utf-8", "replace") for name in lines.split_line(line, other.encode())}
            if names.issuperset(column.name for column in self.columns):
                setting = f"csv: {{delimiter: {_in_yaml(other)}}}"
                return f"Its fields seem to be separated by {other!r}: set {setting}."
        return _other_encoding(first, self.csv.encoding)


def _other_encoding(first: bytes, declared: str) -> str:
    """What to do next if the bytes of a header are not in the declared encoding."""
    if b"\0" in first and declared not in UTF_16:
        return "The file seems to be UTF-16: set csv: {encoding: utf-16}."
    try:
        first.decode()
    except UnicodeDecodeError:
        return "Its header is not UTF-8: set csv: {encoding: cp1252}, or the encoding that it has."
    return ""


def _in_yaml(sign: str) -> str:
    return '"\\t"' if sign == "\t" else f'"{sign}"'


def _unpacked(stream: Any) -> Any:
    """A stream as it is, or what is in it if it is gzip: no header begins with these two bytes."""
    packed = isinstance(stream, io.BufferedReader) and stream.peek(2)[:2] == b"\x1f\x8b"
    return gzip.GzipFile(fileobj=stream) if packed else stream


def _delimiter(csv: CsvOptions) -> bytes:
    one = csv.delimiter
    if one == "\t" or (len(one) == 1 and " " <= one <= "~" and one != '"' and not one.isalnum()):
        return one.encode()
    raise UsageError(
        "csv.delimiter must be a tab or one ASCII character that is not a letter, a digit or a quote; "
        f"it is {one!r}."
    )
