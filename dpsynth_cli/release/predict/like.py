"""The public table of `--like` must not be the input: a prediction from it would be a look at the data."""

from __future__ import annotations

import filecmp
import os
from glob import glob
from itertools import product

from dpsynth_cli.errors import UsageError

WHY = (
    "Predictions made from the data depend on them, and nothing has paid for that look: whoever chooses an "
    "epsilon or a mechanism by it tells something about the rows. Give a public file of the same columns "
    "(last year's, another region's), or leave --like out."
)


def refuse_input(like: str, source: str) -> None:
    """Refuse a table that is the input or a part of it: by its name, as the same file, or byte by byte.

    A sorted, compressed or otherwise rewritten copy is not found out.
    """
    if like == "-":
        raise UsageError("--like needs a file, not standard input: a pipe may carry the data.", next_step=WHY)
    if source and any(_same(one, other) for one, other in product(_files(like), _files(source))):
        raise UsageError(f"--like {like} is the input itself, a part or a copy of it.", next_step=WHY)


def _files(path: str) -> list[str]:
    """The files that a path means, itself first: those of a folder, and those that fit a pattern."""
    named = [path, *(sorted(glob(path)) if any(sign in path for sign in "*?[") else [])]
    inside = [
        os.path.join(folder, name)
        for top in named
        if os.path.isdir(top)
        for folder, _, names in os.walk(top)
        for name in names
    ]
    return named + inside


def _same(one: str, other: str) -> bool:
    """The same place, the same file under another name, or the same bytes."""
    if one == other or os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        if os.path.samefile(one, other):
            return True
        return os.path.isfile(one) and os.path.isfile(other) and filecmp.cmp(one, other, shallow=False)
    except OSError:  # what cannot be read is for the reader to say
        return False
