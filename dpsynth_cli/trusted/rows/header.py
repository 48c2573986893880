"""The first line of a CSV file: the names of its columns, and the sign between them.

No row is read. A first line that looks like a row is refused, and never repeated.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dpsynth_cli.domain import CsvOptions
from dpsynth_cli.errors import FileError, UsageError
from dpsynth_cli.trusted.rows.csv_encoding import decoded, separator_line
from dpsynth_cli.trusted.rows.csv_lines import BOM, split_line

COST = "No row was read and nothing was spent."
LOOKED = "Rows were looked at; nothing was spent."
LONGEST = 1_000_000
_NUMBER_OR_DATE = re.compile(r"\s*[-+]?[.,]?[0-9][0-9.,:eE+\s/-]*")


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """The bytes of a CSV file, unpacked, or of standard input; what goes wrong is said without content."""
    try:
        if path == "-":
            yield sys.stdin.buffer
        else:
            with gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb") as file:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise FileError(f"{path} is not a whole gzip file.", COST) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not a file name"
        raise FileError(f"{path} cannot be read: {reason}.", COST) from None


def first_line(file: Any, encoding: str) -> bytes:
    """The line that names the columns, in UTF-8, without a line before it that only names the delimiter."""
    stream = decoded(file, encoding)
    line: bytes = stream.readline(LONGEST)
    return bytes(stream.readline(LONGEST)) if separator_line(line) else line


def column_names(path: str, csv: CsvOptions) -> list[str]:
    """The names of a table's columns, by its declared form. No row is read."""
    if os.path.isdir(path) or path.lower().endswith(".parquet"):
        return [str(name) for name in parquet_schema(path).names]
    with opened(path) as file:
        line = first_line(file, csv.encoding).removeprefix(BOM).rstrip(b"\r\n")
    return [name.decode("utf-8", "replace") for name in split_line(line, csv.delimiter.encode())]


def parquet_schema(path: str) -> Any:
    """The schema of a Parquet file, or of the first one in a folder."""
    import pyarrow as pa

    from dpsynth_cli.trusted.rows.parquet_form import stored_schema

    if os.path.isdir(path):
        parts = sorted(name for name in os.listdir(path) if name.endswith(".parquet"))
        if not parts:
            raise FileError(f"The folder {path} has no .parquet file.", COST)
        path = os.path.join(path, parts[0])
    try:
        return stored_schema(path)
    except pa.ArrowException:
        raise FileError(f"{path} is not a Parquet file.", COST) from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or 'it is damaged'}.", COST) from None


@dataclass(frozen=True)
class Start:
    """How a CSV file begins, in UTF-8: the line that names the columns, the delimiter that a line before it
    names, the encoding that its bytes show, and the first rows if they were wanted."""

    line: bytes
    sign: str
    encoding: str
    block: bytes


def start(file: Any, most: int) -> Start:
    """The start of a file, with at most so many bytes of its rows."""
    raw = file.readline(LONGEST)
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or 3 * raw[:300].count(0) > len(raw[:300]):
        return _start_of_utf_16(file, raw, most)
    sign = separator_line(raw)
    line = file.readline(LONGEST) if sign else raw
    block = file.read(most) if most else b""
    encoding = "utf-8" if _is_utf8(line) and not _mostly_not_utf8(block) else "cp1252"
    if encoding != "utf-8":
        line, block = (part.decode(encoding, "replace").encode() for part in (line, block))
    return Start(line, sign.decode("latin-1") if sign else "", encoding, block)


def _mostly_not_utf8(block: bytes) -> bool:
    """Whether most lines with more than ASCII are in another encoding. A single row does not decide: the
    encoding is published with the spec. As with missing cells, one line in a thousand must be, and two."""
    if _is_utf8(block):
        return False
    lines = block.split(b"\n")
    more = [line for line in lines if not line.isascii()]
    others = sum(not _is_utf8(line + b"\n") for line in more)
    return others >= max(2, len(lines) / 1000) and 2 * others > len(more)


def _is_utf8(data: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # its last character may be cut
    except UnicodeDecodeError:
        return False
    return True


def _start_of_utf_16(file: Any, raw: bytes, most: int) -> Start:
    marked = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    encoding = "utf-16" if marked else "utf-16-be" if raw[:1] == b"\0" else "utf-16-le"
    raw += file.read(2 * most) if most else file.readline(LONGEST) if len(raw) < 20 else file.read(1)
    text = decoded(io.BytesIO(raw), encoding)
    line = text.readline(LONGEST)
    sign = separator_line(line)
    line = text.readline(LONGEST) if sign else line
    return Start(line, sign.decode("latin-1") if sign else "", encoding, text.read() if most else b"")


def header(path: str, line: bytes, certain: bool, sign: str = "") -> tuple[list[str], str]:
    """The names in a first line, and the delimiter, which is `sign` where that is known; `certain` if
    somebody said that it is a header."""
    if len(line) == LONGEST:
        raise FileError(f"The first line of {path} is longer than 1 MB, so it is no header.", COST)
    line = line.removeprefix(BOM).rstrip(b"\r\n")
    if not line.strip():
        raise FileError(f"The first line of {path} is empty; it must name the columns.", COST)
    cuts = {sign: split_line(line, sign.encode()) for sign in ",;\t|"}
    # Quotes that do not fit a sign are cut as plain text: then it is not the one that was meant.
    unfit = {sign for sign in cuts if b'"' in line and cuts[sign] == line.split(sign.encode())}
    delimiter = sign or max(cuts, key=lambda sign: 0 if sign in unfit else len(cuts[sign]))
    names = [name.decode("utf-8", "replace") for name in split_line(line, delimiter.encode())]
    if not certain and any(_NUMBER_OR_DATE.fullmatch(name) for name in names):
        raise no_header(path, "a name in it is a number or a date", COST)
    first: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        if name and first.setdefault(name, place) != place:
            twice = f"fields {first[name]} and {place} of its header have the same name"
            raise FileError(f"{path} cannot be described: {twice}.", COST)
    return names, delimiter


def no_header(path: str, why: str, cost: str) -> UsageError:
    """That a first line is a row. Its names are not repeated, here or elsewhere: they are cells then."""
    return UsageError(
        f"The first line of {path} does not look like a header: {why}.",
        cost,
        "Add a header line; or, if it is one, say so with --header.",
    )
