"""dpsynth release: spend the budget once."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth_cli.cli import completion, receipts
from dpsynth_cli.cli.options import (
    Codebook,
    Input,
    Json,
    LedgerPath,
    LikeTable,
    Neighbours,
    Output,
    Quiet,
    Rows,
    Set,
    loaded,
    print_json,
    progress_bar,
    typed,
)
from dpsynth_cli.cli.problems import Strict, strict_set, tell_problems

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from dpsynth_cli.cli.one_liner import Drafted
    from dpsynth_cli.trusted.engines import Engine


def command(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC", help="The YAML spec; - is standard input. Or a table, with --epsilon."
        ),
    ],
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Finish a release that was cut off, or fail; asks and charges nothing twice."
        ),
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Pay for a new release, even where the same one is paid and unfinished."
        ),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Take the place of a release of this output, which is kept in a folder beside it.",
        ),
    ] = False,
    strict: Strict = False,
    input: Input = None,
    output: Output = None,
    rows: Rows = None,
    set_: Set = None,
    ledger: LedgerPath = None,
    sign: Annotated[
        str | None,
        typer.Option("--sign", metavar="KEY", help="Sign the files with this key (dpsynth key init)."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            help="What reads and sums the rows: local, or dask (many machines).",
            autocompletion=completion.engines,
        ),
    ] = "local",
    engine_address: Annotated[
        str | None,
        typer.Option(
            "--engine-address",
            metavar="ADDRESS",
            help="A running Dask scheduler, e.g. tcp://host:8786; else dask runs processes on this machine.",
        ),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option("--epsilon", metavar="E", help="Of a table without a spec: what it may cost."),
    ] = None,
    delta: Annotated[
        str | None, typer.Option("--delta", metavar="D", help="Of a table: allow Gaussian noise.")
    ] = None,
    neighbours: Annotated[
        Neighbours | None, typer.Option("--neighbours", help="Of a table: the neighbour relation.")
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            help="Of a table: whose budget is charged; default: the name of the file.",
            autocompletion=completion.datasets,
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option("--mechanism", help="Of a table: how it is made.", autocompletion=completion.mechanisms),
    ] = None,
    strata: Annotated[
        str | None, typer.Option("--strata", metavar="COLUMN", help="Of a table: a model for each class.")
    ] = None,
    codebook: Codebook = None,
    like: LikeTable = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Spend the budget once: write the synthetic table, its transcript and its audit.

    A release that was cut off goes on when the same command is run again, and is charged once; a finished
    one stays where it is unless --replace is said, and is then charged again. The charge is in the ledger
    before the first row is read; only --strict looks at some first. Cells that are not as declared are
    counted on the way and told on standard error: that part is confidential.

    A table can be released without a spec, where public sources describe its columns:
    dpsynth release data.parquet --epsilon 1 --codebook book.json -o out.parquet.
    The spec that is used is then written beside the output.
    """
    from dpsynth_cli.api import release as released
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.release.documents import signing
    from dpsynth_cli.trusted.ledger.ledger import Ledger, ledger_path

    key = None if sign is None else signing.private_key(Path(sign))
    sets = strict_set(set_, strict)
    stated = {
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": neighbours and neighbours.value,
        "dataset": dataset,
        "mechanism": mechanism,
        "strata": strata,
        "codebook": codebook,
        "like": like,
    }
    given = {key: value for key, value in stated.items() if value}
    made = _drafted(spec, input, output, rows, sets, given)
    if made is None:
        wanted = loaded(spec, sets, input, output, rows)
    else:
        wanted = loaded(str(made.path), sets, None, None, None, made.text)
    if json and wanted.output == "-":
        raise UsageError("--json and --output - both want standard output.", next_step="Drop one of them.")
    with (
        _engine(engine, engine_address) as chosen,
        Ledger(ledger_path(ledger)) as book,
        progress_bar(quiet or wanted.output == "-") as progress,
    ):
        receipt = released(
            wanted,
            ledger=book,
            resume=resume,
            again=again,
            replace=replace,
            engine=chosen,
            progress=progress,
            say=(lambda words: None) if quiet else (lambda words: typer.echo(words, err=True)),
            command=typed(),
        )
    if made is not None:
        made.keep()
    files = receipt.files
    if key is not None:
        files = files | {"signature": _signed(files["audit"], key)}
    if json:
        drafted = {"spec": str(made.path)} if made else {}
        left_out = {"left_out": made.left_out} if made else {}
        print_json(receipts.as_json(receipt, files | drafted) | left_out)
    elif not quiet:
        receipts.tell(receipt, files)
        if made is not None:
            typer.echo(f"  its spec:        {made.path}", err=wanted.output == "-")
            for column, why in made.left_out.items():
                typer.echo(f"  left out: {column} ({why})", err=wanted.output == "-")
    receipts.tell_loudly(receipt)
    if not quiet:
        parents = next((table["parent"] for table in receipt.public.get("tables", ())), "")
        tell_problems(receipt.problems, receipt.files["audit"], parents)


def _drafted(
    path: str,
    input: str | None,
    output: str | None,
    rows: str | None,
    sets: list[str] | None,
    given: dict[str, str],
) -> Drafted | None:
    """The spec of a table that has none, by the options that are for such; None where `path` is a spec."""
    from dpsynth_cli.draft.draft import is_table
    from dpsynth_cli.errors import UsageError

    if not is_table(path):
        if given:
            raise UsageError(
                f"--{next(iter(given))} is for a table without a spec, and {path} is a spec.",
                next_step="Override what the spec says with --set, such as --set privacy.epsilon=0.5.",
            )
        return None
    if input is not None:
        raise UsageError(f"{path} and --input both name the table.", next_step="Drop --input.")
    from dpsynth_cli.cli.one_liner import drafted
    from dpsynth_cli.draft.text import Choices

    codebook, like = given.pop("codebook", None), given.pop("like", None)
    choices = Choices(
        given.get("epsilon", ""),
        given.get("delta"),
        given.get("neighbours", "add_remove"),
        given.get("dataset"),
        given.get("mechanism"),
        given.get("strata"),
        rows,
    )
    return drafted(path, output, codebook, like, choices, sets or [])


def _signed(audit: str, key: Ed25519PrivateKey) -> str:
    from dpsynth_cli.errors import FileError
    from dpsynth_cli.release.documents import signing

    try:
        return str(signing.sign(Path(audit), key))
    except FileError as error:
        raise FileError(
            error.happened, "The release is done and paid for.", f"Sign it later: dpsynth key sign {audit}"
        ) from None


def _engine(name: str, address: str | None) -> AbstractContextManager[Engine | None]:
    from dpsynth_cli.errors import UsageError

    if name == "dask":
        from dpsynth_cli.trusted.engines.dask import dask_engine

        return dask_engine(address)
    if name != "local":
        known = " and ".join(completion.ENGINES)
        raise UsageError(f"there is no engine {name!r}.", next_step=f"Engines are {known}.")
    if address is not None:
        raise UsageError(
            "--engine-address is for --engine dask.", next_step="Add it, or leave out the address."
        )
    return nullcontext()
