"""`dpsynth init DATA`: draft a spec from the header of a CSV file or the schema of a Parquet file.

No row is looked at: bounds, categories and, for CSV, types have to come from public knowledge.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from dpsynth_cli.errors import FileError, UsageError

COST = "No row was read and nothing was spent."
_LONGEST_HEADER = 1_000_000
_PLAIN = re.compile(r"(\.{0,2}/)*[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_PLAIN = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}  # what some YAML readers change
_NUMBER_OR_DATE = re.compile(r"\s*[-+]?[.,]?[0-9][0-9.,:eE+\s/-]*")

_FILL_IN = {
    "continuous": 'type: continuous, bounds: ["?", "?"]',
    "integer": 'type: integer, bounds: ["?", "?"]',
    "date": 'type: date, bounds: ["?", "?"]',
    "datetime": 'type: datetime, bounds: ["?", "?"]',
    "nominal": 'type: nominal, categories: ["?", "?"]',
    "boolean": "type: boolean",
}

_TEMPLATE = """\
# Drafted by dpsynth init from the {origin}; no row was looked at.
# Fill in every "?" from public knowledge, never from the rows; then: dpsynth check {spec}
dpsynth: 1
name: {name}
input: {input}
output: {output}
rows: noisy                   # as many as the private total says, or a number
# rows_hint: 10000            # a public guess of the number of rows, if there is one
{csv}
privacy:
  epsilon: 1.0                # the smaller, the more private
  # delta: 1e-9               # then Gaussian noise: less error with many columns
  neighbours: add_remove      # one person's row is there or not; replace_one: the number of rows is public
  dataset: {name}{space} # whose budget is charged

mechanism:
  name: {mechanism}{padding} # dpsynth mechanisms lists them
  # strata: COLUMN            # a model for each class of this nominal, ordinal or boolean column

# {choose}
#   type: continuous, integer, date or datetime   with bounds: [lower, upper]
#   type: ordinal or nominal                      with categories: [a, b, c], and other: c for unlisted ones
#   type: boolean                                 with neither
# and nullable: true where cells may be missing. Only the columns listed are released, in this order.
columns:
{columns}

