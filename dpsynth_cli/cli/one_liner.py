"""A release without a spec: `dpsynth release data.parquet --epsilon 1 --codebook book.json -o out.parquet`.

The spec is drafted from public sources alone: not even the form of a cell is looked at, because nobody sees
the draft before it is published. After the release it stands beside the output, so that it can be repeated.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from dpsynth_cli.cli.options import below_one, positive
from dpsynth_cli.draft.draft import Draft, draft
from dpsynth_cli.draft.text import Choices
from dpsynth_cli.errors import NOTHING_SPENT, FileError, UsageError
from dpsynth_cli.release.files.publish import write_file

MARK = "# Written by dpsynth release; the same command writes it anew: copy it before you change it.\n"
SHOWN = 10  # columns that an error lists


@dataclass(frozen=True)
class Drafted:
    """The text of a spec, where it is to be kept, and why columns are left out."""

    text: str
    path: Path
    left_out: dict[str, str]

    def keep(self) -> None:
        """Write it, for its owner only: it says where the data are."""
        try:
            write_file(self.path, self.text.encode(), 0o600)
        except FileError as error:
            done = "The release is finished and was charged; its audit has the whole spec."
            raise FileError(error.happened, done) from None


def drafted(
    data: str, output: str | None, codebook: str | None, like: str | None, choices: Choices, sets: list[str]
) -> Drafted:
    """The spec of a release of this table; refuses what public sources leave open."""
    if not choices.epsilon:
        raise UsageError(
            f"{data} is a table, not a spec.",
            next_step="Say what its release may cost, such as --epsilon 1; or draft a spec: "
            f"dpsynth init {shlex.quote(data)} -o spec.yaml",
        )
    positive("--epsilon", choices.epsilon, NOTHING_SPENT)
    if choices.delta is not None:
        below_one("--delta", choices.delta, NOTHING_SPENT)
    made_at, at = _places(data, output)
    _check_free(at)
    made = draft(
        data, str(at), output=made_at, codebook=codebook, like=like, rows=False, strict=True, choices=choices
    )
    _check_whole(made, data, {"codebook": codebook, "like": like})
    with_ = "".join(f"# It was released with --set {shlex.quote(one)}\n" for one in sets if one.isprintable())
    left_out = {line.name: line.left_out for line in made.lines if line.left_out}
    return Drafted(MARK + with_ + made.text, at, left_out)


def _places(data: str, output: str | None) -> tuple[str, Path]:
    """Where the synthetic table and the spec go."""
    name = os.path.basename(os.path.normpath(data))
    stem = name.split(".")[0] or "table"
    if output == "-":
        return "-", Path(f"{stem}.spec.yaml")
    ending = ".csv" if name.lower().endswith((".csv", ".csv.gz")) else ".parquet"
    made = output or f"{stem}.synthetic{ending}"
    return made, Path(os.path.splitext(made)[0] + ".spec.yaml")


def _check_free(at: Path) -> None:
    """A spec that somebody wrote is not replaced."""
    try:
        ours = not at.exists() or at.read_bytes().startswith(MARK.encode())
    except OSError:
        ours = False
    if not ours:
        raise UsageError(
            f"{at} is already there, and was not written by a release.",
            next_step=f"Release it (dpsynth release {shlex.quote(str(at))}), or choose another --output.",
        )


def _check_whole(made: Draft, data: str, options: dict[str, str | None]) -> None:
    missing = made.missing
    sources = {option: path for option, path in options.items() if path}
    also = "".join(f" --{option} {shlex.quote(path)}" for option, path in sources.items())
    init = f"dpsynth init {shlex.quote(data)}{also} -o spec.yaml"
    if all(line.left_out for line in made.lines):
        # Not one name is known: the first line may be a row, and is not repeated.
        raise UsageError(
            f"nothing says the bounds and categories of {data}.",
            next_step=f"Name a --codebook or a --like table that describes its columns; or: {init}",
        )
    if not missing:
        return
    listed = "\n".join(f"  {line.name}: {line.missing}" for line in missing[:SHOWN])
    more = f"\n  and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    raise UsageError(
        f"{' and '.join(sources.values())} does not say all that a release needs. Missing are\n"
        f"{listed}{more}",
        next_step=f"Complete it, or draft a spec and fill these in: {init}",
    )
