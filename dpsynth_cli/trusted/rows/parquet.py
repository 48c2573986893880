"""Parquet: one file, or a folder of them.

What a cell takes in memory is bounded: text is read by its distinct labels, so that a long one is never
written out row by row; pages of text have a limit (`parquet_form.py`); and labels too long to say anything
are cut as soon as they are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsynth_cli.domain import Column
from dpsynth_cli.errors import NOTHING_SPENT, FileError
from dpsynth_cli.trusted.rows.encode import Codes
from dpsynth_cli.trusted.rows.parquet_form import check_pages, delta_columns, footer, group_rows, text_bytes
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

BATCH = 2**17  # rows of a Parquet file in one piece
VALUES = 2**22  # and its cells, at most: memory does not grow with the number of columns
TEXT = 2**25  # and the bytes of its text, as far as that follows from the row group's
DELTA = 2**8  # rows, where a cell may take more than its part of the page
BUFFER = 2**20  # bytes of each column that are read ahead


@dataclass(frozen=True)
class _File:
    """Some row groups of a file: the number of the first, and how many rows each has.

    `text` are the columns of text, which are read by their distinct labels but for those in `delta`, and
    `text_bytes` what they take in each row group; `zones` are the time zones in which times are compared with
    categories.
    """

    path: Path
    stamp: tuple[int, int]
    first: int
    groups: tuple[int, ...]
    bytes_a_row: float
    text: list[str]
    text_bytes: tuple[int, ...]
    delta: tuple[tuple[str, ...], ...]
    zones: dict[str, str]

    @property
    def size(self) -> int:
        return round(sum(self.groups) * self.bytes_a_row)


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

    def count_rows(self) -> int:
        return sum(sum(file.groups) for file in self._files)

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
        return min(BATCH, max(1, VALUES // max(1, len(self.columns))))

    def _batches(self) -> Iterator[Piece]:
        for file in self._files:
            check_unchanged(file.path, file.stamp)
            with reading(str(file.path), ""), ExitStack() as stack:
                about, opened = footer(file.path), {}
                for i, rows in enumerate(file.groups):
                    labels = tuple(n for n in self._text(file) if n not in file.delta[i])
                    if labels not in opened:
                        opened[labels] = stack.enter_context(_opened(file.path, about, labels))
                    most = min(self._most, TEXT * rows // max(1, file.text_bytes[i]))
                    if len(labels) < len(self._text(file)):
                        most = min(most, DELTA)
                    for batch in opened[labels].iter_batches(
                        max(1, most), row_groups=[file.first + i], columns=self._names
                    ):
                        yield Piece(self._tidy(batch, file), round(len(batch) * file.bytes_a_row))
            check_unchanged(file.path, file.stamp)

    def _text(self, file: _File) -> list[str]:
        return [column.name for column in self.columns if column.name in file.text]

    def _tidy(self, batch: pa.RecordBatch, file: _File) -> pa.RecordBatch:
        """The same rows without cells of text too long to say anything, and with times in their zones."""
        cells = []
        for column, array in zip(self.columns, map(batch.column, self._names), strict=True):
            if column.name in file.text:
                labels = (len(label.encode()) for label in column.categories)
                array = shortened(array, max(LONGEST, *labels, 0))
            if column.name in file.zones:
                array = array.cast(pa.timestamp(array.type.unit, file.zones[column.name]))
            cells.append(array)
        return pa.RecordBatch.from_arrays(cells, self._names)

    @property
    def _names(self) -> list[str]:
        return [column.name for column in self.columns]

    def parts(self, size: int) -> Iterator[Scan]:
        for file in self._files:
            start = 0
            while start < len(file.groups):
                end, rows = start, 0
                while end < len(file.groups) and rows * file.bytes_a_row < size:
                    rows += file.groups[end]
                    end += 1
                part = copy(self)
                own = replace(
                    file,
                    path=file.path.absolute(),
                    first=file.first + start,
                    groups=file.groups[start:end],
                    text_bytes=file.text_bytes[start:end],
                    delta=file.delta[start:end],
                )
                part._files = [own]
                yield part
                start = end

    def cells(self, piece: Piece) -> tuple[dict[str, pa.Array], int]:
        return {column.name: piece.data.column(column.name) for column in self.columns}, 0

    def encode(self, piece: Piece) -> dict[str, Codes]:
        return encoded(self.columns, *self.cells(piece))

    def close(self) -> None:
        pass

    def _check(self, path: Path, stamp: tuple[int, int]) -> _File:
        with reading(str(path), NOTHING_SPENT):
            about = footer(path)
            stored, plain = _stored_schema(path), about.schema.to_arrow_schema()
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
            type = type.value_type if pa.types.is_dictionary(type) else type
            if column.categorical and pa.types.is_timestamp(type) and type.tz:
                zones[column.name] = type.tz
        with reading(str(path), NOTHING_SPENT):
            groups, sizes = group_rows(about), text_bytes(about, text)
            delta = delta_columns(about, text)
            check_pages(path, about, text)
        return _File(path, stamp, 0, groups, stamp[0] / max(1, sum(groups)), text, sizes, delta, zones)


def _opened(path: Path, about: Any, labels: Sequence[str]) -> Any:
    """The file, with these columns to be read by their labels."""
    from pyarrow import parquet

    return parquet.ParquetFile(
        path,
        metadata=about,
        read_dictionary=list(labels),
        buffer_size=BUFFER,
        pre_buffer=False,  # read as it is decoded: else a whole row group's bytes are held at once
        coerce_int96_timestamp_unit="us",
    )


def _joined(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The same rows in one piece; as they are where Arrow cannot: whether it can depends on the rows."""
    if len(pieces) == 1:
        return pieces
    try:
        whole = pa.Table.from_batches([piece.data for piece in pieces]).combine_chunks().to_batches()
    except pa.ArrowException:  # together, the labels are more than an array holds
        return pieces
    return [Piece(whole[0], sum(piece.size for piece in pieces))] if len(whole) == 1 else pieces


def _stored_schema(file: Path) -> pa.Schema:
    """The types of the columns as the writer meant them."""
    from pyarrow import parquet

    with parquet.ParquetFile(file) as opened:
        opened.schema_arrow.names  # noqa: B018  decoded now: in a damaged file they may be no text
        return opened.schema_arrow
