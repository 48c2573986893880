"""Derived columns and rules, as `check` shows them; and how many real rows disagree, for the steward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_MOST = 12  # categories that are shown


def show_relations(console: Console, relations: Mapping[str, Any]) -> None:
    """What is computed after the noise, and what every row keeps: at no cost."""
    for name, column in relations["computed"].items():
        source = ", ".join(column["from"]) or "nothing"
        line = f"computed, never read: {name}, {_kind(column)}, from {source}"
        console.print(line, markup=False, soft_wrap=True)
    for rule in relations["rules"]:
        console.print(f"kept in every row: {rule}", markup=False, soft_wrap=True)


def _kind(column: Mapping[str, Any]) -> str:
    kind = str(column["type"])
    if "bounds" in column:
        low, high = column["bounds"]
        kind += f" from {low} to {high}"
    elif "categories" in column:
        labels = column["categories"]
        kind += f" ({', '.join(labels[:_MOST])}{', …' if len(labels) > _MOST else ''})"
    return kind + (" or missing" if column["nullable"] else "")


def show_broken(console: Console, broken: Mapping[str, Any] | None) -> None:
    """Real rows that disagree: they are read as they are, and no released row is like them."""
    if not broken:
        return
    from rich.table import Table
    from rich.text import Text

    rows, whole = broken["rows"], broken["of"]
    seen = f"{rows:,} rows" if rows == whole else f"a sample of {rows:,} of {whole:,} rows"
    said = f"Real rows that disagree with the spec, in {seen} (confidential: for the steward only)"
    console.print(said, style="italic", soft_wrap=True)
    table = Table()
    table.add_column("relation")
    table.add_column("rows", justify="right")
    for name, count in broken["differing"].items():
        table.add_row(Text(f"{name} is not as computed"), f"{count:,}")
    for rule, count in broken["breaking"].items():
        table.add_row(Text(rule), f"{count:,}")
    console.print(table)
