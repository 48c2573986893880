"""Online synthetic data (He, Vershynin, Zhu): W1 against the number of events, one to three columns.

    python -m benchmarks papers.online [--runs 2] [--last 16384] [--columns 1 2 3] [--picture FILE.svg]

Epsilon 1, clusters, one event a step in effect: 8 releases while events double, judged at every doubling. `printed` is
Algorithm 12 (`printed: true`, public arrivals, replace_one, as in the paper), `blocks` our running counts (private
arrivals, add_remove), with and without a delta. W1 in l1: exact in one column, else on a grid. Theorem 5.1 gives a rate:
log(t) (epsilon t)^(-1/d), for one column log^4.5 / (epsilon t); the paper measures nothing. Slopes are of the last four
doublings; that of the law is over the same events.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import benchmarks.tables as tables
from benchmarks.harness import Finding, pictures, save
from benchmarks.online import PRIVATE, PUBLIC, TIMES, run, snapshot, stream_spec
from benchmarks.papers.wasserstein import rows_of
from dpsynth_cli.spec.spec import Spec
from tests.asking import drawn

GRIDS = {2: 48, 3: 14}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=2, help="streams of each kind; default: 2")
    parser.add_argument("--last", type=int, default=16_384, help="events; default: 16384")
    parser.add_argument("--columns", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--picture", type=Path)


def ways(d: int) -> dict[str, Spec]:
    return {
        "printed": stream_spec(d, "replace_one", algorithm="sparse", **PUBLIC),
        "blocks, pure": stream_spec(d, "add_remove", **PRIVATE),
        "blocks, delta 1e-9": stream_spec(d, "add_remove", 1e-9, **PRIVATE),
    }


def error(given: argparse.Namespace) -> Iterator[Finding]:
    """Means of the streams."""
    times = [t for t in TIMES if t >= 64 and t <= given.last and t & (t - 1) == 0]
    found: dict[tuple[str, int], list[float]] = {}
    for d in given.columns:
        for way, spec in ways(d).items():
            apart: dict[int, list[float]] = {t: [] for t in times}
            for seed in range(given.runs):
                points = rows_of(given.last, d, seed)
                for t, state in run(points, spec):
                    if t in apart:
                        model = snapshot(state, spec)
                        made = tables.to_points(drawn(model, max(1, model.total), seed), spec.domain)
                        apart[t].append(w1(points[:t], made))
            found[way, d] = [float(np.mean(apart[t])) for t in times]
            late = slice(-5, None)
            yield {
                "columns": d,
                "way": way,
                **{f"t = {t}": found[way, d][times.index(t)] for t in times[::2]},
                "slope": slope(times[late], found[way, d][late]),
                "of the theorem's law": slope(times[late], [law(t, d) for t in times[late]]),
            }
    if given.picture:
        yield draw(given.picture, times, found, given.columns)


def w1(real: np.ndarray, made: np.ndarray) -> float:
    d = real.shape[1]
    return tables.line_w1(real[:, 0], made[:, 0]) if d == 1 else tables.grid_w1(real, made, GRIDS[d])


def law(t: int, d: int) -> float:
    """(5.1), epsilon 1."""
    return math.log(t) ** 4.5 / t if d == 1 else math.log(t) * t ** (-1 / d)


def slope(times: list[int], values: list[float]) -> float:
    return float(np.polyfit(np.log(times), np.log(values), 1)[0])


def draw(path: Path, times: list[int], found: dict[tuple[str, int], list[float]], columns: list[int]) -> str:
    figure, axes = pictures().subplots(1, len(columns), figsize=(12, 3.6), squeeze=False)
    for axis, d in zip(axes[0], columns, strict=True):
        for way in ways(d):
            axis.loglog(times, found[way, d], marker="o", label=way)
        scale = found["printed", d][-1] / law(times[-1], d)
        axis.loglog(times, [scale * law(t, d) for t in times], "k--", label="the theorem's law")
        axis.set(title=f"{d} column{'s' * (d > 1)}", xlabel="events")
    axes[0][0].set_ylabel("W1, epsilon 1")
    axes[0][0].legend()
    return save(figure, path)


PARTS = {"error": error}
DEFAULT = ("error",)
