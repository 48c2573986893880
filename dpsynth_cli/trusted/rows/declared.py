"""The name of the data set that a file says it is: chosen by its steward, never computed from rows.

A Parquet file has it in its metadata, under `dpsynth.dataset`. Beside any input there may be a file of one
line, INPUT.dataset. Whoever gives a spec another name, or the input by a link, or one file of a folder, then
still charges the right budget.
"""

from __future__ import annotations

import os
from pathlib import Path

from dpsynth_cli.errors import NOTHING_SPENT, BudgetError, UsageError

KEY = b"dpsynth.dataset"


def declared_dataset(path: str) -> str | None:
    """The data set that an input says it is; None if it says nothing. Refuses two that differ."""
    if path in ("", "-"):
        return None
    found = {name for name in (*map(_beside, _places(path)), *_inside(path)) if name is not None}
    if len(found) > 1:
        raise BudgetError(
            f"{path} says two different things about which data set it is: {', '.join(sorted(found))}.",
            NOTHING_SPENT,
            f"Correct {_sidecar(path)}, or the metadata of the file.",
        )
    return next(iter(found), None)


def _places(path: str) -> set[str]:
    """The input, the file or folder that it really is, and the folder it is in."""
    real = os.path.realpath(path)
    return {path.rstrip("/"), real, os.path.dirname(real)} - {"", os.sep}


def _sidecar(path: str) -> Path:
    return Path(f"{path.rstrip('/')}.dataset")


def _beside(path: str) -> str | None:
    try:
        return _sidecar(path).read_text().strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        raise UsageError(
            f"{_sidecar(path)} cannot be read.", next_step="It is one line: the name of the data set."
        ) from None


def _inside(path: str) -> list[str]:
    """From the footers of Parquet files; a damaged file is told when it is opened for a release."""
    files = sorted(Path(path).rglob("*.parquet")) if os.path.isdir(path) else [Path(path)]
    names = []
    for file in files:
        if file.name.lower().endswith(".parquet") and file.is_file():
            names += _metadata(file)
    return names


def _metadata(file: Path) -> list[str]:
    import pyarrow as pa

    from dpsynth_cli.trusted.rows.parquet_form import stored_schema

    try:
        metadata = stored_schema(file).metadata or {}
    except (OSError, pa.ArrowException):
        return []
    return [metadata[KEY].decode("utf-8", "replace")] if KEY in metadata else []
