"""dpsynth export: what a past release says beside its rows, at no cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth_cli.cli.options import Quiet, print_json, progress_bar


def command(
    transcript: Annotated[
        str, typer.Argument(metavar="TRANSCRIPT", help="The .transcript.arrow file of a release.")
    ],
    moments: Annotated[
        bool, typer.Option("--moments", help="Private means and covariances, class by class (lowdim).")
    ] = False,
    output: Annotated[str, typer.Option("--output", "-o", help="A .json file; - is standard output.")] = "-",
    quiet: Quiet = False,
) -> None:
    """Print what a past release says beside its rows, as JSON. It reads no data and costs no budget."""
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.release.export import export, write_json

    if not moments:
        raise UsageError("nothing was asked for.", next_step="Say what to export: --moments.")
    with progress_bar(quiet or output == "-") as progress:
        document = export(Path(transcript), "moments", progress)
    if output == "-":
        print_json(document)
        return
    write_json(document, output)
    if not quiet:
        typer.echo(f"The private moments are in {output} (nothing was spent)")
