"""dpsynth evaluate: how good is a synthetic file, whoever made it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth_cli.cli import completion
from dpsynth_cli.cli.options import Json, Quiet, Set, SpecPath, loaded, print_json, progress_bar
from dpsynth_cli.evaluate.metrics.names import MOST_ROWS

if TYPE_CHECKING:
    from rich.console import Console

    from dpsynth_cli.spec.spec import Spec

SHOWN, SHOWN_HELD = 6, 2  # findings of each kind on the terminal; of those that hold
RELATIONS = ("follows", "never", "association", "together", "correlation", "regression", "group means")


def command(
    spec: SpecPath,
    synthetic: Annotated[
        str, typer.Argument(metavar="SYNTHETIC", help="The synthetic .csv, .csv.gz or .parquet file.")
    ],
    real: Annotated[
        str | None, typer.Option("--real", "-i", help="The real table, if it is not the spec's input.")
    ] = None,
    test: Annotated[
        str | None,
        typer.Option("--test", help="Real rows that were held out: classifiers are tested on them."),
    ] = None,
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            "-m",
            help="all, or names separated by commas.",
            autocompletion=completion.metrics,
        ),
    ] = "all",
    target: Annotated[
        str | None,
        typer.Option("--target", help="The column classifiers predict; default: the spec's strata."),
    ] = None,
    references: Annotated[
        bool,
        typer.Option(help="Also judge half the real rows against the other half, and independent columns."),
    ] = True,
    rows: Annotated[
        int,
        typer.Option("--rows", min=1, help="Look at a random sample of at most so many rows of each table."),
    ] = MOST_ROWS,
    set_: Set = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge any synthetic file against the real one, with references beside each number.

    For the steward: the numbers are computed from the real rows, so they are confidential. It costs no
    budget and writes nothing.
    """
    from dpsynth_cli.evaluate.compare import compare
    from dpsynth_cli.evaluate.metrics.names import NAMES
    from dpsynth_cli.release.found import beside

    stated = loaded(spec, set_, real, None, None)
    names = None if metrics == "all" else _names(metrics, NAMES)
    if stated.tables is not None:
        _tables(stated, synthetic, names, target or test, references, rows, json, quiet)
        return
    wanted = beside(stated, synthetic)
    with progress_bar(quiet or json) as progress:
        report = compare(
            wanted,
            synthetic,
            metrics=names,
            target=target,
            references=references,
            rows=rows,
            test=test,
            progress=progress,
        )
    if json:
        print_json(report)
    else:
        _show(report)


def _tables(
    spec: Spec,
    synthetic: str,
    names: tuple[str, ...] | None,
    unused: str | None,
    references: bool,
    rows: int,
    json: bool,
    quiet: bool,
) -> None:
    """Each of several tables, with all that belongs to its rows."""
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.evaluate.families import compare_tables

    if unused:
        raise UsageError("--target and --test are for one table.", next_step="Leave them out.")
    with progress_bar(quiet or json) as progress:
        found = compare_tables(
            spec, synthetic, metrics=names, references=references, rows=rows, progress=progress
        )
    if json:
        print_json(found)
        return
    for name, report in found["tables"].items():
        typer.echo(f"\n{name}")
        _show(report)


def _names(metrics: str, known: tuple[str, ...]) -> tuple[str, ...]:
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.spec.reader import did_you_mean

    names = tuple(name.strip() for name in metrics.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise UsageError(
                f"there is no metric {name}{did_you_mean(name, known)}.",
                next_step=f"The metrics are {', '.join(known)}; or all.",
            )
    return names


def _show(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from dpsynth_cli.evaluate.lines import lines, used

    console = Console(highlight=False)
    rows, compared = report["rows"], report["compared_rows"]
    console.print(
        f"{rows['synthetic']:,} synthetic rows against {rows['real']:,} real ones. "
        "Confidential: computed from the real rows."
    )
    if compared != rows:
        console.print(f"Compared: samples of {compared['synthetic']:,} and {compared['real']:,} rows.")
    _show_verdict(console, report["verdict"])
    table = Table(title_justify="left")
    table.add_column("metric")
    headings = used(report)
    for heading in headings.values():
        table.add_column(heading, justify="right")
    for label, values in lines(report):
        table.add_row(label, *(f"{values[key]:.4g}" if key in values else "" for key in headings))
    console.print(table)
    fewer: dict[int, list[str]] = {}
    for name, line in report["metrics"].items():
        if "sample_rows" in line:
            fewer.setdefault(line["sample_rows"], []).append(name)
    for rows_, names in fewer.items():
        console.print(f"{', '.join(names)}: on samples of {rows_:,} rows of each table.")
    for note in report["notes"]:
        console.print(f"note: {note}", markup=False)


def _show_verdict(console: Console, verdict: dict[str, Any]) -> None:
    """The sentences: what is broken and what is weaker, worst first, then what holds, in short."""
    from rich.markup import escape

    colours = {"broken": "red", "weaker": "yellow", "holds": "green"}
    for sentence in verdict["summary"]:
        console.print(sentence, style="bold", markup=False)
    listed = [one for one in verdict["findings"] if one["state"] != "holds"]
    shown: dict[str, int] = {}
    for one in listed:
        shown[one["kind"]] = shown.get(one["kind"], 0) + 1
        if shown[one["kind"]] <= SHOWN:
            colour, state = colours[one["state"]], one["state"]
            console.print(f"  [{colour}]{state}[/]  {escape(one['words'])}", soft_wrap=True)
    if hidden := sum(max(0, many - SHOWN) for many in shown.values()):
        console.print(f"  ({hidden:,} more that are broken or weaker: --json)")
    held = [one for one in verdict["findings"] if one["state"] == "holds" and one["kind"] in RELATIONS]
    held.sort(key=lambda one: -one.get("independent", 0.0))  # what independent columns would have lost most
    for one in _some_of_each(held):
        console.print(f"  [{colours['holds']}]holds[/]   {escape(one['words'])}", soft_wrap=True)


def _some_of_each(held: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A few of those that hold, of every kind."""
    kinds: dict[str, int] = {}
    found = []
    for one in held:
        kinds[one["kind"]] = kinds.get(one["kind"], 0) + 1
        if kinds[one["kind"]] <= SHOWN_HELD:
            found.append(one)
    return found