# sampling: {{seed: 7}}         # the seed of sampling; noise has none
"""


def command(
    data: Annotated[
        str, typer.Argument(help="A .csv, .csv.gz or .parquet file, a folder of Parquet files, or - for CSV.")
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the draft here instead of standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    header: Annotated[
        bool, typer.Option("--header", help="The first line is a header, even where a name is a number.")
    ] = False,
) -> None:
    """Draft a spec from the header and the column types; bounds are left to fill in."""
    text = init(data, output, header=header)
    if output is None:
        print(text, end="")
        return
    try:
        with open(output, "w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            f"{output} is already there.", COST, "Choose another name, or overwrite it with --force."
        ) from None
    except OSError as error:
        raise FileError(f"{output} cannot be written: {error.strerror}.", COST) from None
    left = text.count('["?", "?"]')
    print(
        f"Wrote {output}: {left} bounds or categories to fill in, then: dpsynth check {shlex.quote(output)}",
        file=sys.stderr,
    )


def init(data: str, output: str | None = None, *, header: bool = False) -> str:
    """The draft of a spec for this file, to be kept at `output`."""
    try:
        (data + (output or "")).encode()
    except UnicodeEncodeError:
        raise UsageError("The name of the file is not UTF-8.", COST, "Rename it, or link to it.") from None
    delimiter = ","
    parquet = data.endswith(".parquet") or os.path.isdir(data)
    if parquet:
        columns, left_out = _parquet_columns(data)
    elif data == "-" or data.endswith((".csv", ".csv.gz")):
        names, delimiter = _header(data, header)
        columns = [(name, "continuous") for name in names if name]
        left_out = [f"field {i} of the header has no name" for i, name in enumerate(names, 1) if not name]
    else:
        raise UsageError(
            f"{data} is neither .csv, .csv.gz nor .parquet.",
            COST,
            "Name a file that is, a folder of Parquet files, or - for CSV on standard input.",
        )
    _check_names([name for name, _ in columns], data)
    name = "table" if data == "-" else os.path.basename(os.path.normpath(data)).split(".")[0] or "table"
    mechanism = "pmm" if len(columns) <= 5 else "joint"
    lines = [f"  {quoted(column)}: {{{_FILL_IN[kind]}}}" for column, kind in columns]
    lines += [f"  # left out: {reason}" for reason in left_out]
    return _TEMPLATE.format(
        origin="types in its schema" if parquet else "header alone",
        spec="SPEC" if output is None else shlex.quote(output),
        name=quoted(name),
        space=" " * (18 - len(quoted(name))),
        input=quoted(_beside(data, output)),
        output=quoted(f"{name}.synthetic.{'parquet' if parquet else 'csv'}"),
        csv="" if delimiter == "," else f"csv: {{delimiter: {json.dumps(delimiter)}}}\n",
        mechanism=mechanism,
        padding=" " * (21 - len(mechanism)),
        choose="The types are those of the file; change them where codes are labels:"
        if parquet
        else "Choose each column's type; all say continuous only because a header does not tell:",
        columns="\n".join(lines),
    )


def quoted(name: str) -> str:
    """A name as YAML writes it.

    >>> quoted("age"), quoted("no"), quoted("hours: weekly")
    ('age', '"no"', '"hours: weekly"')
    """
    safe = _PLAIN.fullmatch(name) and name.lower() not in _NOT_PLAIN
    return name if safe else json.dumps(name, ensure_ascii=False)


def _beside(data: str, output: str | None) -> str:
    """The path of the data as seen from the folder of the spec."""
    if data == "-" or output is None or os.path.isabs(data):
        return data
    return os.path.relpath(data, os.path.dirname(output) or ".")


def _check_names(names: Sequence[str], data: str) -> None:
    from dpsynth_cli.spec.reader import plain

    if not names:
        raise FileError(f"{data} has no column that can be released.", COST)
    if not all(map(plain, names)):
        raise FileError(f"The header of {data} has a name with a control character in it.", COST)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise FileError(f"The header of {data} has a name twice: {', '.join(map(quoted, twice))}.", COST)


def _header(data: str, trusted: bool) -> tuple[list[str], str]:
    """The names in the first line, and the sign between them."""
    from dpsynth_cli.trusted.rows.csv_lines import BOM, split_line

    try:
        line = _first_line(data)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise FileError(f"{data} is not a whole gzip file.", COST) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not a file name"
        raise FileError(f"{data} cannot be read: {reason}.", COST) from None
    if len(line) == _LONGEST_HEADER:
        raise FileError(f"The first line of {data} is longer than 1 MB, so it is no header.", COST)
    try:
        line.decode()
    except UnicodeDecodeError:
        raise FileError(f"The first line of {data} is not UTF-8 text.", COST) from None
    line = line.removeprefix(BOM).rstrip(b"\r\n")
    if not line.strip():
        raise FileError(f"The first line of {data} is empty; it must name the columns.", COST)
    cuts = {sign: split_line(line, sign.encode()) for sign in ",;\t|"}
    # Quotes that do not fit a sign are cut as plain text: then it is not the one that was meant.
    unfit = {sign for sign in cuts if b'"' in line and cuts[sign] == line.split(sign.encode())}
    delimiter = max(cuts, key=lambda sign: 0 if sign in unfit else len(cuts[sign]))
    names = [name.decode() for name in cuts[delimiter]]
    if not trusted and any(_NUMBER_OR_DATE.fullmatch(name) for name in names):
        # The names are not repeated here: they may be a row.
        raise UsageError(
            f"The first line of {data} does not look like a header: a name in it is a number or a date.",
            COST,
            "Add a header line; or, if it is one, say so with --header.",
        )
    return names, delimiter


def _first_line(data: str) -> bytes:
    if data == "-":
        return sys.stdin.buffer.readline(_LONGEST_HEADER)
    with gzip.open(data) if data.endswith(".gz") else open(data, "rb") as file:
        return file.readline(_LONGEST_HEADER)


def _parquet_columns(data: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The columns that have a type of ours, and why the others are left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = data
    if os.path.isdir(data):
        parts = sorted(name for name in os.listdir(data) if name.endswith(".parquet"))
        if not parts:
            raise FileError(f"The folder {data} has no .parquet file.", COST)
        path = os.path.join(data, parts[0])
    try:
        with open(path, "rb") as file:
            schema = pq.read_schema(file)
    except pa.ArrowException:
        raise FileError(f"{path} is not a Parquet file.", COST) from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or 'it is damaged'}.", COST) from None
    columns, left_out = [], []
    for field in schema:
        kind = _kind(field.type)
        if kind is None:
            left_out.append(f"{quoted(field.name)} has type {field.type}")
        elif not field.name:
            left_out.append("a column without a name")
        else:
            columns.append((field.name, kind))
    return columns, left_out


def _kind(arrow: object) -> str | None:
    import pyarrow.types as t

    if t.is_dictionary(arrow):
        arrow = arrow.value_type  # type: ignore[attr-defined]
        return "nominal" if t.is_string(arrow) or t.is_large_string(arrow) else None
    tests = {
        "boolean": (t.is_boolean,),
        "integer": (t.is_integer,),
        "continuous": (t.is_floating, t.is_decimal),
        "date": (t.is_date,),
        "datetime": (t.is_timestamp,),
        "nominal": (t.is_string, t.is_large_string),
    }
    return next((kind for kind, checks in tests.items() if any(check(arrow) for check in checks)), None)
