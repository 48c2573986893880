"""pmm against the paper's rule: W1 of both, measured in one run on the same data.

    python benchmarks/pmm_accuracy.py [releases]

The paper's rule is `consistency: uniform, levels: all`. One column: exact W1. Two columns: exact W1 in the
l1 metric on a grid of 64 x 64 (min-cost flow). Data: uniform, three clusters, skewed (beta 0.5, 5).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.pmm import pmm
from tests.asking import asking, drawn

CELLS = 64
PAPER = pmm.Params(consistency="uniform", levels="all")


def data(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "uniform":
        return rng.random((n, d))
    if kind == "skewed":
        return rng.beta(0.5, 5, (n, d))
    centres = np.array([[0.2, 0.3], [0.7, 0.6], [0.5, 0.9]])[:, :d]
    return np.clip(centres[rng.integers(3, size=n)] + rng.normal(0, 0.03, (n, d)), 0, 1)


def w1_line(x: np.ndarray, y: np.ndarray) -> float:
    both = np.sort(np.concatenate([x, y]))
    gap = np.searchsorted(np.sort(x), both[:-1], "right") / len(x) - np.searchsorted(
        np.sort(y), both[:-1], "right"
    ) / len(y)
    return float(np.sum(np.abs(gap) * np.diff(both)))


def w1_square(x: np.ndarray, y: np.ndarray) -> float:
    g = CELLS

    def histogram(points: np.ndarray) -> np.ndarray:
        cell = np.minimum((points * g).astype(int), g - 1)
        return np.bincount(cell[:, 0] * g + cell[:, 1], minlength=g * g) / len(points)

    node = np.arange(g * g).reshape(g, g)
    one = np.concatenate([node[:-1].ravel(), node[:, :-1].ravel()])
    other = np.concatenate([node[1:].ravel(), node[:, 1:].ravel()])
    tail, head = np.concatenate([one, other]), np.concatenate([other, one])
    arcs = np.arange(len(tail))
    signs = np.concatenate([np.ones(len(tail)), -np.ones(len(tail))])
    flow = coo_matrix((signs, (np.concatenate([tail, head]), np.concatenate([arcs, arcs])))).tocsr()
    surplus = histogram(x) - histogram(y)
    return float(linprog(np.full(len(tail), 1 / g), A_eq=flow[:-1], b_eq=surplus[:-1], method="highs").fun)


def distance(points: np.ndarray, omega: Domain, params: pmm.Params) -> float:
    codes = {
        c.name: np.minimum((points[:, i] * GRID).astype(np.int64), GRID - 1) for i, c in enumerate(omega)
    }
    ask, *_ = asking(codes, omega, 1.0)
    model = pmm.run(ask, omega, params, dict(pmm.MECHANISM.stages))
    made = drawn(model, max(1, model.total))
    synthetic = np.stack([made[c.name] / GRID for c in omega], axis=1)
    return w1_line(points[:, 0], synthetic[:, 0]) if len(omega.columns) == 1 else w1_square(points, synthetic)


def main() -> None:
    releases = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    print("epsilon 1, add_remove; mean W1 of", releases, "releases (fewer for two columns)")
    print(f"{'d':>2} {'n':>7} {'data':<10} {'paper':>9} {'default':>9} {'ratio':>6}")
    for d, runs in ((1, releases), (2, max(2, releases // 3))):
        omega = Domain(tuple(Column(f"c{i}", "continuous", lower=0.0, upper=1.0) for i in range(d)))
        for n in (10_000, 100_000):
            for kind in ("uniform", "clusters", "skewed"):
                points = data(kind, n, d, np.random.default_rng(n + d))
                paper, ours = (
                    np.mean([distance(points, omega, params) for _ in range(runs)])
                    for params in (PAPER, pmm.Params())
                )
                print(f"{d:>2} {n:>7} {kind:<10} {paper:9.5f} {ours:9.5f} {ours / paper:6.2f}", flush=True)


if __name__ == "__main__":
    main()
