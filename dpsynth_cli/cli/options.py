"""Options that several commands share, and what they show while they work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth_cli.cli.json_lines import print_json as print_json
from dpsynth_cli.errors import UsageError
from dpsynth_cli.numbers import decimal

if TYPE_CHECKING:
    from dpsynth_cli.evaluate.tables import Table
    from dpsynth_cli.spec.spec import Spec

IMAGINED_ROWS = 10_000

SpecPath = Annotated[str, typer.Argument(metavar="SPEC", help="The YAML spec; - is standard input.")]
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
        "--ledger",
        metavar="LEDGER",
        help="The ledger, a file or postgresql://...; else $DPSYNTH_LEDGER, else the user's data folder.",
    ),
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like",
        metavar="FILE",
        help="A public table with the same columns to predict with, never the input; default: a family of "
        "generated tables.",
    ),
]
Codebook = Annotated[
    str | None,
    typer.Option(
        "--codebook",
        metavar="FILE",
        help="Public bounds, categories and types: JSON, YAML, XML or CSV; see docs/codebooks.md.",
    ),
]
LikeTable = Annotated[
    str | None,
    typer.Option(
        "--like",
        metavar="FILE",
        help="A table that is public already, such as last year's: bounds, categories and types of it.",
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
Runs = Annotated[int, typer.Option("--runs", min=0, help="Simulated releases of each table.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one line of JSON on standard output, for an error too.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]


class Neighbours(str, Enum):
    """The neighbour relations, as typed on the command line."""

    add_remove = "add_remove"
    replace_one = "replace_one"


def loaded(
    path: str,
    sets: list[str] | None,
    input: str | None,
    output: str | None,
    rows: str | None,
    drafted: str | None = None,
) -> Spec:
    """The spec with what the command line changes in it; `drafted` is its text where it is not kept yet."""
    from dpsynth_cli.spec.spec import load_spec

    return load_spec(path, sets or (), input=input, output=output, rows=rows, drafted=drafted)


def typed() -> list[str]:
    """What was typed, so that it can be typed again; without passwords."""
    from dpsynth_cli.trusted.ledger.addresses import without_password

    return [without_password(word) if "://" in word else word for word in sys.argv[1:]]


def imagined(spec: Spec, like: str | None, rows: int | None) -> tuple[Table | None, int]:
    """The public table to predict with, if one was named, and the number of rows to imagine."""
    from dpsynth_cli.evaluate.files import read_table
    from dpsynth_cli.release.found import refuse_private
    from dpsynth_cli.release.predict.imagine import LIKE_ROWS
    from dpsynth_cli.release.predict.like import refuse_input

    if like:
        refuse_input(like, spec.input)
        refuse_private(spec, "--like")
    table = read_table(like, spec.domain, spec.csv, LIKE_ROWS) if like else None
    known = table.rows if table else None
    return table, rows or spec.domain.rows_hint or spec.rows or known or IMAGINED_ROWS


def positive(what: str, text: str, cost: str) -> Fraction:
    """The decimal number exactly: 0.1 is one tenth."""
    number = decimal(text)
    if number is not None and number > 0:
        return number
    raise UsageError(f"{what} must be a decimal number above 0, such as 0.5; it is {text!r}.", cost)


def below_one(what: str, text: str, cost: str) -> Fraction:
    """The same, of a probability."""
    number = positive(what, text, cost)
    if number >= 1:
        allowed = "a decimal number between 0 and 1, such as 1e-9"
        raise UsageError(f"{what} must be {allowed}; it is {text!r}.", cost)
    return number


def print_table(head: list[str], rows: list[list[str]]) -> None:
    """A table as wide as the terminal; a file or a pipe has no edge to wrap at."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = 200
    table = Table(*head, box=box.SIMPLE_HEAD)
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*row)
    console.print(table)


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
