"""psmm: time and memory against cells, and W1 against pmm.

    python -m benchmarks psmm times                    # the closest measure: flow, sparse and dense linear programs
    python -m benchmarks psmm accuracy [--runs 10]     # W1 at n = 4000, epsilon = 1, replace_one
    python -m benchmarks psmm crossover [--runs 5]     # psmm or pmm? W1 against epsilon n
    python -m benchmarks psmm cells [--runs 5]         # as many cells as its bound likes best, or as by default?

Simulated data only; times are CPU seconds of one thread; W1 is exact (an optimal assignment of all rows,
l_inf in the unit cube), and noise is drawn anew every time. `times` needs highspy.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from collections.abc import Callable, Iterator
from functools import cache
from unittest.mock import patch

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import benchmarks.harness as harness
from benchmarks.harness import Finding, need, timed
from benchmarks.tables import to_codes, to_points, unit_cube
from dpsynth_cli.mechanisms.psmm import guarantee, psmm
from dpsynth_cli.numeric.lattice import Axis, Lattice
from dpsynth_cli.numeric.transport import Closest, closest, debiased, effort, rescaled


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=5, help="tables of each kind; default: 5")


def points(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Rows in the unit cube: uniform, or five normal clusters of width 0.05."""
    if kind == "uniform":
        return rng.random((n, d))
    centres = 0.1 + 0.8 * rng.random((5, d))
    return np.clip(centres[rng.integers(5, size=n)] + rng.normal(0, 0.05, (n, d)), 0, 1 - 1e-9)


# --- times -------------------------------------------------------------------------------------------------


KINDS = ("clusters", "faint", "corner")


def signed(lattice: Lattice, kind: str) -> tuple[np.ndarray, int]:
    """Counts of eight rows a cell with the noise of epsilon = 1 under replace_one; or, faint, one row in
    two cells with the noise of epsilon = 0.04; or all in one corner."""
    if kind == "corner":
        nu = np.full(lattice.size, -1)
        nu[0] = 2 * lattice.size
        return nu, lattice.size + 1
    rng = np.random.default_rng(0)
    n, scale = (8 * lattice.size, 2) if kind == "clusters" else (lattice.size // 2, 50)
    place = (points("clusters", n, len(lattice.shape), rng) * lattice.shape).astype(int)
    nu = np.bincount(np.ravel_multi_index(tuple(place.T), lattice.shape), minlength=lattice.size)
    p = -np.expm1(-1 / scale)
    return nu + rng.geometric(p, lattice.size) - rng.geometric(p, lattice.size), n


def solvers(lattice: Lattice) -> dict[str, Callable[[np.ndarray, int], Closest]]:
    from tests.numeric.transport_lp import closest_by_dense_lp, closest_by_lp

    return {
        "flow": lambda nu, n: closest(nu, n, lattice),
        "sparse LP": lambda nu, n: closest_by_lp(debiased(nu, n), n, lattice.graph(), lattice.diameter),
        "dense LP": lambda nu, n: closest_by_dense_lp(
            debiased(nu, n), n, lattice.distances(), lattice.diameter
        ),
    }


def measured(shape: tuple[int, ...], metric: str, kind: str, solver: str) -> tuple[float, float, int]:
    """CPU seconds, peak bytes above what importing takes, and the optimum; in a process of its own."""
    lattice = Lattice(tuple(Axis(k) for k in shape), max(shape), metric)
    nu, n = signed(lattice, kind)
    small = Lattice((Axis(2), Axis(2)), 2, metric)
    solvers(small)[solver](np.array([3, -1, 2, 0]), 4)  # imports
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found, taken = timed(lambda: solvers(lattice)[solver](nu, n))
    return taken, 1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before), found.distance


def times(given: argparse.Namespace) -> Iterator[Finding]:
    need("highspy")
    rows = [
        ((100_000,), "linf", "clusters", "flow"),
        *(((24, 24), "linf", "clusters", solver) for solver in ("flow", "sparse LP", "dense LP")),
        *(((55, 55), "linf", "clusters", solver) for solver in ("flow", "sparse LP")),
        *(((100, 100), metric, kind, "flow") for metric in ("linf", "l1") for kind in KINDS),
        ((100, 100), "linf", "clusters", "sparse LP"),
        *(((22, 22, 22), metric, kind, "flow") for metric in ("linf", "l1") for kind in KINDS),
        ((22, 22, 22), "linf", "clusters", "sparse LP"),
        ((10, 10, 10, 10), "linf", "clusters", "flow"),
        *(((200, 200), "linf", kind, "flow") for kind in ("clusters", "faint")),
        *(((46, 46, 46), "linf", kind, "flow") for kind in ("clusters", "faint")),
    ]
    spawn = multiprocessing.get_context("spawn")
    seen: dict[tuple[int, ...], float] = {}
    for shape, metric, kind, solver in rows:
        with spawn.Pool(1) as pool:
            taken, size, distance = pool.apply(measured, (shape, metric, kind, solver))
        lattice = Lattice(tuple(Axis(k) for k in shape), max(shape), metric)
        seconds, most = effort(lattice)
        flow = solver == "flow"
        if flow and kind == "clusters" and metric == "linf":
            seen[shape] = taken
        yield {
            "cells": lattice.size,
            "lattice": "x".join(map(str, shape)),
            "metric": metric,
            "data": kind,
            "solver": solver,
            "CPU s": taken,
            "MB": size / 1e6,
            "at worst": f"{seconds:.1f} s, {most / 1e6:.0f} MB" if flow else None,
            "of the flow's time": None if flow else taken / seen[shape],
            "optimum": int(distance),
        }


