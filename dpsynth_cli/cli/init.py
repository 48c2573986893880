"""`dpsynth init DATA`: draft a spec for a table from public knowledge."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from dpsynth_cli.cli.options import Codebook, LikeTable
from dpsynth_cli.errors import FileError, UsageError


def command(
    data: Annotated[
        str, typer.Argument(help="A .csv, .csv.gz or .parquet file, a folder of Parquet files, or - for CSV.")
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the draft here instead of standard output.")
    ] = None,
    codebook: Codebook = None,
    like: LikeTable = None,
    look: Annotated[
        bool,
        typer.Option(
            "--look/--no-look",
            help="Look at the form of the first cells for types and for missing ones; or at no row.",
        ),
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    header: Annotated[
        bool, typer.Option("--header", help="The first line is a header, even where a name is a number.")
    ] = False,
) -> None:
    """Draft a spec: types from the form of the cells, bounds and categories from public sources.

    A codebook can be a Frictionless Table Schema or Data Package, CSVW metadata, SDV metadata, an
    expectation suite (JSON), a domain of google/dpsynth (YAML), DDI-Codebook (XML), or CSV with name, type,
    min, max, categories, label. What no source says is marked by "?" and how to find it. Nothing but types
    is taken from the rows.
    """
    from dpsynth_cli.draft.draft import draft

    made = draft(
        data, None if output == "-" else output, codebook=codebook, like=like, rows=look, header=header
    )
    if output in (None, "-"):
        print(made.text, end="")
        return
    cost = "Nothing was spent."
    try:
        with open(output, "w" if force else "x", encoding="utf-8") as file:
            file.write(made.text)
    except FileExistsError:
        raise UsageError(
            f"{output} is already there.", cost, "Choose another name, or overwrite it with --force."
        ) from None
    except OSError as error:
        raise FileError(f"{output} cannot be written: {error.strerror}.", cost) from None
    left = len(made.missing)
    what = f"{left} column{'s' * (left != 1)} to complete, then" if left else "complete; next"
    print(f"Wrote {output}: {what}: dpsynth check {shlex.quote(output)}", file=sys.stderr)
