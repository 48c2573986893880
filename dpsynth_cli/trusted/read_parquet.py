"""Parquet: one file, or a folder of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from dpsynth_cli.domain import Column
from dpsynth_cli.errors import NOTHING_SPENT, FileError
from dpsynth_cli.trusted.encode import Codes
from dpsynth_cli.trusted.scan import Piece, Scan, check_names, check_unchanged, encoded, reading, stamp_of
from dpsynth_cli.trusted.values import readable

BATCH = 2**17  # rows of a Parquet file in one piece
VALUES = 2**22  # and its cells, at most: memory does not grow with the number of columns
BUFFER = 2**20  # bytes of each column that are read ahead


@dataclass(frozen=True)
class _File:
    """Some row groups of a file: the number of the first, and how many rows each has.

    `labels` are the categorical columns to read by their distinct labels.
    """

    path: Path
    stamp: tuple[int, int]
    first: int
    groups: tuple[int, ...]
    bytes_a_row: float
    labels: list[str]

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
        for piece in self._batches():
            rows = len(piece.data) + sum(len(one.data) for one in held)
            if held and (rows > self._most or piece.data.schema != held[0].data.schema):
                yield from _joined(held)
                held = []
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
        for file in self._files:
            check_unchanged(file.path, file.stamp)
            with (
                reading(str(file.path), ""),
                # Read as it is decoded: else a whole row group's bytes are held at once.
                parquet.ParquetFile(
                    file.path, read_dictionary=file.labels, buffer_size=BUFFER, pre_buffer=False
                ) as opened,
            ):
                for group in range(file.first, file.first + len(file.groups)):
                    for batch in opened.iter_batches(self._most, row_groups=[group], columns=names):
                        yield Piece(batch, round(len(batch) * file.bytes_a_row))
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
                    file, path=file.path.absolute(), first=file.first + start, groups=file.groups[start:end]
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
        schema, groups = _parquet_schema(path)
        check_names(str(path), self.columns, schema.names, show=True)
        labels = []
        for column in self.columns:
            type = schema.field(column.name).type
            if not readable(type, column):
                raise FileError(
                    f"column {column.name!r} of {path} is {type}, which cannot be read as {column.type}.",
                    next_step="Convert the column, or leave it out of `columns` in the spec.",
                )
            if column.categorical and (pa.types.is_string(type) or pa.types.is_binary(type)):
                labels.append(column.name)
        return _File(path, stamp, 0, groups, stamp[0] / max(1, sum(groups)), labels)


def _joined(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The same rows in one piece; as they are where Arrow cannot: whether it can depends on the rows."""
    if len(pieces) == 1:
        return pieces
    try:
        whole = pa.Table.from_batches([piece.data for piece in pieces]).combine_chunks().to_batches()
    except pa.ArrowException:  # together, the labels are too many for the type that numbers them
        return pieces
    return [Piece(whole[0], sum(piece.size for piece in pieces))] if len(whole) == 1 else pieces


def _parquet_schema(file: Path) -> tuple[pa.Schema, tuple[int, ...]]:
    """The types of the columns, and the number of rows of each row group."""
    from pyarrow import parquet

    with reading(str(file), NOTHING_SPENT), parquet.ParquetFile(file) as opened:
        opened.schema_arrow.names  # noqa: B018  decoded now: in a damaged file they may be no text
        about = opened.metadata
        return opened.schema_arrow, tuple(about.row_group(i).num_rows for i in range(about.num_row_groups))
