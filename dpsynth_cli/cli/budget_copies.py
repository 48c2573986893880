"""`dpsynth budget export` and `import`: a ledger in a file, to move it or to have it watched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth_cli.cli.budget_words import LedgerOption, count, opened
from dpsynth_cli.cli.options import Json, print_json


def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The copy: a line of JSON for each entry.")],
    ledger: LedgerOption = None,
    as_json: Json = False,
) -> None:
    """Copy the ledger to a file, or bring a copy up to date: entries are added, never changed.

    The chain of hashes goes with it. The copy is as confidential as the ledger.
    """
    book = opened(ledger)
    added = book.export(Path(file))
    number, own = book.head()
    if as_json:
        print_json({"ledger": str(book.path), "file": file, "added": added, "entries": number, "head": own})
    else:
        typer.echo(f"{file} has {count(number, 'entry', 'entries')}, {added} of them new. Head: {own}")


def take(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A copy made by dpsynth budget export.")],
    ledger: LedgerOption = None,
    as_json: Json = False,
) -> None:
    """Take over a copy into an empty ledger, or one that is its beginning: the chain stays whole.

    From then on use only the new one: two ledgers would grant the same budget twice.
    """
    book = opened(ledger)
    added = book.take(Path(file))
    number, own = book.head()
    if as_json:
        print_json({"ledger": str(book.path), "added": added, "entries": number, "head": own})
    else:
        typer.echo(f"{book.path} has {count(number, 'entry', 'entries')}, {added} of them new. Head: {own}")
        typer.echo("Release with this ledger only from now on: --ledger, or $DPSYNTH_LEDGER.")
