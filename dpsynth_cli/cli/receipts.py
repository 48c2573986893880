"""What a release tells of itself: where its files are, what it cost, what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from dpsynth_cli.release.synthesis import Receipt


def as_json(receipt: Receipt, files: dict[str, str]) -> dict[str, Any]:
    """The same for programs."""
    public = receipt.public
    return {
        "release": receipt.release_id,
        "continued": receipt.continued,
        "rows": receipt.rows,
        "files": files,
        "guarantee": public["guarantee"],
        "spent": public["budget"].get("spent"),
        "currency": public["budget"]["currency"],
        "ledger": public["budget"]["ledger"] | receipt.ledger,
        "warnings": public["warnings"],
    } | ({"steps": steps} if (steps := public.get("found", {}).get("steps")) else {})


def tell(receipt: Receipt, files: dict[str, str]) -> None:
    """On standard output; on standard error, where that has the rows."""
    err = files["output"] == "-"

    def say(words: str) -> None:
        typer.echo(words, err=err)

    from dpsynth_cli.release.found import steps_in_words

    public = receipt.public
    guarantee, ledger = public["guarantee"], public["budget"]["ledger"] | receipt.ledger
    delta = f", delta = {guarantee['delta']}" if guarantee.get("delta") else ""
    place = "on standard output" if err else f"in {files['output']}"
    say(f"{receipt.rows:,} synthetic rows {place}")
    for table in public.get("tables", ()):
        rows, file = table["output"]["rows"], table["output"]["file"]
        say(f"{rows:,} rows of {table['name']} in {files[f'output {file}']}")
    published = [files[key] for key in ("transcript", "public_audit", "signature") if key in files]
    for first, path in zip(["publish with it:", "", ""], published, strict=False):
        say(f"  {first:<16} {path}")
    if "epsilon" not in guarantee:
        say(f"  keep:            {files['audit']} (steward's copy, with what groups tell)")
        say(f"  {guarantee['statement']}")
        return
    say(f"  keep:            {files['audit']} (steward's copy)")
    spent = f"epsilon = {guarantee['epsilon']}{delta} of {ledger['dataset']}, {guarantee['neighbours']}"
    before = ", charged when it was begun" if receipt.continued else ""
    say(f"  spent: {spent}{before}{_left(ledger)}")
    if "allows" in guarantee:
        say(f"  it allows an attacker: {guarantee['allows']}")
    for note in (*public["warnings"], *steps_in_words(public)):
        say(f"  note: {note}")


def tell_loudly(receipt: Receipt) -> None:
    """On standard error, and even to whoever wants to hear nothing: the release is paid for and of no use."""
    from dpsynth_cli.release.documents.audit import few_rows

    if receipt.rows == 0:
        for note in few_rows(0, 0):
            typer.secho(f"warning: {note}", err=True, fg="red")


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
