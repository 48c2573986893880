"""Copies of a ledger in a file of lines: to move it, to keep it elsewhere, to have it watched by auditors.

A line is an entry as it is stored, salt and hash too, so that the chain of the copy can be checked by itself
and goes on where the ledger's goes on. A copy is as confidential as the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from dpsynth_cli import disk
from dpsynth_cli.errors import FileError, VerificationError
from dpsynth_cli.hashing import canonical
from dpsynth_cli.trusted.ledger.chain import COLUMNS, Row

NAMES = COLUMNS.split(", ")
NOTHING = "Nothing was copied."


def bring_up_to_date(path: Path, rows: Callable[[], Sequence[Row]]) -> int:
    """Add what a copy does not have yet; how much that was. It may only ever be the beginning of the same.

    The file is locked before the `rows` are read: else another process could have added newer ones.
    """
    try:
        disk.make_folder(path.parent, 0o700)
        with disk.append(path, 0o600) as file:
            disk.lock(file)
            file.seek(0)
            have = file.read()
            expected = [_line(row) for row in rows()]
            *kept, torn = have.split(b"\n")  # a crash may have cut the last line off
            if not b"".join(expected).startswith(have):
                raise VerificationError(
                    f"{path} is not a copy of the beginning of this ledger.",
                    NOTHING,
                    "It was edited, is of another ledger, or this ledger is an older one: compare them.",
                )
            if torn:
                file.truncate(len(have) - len(torn))
            file.write(b"".join(expected[len(kept) :]))
            disk.sync(file)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}.", NOTHING, "Choose another place.") from None
    return len(expected) - len(kept)


def read(path: Path) -> list[Row]:
    """The entries of such a file."""
    try:
        lines = disk.read(path).splitlines()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.", "Nothing was taken over.") from None
    try:
        entries = [json.loads(line) for line in lines]
        rows = [tuple(entry[name] for name in NAMES) for entry in entries]
        if any(type(row[0]) is not int or any(type(word) is not str for word in row[1:]) for row in rows):
            raise ValueError("no entry")
        return rows
    except (ValueError, KeyError, TypeError):
        raise VerificationError(f"{path} is not a copy of a ledger.", "Nothing was taken over.") from None


def _line(row: Row) -> bytes:
    return canonical(dict(zip(NAMES, row, strict=True))) + b"\n"
