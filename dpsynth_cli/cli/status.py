"""dpsynth status: what is under way, and what to type next."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from dpsynth_cli.cli.options import Json, LedgerPath, print_json

HEADINGS = {
    "release": "Unfinished releases (paid for)",
    "charge": "Charges in the ledger without a finished release in these folders",
    "stream": "Streams",
}


def command(
    folders: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FOLDER]...", help="Where outputs are; default: the current folder."),
    ] = None,
    ledger: LedgerPath = None,
    json: Json = False,
) -> None:
    """Show unfinished releases, streams and charges that nothing came of, each with what to type next.

    Looks for unfinished releases in the folders and a few levels below; changes nothing and reads no table.
    """
    from dpsynth_cli.errors import FileError
    from dpsynth_cli.release.record.status import status
    from dpsynth_cli.trusted.ledger.ledger import Ledger, ledger_path

    places = [Path(folder) for folder in folders or ["."]]
    for place in places:
        if not place.is_dir():
            raise FileError(f"{place} is not a folder.", "", "Name the folder where outputs are.")
    book = Ledger(ledger_path(ledger))
    found = status(places, book)
    if json:
        print_json({"ledger": str(book.path), "under_way": [dataclasses.asdict(line) for line in found]})
        return
    if not found:
        typer.echo("Nothing is under way: no unfinished release, no stream.")
    for kind, heading in HEADINGS.items():
        own = [line for line in found if line.kind == kind]
        if own:
            typer.echo(f"{heading}:")
        for line in own:
            typer.echo(f"  {line.name} of {line.dataset}, {line.day}: {line.state}")
            typer.echo(f"    {line.place}")
            typer.echo(f"    next: {line.next}")
