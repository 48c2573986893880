"""Options that several commands share, and what they show while they work."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dpsynth_cli.evaluate.tables import Table
    from dpsynth_cli.spec import Spec

IMAGINED_ROWS = 10_000

SpecPath = Annotated[str, typer.Argument(metavar="SPEC", help="The YAML spec.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a key of the spec, e.g. privacy.epsilon=0.5; repeatable."
    ),
]
Input = Annotated[
    str | None,
    typer.Option("--input", "-i", help="Read this table instead of the spec's; - is standard input (CSV)."),
]
Output = Annotated[
    str | None, typer.Option("--output", "-o", help="Write here instead; - is standard output (CSV).")
]
Rows = Annotated[
    str | None, typer.Option("--rows", help="How many rows to write: a number, or noisy (the private total).")
]
LedgerPath = Annotated[
    str | None,
    typer.Option(
        "--ledger", metavar="FILE", help="The ledger; else $DPSYNTH_LEDGER, else the user's data folder."
    ),
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like",
        metavar="FILE",
        help="A public table with the same columns to predict with; default: uniform.",
    ),
]
ImaginedRows = Annotated[
    int | None,
    typer.Option(
        "--n",
        min=1,
        help="Imagine so many rows; default: rows_hint, else rows, else those of --like, else 10,000.",
    ),
]
Runs = Annotated[int, typer.Option("--runs", min=0, help="Simulated releases that errors are the mean of.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]


def loaded(
    path: str, sets: list[str] | None, input: str | None, output: str | None, rows: str | None
) -> Spec:
    """The spec with what the command line changes in it."""
    from dpsynth_cli.spec import load_spec

    return load_spec(path, sets or (), input=input, output=output, rows=rows)


def imagined(spec: Spec, like: str | None, rows: int | None) -> tuple[Table | None, int]:
    """The public table to predict with, if one was named, and the number of rows to imagine."""
    from dpsynth_cli.evaluate.tables import read_table
    from dpsynth_cli.imagine import REFERENCE_ROWS

    table = read_table(like, spec.domain, spec.csv, REFERENCE_ROWS) if like else None
    known = table.rows if table else None
    return table, rows or spec.domain.rows_hint or spec.rows or known or IMAGINED_ROWS


def print_json(document: Any) -> None:
    """One JSON object on standard output."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar for each phase, on a terminal only, on standard error."""
    if quiet or not sys.stderr.isatty():
        yield lambda what, done, whole: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def advance(what: str, done: int, whole: int | None) -> None:
            if done == 0 or what not in tasks:
                if what in tasks:
                    bar.remove_task(tasks[what])
                tasks[what] = bar.add_task(what, total=whole)
            bar.advance(tasks[what], done)

        yield advance
