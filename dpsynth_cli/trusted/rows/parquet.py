"""Parquet: one file, or a folder of them.

What a cell takes in memory is bounded: how many rows of a text are read at a time follows from its pages,
which have a limit (`parquet_plan.py`); and cells too long to say anything are cut as soon as they are read.
Columns that are read in batches of other sizes are put together again here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from itertools import repeat
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsynth_cli.domain import Column
from dpsynth_cli.errors import NOTHING_SPENT, FileError
from dpsynth_cli.trusted.rows.encode import Codes
from dpsynth_cli.trusted.rows.parquet_form import byte_arrays, footer, stored_schema
from dpsynth_cli.trusted.rows.parquet_plan import BATCH, TEXT, Group, plan, power_of_two
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import (
    Piece,
    Scan,
    check_names,
    check_unchanged,
    encoded,
    reading,
    stamp_of,
)
from dpsynth_cli.trusted.rows.text import LONGEST, shortened
from dpsynth_cli.trusted.rows.values import readable

VALUES = 2**22  # cells of a piece, at most: memory does not grow with the number of columns
BUFFER = 2**20  # bytes of each column that are read ahead


@dataclass(frozen=True)
class _File:
    """Some row groups of a file: the number of the first, and how each is read.

    `text` are the columns of text; `zones` are the time zones in which times are compared with categories.
    """

    path: Path
    stamp: tuple[int, int]
    first: int
    groups: tuple[Group, ...]
    bytes_a_row: float
    text: list[str]
    zones: dict[str, str]

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)

    @property
    def size(self) -> int:
        return round(self.rows * self.bytes_a_row)


class ParquetScan:
    """One Parquet file, or all those in a folder, in the order of their names."""

    whole = ""

    def __init__(self, path: str, files: Sequence[Path], columns: tuple[Column, ...]) -> None:
        self.path, self.columns = path, columns
        with reading(path, NOTHING_SPENT):
            stamps = [stamp_of(file) for file in files]
        self._files = [self._check(file, stamp) for file, stamp in zip(files, stamps, strict=True)]

    @property
    def size(self) -> int | None:
        return sum(file.size for file in self._files)

    def only(self, names: Collection[str]) -> Scan:
        narrow = copy(self)
        narrow.columns = tuple(column for column in self.columns if column.name in names)
        return narrow

    def declared(self, columns: Sequence[Column]) -> Scan:
        other = copy(self)
        other.columns = tuple(columns)
        return other

    def count_rows(self) -> int:
        return sum(file.rows for file in self._files)

    def pieces(self) -> Iterator[Piece]:
        """Batches; small ones, of small files or row groups, are joined: each costs as much as many rows."""
        held: list[Piece] = []
        rows = size = 0
        for piece in self._batches():
            rows, size = rows + len(piece.data), size + piece.data.nbytes
            much = rows > self._most or size > TEXT
            if held and (much or piece.data.schema != held[0].data.schema):
                yield from _joined(held)
                held, rows, size = [], len(piece.data), piece.data.nbytes
            held.append(piece)
        if held:
            yield from _joined(held)

    @property
    def _most(self) -> int:
        """Rows of a piece, at most."""
        return min(BATCH, power_of_two(VALUES // max(1, len(self.columns))))

    def _batches(self) -> Iterator[Piece]:
        for file in self._files:
            check_unchanged(file.path, file.stamp)
            with reading(str(file.path), ""), ExitStack() as stack:
                opened = _Opened(file.path, stack)
                for i, group in enumerate(file.groups, file.first):
                    for batch in self._group(opened, i, group, file):
                        yield Piece(batch.select(self._names), round(len(batch) * file.bytes_a_row))
            check_unchanged(file.path, file.stamp)

    def _group(self, opened: _Opened, number: int, group: Group, file: _File) -> Iterator[pa.RecordBatch]:
        """The rows of a row group, each column read in batches of its size."""
        by_size: dict[int, list[Column]] = {}
        for column in self.columns:
            by_size.setdefault(min(self._most, group.batch.get(column.name, self._most)), []).append(column)
        streams = []
        for size, columns in sorted(by_size.items(), reverse=True):
            names = [column.name for column in columns]
            batches = opened.batches(number, size, names, [name for name in names if name in group.labels])
            longest = {column.name: _longest(column) for column in columns if column.name in file.text}
            streams.append(map(_tidy, batches, repeat(longest), repeat(file.zones)))
        return reduce(_beside, streams)

    @property
    def _names(self) -> list[str]:
        return [column.name for column in self.columns]

    def parts(self, size: int) -> Iterator[Scan]:
        for file in self._files:
            start = 0
            while start < len(file.groups):
                end, rows = start, 0
                while end < len(file.groups) and rows * file.bytes_a_row < size:
                    rows += file.groups[end].rows
                    end += 1
                part = copy(self)
                own = replace(
                    file,
                    path=file.path.absolute(),
                    first=file.first + start,
                    groups=file.groups[start:end],
                )
                part._files = [own]
                yield part
                start = end

    def cells(self, piece: Piece) -> tuple[dict[str, pa.Array], int]:
        return {column.name: piece.data.column(column.name) for column in self.columns}, 0

    def encode(self, piece: Piece, counted: Problems | None = None) -> dict[str, Codes]:
        return encoded(self.columns, *self.cells(piece), counted)

    def close(self) -> None:
        pass

    def _check(self, path: Path, stamp: tuple[int, int]) -> _File:
        with reading(str(path), NOTHING_SPENT):
            about = footer(path)
            stored, plain = stored_schema(path), about.schema.to_arrow_schema()
            loose = byte_arrays(about, [column.name for column in self.columns])
        for schema in (stored, plain):
            check_names(str(path), self.columns, schema.names, show=True)
        text, zones = [], {}
        for column in self.columns:
            type, bare = stored.field(column.name).type, plain.field(column.name).type
            if not readable(type, column) or not readable(bare, column):
                raise FileError(
                    f"column {column.name!r} of {path} is {type}, which cannot be read as {column.type}.",
                    next_step="Convert the column, or leave it out of `columns` in the spec.",
                )
            if pa.types.is_string(bare) or pa.types.is_binary(bare):
                text.append(column.name)
            elif pa.types.is_decimal(bare) and column.name in loose:
                raise FileError(
                    f"column {column.name!r} of {path} is {type} in cells that differ in length "
                    "(BYTE_ARRAY), which cannot be read.",
                    next_step="Write the column with cells of one length, as pyarrow does, or leave it out "
                    "of `columns` in the spec.",
                )
            type = type.value_type if pa.types.is_dictionary(type) else type
            if column.categorical and pa.types.is_timestamp(type) and type.tz:
                zones[column.name] = type.tz
        with reading(str(path), NOTHING_SPENT):
            groups = plan(path, about, text)
        return _File(path, stamp, 0, groups, stamp[0] / max(1, about.num_rows), text, zones)


class _Opened:
    """A file that is read in several ways at once: pyarrow needs an opening for each."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path, self._about, self._stack = path, footer(path), stack
        self._ways: dict[tuple[int, tuple[str, ...]], Any] = {}

    def batches(
        self, group: int, rows: int, names: Sequence[str], labels: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """A row group's columns of these names, so many rows at a time, some by their labels."""
        from pyarrow import parquet

        way = rows, tuple(labels)
        if way not in self._ways:
            self._ways[way] = self._stack.enter_context(
                parquet.ParquetFile(
                    self._path,
                    metadata=self._about,
                    read_dictionary=list(labels),
                    buffer_size=BUFFER,
                    pre_buffer=False,  # read as it is decoded: else a whole row group's bytes are held
                    coerce_int96_timestamp_unit="us",
                )
            )
        batches: Iterator[pa.RecordBatch] = self._ways[way].iter_batches(
            rows, row_groups=[group], columns=names
        )
        return batches


def _longest(column: Column) -> int:
    """How long a cell of text can be that says something."""
    return max(LONGEST, *(len(label.encode()) for label in column.categories), 0)


def _tidy(batch: pa.RecordBatch, longest: Mapping[str, int], zones: Mapping[str, str]) -> pa.RecordBatch:
    """The same rows without cells of text too long to say anything, and with times in their zones."""
    cells = []
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        if name in longest:
            array = shortened(array, longest[name])
        if name in zones:
            array = array.cast(pa.timestamp(array.type.unit, zones[name]))
        cells.append(array)
    return pa.RecordBatch.from_arrays(cells, batch.schema.names)


def _beside(wide: Iterator[pa.RecordBatch], narrow: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches with the columns of both, of the same rows: those of `narrow` lie inside those of `wide`."""
    for batch in wide:
        at = end = size = 0
        held: list[pa.RecordBatch] = []
        while end < len(batch):
            held.append(next(narrow))
            end, size = end + len(held[-1]), size + held[-1].nbytes
            if end < len(batch) and size < TEXT:
                continue
            for part in _whole(held):
                same = batch.slice(at, len(part))
                yield pa.RecordBatch.from_arrays(
                    [*same.columns, *part.columns], [*same.schema.names, *part.schema.names]
                )
                at += len(part)
            held, size = [], 0


def _joined(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The same rows in one piece, if Arrow can."""
    whole = _whole([piece.data for piece in pieces])
    return [Piece(whole[0], sum(piece.size for piece in pieces))] if len(whole) == 1 else pieces


def _whole(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same rows in one batch; as they are where Arrow cannot: whether it can depends on the rows."""
    if len(batches) == 1:
        return batches
    try:
        whole: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    except pa.ArrowException:  # together, the labels are more than an array holds
        return batches
    return whole if len(whole) == 1 else batches
