"""CSV and Parquet files as pieces, and pieces as codes: one row a record, one code a declared column.

Only what does not depend on rows can fail here: no such file, no such column, not Parquet, a damaged
file. Library errors are never shown, because they quote cells. What a record contains cannot raise,
print, or change another record (`lines`, `encode`).
"""

from __future__ import annotations

import difflib
import gzip
import io
import os
import stat
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa

from dpsynth_cli.csv_options import CsvOptions
from dpsynth_cli.domain import Column
from dpsynth_cli.errors import NOTHING_SPENT, FileError, UsageError
from dpsynth_cli.trusted import lines
from dpsynth_cli.trusted.encode import Codes, encode_arrow, missing_code, readable

BLOCK = 2**23  # bytes of a CSV file in one piece
MAX_LINE = 2**20  # a longer line is a ruined record
MAX_HEADER = 2**24
BATCH = 2**18  # rows of a Parquet file in one piece
VALUES = 2**22  # and its cells, at most: memory does not grow with the number of columns
FORMATS = ".csv, .csv.gz, .parquet, a folder of Parquet files, or - for CSV on standard input"


@dataclass(frozen=True)
class Piece:
    """Some rows not yet read: whole CSV lines, or an Arrow batch.

    `size` is how far the file was read for it, in bytes; `ruined` counts records left out already.
    """

    data: Any
    size: int
    ruined: int = 0


class Scan(Protocol):
    """A table that can be passed over again and again, one pass at a time.

    `pieces` is serial and cheap; `cells` and `encode` are pure and may run in many threads. `size` is
    what the sizes of the pieces add up to about, None if not known. `only` is a scan of the same rows
    with fewer columns; `count_rows` is cheaper than a pass over pieces.
    """

    columns: tuple[Column, ...]

    @property
    def size(self) -> int | None: ...
    def only(self, names: Collection[str]) -> Scan: ...
    def count_rows(self) -> int: ...
    def pieces(self) -> Iterator[Piece]: ...
    def cells(self, piece: Piece) -> tuple[dict[str, pa.Array], int]: ...
    def encode(self, piece: Piece) -> dict[str, Codes]: ...
    def close(self) -> None: ...


def open_scan(
    path: str,
    columns: Sequence[Column],
    csv: CsvOptions | None = None,
    *,
    _block: int = BLOCK,
    _max_line: int = MAX_LINE,
) -> Scan:
    """A scan of the declared columns; refuses a file that does not have them. No row is read yet."""
    if files := _parquet_files(path):
        return ParquetScan(path, files, tuple(columns))
    return CsvScan(path, tuple(columns), csv or CsvOptions(), _block, _max_line)


def _encoded(columns: Sequence[Column], arrays: dict[str, pa.Array], ruined: int) -> dict[str, Codes]:
    """The codes of cells, a column each; ruined records come last, as rows of missing values."""
    codes = {column.name: encode_arrow(arrays[column.name], column) for column in columns}
    if ruined:
        for column in columns:
            lost = np.full(ruined, missing_code(column), np.int32)
            codes[column.name] = np.concatenate([codes[column.name], lost])
    return codes


# --- CSV ----------------------------------------------------------------------------------------------


