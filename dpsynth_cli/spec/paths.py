"""`input` and `output`: paths as they are opened from the current folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from dpsynth_cli import disk
from dpsynth_cli.domain import CsvOptions
from dpsynth_cli.spec.keys import Key, Kind
from dpsynth_cli.spec.kinds import LINE, SCALARS, text
from dpsynth_cli.spec.reader import AlreadyNoted, Reader, Wrong
from dpsynth_cli.spec.yaml_nodes import Node

INPUTS = (".csv", ".csv.gz", ".parquet")
OUTPUTS = (".csv", ".parquet")


DATE = "{date}"


def _path(
    folder: str, endings: tuple[str, ...], allowed: str, folders: bool = False, day: str = DATE
) -> Callable[[Node], str]:
    """Reads a path, relative to the spec's folder if a line of the spec says it, else to the current one.

    In it {date} is the `day`.
    """
    line = text(allowed)

    def read(node: Node) -> str:
        written: str = line.read(node)
        if written == "-":
            return written
        written = written.replace(DATE, day)
        from_spec = os.path.join(folder if node.place.line is not None else "", written)
        short = os.path.normpath(from_spec)
        path = short if os.path.realpath(short) == os.path.realpath(from_spec) else from_spec
        if path.endswith(endings):
            return path
        bare = not os.path.splitext(os.path.basename(short))[1]
        if folders and (bare or written.endswith("/") or os.path.isdir(path)):
            return os.path.join(path, "")
        raise Wrong(allowed)

    return read


def _input(folder: str) -> Callable[[Node], str]:
    allowed = "a .csv, .csv.gz or .parquet file, a folder of Parquet files, or - for standard input"
    return _path(folder, INPUTS, allowed, folders=True)


def _output(folder: str, day: str | None = None) -> Callable[[Node], str]:
    """With the day on which the command began (UTC, as audits have it)."""
    day = day or disk.today()
    return _path(folder, OUTPUTS, "a .csv or .parquet file, or - for standard output", day=day)


_ENDINGS = "|".join(ending.replace(".", r"\.") for ending in OUTPUTS)

INPUT = Key(
    "input",
    Kind(_input(""), {"type": SCALARS, "pattern": LINE}),
    "`.csv`, `.csv.gz` or `.parquet`, a folder of Parquet files, or `-` for CSV on standard input",
    required=True,
    unless="the mechanism is a stream",
    default="",
)
OUTPUT = Key(
    "output",
    Kind(_output(""), {"type": SCALARS, "pattern": f"^(-|.*({_ENDINGS}))$"}),
    "`.csv` or `.parquet`, which decides the format; or `-` for CSV on standard output. `{date}` in it is "
    "the day (UTC) on which the command began: `out/{date}/people.parquet`",
    required=True,
    default="-",
)


def read_paths(document: Reader, folder: str, *, needs_input: bool) -> tuple[str, str]:
    """The input, if any, and the output of a spec that is kept in this folder."""
    source: str = document.value(replace(INPUT, required=needs_input), _input(folder))
    output: str = document.value(OUTPUT, _output(folder))
    if _overwrites(source, output):
        document.note("output", f"is {output}, which is the input or inside it; it must be another file")
    return source, output


def dated_output(document: Reader, folder: str) -> str:
    """The output with {date} still in it; empty where the spec does not name the day."""
    entry = document.keys.entries.get(OUTPUT.name)
    try:
        output = _output(folder, DATE)(entry.node) if entry else ""
    except (Wrong, AlreadyNoted):
        return ""  # noted where the output is read
    return output if DATE in output else ""


def _overwrites(source: str, output: str) -> bool:
    if source in ("", "-") or output == "-":
        return False
    if os.path.exists(source) and os.path.exists(output) and os.path.samefile(source, output):
        return True
    inside, data = os.path.realpath(output), os.path.realpath(source)
    return inside == data or inside.startswith(os.path.join(data, ""))


def header_of(document: Reader, folder: str, csv: CsvOptions) -> list[str]:
    """The names of the input's columns: of a CSV file its header is read, of a Parquet file its schema."""
    from dpsynth_cli.trusted.rows.header import column_names  # it takes long to import

    entry = document.keys.entries.get(INPUT.name)
    try:
        source = _input(folder)(entry.node) if entry else "-"
    except (Wrong, AlreadyNoted):
        return []  # noted where the input is read
    return [] if source == "-" else column_names(source, csv)
