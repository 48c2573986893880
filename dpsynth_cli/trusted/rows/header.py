"""The first line of a CSV file: the names of its columns, and the sign between them.

No row is read. A first line that looks like a row is refused, and never repeated.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpsynth_cli.errors import FileError, UsageError
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


def header(path: str, line: bytes, certain: bool) -> tuple[list[str], str]:
    """The names in a first line, and the delimiter; `certain` if somebody said that it is a header."""
    if len(line) == LONGEST:
        raise FileError(f"The first line of {path} is longer than 1 MB, so it is no header.", COST)
    try:
        line.decode()
    except UnicodeDecodeError:
        raise FileError(f"The first line of {path} is not UTF-8 text.", COST) from None
    line = line.removeprefix(BOM).rstrip(b"\r\n")
    if not line.strip():
        raise FileError(f"The first line of {path} is empty; it must name the columns.", COST)
    cuts = {sign: split_line(line, sign.encode()) for sign in ",;\t|"}
    # Quotes that do not fit a sign are cut as plain text: then it is not the one that was meant.
    unfit = {sign for sign in cuts if b'"' in line and cuts[sign] == line.split(sign.encode())}
    delimiter = max(cuts, key=lambda sign: 0 if sign in unfit else len(cuts[sign]))
    names = [name.decode() for name in cuts[delimiter]]
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
