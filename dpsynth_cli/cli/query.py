"""dpsynth query: estimates with intervals, from the transcript of a release alone."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth_cli.cli.options import Json, Quiet, print_table, progress_bar

if TYPE_CHECKING:
    from dpsynth_cli.inference.answers import Answered


class Format(str, Enum):
    """How answers are printed."""

    table = "table"
    csv = "csv"
    json = "json"


def command(
    transcript: Annotated[
        str, typer.Argument(metavar="TRANSCRIPT", help="The .transcript.arrow file of a release.")
    ],
    queries: Annotated[
        list[str],
        typer.Argument(metavar="QUERY...", help='Such as "mean(income) by sex" or "income ~ age + sex".'),
    ],
    where: Annotated[
        str | None, typer.Option("--where", help='Only rows where this is true, such as "age >= 18".')
    ] = None,
    level: Annotated[
        float, typer.Option("--level", min=0.5, max=0.9999, help="How often intervals hold.")
    ] = 0.95,
    population: Annotated[
        bool, typer.Option("--population", help="About the population: adds the sampling error of the table.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of what is simulated.")] = 0,
    format: Annotated[Format, typer.Option("--format", help="How answers are printed.")] = Format.table,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer questions about the real table, with intervals, from what was published. It reads no data and
    costs no budget.

    Counts, shares and means that were measured are answered from the noisy counts and their exact noise. The
    rest comes from the released rows, weighted so that they have the measured counts; a relation that was
    never measured has no interval. A query that cannot be answered is reported, the others are answered, and
    the exit code is 2.
    """
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.inference.query import answer_each

    with progress_bar(quiet or json) as progress:
        found = answer_each(Path(transcript), queries, where, level, population, seed, progress)
    errors = [(text, one) for text, one in zip(queries, found, strict=True) if isinstance(one, UsageError)]
    if len(errors) == len(found) and len({str(error) for _, error in errors}) == 1:
        raise errors[0][1]  # one query, or all for the same reason, such as --where
    said = [(text, one) for text, one in zip(queries, found, strict=True) if not isinstance(one, UsageError)]
    queries, answers = [text for text, _ in said], [one for _, one in said]
    if json or format is Format.json:
        several = len(found) > 1
        unanswered = [{"query": text, "error": error.happened} for text, error in errors]
        typer.echo(json_text(_objects(queries, answers, several) + unanswered))
    elif format is Format.csv:
        _print_csv(queries, answers, len(found) > 1)
    else:
        for text, rows in zip(queries, answers, strict=True):
            typer.echo(text)
            _print(rows)
    for _, error in errors:
        typer.echo(f"Error: {error.happened} {error.next_step}".rstrip(), err=True)
    if errors:
        typer.echo(f"{len(errors)} of {len(found)} queries have no answer.", err=True)
        raise typer.Exit(UsageError.exit_code)


def _objects(queries: list[str], answers: list[list[Answered]], several: bool) -> list[dict[str, Any]]:
    """One for each number; which query it answers, where there are several."""
    said = zip(queries, answers, strict=True)
    return [({"query": text} if several else {}) | one.as_json() for text, rows in said for one in rows]


def json_text(objects: list[dict[str, Any]]) -> str:
    """One line, as it is: keys are columns of the table, and a column may be called `total`."""
    import json

    return json.dumps(objects, allow_nan=False)


def _print(rows: list[Answered]) -> None:
    keys = [name for name, _ in rows[0].key] if rows else []
    body = [
        [
            *("missing" if label is None else label for _, label in one.key),
            *_numbers(one),
            one.source,
            one.note,
        ]
        for one in rows
    ]
    print_table([*keys, "estimate", "low", "high", "from", "note"], body)


def _numbers(one: Answered) -> list[str]:
    ends = (one.estimate, one.low, one.high)
    return ["" if value is None or value != value else f"{value:.6g}" for value in ends]


def _print_csv(queries: list[str], answers: list[list[Answered]], several: bool) -> None:
    """One table of all queries; columns that a query does not have are empty. Several have `query` first."""
    import csv
    import sys

    fields = ("estimate", "low", "high", "from", "note")
    objects = _objects(queries, answers, several)
    keys = [name for name in dict.fromkeys(name for one in objects for name in one) if name not in fields]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*keys, *fields])
    for one in objects:
        cells = [one.get(name) for name in (*keys, *fields)]
        writer.writerow(["" if cell is None else cell for cell in cells])
