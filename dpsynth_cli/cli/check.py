"""dpsynth check: is the spec valid, what does it mean, what will it ask and cost?"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth_cli.cli.options import (
    ImaginedRows,
    Input,
    Json,
    LedgerPath,
    Like,
    Output,
    Rows,
    Set,
    SpecPath,
    imagined,
    loaded,
    print_json,
)
from dpsynth_cli.cli.problems import show_problems
from dpsynth_cli.cli.relations import show_broken, show_relations
from dpsynth_cli.cli.unit_limits import show_cut, show_worth

if TYPE_CHECKING:
    from dpsynth_cli.spec.spec import Spec


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
    like: Like = None,
    n: ImaginedRows = None,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            min=0,
            help="Simulated releases of each of seven generated tables; default: a quick look, one "
            "release of each of four, or of as many as a second is enough for.",
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Show all mechanisms that take this table side by side: still no data."
        ),
    ] = False,
    input: Input = None,
    output: Output = None,
    rows: Rows = None,
    set_: Set = None,
    ledger: LedgerPath = None,
    json: Json = False,
) -> None:
    """Check a spec without data: what it means in words, every question, its noise, its cost, its error.

    Releases are simulated on a family of generated tables with the declared columns, from even and
    independent to skewed, spiky, sparse and strongly linked ones, or on a public table (--like), with as many
    rows as the spec's rows_hint (or as --n says). Errors come as the range over these tables. The questions
    are those that one of them was asked: a mechanism may choose others.

    If the input and the ledger are there, column names are compared with its header (no row is read), and the
    cost with what is left. The exit code is that of the release: 5 if it would refuse the file, 3 the budget.
    """
    from dpsynth_cli.cli.predictions import predicted
    from dpsynth_cli.errors import BudgetError, FileError
    from dpsynth_cli.release.documents.guarantee import guarantee
    from dpsynth_cli.release.documents.junk import unlisted_notes
    from dpsynth_cli.release.documents.relations import in_words
    from dpsynth_cli.release.found import search_advice, search_worth
    from dpsynth_cli.release.predict.unit_worth import unit_limits, unit_worth

    wanted = loaded(spec, set_, input, output, rows)
    if wanted.mechanism.stream:
        from dpsynth_cli.release.stream.place import check

        check(wanted)
    declared = [*unlisted_notes(wanted.domain), *_format_notes(wanted)]
    report: dict[str, Any] = {"spec": wanted.effective, "guarantee": guarantee(wanted), "notes": declared}
    if stated := in_words(wanted.stated):
        report["relations"] = stated
    if wanted.tables is not None:
        from dpsynth_cli.cli.check_tables import data_of, report_tables

        report |= report_tables(wanted, like, n, runs, compare, quiet=json)
        report["notes"] = [*declared, *report["notes"]]
    elif wanted.privacy.epsilon is not None:  # a release by groups asks nothing and has no budget
        report |= predicted(wanted, like, n, runs, compare, quiet=json)
        report["notes"] = [*declared, *report["notes"]]
        if runs != 0 and (unit := unit_worth(wanted, report["imagined_rows"], imagined(wanted, like, n)[0])):
            report["unit"] = unit
        if found := search_worth(wanted):
            report["search"] = found
            of = wanted.privacy.unit
            report["notes"].append(search_advice(found, of.column if of else None))
        if wanted.evaluation.epsilon is not None:
            from dpsynth_cli.release.paid import advice, worth

            report["evaluation"] = worth(wanted, report["imagined_rows"])
            report["notes"].append(advice(report["evaluation"]))
    report |= _compared(wanted, ledger)
    if data and wanted.tables is not None:
        report["data"] = data_of(wanted)
    elif data:
        from contextlib import closing

        from dpsynth_cli.mechanisms.search.outer import outer
        from dpsynth_cli.release.documents.junk import for_the_steward
        from dpsynth_cli.trusted.rows.problems import count_problems
        from dpsynth_cli.trusted.rows.read import open_scan
        from dpsynth_cli.trusted.rows.unit_marks import unit_column
        from dpsynth_cli.trusted.rows.unit_sizes import unit_sizes

        asked = outer(wanted.domain)
        with closing(open_scan(wanted.input, asked.columns, wanted.csv)) as scan:
            report["data"] = for_the_steward(count_problems(scan), asked, wanted.domain)
        if wanted.privacy.unit is not None:
            column = wanted.privacy.unit.column
            with closing(open_scan(wanted.input, [unit_column(column)], wanted.csv)) as scan:
                report["data"]["units"] = unit_sizes(scan, column, unit_limits(wanted))
        from dpsynth_cli.evaluate.broken import broken_relations

        if broken := broken_relations(wanted):
            report["data"]["relations"] = broken
    if json:
        print_json(report)
    else:
        _show(wanted, report)
    for what, code in (("header", FileError.exit_code), ("ledger", BudgetError.exit_code)):
        if report[what]["fits"] is False:
            raise typer.Exit(code)  # as a release would


def _compared(spec: Spec, option: str | None) -> dict[str, Any]:
    """What a release would meet: the header of the input, and the budget. No row is read."""
    from contextlib import closing

    from dpsynth_cli.errors import BudgetError, DpsynthError, FileError
    from dpsynth_cli.release.budget import cost_of
    from dpsynth_cli.release.dataset import as_declared
    from dpsynth_cli.trusted.ledger.ledger import Ledger, ledger_path
    from dpsynth_cli.trusted.rows.read import open_scan
    from dpsynth_cli.trusted.rows.unit_marks import unit_column

    header: dict[str, Any] = {"fits": None, "says": "not compared: the input is not there."}
    if spec.tables is not None:
        from dpsynth_cli.cli.check_tables import headers

        header = headers(spec)
    elif spec.input not in ("", "-") and os.path.exists(spec.input):
        try:
            unit = () if spec.privacy.unit is None else (unit_column(spec.privacy.unit.column),)
            with closing(open_scan(spec.input, (*spec.domain.columns, *unit), spec.csv)):
                header = {"fits": True, "says": f"{spec.input} has all declared columns."}
        except FileError as error:
            header = {"fits": False, "says": f"{error.happened} {error.next_step}".strip()}
    book = Ledger(ledger_path(option))
    budget: dict[str, Any] = {"fits": None, "says": f"there is no ledger at {book.path} yet."}
    try:
        spec = as_declared(spec)
        if book.exists():
            balance = book.quote(spec.privacy.dataset, cost_of(spec))
            limit = "is not limited: it has no grant" if balance.grant is None else "has enough left for it"
            budget = {"fits": True, "says": f"{spec.privacy.dataset} {limit}."}
    except BudgetError as error:
        budget = {"fits": False, "says": f"{error.happened} {error.next_step}"}
    except DpsynthError as error:
        budget = {"fits": None, "says": error.happened}
    return {"header": header, "ledger": budget}


def _format_notes(spec: Spec) -> list[str]:
    """How cells are read and written, where they are not plain."""
    from dpsynth_cli.spec.column_formats import words

    alike: dict[str, list[str]] = {}
    for column in spec.domain:
        alike.setdefault(words(column), []).append(column.name)
    said = [f"{', '.join(names)} ({text})" for text, names in alike.items() if text]
    notes = [f"read and written as declared: {'; '.join(said)}."] if said else []
    if spec.csv.canonical:
        return [*notes, "csv.canonical: the release is plain CSV, in UTF-8."]
    plain = (spec.csv.encoding, spec.csv.delimiter) == ("utf-8", ",")
    where = f"CSV in {spec.csv.encoding}, with {spec.csv.delimiter!r} between fields"
    return notes if plain else [*notes, f"{where}; so is the release if it is CSV."]


def _show(spec: Spec, report: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(
        f"[bold]{spec.name}[/]: the spec is valid. Mechanism {spec.mechanism.name}: {spec.mechanism.summary}"
    )
    console.print(report["guarantee"]["statement"])
    if spec.privacy.epsilon is not None:
        from dpsynth_cli.release.documents.profile import allows

        console.print(f"It allows an attacker: {allows(spec.privacy)}", markup=False)
    for what in ("header", "ledger"):
        refused = report[what]["fits"] is False
        words = "a release would be refused: " if refused else ""
        style = "red" if refused else None
        console.print(f"{what}: {words}{report[what]['says']}", style=style, markup=False)
    if "relations" in report:
        show_relations(console, report["relations"])
    for note in report.get("notes", ()):
        console.print(f"note: {note}", markup=False)
    if "tables" in report:
        from dpsynth_cli.cli.check_tables import show_tables

        show_tables(console, report)
        return
    if "charges" in report:
        _show_questions(console, report)
    if "unit" in report:
        show_worth(console, report["unit"])
    if "data" in report:
        show_problems(console, report["data"])
        show_broken(console, report["data"].get("relations"))
        if "units" in report["data"] and spec.privacy.unit is not None:
            show_cut(console, report["data"]["units"], spec.privacy.unit.column)


def _show_questions(console: Any, report: dict[str, Any]) -> None:
    from fractions import Fraction

    from rich.table import Table

    from dpsynth_cli.cli.predictions import reference, show_prediction
    from dpsynth_cli.numbers import shown

    about = reference(report["prediction"]["reference"])
    table = Table(
        title=f"What it would ask, imagined for {about} of {report['imagined_rows']:,} rows",
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
    spent, total = (shown(Fraction(report[key]), digits=6) for key in ("spent", "total"))
    console.print(f"Spends {spent} of {total} ({report['currency']}).")
    if worst := report["chosen"].get("at_worst"):
        seconds, megabytes = (math.ceil(worst["seconds"]), math.ceil(worst["bytes"] / 1e6))
        console.print(f"Takes at most about {seconds:,} s and {megabytes:,} MB, besides reading and writing.")
    show_prediction(console, report)


def _question(line: dict[str, Any]) -> str:
    columns = [name for name in line["columns"] if name != line["by"]]
    few = ", ".join(columns[:3]) + (f" and {len(columns) - 3} more" if len(columns) > 3 else "")
    by = f" by {line['by']}" if line["by"] else ""
    return f"{line['question']}{' of ' + few if few else ''}{by}"
