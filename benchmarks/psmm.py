"""psmm: time and memory against cells, and W1 against pmm.

    python benchmarks/psmm.py times            # the closest measure: flow, sparse and dense linear programs
    python benchmarks/psmm.py accuracy [10]    # W1 at n = 4000, epsilon = 1, replace_one; how many seeds
    python benchmarks/psmm.py crossover [5]    # psmm or pmm? W1 against epsilon n

Simulated data only; times are CPU seconds of one thread; W1 is exact (an optimal assignment of all rows,
l_inf in the unit cube), and noise is drawn anew every time.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dpsynth_cli.numeric.transport_lp import closest_by_dense_lp, closest_by_lp

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.psmm import psmm
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.numeric.lattice import Axis, Lattice
from dpsynth_cli.numeric.transport import Closest, closest, debiased, effort, rescaled
from tests.asking import asking, drawn


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
    start = time.process_time()
    found = solvers(lattice)[solver](nu, n)
    taken = time.process_time() - start
    return taken, 1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before), found.distance


def times() -> None:
    print(
        f"{'cells':>8} {'lattice':>14} {'metric':>6} {'data':>9} {'solver':>10} {'s':>8} {'MB':>7}"
        f"  {'at worst':>16} {'optimum':>9}"
    )
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
    seen: dict[tuple[int, ...], dict[str, float]] = {}
    for shape, metric, kind, solver in rows:
        with spawn.Pool(1) as pool:
            taken, size, distance = pool.apply(measured, (shape, metric, kind, solver))
        lattice = Lattice(tuple(Axis(k) for k in shape), max(shape), metric)
        shown, (seconds, most) = "x".join(map(str, shape)), effort(lattice)
        predicted = f"{seconds:.1f} s, {most / 1e6:.0f} MB" if solver == "flow" else "-"
        print(
            f"{lattice.size:>8} {shown:>14} {metric:>6} {kind:>9} {solver:>10} {taken:>8.3f} {size / 1e6:>7.0f}"
            f"  {predicted:>16} {distance:>9}",
            flush=True,
        )
        if kind == "clusters" and metric == "linf":
            seen.setdefault(shape, {})[solver] = taken
    for shape, by_solver in seen.items():
        shown = "x".join(map(str, shape))
        for solver, taken in by_solver.items():
            if solver != "flow":
                print(f"{shown}: flow is {taken / by_solver['flow']:.0f} x faster than the {solver}")


# --- accuracy ----------------------------------------------------------------------------------------------


def release(name: str, rows: np.ndarray, epsilon: float = 1.0, **params: object) -> np.ndarray:
    """As many synthetic rows, by the real border, under replace_one."""
    d = rows.shape[1]
    columns = tuple(Column(f"x{a}", "continuous", lower=0.0, upper=1.0) for a in range(d))
    omega = Domain(columns, "replace_one")
    codes = {f"x{a}": (rows[:, a] * GRID).astype(np.int64) for a in range(d)}
    mechanism = mechanisms()[name]
    ask, accountant, _, _ = asking(codes, omega, epsilon)
    model = mechanism.run(ask, omega, mechanism.params(**params), mechanism.stages)
    assert accountant.spent == accountant.total
    table = drawn(model, len(rows), seed=int(rows[0, 0] * 1e9))
    return (np.stack([table[f"x{a}"] for a in range(d)], axis=1) + 0.5) / GRID


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


def accuracy(seeds: int) -> None:
    targets = {(2, "clusters"): 0.75, (2, "uniform"): 0.5, (3, "clusters"): 0.7, (3, "uniform"): None}
    print("W1 (standard error), n = 4000, epsilon = 1, replace_one")
    for (d, kind), target in targets.items():
        errors: dict[str, list[float]] = {name: [] for name in METHODS}
        for seed in range(seeds):
            rows = points(kind, 4000, d, np.random.default_rng(seed))
            for name, method in METHODS.items():
                errors[name].append(w1(rows, method(rows)))
        line = "  ".join(f"{k} {np.mean(v):.4f} ({np.std(v) / seeds**0.5:.4f})" for k, v in errors.items())
        ratio = np.mean(errors["psmm"]) / np.mean(errors["pmm, paper"])
        worse = sum(a > b for a, b in zip(errors["psmm"], errors["clipped"], strict=True))
        print(f"d = {d} {kind:>8}: {line}")
        print(f"    psmm / paper's pmm = {ratio:.2f}" + (f" (target {target})" if target else ""), end="; ")
        print(f"worse than clipping in {worse} of {seeds}", flush=True)


def crossover(seeds: int) -> None:
    print("W1 of psmm / W1 of pmm, both at their defaults (W1 of psmm), n = 2000, replace_one")
    for d in (1, 2, 3, 4):
        for kind in ("clusters", "uniform"):
            ratios = []
            for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0):
                each = {"psmm": 0.0, "pmm": 0.0}
                for seed in range(seeds):
                    rows = points(kind, 2000, d, np.random.default_rng(seed))
                    for name in each:
                        each[name] += w1(rows, release(name, rows, epsilon)) / seeds
                shown = f"{each['psmm'] / each['pmm']:.2f} ({each['psmm']:.4f})"
                ratios.append(f"epsilon n = {2000 * epsilon:.0f}: {shown}")
            print(f"d = {d} {kind:>8}: " + "  ".join(ratios), flush=True)


if __name__ == "__main__":
    what, count = ([*sys.argv, "", ""])[1:3]
    if what == "times":
        times()
    elif what in ("accuracy", "crossover"):
        {"accuracy": accuracy, "crossover": crossover}[what](
            int(count or {"accuracy": 10, "crossover": 5}[what])
        )
    else:
        sys.exit(__doc__)
