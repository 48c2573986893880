"""pmm: W1 against the paper's rule, on simulated rows and on taxi pick-ups; and five columns of Adult.

    python -m benchmarks pmm paper [--runs 8]                     # simulated, one and two columns
    python -m benchmarks pmm uber --data DIR --tools DIR [--runs 5] [--epsilon 0.1 1 3]
    python -m benchmarks pmm five --data DIR --tools DIR          # plain and by copula; 2-way distance

The paper's rule is `consistency: uniform, levels: all`. One column: exact W1. Two columns: exact W1 in the l1 metric
on a grid of 64 x 64. Pick-ups: two columns, judged by evaluate.py in the same metric. add_remove.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import benchmarks.tables as tables
from benchmarks.harness import Finding, released
from benchmarks.joint import figures, mean_figures, options_of_releases

PAPER = {"consistency": "uniform", "levels": "all"}
FIVE = ("age", "education-num", "capital-gain", "hours-per-week", "income")


def options(parser: argparse.ArgumentParser) -> None:
    options_of_releases(parser, 5, (0.1, 1.0, 3.0))


def distance(points: np.ndarray, params: dict[str, str]) -> float:
    omega = tables.unit_cube(points.shape[1])
    made = released("pmm", omega, tables.to_codes(points, omega), **params)
    synthetic = tables.to_points(made.rows, omega)
    if points.shape[1] == 1:
        return tables.line_w1(points[:, 0], synthetic[:, 0])
    return tables.grid_w1(points, synthetic, 64)


def paper(given: argparse.Namespace) -> Iterator[Finding]:
    """Both rules in one run on the same rows, epsilon 1."""
    for d, runs in ((1, given.runs), (2, max(2, given.runs // 3))):
        for n in (10_000, 100_000):
            for kind in ("uniform", "clusters", "skewed"):
                points = tables.three_clusters(kind, n, d, np.random.default_rng(n + d))
                theirs, ours = (
                    float(np.mean([distance(points, params) for _ in range(runs)])) for params in (PAPER, {})
                )
                yield {"columns": d, "rows": n, "data": kind, "runs": runs, "W1, paper's rule": theirs,
                       "W1, default": ours, "ratio": ours / theirs}  # fmt: skip


def uber(given: argparse.Namespace) -> Iterator[Finding]:
    table = tables.real(given, "uber2d")
    for name, params in (("default", {}), ("paper", PAPER)):
        for epsilon in given.epsilon:
            found = mean_figures(given, table, "pmm", epsilon, given.delta, **params)
            yield {"rule": name, "epsilon": epsilon, "runs": given.runs, **found}


def five(given: argparse.Namespace) -> Iterator[Finding]:
    """Distances of the 2-way marginals of five columns: independent columns, pmm, pmm by copula; epsilon 1."""
    import pandas as pd

    whole = tables.real(given, "adult")
    table = replace(whole, columns={name: whole.columns[name] for name in FIVE}, target=None)
    real = pd.read_csv(table.train, keep_default_na=False)[list(FIVE)]
    rng, alone = np.random.default_rng(0), given.folder / "independent.csv"
    pd.DataFrame({name: rng.permutation(real[name].to_numpy()) for name in FIVE}).to_csv(alone, index=False)
    yield {"what": "independent", **figures(given, table, alone), "CPU s": None}
    for transform in ("none", "copula"):
        found = mean_figures(given, table, "pmm", 1.0, given.delta, transform=transform)
        yield {"what": f"pmm, {transform}", **found}


PARTS = {"paper": paper, "uber": uber, "five": five}
