"""Parquet: one file, or a folder of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from pathlib import Path

import pyarrow as pa

from dpsynth_cli.domain import Column
from dpsynth_cli.errors import NOTHING_SPENT, FileError
from dpsynth_cli.trusted.encode import Codes
from dpsynth_cli.trusted.scan import Piece, Scan, check_names, check_unchanged, encoded, reading, stamp_of
from dpsynth_cli.trusted.values import readable

BATCH = 2**18  # rows of a Parquet file in one piece
VALUES = 2**22  # and its cells, at most: memory does not grow with the number of columns


class ParquetScan:
    """One Parquet file, or all those in a folder, in the order of their names."""

    def __init__(self, path: str, files: Sequence[Path], columns: tuple[Column, ...]) -> None:
        self.path, self.columns = path, columns
        with reading(path, NOTHING_SPENT):
            stamps = [stamp_of(file) for file in files]
        self._files = [(file, stamp, *self._check(file)) for file, stamp in zip(files, stamps, strict=True)]

    @property
    def size(self) -> int | None:
        return sum(stamp[0] for _, stamp, _, _ in self._files)

    def only(self, names: Collection[str]) -> Scan:
        narrow = copy(self)
        narrow.columns = tuple(column for column in self.columns if column.name in names)
        return narrow

    def count_rows(self) -> int:
        return sum(rows for _, _, rows, _ in self._files)

    def pieces(self) -> Iterator[Piece]:
        from pyarrow import parquet

        names = [column.name for column in self.columns]
        most = min(BATCH, max(1, VALUES // max(1, len(names))))
        for path, stamp, rows, labels in self._files:
            check_unchanged(path, stamp)
            with reading(str(path), ""), parquet.ParquetFile(path, read_dictionary=labels) as file:
                for group in range(file.num_row_groups):
                    for batch in file.iter_batches(most, row_groups=[group], columns=names):
                        yield Piece(batch, stamp[0] * len(batch) // max(1, rows))
            check_unchanged(path, stamp)

    def cells(self, piece: Piece) -> tuple[dict[str, pa.Array], int]:
        return {column.name: piece.data.column(column.name) for column in self.columns}, 0

    def encode(self, piece: Piece) -> dict[str, Codes]:
        return encoded(self.columns, *self.cells(piece))

    def close(self) -> None:
        pass

    def _check(self, file: Path) -> tuple[int, list[str]]:
        """The file's number of rows, and the categorical columns to read by their distinct labels."""
        schema, rows = _parquet_schema(file)
        check_names(str(file), self.columns, schema.names, show=True)
        labels = []
        for column in self.columns:
            type = schema.field(column.name).type
            if not readable(type, column):
                raise FileError(
                    f"column {column.name!r} of {file} is {type}, which cannot be read as {column.type}.",
                    next_step="Convert the column, or leave it out of `columns` in the spec.",
                )
            if column.categorical and (pa.types.is_string(type) or pa.types.is_binary(type)):
                labels.append(column.name)
        return rows, labels


def _parquet_schema(file: Path) -> tuple[pa.Schema, int]:
    from pyarrow import parquet

    with reading(str(file), NOTHING_SPENT), parquet.ParquetFile(file) as opened:
        opened.schema_arrow.names  # noqa: B018  decoded now: in a damaged file they may be no text
        return opened.schema_arrow, opened.metadata.num_rows
