"""dpsynth replicates: tables from which anybody's code gets intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth_cli.cli.options import Json, Quiet, print_json, progress_bar


def command(
    transcript: Annotated[
        str, typer.Argument(metavar="TRANSCRIPT", help="The .transcript.arrow file of a release.")
    ],
    count: Annotated[int, typer.Option("-m", "--count", min=2, max=1000, help="How many tables.")] = 20,
    output: Annotated[
        str, typer.Option("--output", "-o", help="A .csv or .parquet name; each table has its number before.")
    ] = "replicate.csv",
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of the draws; default: a fresh one.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw tables that the real one might be, given what was measured: run an analysis on each, and combine
    the results by Rubin's rule (dpsynth_cli.api.combine). It reads no data and costs no budget.

    How often such intervals hold is in docs/inference.md.
    """
    import dataclasses
    import secrets

    from dpsynth_cli.inference.replicates import replicates

    chosen = secrets.randbits(62) if seed is None else seed
    with progress_bar(quiet or json) as progress:
        made = replicates(Path(transcript), output, count, chosen, progress)
    if json:
        print_json(dataclasses.asdict(made))
    elif not quiet:
        for file, rows in zip(made.files, made.rows, strict=True):
            typer.echo(f"{rows:,} rows in {file}")
        few, many = min(made.rows), max(made.rows)
        of = f"{few:,}" if few == many else f"{few:,} to {many:,}"
        typer.echo(f"{len(made.files)} tables of {of} rows (seed {made.seed}; nothing was spent)")
