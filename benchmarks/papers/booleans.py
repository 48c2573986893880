"""Covariance's loss is privacy's gain (2021): marginals of many Booleans, by microaggregation.

    python -m benchmarks papers.booleans [--runs 3] [--rows 50000 100000 200000] [--columns 100] [--picture FILE.svg]

Rows are of three classes that nobody declares, each with its own chances (0.2 to 0.8) of every Boolean; pure epsilon
1, replace_one, where n is public as in the paper. The figure is the root mean square error of all 2-way tables. The
printed algorithm with its own constants (`parameters: paper`) is private, and in the same table; so is what the
theorem is about, independent columns. The paper prints no measurement: its own claim is a rate.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import Finding, pictures, save
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.registry import mechanisms
from tests.asking import asking, drawn

FORMS: dict[str, tuple[str, dict[str, str]]] = {
    "marginals": ("marginals", {}),
    "microaggregation": ("microaggregation", {}),
    "as printed": ("microaggregation", {"parameters": "paper"}),
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=3, help="releases of each kind; default: 3")
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 100_000, 200_000])
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--picture", type=Path, help="needs matplotlib")


def mixture(n: int, d: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    chances = np.random.default_rng(0).uniform(0.2, 0.8, (3, d))
    return rng.random((n, d)) < chances[rng.integers(3, size=n)]


def pair_error(real: np.ndarray, made: np.ndarray) -> float:
    """Of all four cells of all pairs of columns."""
    off = []
    for one, other in ((1, 1), (1, 0), (0, 1), (0, 0)):
        tables = [
            (rows == one).astype(np.float32).T @ (rows == other).astype(np.float32) / len(rows)
            for rows in (real, made)
        ]
        off.append((tables[0] - tables[1])[np.triu_indices(real.shape[1], 1)])
    return float(np.sqrt(np.mean(np.concatenate(off) ** 2)))


def pairs(given: argparse.Namespace) -> Iterator[Finding]:
    """Root mean square error of 2-way tables; `axes` are those of the last release."""
    omega = Domain(
        tuple(Column(f"b{j}", "boolean", categories=("false", "true")) for j in range(given.columns)),
        "replace_one",
    )
    found: dict[str, list[float]] = {what: [] for what in FORMS}
    for n in given.rows:
        line: dict[str, object] = {"rows": n, "columns": given.columns}
        for what, (name, params) in FORMS.items():
            errors = []
            for seed in range(given.runs):
                real = mixture(n, given.columns, seed)
                codes = {f"b{j}": real[:, j].astype(np.int64) for j in range(given.columns)}
                ask, *_ = asking(codes, omega, 1.0)
                own = mechanisms()[name]
                model = own.run(ask, omega, own.params(**params), dict(own.stages))
                rows = drawn(model, n, seed)
                errors.append(pair_error(real, np.column_stack([rows[column.name] for column in omega]) > 0))
            found[what].append(float(np.mean(errors)))
            line[what] = found[what][-1]
            if what == "microaggregation":
                line["axes"] = str(model.facts.get("axes", "none"))
        yield line
    if given.picture:
        figure, axis = pictures().subplots(figsize=(5, 3.6))
        for what, own in found.items():
            axis.loglog(given.rows, own, marker="o", label=what)
        axis.set(xlabel="rows", ylabel="error of 2-way tables", title=f"{given.columns} Booleans, epsilon 1")
        axis.legend()
        yield save(figure, given.picture)


PARTS = {"pairs": pairs}
