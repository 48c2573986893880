"""Cells of the real table that were not as declared: for the steward, in red where they are many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.report.markup import items, paragraph, percent, section, table
from dpsynth_cli.release.documents.junk import MUCH, junk

KINDS = ("missing", "unparseable", "out of bounds", "unlisted")
MOST = 60


def not_as_declared(audit: Mapping[str, Any], domain: Domain) -> str:
    """The counts of a release, which only the steward's audit has."""
    problems = audit.get("problems")
    if not problems:
        return ""
    rows_in_all = max(1, problems["rows"])
    said = ""
    if problems["warnings"]:
        said = "<h3>Much of the data is not as declared</h3>" + items(problems["warnings"])
        said = f'<div class="box much">{said}</div>'
    rows, marked = [], []
    for column in domain:
        counts = problems["columns"].get(column.name)
        if counts is None or not junk(counts, column):
            continue
        part = junk(counts, column) / rows_in_all
        much = part > MUCH
        rows.append(
            (
                column.name,
                *(f"{counts[kind]:,}" for kind in KINDS),
                percent(part) + (" — much" if much else ""),
            )
        )
        marked.append("much" if much else "")
    order = sorted(range(len(rows)), key=lambda i: not marked[i])[:MOST]  # stable: what is much comes first
    head = ("column", *KINDS, "not as declared")
    listed = table(head, [rows[i] for i in order], range(1, 6), [marked[i] for i in order]) if rows else ""
    about = (
        f"{problems['rows']:,} real rows were read; {problems['ruined']:,} of them were ragged or over-long."
    )
    if len(rows) > MOST:
        about += f" {len(rows) - MOST} more columns are in the audit."
    elif not rows:
        about += " All their cells were as declared."
    if problems["not_counted"]:
        about += f" Not counted in this run: {', '.join(problems['not_counted'])}."
    return section(
        "junk", "Cells that were not as declared", said, listed, paragraph(f"{about} Confidential.", "small")
    )
