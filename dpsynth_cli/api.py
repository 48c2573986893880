"""The Python API: what the commands do, for programs and notebooks.

    from dpsynth_cli import api as dpsynth

    spec = dpsynth.load_spec("people.yaml")                    # or a dictionary with the same keys
    receipt = dpsynth.release(spec, frame, ledger="ledger.sqlite")
    receipt.table()                                            # the synthetic rows, as a data frame

Tables come as paths, pandas data frames or Arrow tables. One in memory is written to a private temporary file
and read like any other: the same readers, the same ledger, the same guarantee. The types of its columns count
as public, as a file's schema does.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace as changed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

from dpsynth_cli.errors import UsageError
from dpsynth_cli.inference.combine import combine
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.dataset import as_declared, unlimited
from dpsynth_cli.release.record.unfinished import Request, print_nothing
from dpsynth_cli.release.synthesis import Receipt
from dpsynth_cli.spec.spec import Spec, from_document
from dpsynth_cli.spec.spec import load_spec as load_file
from dpsynth_cli.trusted.engines import Engine
from dpsynth_cli.trusted.ledger.ledger import Ledger, ledger_path

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "Ledger",
    "Receipt",
    "Spec",
    "combine",
    "evaluate",
    "load_spec",
    "query",
    "release",
    "sample",
    "verify",
]

Data: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | pa.Table"
Book: TypeAlias = "Ledger | str | os.PathLike[str] | None"


def load_spec(source: str | os.PathLike[str] | Mapping[str, Any], **overrides: Any) -> Spec:
    """A spec from a YAML file, or from a dictionary with the same keys.

    Keyword arguments replace keys: `input`, `output`, `rows` of a file; any of a dictionary. All mistakes are
    in one `dpsynth_cli.errors.UsageError`.
    """
    if isinstance(source, Mapping):
        return from_document({**source, **overrides}, "the spec", "Correct this in the dictionary.")
    unknown = sorted(set(overrides) - {"input", "output", "rows"})
    if unknown:
        raise UsageError(
            f"{', '.join(unknown)}: of a file's keys, input, output and rows can be replaced.",
            next_step="Change the file, or give the whole spec as a dictionary.",
        )
    return load_file(os.fspath(source), **overrides)


def release(
    spec: Spec | str | os.PathLike[str] | Mapping[str, Any],
    data: Data | None = None,
    *,
    ledger: Book = None,
    resume: bool = False,
    again: bool = False,
    replace: bool = False,
    engine: Engine | None = None,
    progress: Progress = no_progress,
    say: Callable[[str], None] = print_nothing,
    command: Sequence[str] = (),
) -> Receipt:
    """Spend the budget once, as `dpsynth release` does; the receipt has the table and its files.

    `data` replaces the spec's input. `ledger` is a `Ledger`, its path, or None for the usual place. An
    unfinished release of the same spec, input and output is gone on with, at no cost (`again`: pay for a new
    one; `resume`: fail if there is none); one that is finished stays where it is (`replace`: it makes room).
    `say` is told what is being done, `command` is what to type to finish it. Anything that a user can cause
    is a `dpsynth_cli.errors.DpsynthError`, which says what it cost.
    """
    spec = spec if isinstance(spec, Spec) else load_spec(spec)
    if not isinstance(ledger, Ledger):
        ledger = Ledger(ledger_path(None if ledger is None else os.fspath(ledger)))
    in_memory = data is not None and not isinstance(data, (str, os.PathLike))
    request = Request(resume, again, replace, tuple(command), in_memory, say)
    with as_file(data, spec.input) as path:
        spec = changed(spec, input=path)
        if not spec.input and not spec.mechanism.stream:
            raise UsageError("the spec names no input.", next_step="Give the data, or the key input.")
        spec = as_declared(spec)
        if warning := unlimited(ledger, spec.privacy.dataset):
            say(warning)
        if spec.privacy.epsilon is None:
            if engine is not None:
                raise UsageError("groups are made on one machine.", next_step="Leave out --engine.")
            from dpsynth_cli.release import groups

            return groups.release(spec, ledger, progress, request)
        from dpsynth_cli.release import table

        return table.release(spec, ledger, progress, engine, request)


def sample(
    transcript: str | os.PathLike[str],
    rows: int | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    seed: int | None = None,
) -> pd.DataFrame | None:
    """More rows from a past release, at no cost: written to `output`, or as a data frame without one.

    `rows` None: as many as the release had. `seed` None: a fresh one, so that two calls give other rows.
    """
    from dpsynth_cli.release.sample import sample as drawn

    if rows is not None and (not isinstance(rows, int) or rows < 1):
        raise UsageError(f"the number of rows must be a whole number above 0; it is {rows!r}.", "")
    seed = secrets.randbits(63) if seed is None else seed
    if output is not None:
        drawn(Path(transcript), os.fspath(output), rows, seed)
        return None
    with TemporaryDirectory(prefix="dpsynth-") as folder:
        path = os.path.join(folder, "rows.parquet")
        drawn(Path(transcript), path, rows, seed)
        import pandas as pd

        return pd.read_parquet(path)


def verify(audit: str | os.PathLike[str], *, ledger: Book = None) -> list[str]:
    """Rebuild a release from its transcript and compare; what was checked, a sentence each.

    Raises `dpsynth_cli.errors.VerificationError` at the first thing that does not fit.
    """
    from dpsynth_cli.release.verify import verify as checked

    if ledger is not None and not isinstance(ledger, Ledger):
        ledger = os.fspath(ledger)
    return checked(Path(audit), ledger=ledger)


def query(
    transcript: str | os.PathLike[str],
    text: str,
    where: str | None = None,
    *,
    level: float = 0.95,
    population: bool = False,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Estimates with intervals from a transcript, as `dpsynth query --json` prints them."""
    from dpsynth_cli.inference.query import answer_each

    (rows,) = answer_each(Path(transcript), [text], where, level, population, seed=seed)
    if isinstance(rows, UsageError):
        raise rows
    return [one.as_json() for one in rows]


