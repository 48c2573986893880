"""A spec drafted for a table: its columns by their form and by what public sources say of them.

Nothing is taken from the rows but, if that is wanted, the form of their cells: types, never values.
"""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpsynth_cli.domain import CsvOptions
from dpsynth_cli.draft.codebook import Known, read_codebook
from dpsynth_cli.draft.columns import Line, line_of
from dpsynth_cli.draft.facts import Facts
from dpsynth_cli.draft.like import read_like
from dpsynth_cli.draft.text import Choices, quoted, remark, template
from dpsynth_cli.errors import FileError, UsageError
from dpsynth_cli.labels import plain
from dpsynth_cli.spec.paths import INPUTS
from dpsynth_cli.trusted.rows.header import COST
from dpsynth_cli.trusted.rows.look import Glance, glance


@dataclass(frozen=True)
class Draft:
    """The text of a spec, and its columns; those with something missing are to be completed."""

    text: str
    lines: tuple[Line, ...]

    @property
    def missing(self) -> list[Line]:
        return [line for line in self.lines if line.missing]


def is_table(path: str) -> bool:
    """Whether a path names a table, and no spec."""
    return path.lower().endswith(INPUTS) or os.path.isdir(path)


def draft(
    data: str,
    spec: str | None = None,
    *,
    output: str | None = None,
    codebook: str | None = None,
    like: str | None = None,
    rows: bool = True,
    header: bool = False,
    strict: bool = False,
    choices: Choices | None = None,
) -> Draft:
    """The draft of a spec for a table, to be kept at `spec`.

    `rows`: the form of cells may be looked at. `strict`: bounds do not come from the name of a column, and
    what no source describes is left out.
    """
    try:
        (data + (spec or "") + (output or "")).encode()
    except UnicodeEncodeError:
        raise UsageError("The name of the file is not UTF-8.", COST, "Rename it, or link to it.") from None
    if data != "-" and not is_table(data):
        raise UsageError(
            f"{data} is neither .csv, .csv.gz nor .parquet.",
            COST,
            "Name a file that is, a folder of Parquet files, or - for CSV on standard input.",
        )
    name = "table" if data == "-" else os.path.basename(os.path.normpath(data)).split(".")[0] or "table"
    seen = glance(data, rows=rows, certain=header)
    _check_names([column.name for column in seen.columns], data)
    stated = Known(read_codebook(codebook, name) if codebook else [])
    known = _merged(stated, Known(read_like(like, data, stated) if like else []))
    lines = tuple(line_of(column, known(column.name), strict=strict) for column in seen.columns)
    if all(line.left_out for line in lines) and not strict:
        raise FileError(f"{data} has no column that can be released.", COST)
    parquet = data.lower().endswith(".parquet") or os.path.isdir(data)
    made = output or f"{name}.synthetic.{'parquet' if parquet else 'csv'}"
    missing = any(line.missing for line in lines)
    fill = 'Fill in every "?" from public knowledge, never from the rows; then: ' if missing else "Next: "
    text = template(
        choices or Choices(evaluate=True),
        origin=_origin(seen, parquet, [source for source in (codebook, like) if source]),
        next_step=f"{fill}dpsynth check {'SPEC' if spec is None else shlex.quote(spec)}",
        name=name,
        input=_beside(data, spec),
        output=_beside(made, spec) if output else made,
        csv=_csv(seen.csv),
        columns="\n".join(
            [line.text for line in lines] + [f"  # left out: {remark(why)}" for why in seen.left_out]
        ),
    )
    return Draft(text, lines)


def _csv(csv: CsvOptions) -> str:
    """The line that says how a CSV file is written, where it is not plain."""
    said = {} if csv.delimiter == "," else {"delimiter": json.dumps(csv.delimiter)}
    said |= {} if csv.encoding == "utf-8" else {"encoding": csv.encoding}
    return f"csv: {{{', '.join(f'{key}: {value}' for key, value in said.items())}}}\n" if said else ""


def _merged(*sources: Known) -> Callable[[str], Facts | None]:
    """What is known of a column: by the first source, and what that leaves open by the next."""

    def of(name: str) -> Facts | None:
        found = [facts for source in sources if (facts := source.of(name)) is not None]
        if len(found) < 2:
            return found[0] if found else None
        first, rest = found
        if first.left_out or first.categories or first.bounds or first.type == "boolean":
            return first
        if first.type not in (None, rest.type):
            return first
        nullable = rest.nullable if first.nullable is None else first.nullable
        return replace(
            rest, nullable=nullable, about=first.about or rest.about, format=first.format or rest.format
        )

    return of


def _origin(seen: Glance, parquet: bool, sources: list[str]) -> str:
    """What was read for it, in words."""
    names = " and ".join(map(os.path.basename, sources))
    if seen.rows:
        look = "from the form of the first cells: a look at the rows that tells types only."
        return f"What {names} leaves open of types is {look}" if names else f"Types are {look}"
    first = "schema" if parquet else "header"
    return f"Made from its {first}{f' and {names}' if names else ''} alone; no row was looked at."


def _beside(path: str, spec: str | None) -> str:
    """A path as seen from the folder of the spec."""
    if path == "-" or spec is None or os.path.isabs(path):
        return path
    return os.path.relpath(path, os.path.dirname(spec) or ".")


def _check_names(names: Sequence[str], data: str) -> None:
    if not names:
        raise FileError(f"{data} has no column that can be released.", COST)
    if not all(map(plain, names)):
        raise FileError(f"The header of {data} has a name with a control character in it.", COST)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise FileError(f"The header of {data} has a name twice: {', '.join(map(quoted, twice))}.", COST)
