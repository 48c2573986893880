"""Synthetic codes to declared types, and those to CSV or Parquet: streamed, in place at once or not at all.

Nothing here knows a row: codes come from a model. The bytes of a file depend on the columns and the
codes alone, not on how a mechanism cut them into blocks, on the clock or on the machine.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli import disk
from dpsynth_cli.arrow import from_numpy, from_texts
from dpsynth_cli.domain import Column, CsvOptions
from dpsynth_cli.errors import FileError
from dpsynth_cli.fillers import Filler
from dpsynth_cli.relations.relations import Relations
from dpsynth_cli.release.files.computed import computed_cells
from dpsynth_cli.release.files.filled import cells_of, with_fillers
from dpsynth_cli.values import numbers_of

GROUP = 2**17  # rows of a Parquet row group
NO_RELATIONS = Relations()


@dataclass
class Pending:
    """A whole file, on the disk under a name of its own, not yet where it belongs.

    `publish` puts it there, `discard` removes it.
    """

    path: str
    sha256: str
    rows: int
    _file: Path | BinaryIO

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def hashes(self) -> dict[str, str]:
        """Of other files of the release: none."""
        return {}

    def publish(self, dated: float | None = None) -> None:
        """Replace what has this name in one step (or copy to standard output); `dated` is its time."""
        if not isinstance(self._file, Path):
            _to_standard_output(self._file)
            return
        try:
            if dated is not None:
                disk.set_modified(self._file, dated)
            disk.replace(self._file, Path(self.path))
            disk.sync_folder(self._file.parent)
        except OSError as error:
            self.discard()
            raise _cannot_write(self.path, error) from None

    def discard(self) -> None:
        """Leave nothing behind."""
        if isinstance(self._file, Path):
            disk.remove(self._file)
        else:
            self._file.close()


def write_table(
    path: str,
    columns: Sequence[Column],
    blocks: Iterable[Mapping[str, NDArray[Any]]],
    rows: int | None,
    tag: str | None = None,
    csv: CsvOptions | None = None,
    relations: Relations = NO_RELATIONS,
    fillers: Sequence[Filler] = (),
    seed: int = 0,
) -> Pending:
    """Write `rows` rows of codes (None: as many as there are), given in blocks of any size, next to their
    final place; CSV as `csv` says. `fillers` are columns besides; `seed` is that of their random keys.

    Columns that `relations` compute are in no block. The name there has the tag in it; writing again with
    the same tag replaces what a crash left.
    """
    try:
        sink = _Sink(path, tag)
    except OSError as error:
        raise _cannot_write(path, error) from None
    groups = _regrouped(columns, relations, blocks)
    try:
        if fillers:
            columns, groups = with_fillers(columns, groups, fillers, seed)
        if path.lower().endswith(".parquet"):
            written = _write_parquet(sink, columns, groups, fillers)
        else:
            written = _write_csv(sink, columns, groups, csv or CsvOptions())
        if rows is not None and written != rows:
            raise ValueError(f"the model drew {written} rows instead of {rows}")
        return Pending(path, sink.finish(), written, sink.temporary or sink.file)
    except BaseException:
        sink.remove()
        raise


def decode(codes: NDArray[Any], column: Column) -> pa.Array:
    """The values of codes in the declared type; the code for missing is null.

    Reading a value gives its code again, unless a continuous column's bounds lie more than 2^19 times
    their distance from zero: float64 has no value for each code there.

    >>> age = Column("age", "integer", lower=0, upper=120, nullable=True)
    >>> decode(np.array([0, 41, 121]), age).to_pylist()
    [0, 41, None]
    """
    missing = codes == column.size if column.nullable else None
    if column.type == "boolean":
        return from_numpy(codes == 1, missing)
    if column.categorical:
        labels = from_texts(column.categories, pa.string())
        numbers = from_numpy(codes.astype(np.int32), missing)
        return pa.DictionaryArray.from_arrays(numbers, labels, ordered=column.type == "ordinal")
    if column.type == "continuous":
        return from_numpy(numbers_of(codes, column), missing)
    steps = numbers_of(codes, column)
    if column.type == "date":
        return from_numpy(steps.astype(np.int32), missing).cast(pa.date32())
    whole = from_numpy(steps, missing)
    return whole.cast(pa.timestamp("us")) if column.type == "datetime" else whole


def _regrouped(
    columns: Sequence[Column], relations: Relations, blocks: Iterable[Mapping[str, NDArray[Any]]]
) -> Iterator[list[pa.Array]]:
    """The same rows decoded, GROUP at a time and the rest."""
    names = [column.name for column in columns if column.name not in relations.by_name]
    held: list[list[NDArray[Any]]] = []
    size = 0
    for block in blocks:
        arrays = [np.asarray(block[name]) for name in names]
        while size + len(arrays[0]) >= GROUP:
            take = GROUP - size
            held.append([array[:take] for array in arrays])
            arrays = [array[take:] for array in arrays]
            yield _decoded(columns, relations, names, held)
            held, size = [], 0
        held.append(arrays)
        size += len(arrays[0])
    if size:
        yield _decoded(columns, relations, names, held)


def _decoded(
    columns: Sequence[Column], relations: Relations, names: list[str], held: list[list[NDArray[Any]]]
) -> list[pa.Array]:
    codes = {name: np.concatenate(parts) for name, parts in zip(names, zip(*held, strict=True), strict=True)}
    computed = computed_cells(columns, relations, codes)
    return [
        computed[column.name] if column.name in computed else decode(codes[column.name], column)
        for column in columns
    ]


# --- formats ------------------------------------------------------------------------------------------


def _write_parquet(
    sink: _Sink, columns: Sequence[Column], groups: Iterator[list[pa.Array]], fillers: Sequence[Filler]
) -> int:
    from pyarrow import parquet

    extra = {filler.name: cells_of(filler, 1, 0, np.random.default_rng(0)) for filler in fillers}
    empty = [
        extra[column.name] if column.name in extra else decode(np.zeros(0, np.int64), column)
        for column in columns
    ]
    schema = pa.schema(
        [
            pa.field(column.name, array.type, nullable=column.nullable)
            for column, array in zip(columns, empty, strict=True)
        ]
    )
    few = [column.name for column in columns if column.codes <= 2**15]
    head = list(islice(groups, 1))
    packing = {
        name: _packing(array) for name, array in zip(schema.names, head[0] if head else empty, strict=True)
    }
    # Every group has all labels, so their least and greatest would help no reader; to find them takes time.
    described = [column.name for column in columns if not column.categorical]
    options = {"use_dictionary": few, "compression": packing, "write_statistics": described}
    rows = 0
    with parquet.ParquetWriter(sink, schema, **options) as writer:
        for arrays in chain(head, groups):
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema), row_group_size=GROUP)
            rows += len(arrays[0])
    return rows


def _packing(array: pa.Array) -> str:
    """Numbers with many digits that are hardly ever the same take long to pack, and get little smaller."""
    few = array[:1000]
    return "none" if pa.types.is_floating(array.type) and len(few.unique()) > len(few) // 2 else "snappy"


def _write_csv(
    sink: _Sink, columns: Sequence[Column], groups: Iterator[list[pa.Array]], csv: CsvOptions
) -> int:
    from dpsynth_cli.release.files.csv_text import Lines

    lines = Lines(columns, csv)
    sink.write(lines.head())
    rows = 0
    for arrays in groups:
        sink.write(lines.of(arrays))
        rows += len(arrays[0])
    return rows


# --- files --------------------------------------------------------------------------------------------


class _Sink:
    """A new file beside the final one (or, for standard output, one without a name), hashed as it grows."""

    def __init__(self, path: str, tag: str | None = None) -> None:
        self.path = path
        self.temporary: Path | None = None
        self.closed = False
        self._hash = hashlib.sha256()
        if path == "-":
            self.file: Any = tempfile.TemporaryFile()  # noqa: SIM115 (closed by its owner)
        else:
            final = Path(path)
            self.temporary = final.with_name(f".{final.name}.{tag or secrets.token_hex(6)}.tmp")
            self.file = disk.create(self.temporary)

    def write(self, data: bytes | memoryview) -> int:
        try:
            self.file.write(data)
        except OSError as error:
            raise _cannot_write(self.path, error) from None
        self._hash.update(data)
        return len(data)

    def flush(self) -> None:
        """For Arrow, which asks for it."""

    def close(self) -> None:
        """For Arrow, which asks for it; `finish` closes."""

    def finish(self) -> str:
        """Make it durable; its SHA-256."""
        try:
            disk.sync(self.file)
        except OSError as error:
            raise _cannot_write(self.path, error) from None
        if self.temporary:
            self.file.close()
        return self._hash.hexdigest()

    def remove(self) -> None:
        with suppress(OSError):  # what was not written may fail again
            self.file.close()
        if self.temporary:
            disk.remove(self.temporary)


def _to_standard_output(file: BinaryIO) -> None:
    file.seek(0)
    with file:
        try:
            while chunk := file.read(2**20):
                sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # whoever reads has seen enough; nor may the interpreter complain at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            raise _cannot_write("standard output", error) from None


def _cannot_write(path: str, error: OSError) -> FileError:
    reason = (error.strerror or type(error).__name__).lower()
    return FileError(f"cannot write {path}: {reason}.", "", "Make room there.")
