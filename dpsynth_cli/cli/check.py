"""dpsynth check: is the spec valid, what does it mean, what will it ask and cost?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth_cli.cli.options import Input, Json, Output, Rows, Set, SpecPath, loaded, print_json

if TYPE_CHECKING:
    from dpsynth_cli.spec import Spec

IMAGINED_ROWS = 10_000


def command(
    spec: SpecPath,
    data: Annotated[
        bool,
        typer.Option(
            "--data",
            help="Also read the input and count, per column, the cells that would be changed. "
            "For the steward's eyes: these counts are not private.",
        ),
    ] = False,
    input: Input = None,
    output: Output = None,
    rows: Rows = None,
    set_: Set = None,
    json: Json = False,
) -> None:
    """Check a spec without data: what it means in words, every question, its noise, its cost.

    The questions are those of a release of a uniform table with as many rows as the spec's rows_hint
    (else its rows, else 10,000): a mechanism may choose others for the real number of rows.
    """
    from dpsynth_cli.audit import guarantee
    from dpsynth_cli.imagine import imagine

    wanted = loaded(spec, set_, input, output, rows)
    report: dict[str, Any] = {"spec": wanted.effective, "guarantee": guarantee(wanted)}
    if wanted.privacy.epsilon is not None:  # a release by groups asks nothing and has no budget
        count = wanted.domain.rows_hint or wanted.rows or IMAGINED_ROWS
        model, accountant, bill = imagine(wanted, count)
        report |= {
            "imagined_rows": count,
            "currency": accountant.currency,
            "total": str(accountant.total),
            "spent": str(accountant.spent),
            "charges": [charge.as_json() for charge in bill],
            "notes": list(model.notes),
        }
    if data:
        from contextlib import closing
        from dataclasses import asdict

        from dpsynth_cli.trusted.encode import count_problems
        from dpsynth_cli.trusted.read import open_scan

        with closing(open_scan(wanted.input, wanted.domain.columns, wanted.csv)) as scan:
            report["data"] = {"confidential": True} | asdict(count_problems(scan))
    if json:
        print_json(report)
    else:
        _show(wanted, report)


def _show(spec: Spec, report: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(
        f"[bold]{spec.name}[/]: the spec is valid. Mechanism {spec.mechanism.name}: {spec.mechanism.summary}"
    )
    console.print(report["guarantee"]["statement"])
    if "charges" in report:
        _show_questions(console, report)
    if "data" in report:
        _show_data(console, report["data"])


def _show_questions(console: Any, report: dict[str, Any]) -> None:
    from fractions import Fraction

    from rich.table import Table

    from dpsynth_cli.audit import short

    table = Table(
        title=f"What it would ask, imagined for a uniform table of {report['imagined_rows']:,} rows",
        title_justify="left",
    )
    for name in ("step", "question", "cells", "noise", "sd of a cell", f"cost ({report['currency']})"):
        table.add_column(name, justify="left" if name in ("step", "question", "noise") else "right")
    for line in report["charges"]:
        sd = f"{line['standard_deviation']:.4g}" if "standard_deviation" in line else "-"
        cost = f"{float(Fraction(line['cost'])):.4g}"
        noise = line["noise"].removeprefix("discrete_")
        table.add_row(line["step"], _question(line), f"{line['cells']:,}", noise, sd, cost)
    console.print(table)
    spent, total = (short(Fraction(report[key])) for key in ("spent", "total"))
    console.print(f"Spends {spent} of {total} ({report['currency']}).")
    for note in report["notes"]:
        console.print(f"note: {note}")


def _question(line: dict[str, Any]) -> str:
    columns = [name for name in line["columns"] if name != line["by"]]
    few = ", ".join(columns[:3]) + (f" and {len(columns) - 3} more" if len(columns) > 3 else "")
    by = f" by {line['by']}" if line["by"] else ""
    return f"{line['question']}{' of ' + few if few else ''}{by}"


def _show_data(console: Any, problems: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(
        title="Cells that a release would change (confidential: for the steward only)", title_justify="left"
    )
    kinds = ("missing", "unparseable", "out of bounds", "unlisted")
    for name in ("column", *kinds):
        table.add_column(name, justify="left" if name == "column" else "right")
    for column, counts in problems["columns"].items():
        table.add_row(column, *(f"{counts[kind]:,}" for kind in kinds))
    console.print(table)
    console.print(
        f"{problems['rows']:,} rows, {problems['ruined']:,} of them ragged or over-long: "
        "all their values count as missing."
    )
