"""dpsynth check: is the spec valid, what does it mean, what will it ask and cost?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth_cli.cli.options import (
    ImaginedRows,
    Input,
    Json,
    Like,
    Output,
    Rows,
    Runs,
    Set,
    SpecPath,
    imagined,
    loaded,
    print_json,
)

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
    runs: Runs = 5,
    input: Input = None,
    output: Output = None,
    rows: Rows = None,
    set_: Set = None,
    json: Json = False,
) -> None:
    """Check a spec without data: what it means in words, every question, its noise, its cost, its error.

    The questions are those of a release of a uniform table, or of one like a public table, with as many rows
    as the spec's rows_hint (or as --n says): a mechanism may choose others for the real number of rows.
    Errors are simulated on that table; the real ones are near to them if the data are like it.
    """
    from dpsynth_cli.release.audit import guarantee, warnings
    from dpsynth_cli.release.predict import predict

    wanted = loaded(spec, set_, input, output, rows)
    if wanted.mechanism.stream:
        from dpsynth_cli.release.stream import check

        check(wanted)
    report: dict[str, Any] = {"spec": wanted.effective, "guarantee": guarantee(wanted)}
    if wanted.privacy.epsilon is not None:  # a release by groups asks nothing and has no budget
        table, count = imagined(wanted, like, n)
        prediction, last = predict(wanted, count, table, runs)
        report |= {
            "imagined_rows": count,
            "currency": last.accountant.currency,
            "total": str(last.accountant.total),
            "spent": str(last.accountant.spent),
            "charges": [charge.as_json() for charge in last.bill],
            "chosen": last.model.facts,
            "notes": [*warnings(wanted), *prediction.notes],
            "prediction": {"reference": like or "uniform"} | prediction.as_json(),
        }
    if data:
        from contextlib import closing
        from dataclasses import asdict

        from dpsynth_cli.trusted.rows.problems import count_problems
        from dpsynth_cli.trusted.rows.read import open_scan

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
    for note in report.get("notes", ()):
        console.print(f"note: {note}", markup=False)
    if "charges" in report:
        _show_questions(console, report)
    if "data" in report:
        _show_data(console, report["data"])


def _show_questions(console: Any, report: dict[str, Any]) -> None:
    from fractions import Fraction

    from rich.table import Table

    from dpsynth_cli.numbers import shown

    table = Table(
        title=f"What it would ask, imagined for {_reference(report)} of {report['imagined_rows']:,} rows",
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
    _show_prediction(console, report)


def _reference(report: dict[str, Any]) -> str:
    like = report["prediction"]["reference"]
    return "a uniform table" if like == "uniform" else f"a table like {like}"


def _show_prediction(console: Any, report: dict[str, Any]) -> None:
    from rich.table import Table

    from dpsynth_cli.evaluate.lines import TARGETS
    from dpsynth_cli.evaluate.report import bound_words

    prediction = report["prediction"]
    if prediction["errors"]:
        runs = prediction["runs"]
        table = Table(
            title=f"Predicted error on {_reference(report)} (mean of {runs} run{'s' * (runs != 1)})",
            title_justify="left",
        )
        table.add_column("target")
        table.add_column("error", justify="right")
        table.add_column("what it is")
        for name, value in prediction["errors"].items():
            table.add_row(name, f"{value:.3g}", TARGETS[name][0])
        console.print(table)
    if prediction["paper_bound_w1"] is not None:
        console.print(
            "The paper's bound on the mean W1 (l_inf, unit cube) for the printed algorithm, any data: "
            f"{bound_words(prediction['paper_bound_w1'])}."
        )
    console.print(
        f"Predicted cost: about {prediction['cpu_seconds']:.2g} s of processor time and "
        f"{prediction['memory_bytes'] / 1e6:.0f} MB of memory."
    )


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
