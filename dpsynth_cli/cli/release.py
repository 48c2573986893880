"""dpsynth release: spend the budget once."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth_cli.cli.options import (
    Input,
    Json,
    LedgerPath,
    Output,
    Quiet,
    Rows,
    Set,
    SpecPath,
    loaded,
    print_json,
    progress_bar,
)

if TYPE_CHECKING:
    from dpsynth_cli.release.synthesis import Receipt
    from dpsynth_cli.trusted.engines import Engine


def command(
    spec: SpecPath,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Finish a release that was cut off; asks and charges nothing twice."),
    ] = False,
    input: Input = None,
    output: Output = None,
    rows: Rows = None,
    set_: Set = None,
    ledger: LedgerPath = None,
    engine: Annotated[
        str, typer.Option("--engine", help="What reads and sums the rows: local, or dask (many machines).")
    ] = "local",
    engine_address: Annotated[
        str | None,
        typer.Option(
            "--engine-address",
            metavar="ADDRESS",
            help="A running Dask scheduler, e.g. tcp://host:8786; else dask runs processes on this machine.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Spend the budget once: write the synthetic table, its transcript and its audit.

    Running the same spec again is a second release and is charged again. The charge is in the ledger
    before the first row is read.
    """
    from dpsynth_cli.api import release as released
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.trusted.ledger.ledger import Ledger, ledger_path

    wanted = loaded(spec, set_, input, output, rows)
    if json and wanted.output == "-":
        raise UsageError("--json and --output - both want standard output.", next_step="Drop one of them.")
    with (
        _engine(engine, engine_address) as chosen,
        Ledger(ledger_path(ledger)) as book,
        progress_bar(quiet or wanted.output == "-") as progress,
    ):
        receipt = released(wanted, ledger=book, resume=resume, engine=chosen, progress=progress)
    public = receipt.public
    if json:
        print_json(
            {
                "release": receipt.release_id,
                "rows": receipt.rows,
                "files": receipt.files,
                "guarantee": public["guarantee"],
                "spent": public["budget"].get("spent"),
                "currency": public["budget"]["currency"],
                "ledger": public["budget"]["ledger"] | receipt.ledger,
                "warnings": public["warnings"],
            }
        )
    elif not quiet and wanted.output != "-":
        _tell(receipt)


def _engine(name: str, address: str | None) -> AbstractContextManager[Engine | None]:
    from dpsynth_cli.errors import UsageError

    if name == "dask":
        from dpsynth_cli.trusted.engines.dask import dask_engine

        return dask_engine(address)
    if name != "local":
        raise UsageError(f"there is no engine {name!r}.", next_step="Engines are local and dask.")
    if address is not None:
        raise UsageError(
            "--engine-address is for --engine dask.", next_step="Add it, or leave out the address."
        )
    return nullcontext()


def _tell(receipt: Receipt) -> None:
    rows, files, public = receipt.rows, receipt.files, receipt.public
    guarantee, ledger = public["guarantee"], public["budget"]["ledger"] | receipt.ledger
    delta = f", delta = {guarantee['delta']}" if guarantee.get("delta") else ""
    typer.echo(f"{rows:,} synthetic rows in {files['output']}")
    if "epsilon" not in guarantee:
        typer.echo(f"  publish with it: {files['public_audit']}")
        typer.echo(f"  keep:            {files['audit']} (steward's copy, with what groups tell)")
        typer.echo(f"  {guarantee['statement']}")
        return
    typer.echo(f"  publish with it: {files['transcript']}")
    typer.echo(f"                   {files['public_audit']}")
    typer.echo(f"  keep:            {files['audit']} (steward's copy)")
    spent = f"epsilon = {guarantee['epsilon']}{delta} of {ledger['dataset']}, {guarantee['neighbours']}"
    typer.echo(f"  spent: {spent}{_left(ledger)}")
    for note in public["warnings"]:
        typer.echo(f"  note: {note}")


def _left(ledger: dict[str, str | None]) -> str:
    from fractions import Fraction

    from dpsynth_cli.numbers import shown

    if ledger["remaining"] is None:
        return " (no grant: recorded, not limited)"
    left = shown(Fraction(ledger["remaining"]), up=False)
    if "remaining_epsilon" not in ledger:
        return f"; epsilon = {left} left"
    worth = shown(Fraction(ledger["remaining_epsilon"] or 0), up=False, digits=6)
    return f"; rho = {left} left (epsilon {worth} at the grant's delta)"
