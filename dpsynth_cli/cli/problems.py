"""Cells that are not as declared, on the steward's terminal.

Standard output of a command may be kept, mailed or published with a release, so what real rows say about
themselves goes to standard error, with the word confidential, and nowhere else. It decides no exit code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

KINDS = ("missing", "unparseable", "out of bounds", "unlisted")
STRICT_HELP = (
    "First look at the data, before the charge, and refuse (exit code 5) if more than half of a column is "
    "not as declared; nothing is spent then. The look is confidential: never publish what came of it."
)
Strict = Annotated[bool, typer.Option("--strict", help=STRICT_HELP)]


def strict_set(sets: list[str] | None, strict: bool) -> list[str] | None:
    """What the command line changes in the spec, with --strict."""
    return [*(sets or ()), "strict=true"] if strict else sets


def tell_problems(problems: Mapping[str, Any], audit: str | None = None, parents: str = "") -> None:
    """What a release found on its way: on standard error, in red where it is much. Where there are several
    tables, `parents` is the name of the first, and what is told has the name of its table."""
    if not problems:
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    named = {f"{parents}: " if parents else "": problems}
    named |= {f"{name}: ": own for name, own in problems.get("tables", {}).items()}
    warnings = [f"{name}{line}" for name, own in named.items() for line in own["warnings"]]
    missed = [f"{name}{column}" for name, own in named.items() for column in own["not_counted"]]
    few, ruined = (sum(own[kind] for own in named.values()) for kind in ("cells", "ruined"))
    if warnings:
        console.print("confidential, for the steward only: much of the data is not as declared.", style="red")
        for line in warnings:
            console.print(f"  {line}", style="red")
    elif few or ruined:
        console.print(
            f"confidential, for the steward only: {few:,} cell{'s' * (few != 1)} and "
            f"{ruined:,} whole record{'s' * (ruined != 1)} are not as declared, "
            "no more than 5 % of any column."
        )
    if missed:
        console.print(f"not counted in this run: {', '.join(missed)}.")
    if audit and (warnings or few or missed):
        console.print(f"  all counts: `problems` in {audit}")


def show_problems(console: Console, problems: Mapping[str, Any]) -> None:
    """All counts, as a table, and what is much in red: for `check --data`, whose purpose they are."""
    from rich.table import Table

    table = Table(
        title="Cells that a release would change (confidential: for the steward only)", title_justify="left"
    )
    for name in ("column", *KINDS):
        table.add_column(name, justify="left" if name == "column" else "right")
    for column, counts in problems["columns"].items():
        table.add_row(column, *(f"{counts[kind]:,}" for kind in KINDS))
    console.print(table)
    console.print(
        f"{problems['rows']:,} rows, {problems['ruined']:,} of them ragged or over-long: "
        "all their values count as missing."
    )
    for line in problems["warnings"]:
        console.print(f"warning: {line}", style="red", markup=False)
