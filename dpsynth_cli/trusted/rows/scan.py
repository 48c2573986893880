"""A table as pieces that can be passed over again and again, and what can go wrong with a file.

Only what does not depend on rows can fail: no such file, no such column, not Parquet, a damaged file. Library
errors are never shown, because they quote cells.
"""

from __future__ import annotations

import difflib
import errno
import gzip
import os
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.arrow import from_numpy
from dpsynth_cli.domain import UNIT_KEY, Column
from dpsynth_cli.errors import FileError, MemoryShort
from dpsynth_cli.trusted.rows.encode import Codes, encode_arrow, missing_code
from dpsynth_cli.trusted.rows.problems import Problems


@dataclass(frozen=True)
class Piece:
    """Some rows not yet read: whole CSV lines, or an Arrow batch.

    `size` is how far the file was read for it, in bytes; `ruined` counts records left out already.
    """

    data: Any
    size: int
    ruined: int = 0


class Rows(Protocol):
    """A table that can be passed over again and again, one pass at a time.

    `pieces` is serial and cheap; `encode` is pure and may run in many threads, each of which counts what is
    not as declared in `Problems` of its own. `only` is the same rows with
    fewer columns; `count_rows` is cheaper than a pass over pieces.
    """

    def only(self, names: Collection[str]) -> Rows: ...
    def count_rows(self) -> int: ...
    def pieces(self) -> Iterator[Piece]: ...
    def encode(self, piece: Piece, counted: Problems | None = None) -> dict[str, Codes]: ...


class Scan(Rows, Protocol):
    """The rows of a file.

    `size` is what the sizes of the pieces add up to about, None if not known. `declared` is the same rows
    with other bounds or categories of columns of the same names and types. `cells` are a piece's before
    they are encoded, as pure as that. `parts` are scans that share the rows, each about so many bytes, for
    other processes to read; `whole` names what has no parts, else "".
    """

    columns: tuple[Column, ...]

    @property
    def whole(self) -> str: ...
    @property
    def size(self) -> int | None: ...
    def only(self, names: Collection[str]) -> Scan: ...
    def declared(self, columns: Sequence[Column]) -> Scan: ...
    def parts(self, size: int) -> Iterator[Scan]: ...
    def cells(self, piece: Piece) -> tuple[dict[str, pa.Array], int]: ...
    def close(self) -> None: ...


def encoded(
    columns: Sequence[Column], arrays: dict[str, pa.Array], ruined: int, counted: Problems | None = None
) -> dict[str, Codes]:
    """The codes of cells, a column each; ruined records come last, as rows of missing values."""
    codes = {column.name: encode_arrow(arrays[column.name], column, counted) for column in columns}
    if counted is not None:
        counted.count_rows(len(next(iter(arrays.values()))), ruined)
    if ruined:
        for column in columns:
            lost = np.full(ruined, missing_code(column), np.int32)
            codes[column.name] = np.concatenate([codes[column.name], lost])
    return codes


def some(arrays: dict[str, pa.Array], places: NDArray[np.int64]) -> tuple[dict[str, pa.Array], int]:
    """The cells of rows at rising places, and how many of these are ruined records, which come last."""
    whole = len(next(iter(arrays.values())))
    within = from_numpy(places[: np.searchsorted(places, whole)])
    return {name: array.take(within) for name, array in arrays.items()}, len(places) - len(within)


# --- what can go wrong, without a word about rows -----------------------------------------------------


@contextmanager
def reading(shown: str, cost: str) -> Iterator[None]:
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
    except MemoryError:  # Arrow's too
        raise MemoryShort(cost) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            raise MemoryShort(cost) from None
        if isinstance(error, OSError) and error.errno:
            raise FileError(f"cannot read {shown}: {reason(error)}.", cost) from None
        raise FileError(
            f"{shown} is damaged or not a Parquet file.", cost, "Make it again, or check the name's ending."
        ) from None


def stamp_of(path: str | Path) -> tuple[int, int]:
    """The size of a file and when it was last written to."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def check_unchanged(path: str | Path, stamp: tuple[int, int] | None) -> None:
    """All passes see the same rows."""
    with reading(str(path), ""):
        if stamp_of(path) != stamp:
            raise FileError(
                f"{path} changed while it was read.", "", "Release from a copy that nothing writes to."
            )


def reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def check_names(
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
            next_step=hint
            or f"Correct {_named_in(columns, missing)} in the spec, or the header of the file.",
        )
    twice = [column.name for column in columns if times[column.name] > 1]
    if twice:
        raise FileError(
            f"{shown} has more than one column named {', '.join(map(repr, twice))}.",
            next_step="Rename all but one of them.",
        )


def _named_in(columns: Sequence[Column], missing: Collection[str]) -> str:
    """The keys of the spec that name columns which are not there."""
    units = [column.origin == UNIT_KEY for column in columns if column.name in missing]
    keys = ["`columns`"] * (not all(units)) + [
        "`privacy.unit` (of tables that belong together: `key` or `foreign_key`)"
    ] * any(units)
    return " and ".join(keys)


def _nearest(name: str, names: Sequence[str]) -> str:
    by_fold = {other.strip().casefold(): other for other in reversed(names)}
    found = difflib.get_close_matches(name.strip().casefold(), by_fold, 1)
    return f" (nearest: {by_fold[found[0]]!r})" if found else ""