class CsvScan:
    """A CSV file, compressed or not, or a stream: copied to a private temporary file in the first pass."""

    def __init__(
        self, path: str, columns: tuple[Column, ...], csv: CsvOptions, block: int, max_line: int
    ) -> None:
        self.path, self.columns, self.csv = path, columns, csv
        self.shown = "standard input" if path == "-" else path
        self._block, self._max_line = block, max_line
        self._delimiter = _delimiter(csv)
        self._stream: BinaryIO | None = None  # what can be read only once: standard input, a pipe
        self._copy: BinaryIO | None = None
        with _reading(self.shown, NOTHING_SPENT):
            if path == "-":
                self._stream = sys.stdin.buffer
            elif not stat.S_ISREG(os.stat(path).st_mode):
                self._stream = open(path, "rb")  # noqa: SIM115 (closed by close)
            self._stamp = None if self._stream else _stamp(path)
            if self._stream is not None:
                first = self._stream.readline(MAX_HEADER + 1)
            else:
                with open(path, "rb") as raw:
                    first = self._decompressed(raw).readline(MAX_HEADER + 1)
        self.names = self._split_header(first)
        _check_names(self.shown, columns, self.names, self._other_delimiter(first))
        self._want(columns)

    def _want(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        places = [self.names.index(column.name) for column in columns]
        self._text = dict.fromkeys(places, pa.binary())
        self._typed = {  # as Arrow reads them fastest; given up for good when a piece has other cells
            place: pa.float64() if column.type in ("continuous", "integer") else pa.binary()
            for place, column in zip(places, columns, strict=True)
        }

    def only(self, names: Collection[str]) -> Scan:
        self._keep_stream()
        narrow = copy(self)
        narrow._want(tuple(column for column in self.columns if column.name in names))
        return narrow

    def count_rows(self) -> int:
        return sum(piece.data.count(b"\n") + piece.ruined for piece in self.pieces())

    def _keep_stream(self) -> None:
        if self._stream is not None and self._copy is None:
            with _reading(self.shown, ""):
                self._copy = self._copied(self._stream)

    @property
    def size(self) -> int | None:
        if self._copy is not None:
            return os.fstat(self._copy.fileno()).st_size
        return self._stamp[0] if self._stamp else None

    def pieces(self) -> Iterator[Piece]:
        with _reading(self.shown, ""):
            if self._stream is not None:
                self._keep_stream()
                assert self._copy is not None
                self._copy.seek(0)
                yield from self._blocks(self._copy, self._copy)
                return
            with open(self.path, "rb", buffering=0) as raw:
                stream = self._decompressed(raw)
                stream.readline(MAX_HEADER + 1)
                yield from self._blocks(raw, stream)
            _check_unchanged(self.path, self._stamp)

    def cells(self, piece: Piece) -> tuple[dict[str, pa.Array], int]:
        return self._read(piece, self._text)

    def encode(self, piece: Piece) -> dict[str, Codes]:
        arrays, ruined = self._read(piece, self._typed)
        if [array.type for array in arrays.values()] != list(self._typed.values()):
            self._typed = self._text  # saves time, changes nothing
        return _encoded(self.columns, arrays, ruined)

    def _read(self, piece: Piece, wanted: dict[int, pa.DataType]) -> tuple[dict[str, pa.Array], int]:
        arrays, ruined = lines.cells(piece.data, self._delimiter, len(self.names), wanted)
        by_name = {column.name: array for column, array in zip(self.columns, arrays, strict=True)}
        return by_name, piece.ruined + ruined

    def close(self) -> None:
        for stream in (self._copy, self._stream if self.path != "-" else None):
            if stream is not None:
                stream.close()

    def _blocks(self, raw: Any, stream: Any) -> Iterator[Piece]:
        at = 0
        if self.csv.multiline:
            stream = io.BufferedReader(lines.Joined(stream, self._delimiter, self._block, self._max_line))
        for data, ruined in lines.line_blocks(stream, self._block, self._max_line):
            before, at = at, raw.tell()
            yield Piece(data, at - before, ruined)

    def _decompressed(self, raw: Any) -> Any:
        if self.path.lower().endswith(".gz"):
            return gzip.GzipFile(fileobj=raw)
        return raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)

    def _copied(self, stream: BinaryIO) -> BinaryIO:
        """What follows the header, in a file that only this process can find."""
        copy = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        while chunk := stream.read(2**20):
            try:
                copy.write(chunk)
                copy.flush()
            except OSError as error:
                raise FileError(
                    f"cannot copy {self.shown} to a temporary file: {_reason(error)}.",
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
                return f"Its fields seem to be separated by {other!r}: set csv: {{delimiter: {other!r}}}."
        return ""


def _delimiter(csv: CsvOptions) -> bytes:
    one = csv.delimiter
    if one == "\t" or (len(one) == 1 and " " <= one <= "~" and one != '"' and not one.isalnum()):
        return one.encode()
    raise UsageError(
        "csv.delimiter must be a tab or one ASCII character that is not a letter, a digit or a quote; "
        f"it is {one!r}."
    )


# --- Parquet ------------------------------------------------------------------------------------------


class ParquetScan:
    """One Parquet file, or all those in a folder, in the order of their names."""

    def __init__(self, path: str, files: Sequence[Path], columns: tuple[Column, ...]) -> None:
        self.path, self.columns = path, columns
        with _reading(path, NOTHING_SPENT):
            stamps = [_stamp(file) for file in files]
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
        most = min(BATCH, max(1, VALUES // len(names)))
        for path, stamp, rows, labels in self._files:
            _check_unchanged(path, stamp)
            with _reading(str(path), ""), parquet.ParquetFile(path, read_dictionary=labels) as file:
                for group in range(file.num_row_groups):
                    for batch in file.iter_batches(most, row_groups=[group], columns=names):
                        yield Piece(batch, stamp[0] * len(batch) // rows)
            _check_unchanged(path, stamp)

    def cells(self, piece: Piece) -> tuple[dict[str, pa.Array], int]:
        return {column.name: piece.data.column(column.name) for column in self.columns}, 0

    def encode(self, piece: Piece) -> dict[str, Codes]:
        return _encoded(self.columns, *self.cells(piece))

    def close(self) -> None:
        pass

    def _check(self, file: Path) -> tuple[int, list[str]]:
        """The file's number of rows, and the categorical columns to read by their distinct labels."""
        schema, rows = _parquet_schema(file)
        _check_names(str(file), self.columns, schema.names, show=True)
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

    with _reading(str(file), NOTHING_SPENT), parquet.ParquetFile(file) as opened:
        return opened.schema_arrow, opened.metadata.num_rows


def _parquet_files(path: str) -> list[Path]:
    """The Parquet files that a path means; none if it is CSV."""
    found = Path(path)
    if path == "-":
        return []
    with _reading(path, NOTHING_SPENT):
        folder = stat.S_ISDIR(os.stat(path).st_mode)
    if folder:
        inside = (file.relative_to(found) for file in found.rglob("*.parquet") if file.is_file())
        files = [found / file for file in sorted(inside) if not any(part[0] in "._" for part in file.parts)]
        if not files:
            raise FileError(
                f"{path} is a folder without Parquet files.", next_step=f"Input can be {FORMATS}."
            )
        return files
    if path.lower().endswith(".parquet"):
        return [found]
    if path.lower().endswith((".csv", ".csv.gz")):
        return []
    raise FileError(f"{path} has no ending that says its format.", next_step=f"Input can be {FORMATS}.")


# --- what can go wrong, without a word about rows -----------------------------------------------------


@contextmanager
def _reading(shown: str, cost: str) -> Iterator[None]:
    """Turn what a library raises about a file into an error without its words."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise FileError(
            f"{shown} is damaged: it is not a whole gzip file.",
            cost,
            "Check it with `gzip -t`, and make it again.",
        ) from None
    except FileNotFoundError:
        raise FileError(
            f"there is no file {shown}.", cost, "Check `input` in the spec, or --input."
        ) from None
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise FileError(f"cannot read {shown}: {_reason(error)}.", cost) from None
        raise FileError(
            f"{shown} is damaged or not a Parquet file.", cost, "Make it again, or check the name's ending."
        ) from None


def _stamp(path: str | Path) -> tuple[int, int]:
    """The size of a file and when it was last written to."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _check_unchanged(path: str | Path, stamp: tuple[int, int] | None) -> None:
    """All passes see the same rows."""
    with _reading(str(path), ""):
        if _stamp(path) != stamp:
            raise FileError(
                f"{path} changed while it was read.", "", "Release from a copy that nothing writes to."
            )


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _check_names(
    shown: str, columns: Sequence[Column], names: Sequence[str], hint: str = "", show: bool = False
) -> None:
    """Every declared column is there, once.

    Only with `show` may a message name what is there instead: the first line of a CSV file without a header
    is somebody's row.
    """
    times = Counter(names)
    missing = [column.name for column in columns if not times[column.name]]
    if missing:
        raise FileError(
            f"{shown} has no column{'s' * (len(missing) > 1)} "
            + ", ".join(f"{name!r}{_nearest(name, names) if show else ''}" for name in missing)
            + ".",
            next_step=hint or "Correct `columns` in the spec, or the header of the file.",
        )
    twice = [column.name for column in columns if times[column.name] > 1]
    if twice:
        raise FileError(
            f"{shown} has more than one column named {', '.join(map(repr, twice))}.",
            next_step="Rename all but one of them.",
        )


def _nearest(name: str, names: Sequence[str]) -> str:
    by_fold = {other.strip().casefold(): other for other in reversed(names)}
    found = difflib.get_close_matches(name.strip().casefold(), by_fold, 1)
    return f" (nearest: {by_fold[found[0]]!r})" if found else ""
