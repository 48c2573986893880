"""dpsynth key: make a key, and sign releases with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth_cli.cli.options import Json, Quiet, print_json

app = typer.Typer(no_args_is_help=True, help="Make a key, and sign releases with it.")


@app.command("init")
def init(
    path: Annotated[
        str, typer.Argument(metavar="FILE", help="Where the private key goes; FILE.pub is public.")
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make an Ed25519 key. Keep FILE to yourself; give FILE.pub to whoever checks your releases."""
    from dpsynth_cli.release.documents.signing import key_id, make_key, public_key

    public = make_key(Path(path))
    name = key_id(public_key(public))
    if json:
        print_json({"private_key": path, "public_key": str(public), "key_id": name})
    elif not quiet:
        typer.echo(f"Keep {path} to yourself. Publish {public}, with its name: {name}")


@app.command("sign")
def sign(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The .audit.json of a release or snapshot.")],
    key: Annotated[str, typer.Option("--key", metavar="FILE", help="The private key, of dpsynth key init.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Sign the published files of a release: synthetic file, transcript, public audit. Costs nothing.

    The signature is a file of its own beside them, NAME.intoto.jsonl: an in-toto statement in a DSSE
    envelope.
    """
    from dpsynth_cli.release.documents import signing

    path = signing.sign(Path(audit), signing.private_key(Path(key)))
    if json:
        print_json({"signature": str(path)})
    elif not quiet:
        typer.echo(f"Signed: {path}")
