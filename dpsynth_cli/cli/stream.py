"""`dpsynth stream`: online release, push by push, on one budget."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth_cli import disk
from dpsynth_cli.cli.options import (
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
from dpsynth_cli.cli.problems import Strict, show_problems, strict_set, tell_problems

if TYPE_CHECKING:
    from dpsynth_cli.release.stream.status import Status
    from dpsynth_cli.release.synthesis import Receipt
    from dpsynth_cli.trusted.ledger.ledger import Ledger

app = typer.Typer(
    help="Online release: batches go in, snapshots come out, one budget for all of them.",
    no_args_is_help=True,
)


@app.command("init")
def init(
    spec: SpecPath,
    start_over: Annotated[
        bool,
        typer.Option(
            "--start-over",
            help="Give up the stream of this name, whose state is lost, and pay for a new one.",
        ),
    ] = False,
    set_: Set = None,
    ledger: LedgerPath = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Start a stream: charge its whole budget, once.

    Running it again does nothing: a stream is charged once. If its state is gone, nothing is charged either:
    put it back, or give the stream up with --start-over.
    """
    from dpsynth_cli.release.stream import stream

    wanted = loaded(spec, set_, None, None, None)
    now, charged = stream.init(wanted, _book(ledger), start_over)
    if json:
        print_json(dataclasses.asdict(now) | {"charged": charged})
    elif not quiet:
        said = "started and charged, once for its whole life" if charged else "goes on: it was charged before"
        spent = f"epsilon = {float(wanted.privacy.epsilon):.6g}" if charged and wanted.privacy.epsilon else ""
        spent += f", delta = {float(wanted.privacy.delta):.6g}" if spent and wanted.privacy.delta else ""
        typer.echo(f"The stream {now.name} (data set {now.dataset}) {said}{': ' if spent else ''}{spent}.")
        typer.echo(f"  its state, as sensitive as the data: {now.state_file}")


