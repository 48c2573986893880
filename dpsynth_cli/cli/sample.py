"""dpsynth sample: more rows from a past release, at no cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth_cli.cli.options import Json, Quiet, print_json, progress_bar


def command(
    transcript: Annotated[
        str, typer.Argument(metavar="TRANSCRIPT", help="The .transcript.arrow file of a release.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="A .csv or .parquet file; - is standard output (CSV).")
    ] = "-",
    rows: Annotated[
        int | None, typer.Option("--rows", "-n", min=1, help="How many; default: as many as the release has.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of the sampling; default: a fresh one.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw more rows from a past release. It reads no data and costs no budget."""
    import dataclasses
    import secrets

    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.release.sample import sample

    if json and output == "-":
        raise UsageError("--json and --output - both want standard output.", next_step="Drop one of them.")
    chosen = secrets.randbits(63) if seed is None else seed
    with progress_bar(quiet or output == "-") as progress:
        made = sample(Path(transcript), output, rows, chosen, progress)
    if json:
        print_json(dataclasses.asdict(made))
    elif not quiet and output != "-":
        typer.echo(f"{made.rows:,} synthetic rows in {made.output} (seed {made.seed}; nothing was spent)")
        for one in made.tables:
            typer.echo(f"{one.rows:,} rows of their children in {one.output}")
