"""lowdim: a classifier trained on synthetic digits, W1 beside a subspace, and speed.

    python -m benchmarks lowdim digits --data DIR [--runs 10]             # needs scikit-learn
    python -m benchmarks lowdim subspace [--picture FILE.svg]             # W1 against n, simulated
    python -m benchmarks lowdim speed [--rows 1000000] [--columns 64]     # CPU against pyarrow and one Gram product

Digits: optical recognition of handwritten digits (UCI), 8 x 8 pixels 0..16 and a label; one release a line of noise,
an RBF SVM (C = 1, gamma = scale) on 3,000 synthetic rows, accuracy on the real test rows. Noise is drawn anew every time.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.harness import (
    DPSYNTH,
    Finding,
    cost,
    in_data,
    need,
    pictures,
    real_tables,
    released,
    save,
    timed,
    words,
)
from benchmarks.tables import grid_w1, in_unit_cube, unit_cube
from dpsynth_cli.domain import GRID, Column, Domain

FIRST = "lowdim pure"
EPSILONS = (0.5, 1, 2, 4, 8)
FORMS: dict[str, dict] = {"auto": {}, "dimension: 0": {"dimension": 0}, "clip: 7": {"clip": 7.0}}


def options(parser: argparse.ArgumentParser) -> None:
    real_tables(parser)
    parser.add_argument("--runs", type=int, default=10, help="releases of each kind; default: 10")
    parser.add_argument("--picture", type=Path, help="of `subspace`; needs matplotlib")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=64)


# --- digits ---------------------------------------------------------------------------------------------


def digits(given: argparse.Namespace) -> Iterator[Finding]:
    """Accuracy of an SVM, trained on synthetic rows, on real test rows; +- is the standard error; add_remove."""
    need("sklearn")
    from sklearn.svm import SVC

    train, test = (
        np.loadtxt(in_data(given, "digits", name), delimiter=",", skiprows=1)
        for name in ("train.csv", "test.csv")
    )
    pixels = [f"p{j}" for j in range(64)]
    columns = tuple(Column(name, "integer", lower=0, upper=16) for name in pixels)
    omega = Domain((*columns, Column("digit", "nominal", categories=tuple("0123456789"))), strata="digit")
    codes = {name: train[:, j].astype(np.int64) for j, name in enumerate([*pixels, "digit"])}

    def accuracy(epsilon: float, delta: float | None, params: dict, seed: int) -> tuple[float, object]:
        made = released("lowdim", omega, codes, epsilon, delta, seed, **params)
        rows = np.random.default_rng(seed).permutation(len(made.rows["digit"]))[:3000]
        x = np.column_stack([made.rows[name][rows] for name in pixels]) / 16
        machine = SVC(C=1.0, gamma="scale").fit(x, made.rows["digit"][rows])
        return machine.score(test[:, :64] / 16, test[:, 64]), made.facts["dimension"]

    for delta in (1e-6, None):
        for epsilon in EPSILONS:
            line: dict[str, object] = {"epsilon": epsilon, "delta": "1e-6" if delta else "pure"}
            for form, params in FORMS.items():
                runs = [accuracy(epsilon, delta, params, seed) for seed in range(given.runs)]
                scores = np.array([score for score, _ in runs])
                line[form] = f"{scores.mean():.4f} +- {scores.std() / given.runs**0.5:.4f}"
                line.setdefault("dimension (auto)", words(dimension for _, dimension in runs))
            yield line


# --- a subspace -----------------------------------------------------------------------------------------


def on_a_subspace(n: int, d: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a k-dimensional affine subspace of the cube, in two skewed clusters, and its basis."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, k)))[0]
    t = rng.beta(2, 5, (n, k))
    t = np.where(rng.random((n, 1)) < 0.5, t, 1 - t / 2) - 0.5
    return 0.5 + 0.99 * t @ basis.T / np.abs(basis).sum(axis=1).max(), basis


def apart(x: np.ndarray, z: np.ndarray, basis: np.ndarray) -> tuple[float, float]:
    """W1 (l1) of real and synthetic rows along the subspace, and the mean distance of the latter from it."""
    real, made = (x - 0.5) @ basis, (z - 0.5) @ basis
    beside = float(np.linalg.norm((z - 0.5) - made @ basis.T, axis=1).mean())
    if basis.shape[1] == 1:
        return float(np.abs(np.sort(real[:, 0]) - np.sort(made[:, 0])).mean()), beside
    side = 1.2 * float(np.ptp(real, axis=0).max())
    return grid_w1(real, made, {2: 48, 3: 14}[basis.shape[1]], real.min(axis=0) - 0.1 * side, side), beside


def subspace(given: argparse.Namespace) -> Iterator[Finding]:
    """The error in the subspace and beside it, against n; for three dimensions and direct pmm. Epsilon 1, d = 20."""
    d, repeats = 20, 3
    omega = unit_cube(d)
    lines: list[tuple[str, int, int, float, float]] = []
    for name, delta in ((FIRST, None), ("lowdim delta 1e-6", 1e-6), ("pmm, all columns", None)):
        direct = name.startswith("pmm")
        for k in (1, 2, 3):
            own = []
            for n in (10_000, 31_623, 100_000) if direct else (10_000, 31_623, 100_000, 316_228):
                found = []
                for seed in range(repeats):
                    x, basis = on_a_subspace(n, d, k, seed)
                    codes = {f"x{j}": np.rint(x[:, j] * (GRID - 1)).astype(np.int64) for j in range(d)}
                    params = {} if direct else {"inside": "pmm", "dimension": k}
                    made = released(name.split()[0].strip(","), omega, codes, 1.0, delta, seed, n, **params)
                    z = np.column_stack([made.rows[f"x{j}"] for j in range(d)]) / (GRID - 1)
                    found.append(apart(x, z, basis))
                along, beside = map(float, np.mean(found, axis=0))
                own.append((n, along, along + beside))
                lines.append((name, k, n, along, beside))
                yield {"what": name, "dimension": k, "n": n, "W1 along": along, "distance beside": beside,
                       "slope of the sum": None, "slope along, at the end": None, "-1/d'": None}  # fmt: skip
            size, inside, whole = np.log(np.array(own)).T
            yield {"what": name, "dimension": k, "n": None, "W1 along": None, "distance beside": None,
                   "slope of the sum": float(np.polyfit(size, whole, 1)[0]),
                   "slope along, at the end": float((inside[-1] - inside[-2]) / (size[-1] - size[-2])),
                   "-1/d'": -1 / k}  # fmt: skip
    if given.picture:
        yield draw(given.picture, lines)


def draw(path: Path, lines: list[tuple[str, int, int, float, float]]) -> str:
    figure, axes = pictures().subplots(1, 3, figsize=(12, 4), sharey=True)
    for k, axis in zip((1, 2, 3), axes, strict=True):
        for name in dict.fromkeys(line[0] for line in lines):
            own = [(n, a + b) for what, dimension, n, a, b in lines if (what, dimension) == (name, k)]
            axis.loglog(*zip(*own, strict=True), marker="o", label=name)
        n, last = max((n, a + b) for what, dimension, n, a, b in lines if what == FIRST and dimension == k)
        far = np.array([n / 31.6, n])
        axis.loglog(far, last * (far / n) ** (-1 / k), "k--", label="slope -1/d'")
        axis.loglog(far, last * (far / n) ** -1.0, "k:", label="slope -1 (the PCA term)")
        axis.set(title=f"d' = {k}", xlabel="n")
    axes[0].set_ylabel("W1 + distance from the subspace")
    axes[0].legend()
    return save(figure, path)


# --- speed ----------------------------------------------------------------------------------------------


def speed(given: argparse.Namespace) -> Iterator[Finding]:
    """CPU seconds of a whole release against reading and writing the file and one Gram product."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, columns, folder = given.rows, given.columns, given.folder
    rng = np.random.default_rng(0)
    causes = rng.normal(0, 0.07, (columns, 6))
    path, copy = folder / "wide.parquet", folder / "copy.parquet"
    x = np.clip(0.5 + rng.normal(size=(rows, 6)) @ causes.T + rng.normal(0, 0.03, (rows, columns)), 0, 1)
    pq.write_table(pa.table({f"x{j}": x[:, j] for j in range(columns)}), path)
    spec = in_unit_cube(folder / "spec.yaml", "lowdim", columns, input=path, delta=1e-9)
    for _ in range(3):  # the first may have the time of compiling modules
        _, files = timed(lambda: pq.write_table(pq.read_table(path), copy))
        _, gram = timed(lambda: x.T @ x)
        own = cost(*DPSYNTH, "release", spec, "-q", "--ledger", folder / "ledger.sqlite")
        yield {"rows": rows, "columns": columns, "pyarrow s": files, "Gram s": gram, "release s": own.seconds,
               "ratio": own.seconds / (files + gram), "peak MB": own.megabytes}  # fmt: skip


PARTS = {"digits": digits, "subspace": subspace, "speed": speed}
