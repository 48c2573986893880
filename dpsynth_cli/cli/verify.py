"""dpsynth verify: rebuild the file from its transcript and compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth_cli.cli.options import Json, LedgerPath, Quiet, print_json, progress_bar


def command(
    audit: Annotated[
        str, typer.Argument(metavar="AUDIT", help="The .audit.json or .audit.public.json of a release.")
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="The synthetic file, if it is not beside the audit.")
    ] = None,
    transcript: Annotated[
        str | None, typer.Option("--transcript", help="The transcript, if it is not beside the audit.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="FILE", help="The public key that must have signed it.")
    ] = None,
    ledger: LedgerPath = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check a release without its data: rebuild the file from the transcript, compare bytes, check every
    charge and, where the ledger is at hand, its chain; with --key, the signature. Exit code 4 if anything
    does not fit.
    """
    from dpsynth_cli.release.verify import verify

    with progress_bar(quiet) as progress:
        findings = verify(
            Path(audit),
            output=Path(output) if output else None,
            transcript=Path(transcript) if transcript else None,
            ledger=ledger,
            key=Path(key) if key else None,
            progress=progress,
        )
    if json:
        print_json({"verified": True, "findings": findings})
    elif not quiet:
        for line in findings:
            typer.echo(f"  {line}")
        typer.echo("Verified.")
