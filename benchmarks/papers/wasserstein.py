"""Algorithmically effective private synthetic data (COLT 2023): rates of W1 against n, and bounds that hold for any data.

    python -m benchmarks papers.wasserstein rates [--runs 4] [--picture FILE.svg]     # the picture needs matplotlib
    python -m benchmarks papers.wasserstein bounds

Rates: three clusters of beta variables in one to five columns, epsilon 1, replace_one; exact W1 (largest coordinate)
between as many real and synthetic rows, the mean of some releases; slopes are of log W1 on log n. Theory for pmm: -1
with log^2(epsilon n) for one column, -1/d for d (Corollary 3.11); for psmm -1/2, then -1/d (Theorem 3.6). The paper has no measurements: its number is the slope.
Bounds: what psmm's flow says of its own release (Theorem 3.6) and pmm's own noisy counts of theirs, beside pmm's printed
bound (Theorem 3.9).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import Finding, pictures, save
from benchmarks.psmm import release, w1
from benchmarks.tables import line_w1, to_codes, unit_cube
from dpsynth_cli.mechanisms.pmm import pmm
from dpsynth_cli.mechanisms.pmm.levels import paper_bound
from dpsynth_cli.mechanisms.psmm import psmm
from tests.asking import asking

SIZES = {1: (500, 2000, 8000, 32_000, 128_000), 2: (250, 500, 1000, 2000), 3: (250, 500, 1000, 2000),
         4: (250, 500, 1000, 2000), 5: (250, 500, 1000, 2000)}  # fmt: skip
METHODS = {
    "pmm, printed rule": ("pmm", {"consistency": "uniform", "levels": "all"}),
    "pmm": ("pmm", {}),
    "psmm": ("psmm", {}),
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=4, help="releases of each kind; default: 4")
    parser.add_argument("--picture", type=Path, help="of `rates`")


def rows_of(n: int, d: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(1).random((3, d))
    return np.clip(centres[rng.integers(3, size=n)] + 0.3 * (rng.beta(2, 5, (n, d)) - 0.3), 0, 1)


def rates(given: argparse.Namespace) -> Iterator[Finding]:
    """W1 at the smallest and the largest n, the slope of the later half of sizes, and the theorem's."""
    found: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for d, sizes in SIZES.items():
        for what, (name, params) in METHODS.items():
            line = []
            for n in sizes:
                apart = []
                for seed in range(given.runs):
                    real = rows_of(n, d, seed)
                    made = release(name, real, **params)
                    apart.append(line_w1(real[:, 0], made[:, 0]) if d == 1 else w1(real, made))
                line.append((n, float(np.mean(apart))))
            found[what, d] = line
            late = np.log(np.array(line[len(line) // 2 - 1 :]))
            yield {
                "columns": d,
                "what": what,
                "n": f"{sizes[0]} to {sizes[-1]}",
                "W1 at first": line[0][1],
                "W1 at last": line[-1][1],
                "slope": float(np.polyfit(late[:, 0], late[:, 1], 1)[0]),
                "theorem": theorem(name, d),
            }
    if given.picture:
        yield draw(given.picture, found)


def theorem(name: str, d: int) -> str:
    """The rate of Corollary 3.11 (pmm), or of Theorem 3.6 with Corollary 3.3 (psmm)."""
    if name == "psmm":
        return {1: "-1/2", 2: "-1/2, log"}.get(d, f"-1/{d}")
    return "-1, log^2" if d == 1 else f"-1/{d}"


def draw(path: Path, found: dict[tuple[str, int], list[tuple[int, float]]]) -> str:
    figure, axes = pictures().subplots(1, len(SIZES), figsize=(14, 3.6))
    for d, axis in zip(SIZES, axes, strict=True):
        for what in METHODS:
            axis.loglog(*zip(*found[what, d], strict=True), marker="o", label=what)
        last = found["pmm, printed rule", d][-1][1]
        sizes = np.array(SIZES[d], float)
        law = sizes ** (-1 / d) * (np.log2(sizes) ** 2 if d == 1 else 1)
        axis.loglog(sizes, law / law[-1] * last, "k--", label="the theorem's law")
        axis.set(title=f"{d} column{'s' * (d > 1)}", xlabel="n")
    axes[0].set_ylabel("W1, epsilon 1")
    axes[0].legend()
    return save(figure, path)


def bounds(given: argparse.Namespace) -> Iterator[Finding]:
    """Bounds on the expected W1 of any data, epsilon 1."""
    for n in (1000, 4000, 16_000):
        for d in (1, 2, 3):
            line: dict[str, object] = {"n": n, "columns": d}
            for relation in ("replace_one", "add_remove"):
                omega = unit_cube(d, relation)
                ours = psmm.bound(omega, psmm.Params(), psmm.MECHANISM.stages, 1.0, n)
                line[f"psmm, {relation}"] = None if ours is None else ours.w1
                line[f"pmm by its counts, {relation}"] = by_counts(n, d, relation)
                line[f"pmm's printed, {relation}"] = paper_bound(omega.columns, 1.0, n, relation)
            yield line


def by_counts(n: int, d: int, relation: str) -> float:
    """The bound of one release of clusters."""
    omega = unit_cube(d, relation)
    ask, *_ = asking(to_codes(rows_of(n, d, 0), omega), omega, 1.0)
    bound = pmm.run(ask, omega, pmm.Params(), pmm.MECHANISM.stages).bound(n)
    return float("nan") if bound is None else bound.w1


PARTS = {"rates": rates, "bounds": bounds}
DEFAULT = ("rates", "bounds")