@app.command("push")
def push(
    spec: SpecPath,
    batch_id: Annotated[
        str, typer.Option("--batch-id", metavar="ID", help="The batch's own name: each is counted once.")
    ],
    batch: Annotated[
        str | None,
        typer.Argument(metavar="BATCH", help="The new rows, a file as in the spec's input; else that input."),
    ] = None,
    publish: Annotated[
        bool, typer.Option("--publish", help="Then publish the snapshot, as a cron job does.")
    ] = False,
    delete: Annotated[
        bool,
        typer.Option("--delete", help="The batch has rows to be taken away: they were pushed before."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Read the batch as a push would, say what is not as declared, count nothing."
        ),
    ] = False,
    strict: Strict = False,
    output: Output = None,
    rows: Rows = None,
    set_: Set = None,
    ledger: LedgerPath = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count a batch of new rows, once; with --publish, write the snapshot too.

    After a crash, run the same command again: a batch id that was counted is not counted a second time. Cells
    that are not as declared are told on standard error: that part is confidential.
    """
    from dpsynth_cli.release.stream import stream

    started = disk.now().timestamp()
    wanted = loaded(spec, strict_set(set_, strict), None, output, rows)
    if publish:
        _check_standard_output(wanted.output, json)
        if dry_run:
            from dpsynth_cli.errors import UsageError

            raise UsageError("--dry-run counts nothing to --publish.", next_step="Drop one of them.")
    told = not quiet
    book, quiet = _book(ledger), quiet or (publish and wanted.output == "-")
    with progress_bar(quiet) as progress:
        now, problems = stream.push(
            wanted, book, batch or wanted.input, batch_id, progress, delete, dry_run, publish
        )
        receipt = stream.publish(wanted, book, progress, started) if publish and now.releases else None
    if json:
        print_json(dataclasses.asdict(now) | {"snapshot": receipt and _receipt(receipt)})
    elif not quiet:
        counted = "is counted" if now.counted else "was counted before; nothing was changed"
        if dry_run and problems:
            counted = "can be read; nothing was counted"
        typer.echo(f"Batch {batch_id} {counted}.")
        _tell(now, receipt)
    if told and dry_run and problems:
        from rich.console import Console

        show_problems(Console(stderr=True, highlight=False, soft_wrap=True), problems)
    elif told:
        tell_problems(problems, receipt.files["audit"] if receipt else None)


@app.command("undo")
def undo(
    spec: SpecPath,
    batch_id: Annotated[str, typer.Option("--batch-id", metavar="ID", help="The batch of the last push.")],
    set_: Set = None,
    ledger: LedgerPath = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Forget the last push: a wrong file, or a file too early. Only while nothing of it was published."""
    from dpsynth_cli.release.stream import stream

    now = stream.undo(loaded(spec, set_, None, None, None), _book(ledger), batch_id)
    if json:
        print_json(dataclasses.asdict(now))
    elif not quiet:
        typer.echo(f"Batch {batch_id} is not counted any more.")
        _tell(now, None)


@app.command("publish")
def publish(
    spec: SpecPath,
    last_days: Annotated[
        int | None,
        typer.Option(
            "--last-days",
            min=1,
            metavar="N",
            help="Only what arrived in the last N days, or a little more; it replaces the snapshot, unless "
            "--output names another file.",
        ),
    ] = None,
    output: Output = None,
    rows: Rows = None,
    set_: Set = None,
    ledger: LedgerPath = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the snapshot of the last release: table, transcript and audits; reads no rows, costs nothing."""
    from dpsynth_cli.release.stream import stream

    wanted = loaded(spec, set_, None, output, rows)
    _check_standard_output(wanted.output, json)
    quiet = quiet or wanted.output == "-"
    with progress_bar(quiet) as progress:
        receipt = stream.publish(wanted, _book(ledger), progress, last_days=last_days)
    if json:
        print_json(_receipt(receipt))
    elif not quiet:
        _show(receipt)


@app.command("status")
def status(spec: SpecPath, set_: Set = None, ledger: LedgerPath = None, json: Json = False) -> None:
    """Where a stream stands: pushes, releases, and when the next one is due."""
    from dpsynth_cli.release.stream import stream

    now = stream.status(loaded(spec, set_, None, None, None), _book(ledger))
    if json:
        print_json(dataclasses.asdict(now))
    else:
        typer.echo(f"The stream {now.name} (data set {now.dataset}), pushes so far: {now.pushes:,}.")
        _tell(now, None)
        typer.echo(f"  its state, as sensitive as the data: {now.state_file}")


def _check_standard_output(output: str, json: bool) -> None:
    from dpsynth_cli.errors import UsageError

    if json and output == "-":
        raise UsageError("--json and --output - both want standard output.", next_step="Drop one of them.")


def _book(option: str | None) -> Ledger:
    from dpsynth_cli.trusted.ledger.ledger import Ledger, ledger_path

    return Ledger(ledger_path(option))


def _receipt(receipt: Receipt) -> dict[str, Any]:
    chosen = receipt.public["mechanism"]["chosen"]
    since = {"since_day": chosen["since_day"]} if "since_day" in chosen else {}
    return {"release": chosen["release"], **since, "rows": receipt.rows, "files": receipt.files}


def _tell(now: Status, receipt: Receipt | None) -> None:
    made = f"Release {now.releases} was made now" if now.released else f"Releases so far: {now.releases}"
    due = f"the next is due at {now.next_release:,} {now.clock}" if now.next_release else "there is no other"
    typer.echo(f"  {made}; {due} (now {now.now:,}).")
    if receipt is not None:
        _show(receipt)


def _show(receipt: Receipt) -> None:
    chosen = receipt.public["mechanism"]["chosen"]
    typer.echo(f"{receipt.rows:,} synthetic rows in {receipt.files['output']} (release {chosen['release']})")
    if "since_day" in chosen:
        day = chosen["since_day"]
        since = "the stream began" if day is None else f"release {chosen['since_release']} of {day}"
        typer.echo(f"  what arrived since {since}")
    typer.echo(f"  publish with it: {receipt.files['transcript']}")
    typer.echo(f"                   {receipt.files['public_audit']}")
