"""What the steward is told about cells that are not as declared: counts, likely causes, what to do.

All of it is computed from real rows: it goes to the steward's terminal (standard error) and into the
steward's audit, and into nothing that is published. It never says what a cell contains, only how such cells
look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.errors import FileError
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.rows.problems import Problems, count_problems
from dpsynth_cli.trusted.rows.scan import Scan

MUCH, MOST = 0.05, 0.5  # of a column's cells: told in red; refused where the spec is strict
FIRST_LOOK = 2**17  # rows that a strict release looks at before it is charged

CONFIDENTIAL = (
    "This was counted in the real rows: it is confidential, for the steward only. Do not publish it, nor "
    "that it was looked at."
)
_SIGNS = " (with the signs they have)"
LOOKED = "Rows were looked at; nothing was charged and nothing was spent."
LOOKS = {  # by form: what such cells look like, and the key of the spec that reads them
    "currency sign": (
        "amounts with a currency sign",
        'declare currency: "$" (the sign they have), and thousands: "," where thousands are parted',
    ),
    "percent sign": ("numbers with a percent sign", "declare percent: true"),
    "thousands separators": (
        "numbers with thousands separators",
        'declare thousands: "," (the sign they have)',
    ),
    "points between thousands": ("numbers with points between thousands", 'declare thousands: "."'),
    "decimal comma": (
        "numbers with a decimal comma",
        'declare decimal: ",", and thousands: "." where points part thousands',
    ),
    "decimal point": (
        "plain numbers, such as 1234.5",
        "leave out decimal, thousands, currency and percent",
    ),
    "day first": ("dates with the day first (DD/MM/YYYY)", f'declare date: "%d/%m/%Y"{_SIGNS}'),
    "month first": ("dates with the month first (MM/DD/YYYY)", f'declare date: "%m/%d/%Y"{_SIGNS}'),
    "day or month first": (
        "dates with the day or the month first",
        f'declare date: "%d/%m/%Y" or "%m/%d/%Y"{_SIGNS}',
    ),
    "YYYY-MM-DD": ("dates as YYYY-MM-DD", "leave out date"),
    "not YYYY-MM-DD": (
        "dates with the year first, but not as YYYY-MM-DD",
        f'declare date: "%Y/%m/%d"{_SIGNS}',
    ),
    "digits only": (
        "dates in digits only",
        'declare date: "%Y%m%d" for YYYYMMDD, or type: integer for seconds and serial numbers',
    ),
    "month by name": ("dates with the month by name", f'declare date: "%d %b %Y" or "%d %B %Y"{_SIGNS}'),
    "encoding": (
        "labels in another encoding than UTF-8",
        "set csv: {encoding: cp1252} (of Parquet, write the text in UTF-8)",
    ),
    "other case": ("declared labels in other capitals", "declare the labels as the data spell them"),
    "decimals": ("declared numbers with decimals (1.0 for 1)", "declare them so, or write whole numbers"),
    "words": ("other words for true and false", "declare them, such as true: [Ja] and false: [Nein]"),
}
LABELS = ("encoding", "other case", "decimals", "words")  # of a cell that is meant as a listed label


def for_the_steward(problems: Problems, domain: Domain, stated: Domain | None = None) -> dict[str, Any]:
    """The counts, what was not counted, and sentences about columns of which much is not as declared. Where
    columns were looked for, `stated` is what the spec says of them."""
    found = {"confidential": True} | problems.as_json()
    missed = [column.name for column in domain if column.name not in found["columns"]]
    meant = domain if stated is None else _as_stated(domain, stated)
    cells = sum(misread(found["columns"][c.name], c) for c in meant if c.name in found["columns"])
    return found | {"cells": cells, "not_counted": missed, "warnings": told(found, meant)}


def _as_stated(domain: Domain, stated: Domain) -> Domain:
    """The domain with what is stated of a missing cell or a label that is not listed."""
    known = {column.name: column for column in stated}
    return Domain(
        tuple(
            replace(c, nullable=own.nullable, other=own.other, open=own.open)
            if (own := known.get(c.name))
            else c
            for c in domain
        )
    )


def told(found: Mapping[str, Any], domain: Domain, past: float = MUCH) -> list[str]:
    """A sentence for each column of which more than such a part is not as declared."""
    rows = max(1, found["rows"])
    said = []
    if found["ruined"] > past * rows:
        said.append(
            f"{_part(found['ruined'], rows, 'records')} are ragged or over-long: all their cells count as "
            "missing. Check csv.delimiter and csv.multiline, and the quotes in the file."
        )
    for column in domain:
        counts = found["columns"].get(column.name)
        if counts is not None and (parts := _parts(counts, column, rows, past)):
            said.append(f"column {column.name!r}: {'; '.join(parts)}.")
    return said


def unlisted_notes(domain: Domain) -> list[str]:
    """From the spec alone: nominal columns in which a label that is not listed becomes the first category."""
    columns = [c.name for c in domain if c.type == "nominal" and not c.other and not c.nullable]
    if not columns:
        return []
    few = ", ".join(columns[:5]) + (f" and {len(columns) - 5} more" if len(columns) > 5 else "")
    return [
        f"{few}: neither other nor nullable is declared, so a label that is not listed, or a missing one, "
        "counts as the first category. Declare other: LABEL or nullable: true, unless the list is complete."
    ]


def junk(counts: Mapping[str, Any], column: Column) -> int:
    """How many cells of a column are not as declared, missing ones too where none should be."""
    absent = 0 if column.nullable or column.other or column.open else int(counts["missing"])
    return misread(counts, column) + absent


def misread(counts: Mapping[str, Any], column: Column) -> int:
    """How many cells of a column say something that is not as declared. An unlisted label does, where `other`
    is declared, only if it looks like a listed one."""
    if column.open:  # whatever a cell says, nobody has listed the labels
        return 0
    meant = sum(counts["forms"].get(form, 0) for form in LABELS)
    return int(
        counts["unparseable"] + counts["out of bounds"] + (meant if column.other else counts["unlisted"])
    )


def _parts(counts: Mapping[str, Any], column: Column, rows: int, past: float) -> list[str]:
    """What is wrong with a column, if more than such a part of it is."""
    absent = "missing" if column.nullable else f"{column.other!r}" if column.other else _least(column)
    parts = []
    if junk(counts, column) > past * rows:
        if counts["unparseable"]:
            kind = "dates" if column.type in ("date", "datetime") else "numbers"
            parts.append(f"{_part(counts['unparseable'], rows)} are no {kind} and count as {absent}")
        if counts["unlisted"]:
            instead = repr(column.other) if column.other else absent
            parts.append(f"{_part(counts['unlisted'], rows)} are no listed label and count as {instead}")
        parts += _likely(counts["forms"])
        if counts["out of bounds"]:
            parts.append(
                f"{_part(counts['out of bounds'], rows)} are out of bounds and were moved to a bound; widen "
                'the bounds by public knowledge, check the unit, or declare missing: ["-9"] where such a '
                "number means a missing cell"
            )
        if counts["missing"] and not column.nullable and not column.other:
            parts.append(
                f"{_part(counts['missing'], rows)} are missing and count as {absent}; declare nullable: true"
            )
    elif column.other and not column.open and counts["unlisted"] > max(past, MOST) * rows:
        parts.append(f"{_part(counts['unlisted'], rows)} are no listed label and count as {column.other!r}")
    if column.nullable and not parts and rows > 1 and counts["missing"] == rows:
        parts.append("every cell is missing")
    if not parts and rows > 1 and not column.categorical and column.lower < column.upper:
        for end in ("lowest", "highest"):
            if counts[end] == rows:
                bound = "lower" if end == "lowest" else "upper"
                parts.append(f"every cell is at its {bound} bound; check the bounds and the unit")
    return parts


def _least(column: Column) -> str:
    return "its first category" if column.categorical else "its lower bound"


def _likely(forms: Mapping[str, int]) -> list[str]:
    """The form that most of the strange cells have, and what to do."""
    forms = dict(forms)
    # 1,234 may be both, and 03/04/2019 too: cells of the column that can only be one decide.
    if 20 * forms.get("decimal comma", 0) > forms.get("thousands separators", 0):
        forms["decimal comma"] = forms.get("decimal comma", 0) + forms.pop("thousands separators", 0)
    for sure in ("day first", "month first"):
        if forms.get(sure):
            forms[sure] += forms.pop("day or month first", 0)
    known = {form: count for form, count in forms.items() if form in LOOKS and count}
    if not known:
        return []
    form = max(known, key=lambda form: known[form])
    if 2 * known[form] < sum(forms.values()):
        return []
    looks, remedy = LOOKS[form]
    return [f"they look like {looks}: {remedy}"]


def _part(count: int, rows: int, what: str = "cells") -> str:
    return f"{100 * count / rows:.3g} % of {what} ({count:,} of {rows:,})"


def refuse_junk(spec: Spec, scan: Scan, cost: str = LOOKED) -> None:
    """Where the spec is strict: look at the first rows, and refuse a column more than half of which is not as
    declared. This is before a charge; what comes of it depends on the data, so it is confidential."""
    if not spec.strict:
        return
    found = count_problems(scan, FIRST_LOOK).as_json()
    rows = found["rows"]
    worst = [
        column.name
        for column in spec.domain
        if junk(found["columns"][column.name], column) + found["ruined"] > MOST * rows
    ]
    if rows and worst:
        raise FileError(_refusal(found, spec.domain, worst), cost, NEXT, {"confidential": True})


NEXT = "Correct the file or the spec, or release without --strict and strict: true. " + CONFIDENTIAL


def _refusal(found: Mapping[str, Any], domain: Domain, worst: Sequence[str]) -> str:
    lines = [f"strict: more than half of {', '.join(map(repr, worst))} is not as declared."]
    lines += told(found, Domain(tuple(domain[name] for name in worst)))
    return "\n  ".join(lines)
