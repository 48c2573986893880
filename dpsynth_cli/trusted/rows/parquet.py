"""Parquet: one file, or a folder of them.

What a cell takes in memory is bounded: text is read by its distinct labels, so that a long one is never
written out row by row; pages of text have a limit (`parquet_form.py`); and labels too long to say anything
are cut as soon as they are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from dpsynth_cli.domain import Column
from dpsynth_cli.errors import NOTHING_SPENT, FileError
from dpsynth_cli.trusted.rows.encode import Codes
from dpsynth_cli.trusted.rows.parquet_form import check_pages, footer, group_rows, text_bytes
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
BUFFER = 2**20  # bytes of each column that are read ahead


@dataclass(frozen=True)
class _File:
    """Some row groups of a file: the number of the first, and how many rows each has.

    `text` are the columns of text, which are read by their distinct labels, and `text_bytes` what they take
    in each row group; `zones` are the time zones in which times are compared with categories.
    """

    path: Path
    stamp: tuple[int, int]
    first: int
    groups: tuple[int, ...]
    bytes_a_row: float
    text: list[str]
    text_bytes: tuple[int, ...]
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
        from pyarrow import parquet

        names = [column.name for column in self.columns]
        longest = {
            column.name: max(LONGEST, *(len(label.encode()) for label in column.categories), 0)
            for column in self.columns
        }
        for file in self._files:
            check_unchanged(file.path, file.stamp)
            text = [name for name in file.text if name in longest]
            with (
                reading(str(file.path), ""),
                # Read as it is decoded: else a whole row group's bytes are held at once.
                parquet.ParquetFile(
                    file.path,
                    metadata=footer(file.path),
                    read_dictionary=text,
                    buffer_size=BUFFER,
                    pre_buffer=False,
                    coerce_int96_timestamp_unit="us",
                ) as opened,
            ):
                for i, rows in enumerate(file.groups):
                    most = self._most
                    if text:
                        most = max(1, min(most, TEXT * rows // max(1, file.text_bytes[i])))
                    for batch in opened.iter_batches(most, row_groups=[file.first + i], columns=names):
                        changed = {name: shortened(batch.column(name), longest[name]) for name in text}
                        for name, zone in file.zones.items():
                            if name in longest:
                                times = batch.column(name)
                                changed[name] = times.cast(pa.timestamp(times.type.unit, zone))
                        yield Piece(_changed(batch, changed), round(len(batch) * file.bytes_a_row))
            check_unchanged(file.path, file.stamp)

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
            check_pages(path, about, text)
        return _File(path, stamp, 0, groups, stamp[0] / max(1, sum(groups)), text, sizes, zones)


def _changed(batch: pa.RecordBatch, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """The same rows with other cells in some columns."""
    names = batch.schema.names
    return pa.RecordBatch.from_arrays([columns.get(name, batch.column(name)) for name in names], names)


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
