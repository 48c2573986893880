"""A table that is public already, such as last year's: its types, bounds and categories."""

from __future__ import annotations

import math
import os
from pathlib import Path

from dpsynth_cli.draft.codebook import Known
from dpsynth_cli.draft.columns import MEANINGS
from dpsynth_cli.draft.facts import COST, MOST_CATEGORIES, Facts, labels
from dpsynth_cli.draft.names import bounds_by_name
from dpsynth_cli.errors import FileError, UsageError
from dpsynth_cli.numbers import day_text, decimal, moment_text
from dpsynth_cli.trusted.rows.look import Seen, fits_type, glance
from dpsynth_cli.trusted.rows.public_table import Range, ranges

_CHUNK = 2**20
PERIODS = [bounds_by_name(name) for name in ("year", "quarter", "month", "week")]  # other next time


def read_like(path: str, data: str, known: Known) -> list[Facts]:
    """What a public table says of its columns, of the types that are known of them, else by its own forms.

    Refused where it is the table that is to be released.
    """
    if path == "-":
        raise UsageError("--like needs a file, not standard input.", COST)
    if _same(path, data):
        raise UsageError(
            f"--like {path} is the table itself, or a copy of it.",
            COST,
            "Bounds and categories must not come from the rows that are to be released: name a table that is "
            "public already, such as last year's.",
        )
    seen = glance(path, rows=True, certain=True)
    kinds = {one.name: kind for one in seen.columns if (kind := _kind(one, known.of(one.name))) is not None}
    wanted = {one.name: (kinds[one.name], one.look.format) for one in seen.columns if one.name in kinds}
    found = ranges(path, wanted, seen.csv) if kinds else {}
    return [_facts(one, kinds[one.name], found[one.name], path) for one in seen.columns if one.name in kinds]


def _kind(seen: Seen, facts: Facts | None) -> str | None:
    kind = facts.type if facts else None
    if kind is None or (seen.type is not None and not fits_type(seen.type, kind)):
        return MEANINGS[seen.look.form].type
    return kind


def _facts(seen: Seen, kind: str, found: Range, path: str) -> Facts:
    at = f"{path}, column {seen.name}"
    if kind == "boolean":
        return Facts(seen.name, at, kind, nullable=found.missing)
    if kind in ("nominal", "ordinal"):
        known = not found.too_many and len(found.labels) <= MOST_CATEGORIES
        return Facts(
            seen.name,
            at,
            kind,
            categories=labels(_sorted(found.labels), at) if known else (),
            nullable=found.missing,
        )
    if found.lower is None or found.upper is None:
        return Facts(seen.name, at, kind)
    low, high = found.lower, found.upper
    period = f"as in {os.path.basename(path)}: set it to the period of this table"
    if kind == "integer":
        ends = str(math.floor(low)), str(math.ceil(high))
        about = period if bounds_by_name(seen.name) in PERIODS else ""
        return Facts(seen.name, at, kind, *ends, nullable=found.missing, about=about)
    if kind == "continuous":
        return Facts(seen.name, at, kind, repr(float(low)), repr(float(high)), nullable=found.missing)
    spell = day_text if kind == "date" else moment_text
    return Facts(seen.name, at, kind, spell(int(low)), spell(int(high)), nullable=found.missing, about=period)


def _sorted(found: set[str]) -> list[str]:
    """Labels in order: of numbers, by their values."""
    values = {label: decimal(label) for label in found}
    if None in values.values():
        return sorted(found)
    return sorted(found, key=lambda label: (values[label] or 0, label))


def _same(path: str, data: str) -> bool:
    """Whether a file of one is a file of the other, by name or by content."""
    if data == "-":
        return False
    return any(_same_file(one, other) for one in _files(path) for other in _files(data))


def _files(path: str) -> list[Path]:
    found = Path(path)
    return sorted(found.rglob("*.parquet")) if found.is_dir() else [found]


def _same_file(one: Path, other: Path) -> bool:
    try:
        if os.path.samefile(one, other):
            return True
        if one.stat().st_size != other.stat().st_size:
            return False
        with open(one, "rb") as left, open(other, "rb") as right:
            while chunk := left.read(_CHUNK):
                if chunk != right.read(_CHUNK):
                    return False
    except OSError as error:
        raise FileError(f"{error.filename or one} cannot be read: {error.strerror}.", COST) from None
    return True