def evaluate(
    spec: Spec | str | os.PathLike[str] | Mapping[str, Any],
    synthetic: Data,
    data: Data | None = None,
    *,
    metrics: tuple[str, ...] | None = None,
    target: str | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Judge a synthetic table against the real one. Confidential: computed from the real rows."""
    from dpsynth_cli.evaluate.compare import compare

    spec = spec if isinstance(spec, Spec) else load_spec(spec)
    with as_file(data, spec.input) as real, as_file(synthetic, "") as made:
        return compare(changed(spec, input=real), made, metrics=metrics, target=target, progress=progress)


@contextmanager
def as_file(data: Data | None, path: str) -> Iterator[str]:
    """A path to the data: its own, or that of a private temporary file; without data, `path`."""
    if data is None or isinstance(data, (str, os.PathLike)):
        yield path if data is None else os.fspath(data)
        return
    from pyarrow import parquet

    with TemporaryDirectory(prefix="dpsynth-") as folder:  # for its owner only
        path = os.path.join(folder, "data.parquet")
        parquet.write_table(_as_arrow(data), path, row_group_size=2**17)
        yield path


def _as_arrow(data: Any) -> pa.Table:
    """The table, column by column. Python objects become their text, cell by cell: no cell can fail it."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if not hasattr(data, "columns") or not hasattr(data, "dtypes"):
        raise UsageError(
            f"the data is a {type(data).__name__}: it must be a path, a data frame or an Arrow table."
        )
    columns = {}
    for name in data.columns:
        cells = data[name]
        if cells.dtype == object:
            columns[str(name)] = pa.array([_text(cell) for cell in cells], pa.string())
        else:
            columns[str(name)] = pa.array(cells, from_pandas=True)
    return pa.table(columns)


def _text(cell: Any) -> str | None:
    if cell is None or cell != cell or str(cell) == "<NA>":
        return None
    return str(cell).encode("utf-8", "replace").decode()