# --- accuracy ----------------------------------------------------------------------------------------------


def release(name: str, rows: np.ndarray, epsilon: float = 1.0, **params: object) -> np.ndarray:
    """As many synthetic rows, under replace_one."""
    omega = unit_cube(rows.shape[1], "replace_one")
    seed, codes = int(rows[0, 0] * 1e9), to_codes(rows, omega)
    made = harness.released(name, omega, codes, epsilon, None, seed, len(rows), **params)
    return to_points(made.rows, omega)


def w1(a: np.ndarray, b: np.ndarray) -> float:
    far = cdist(a, b, "chebyshev")
    return float(far[linear_sum_assignment(far)].mean())


def clipped(nu: np.ndarray, total: int, lattice: Lattice, settled: object) -> Closest:
    return Closest(rescaled(np.maximum(nu, 0), total), 0)


def clip_and_renormalise(rows: np.ndarray) -> np.ndarray:
    with patch.object(psmm, "closest", clipped):
        return release("psmm", rows)


METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "psmm": lambda rows: release("psmm", rows),
    "pmm, paper": lambda rows: release("pmm", rows, consistency="uniform", levels="all"),
    "pmm": lambda rows: release("pmm", rows),
    "clipped": clip_and_renormalise,
}


def accuracy(given: argparse.Namespace) -> Iterator[Finding]:
    """W1, n = 4000, epsilon 1; in brackets its standard error over tables."""
    for d, kind in ((2, "clusters"), (2, "uniform"), (3, "clusters"), (3, "uniform")):
        errors: dict[str, list[float]] = {name: [] for name in METHODS}
        for seed in range(given.runs):
            rows = points(kind, 4000, d, np.random.default_rng(seed))
            for name, method in METHODS.items():
                errors[name].append(w1(rows, method(rows)))
        each = {k: f"{np.mean(v):.4f} ({np.std(v) / given.runs**0.5:.4f})" for k, v in errors.items()}
        yield {
            "data": f"d = {d}, {kind}",
            **each,
            "psmm / the paper's pmm": float(np.mean(errors["psmm"]) / np.mean(errors["pmm, paper"])),
            "worse than clipped": sum(a > b for a, b in zip(errors["psmm"], errors["clipped"], strict=True)),
        }


def crossover(given: argparse.Namespace) -> Iterator[Finding]:
    """W1 of psmm over W1 of pmm, both at their defaults (W1 of psmm), n = 2000, replace_one."""
    for d in (1, 2, 3, 4):
        for kind in ("clusters", "uniform"):
            line: dict[str, object] = {"data": f"d = {d}, {kind}"}
            for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0):
                each = {"psmm": 0.0, "pmm": 0.0}
                for seed in range(given.runs):
                    rows = points(kind, 2000, d, np.random.default_rng(seed))
                    for name in each:
                        each[name] += w1(rows, release(name, rows, epsilon)) / given.runs
                shown = f"{each['psmm'] / each['pmm']:.2f} ({each['psmm']:.4f})"
                line[f"epsilon n = {2000 * epsilon:.0f}"] = shown
            yield line


def by_its_bound(given: argparse.Namespace) -> Iterator[Finding]:
    """W1 with as many cells as make the bound of Theorem 3.6 least, over W1 with epsilon n / 8; n = 800."""
    n = 800
    for d in (1, 2, 3):
        sides = sorted({round(1.2**i) for i in range(40) if 1.2 ** (i * d) <= 1.3 * n})
        for kind in ("uniform", "clusters", "skewed"):
            line: dict[str, object] = {"data": f"d = {d}, {kind}"}
            for epsilon in (0.1, 0.5, 2.0, 8.0):
                best = min(sides, key=lambda side: _bound(side, d, 2 / epsilon, n))
                each = {"auto": 0.0, "bound": 0.0}
                for seed in range(given.runs):
                    rng = np.random.default_rng(seed)
                    rows = rng.beta(1, 8, (n, d)) if kind == "skewed" else points(kind, n, d, rng)
                    each["auto"] += w1(rows, release("psmm", rows, epsilon))
                    each["bound"] += w1(rows, release("psmm", rows, epsilon, cells=best**d))
                line[f"epsilon = {epsilon}"] = f"{each['bound'] / each['auto']:.2f} ({best**d} cells)"
            yield line


@cache
def _bound(side: int, d: int, scale: float, n: int) -> float:
    lattice = Lattice((Axis(side),) * d, side)
    noise = guarantee.mean_off(lattice, "discrete_laplace", 2**0.5 * scale, 0.0, np.random.default_rng(0))
    return 2 * noise / n + 1 / side


PARTS = {"accuracy": accuracy, "cells": by_its_bound, "crossover": crossover, "times": times}
