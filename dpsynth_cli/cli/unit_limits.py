"""What `check` says of the number of rows that are kept of a unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def show_worth(console: Console, found: dict[str, Any]) -> None:
    """Noise and error at a few numbers of rows: no data."""
    from rich.table import Table

    names = list(dict.fromkeys(name for line in found["limits"] for name in line["errors"]))
    table = Table(
        title=f"Rows kept of each {found['column']} (privacy.unit.rows), one simulated release each",
        title_justify="left",
    )
    for name in ("rows", "noise", *names):
        table.add_column(name, justify="right")
    for line in found["limits"]:
        own = " (this spec)" if line["rows"] == found["rows"] else ""
        errors = [f"{line['errors'][name]:.3g}" if name in line["errors"] else "" for name in names]
        table.add_row(f"{line['rows']}{own}", f"x {line['noise']:.3g}", *errors)
    console.print(table)
    console.print(
        "With as many rows kept in all. Fewer rows of each leave more out: check --data counts them.",
        markup=False,
    )


def show_cut(console: Console, found: dict[str, Any], column: str) -> None:
    """How many rows a release would leave out: the steward's eyes only."""
    from rich.table import Table

    table = Table(
        title=f"Rows left out by {column} (confidential: for the steward only)", title_justify="left"
    )
    for name in ("rows kept of each", "rows left out", "of all", "units that lose some"):
        table.add_column(name, justify="right")
    for line in found["limits"]:
        part = line["rows_cut"] / max(1, found["rows"])
        table.add_row(
            f"{line['rows_kept']:,}", f"{line['rows_cut']:,}", f"{100 * part:.3g} %", f"{line['units_cut']:,}"
        )
    console.print(table)
    whole = f"{found['rows']:,} rows of {found['units']:,} units"
    console.print(f"{whole}, at most {found['most_rows']:,} of one.")
