"""`dpsynth budget`: the ledger, which says what each data set may spend and what it has spent."""

from __future__ import annotations

from typing import Annotated

import typer

from dpsynth_cli.cli import budget_copies, budget_grants
from dpsynth_cli.cli.budget_words import (
    DatasetArgument,
    LedgerOption,
    balance_json,
    balance_rows,
    count,
    data_sets,
    head_json,
    opened,
    parse_head,
    said,
)
from dpsynth_cli.cli.options import Json, print_json, print_table
from dpsynth_cli.errors import VerificationError

app = typer.Typer(
    help="The ledger: what each data set may spend, and what it has spent.", no_args_is_help=True
)


@app.command("init")
def init(ledger: LedgerOption = None, as_json: Json = False) -> None:
    """Make an empty ledger if there is none, and say where it is."""
    book = opened(ledger)
    made = book.create()
    number, own = book.head()
    if as_json:
        print_json({"ledger": str(book.path), "created": made, "head": head_json(number, own)})
    elif made:
        typer.echo(f"Made an empty ledger: {book.path}")
    else:
        typer.echo(f"There is a ledger with {count(number, 'entry', 'entries')}: {book.path}")


app.command("grant")(budget_grants.grant)
app.command("revoke")(budget_grants.revoke)
app.command("close")(budget_grants.close)
app.command("policy")(budget_grants.policy)
app.command("refund")(budget_grants.refund)


@app.command("show")
def show(dataset: DatasetArgument = None, ledger: LedgerOption = None, as_json: Json = False) -> None:
    """What each data set was granted, has spent and has left."""
    book = opened(ledger)
    balances = [book.own_balance(name) for name in data_sets(book, dataset)]
    if as_json:
        print_json({"ledger": str(book.path), "datasets": [balance_json(balance) for balance in balances]})
    elif not balances:
        typer.echo(f"The ledger is empty: {book.path}")
    else:
        rows = [row for balance in balances for row in balance_rows(balance)]
        print_table(["data set", "counted in", "granted", "spent", "left", "releases"], rows)


@app.command("log")
def log(dataset: DatasetArgument = None, ledger: LedgerOption = None, as_json: Json = False) -> None:
    """Every entry of the ledger, in order."""
    book = opened(ledger)
    if dataset is not None:
        data_sets(book, dataset)
    entries = book.log(dataset)
    if as_json:
        print_json({"ledger": str(book.path), "entries": [vars(entry) for entry in entries]})
    elif not entries:
        typer.echo(f"The ledger is empty: {book.path}")
    else:
        rows = [
            [str(entry.number), entry.time, entry.dataset, entry.kind, entry.release, said(entry)]
            for entry in entries
        ]
        print_table(["entry", "time", "data set", "kind", "release", "what"], rows)


@app.command("verify")
def verify(
    head: Annotated[
        str | None,
        typer.Option(
            metavar="HASH",
            help="An entry's hash from a published audit: finds a cut-off tail or a restored old copy.",
            show_default=False,
        ),
    ] = None,
    ledger: LedgerOption = None,
    as_json: Json = False,
) -> None:
    """Check that no entry was edited, removed, reordered or inserted, and no grant is overdrawn."""
    known = None if head is None else parse_head(head)
    book = opened(ledger)
    problems = book.verify(known)
    found = {"ledger": str(book.path), "ok": not problems, "problems": problems}
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise VerificationError(
            f"the ledger {book.path} is not as it was written:{listed}",
            "Nothing was changed.",
            "Keep this file as it is, and compare it with its backups and with published audits.",
            found,
        )
    if as_json:
        print_json(found)
    else:
        number, own = book.head()
        typer.echo(f"The ledger is whole, {count(number, 'entry', 'entries')}: {book.path}")
        typer.echo(f"Head: {own}")


app.command("export")(budget_copies.export)
app.command("import")(budget_copies.take)
