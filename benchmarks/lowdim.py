"""lowdim: a classifier trained on synthetic digits, W1 beside a subspace, and speed.

    python benchmarks/lowdim.py digits [--releases 10] [--data FOLDER]   # the folder has digits/train.csv, test.csv
    python benchmarks/lowdim.py subspace [--out FOLDER]                  # W1 against n, simulated; CSV and a plot
    python benchmarks/lowdim.py speed [--rows 1000000] [--columns 64]    # CPU against pyarrow and one Gram product

The folder of real tables is also taken from $DPSYNTH_DATA. Digits: optical recognition of handwritten digits
(UCI), 8 x 8 pixels 0..16 and a label; one release a line of noise, an RBF SVM (C = 1, gamma = scale) on 3,000
synthetic rows, accuracy on the real test rows. Noise is drawn anew every time.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.lowdim.lowdim import MECHANISM, Params
from dpsynth_cli.mechanisms.registry import mechanisms
from tests.asking import asking, drawn

FIRST = "lowdim pure"
EPSILONS = (0.5, 1, 2, 4, 8)
TARGETS = {
    (4, 1e-6): 0.925,
    (4, None): 0.885,
    (1, 1e-6): 0.885,
    (1, None): 0.86,
    (0.5, 1e-6): 0.86,
    (0.5, None): 0.8,
}


# --- digits ---------------------------------------------------------------------------------------------


def digits(folder: Path, releases: int) -> None:
    """Accuracy of an SVM, trained on synthetic rows, on real test rows."""
    from sklearn.svm import SVC

    train, test = (
        np.loadtxt(folder / "digits" / name, delimiter=",", skiprows=1) for name in ("train.csv", "test.csv")
    )
    pixels = [f"p{j}" for j in range(64)]
    columns = tuple(Column(name, "integer", lower=0, upper=16) for name in pixels)
    omega = Domain((*columns, Column("digit", "nominal", categories=tuple("0123456789"))), strata="digit")
    codes = {name: train[:, j].astype(np.int64) for j, name in enumerate([*pixels, "digit"])}

    def accuracy(epsilon: float, delta: float | None, params: Params, seed: int) -> tuple[float, object]:
        ask, accountant, _, _ = asking(codes, omega, epsilon, delta)
        model = MECHANISM.run(ask, omega, params, MECHANISM.stages)
        assert accountant.spent == accountant.total
        table = drawn(model, max(1, model.total), seed)
        rows = np.random.default_rng(seed).permutation(len(table["digit"]))[:3000]
        x = np.column_stack([table[name][rows] for name in pixels]) / 16
        machine = SVC(C=1.0, gamma="scale").fit(x, table["digit"][rows])
        return machine.score(test[:, :64] / 16, test[:, 64]), model.facts["dimension"]

    print(f"{releases} releases each, add_remove; +- is the standard error; target in brackets")
    print(f"{'epsilon':>8} {'delta':>6}   {'auto':<26} {'dimension: 0':<18} {'clip: 7':<18} d' (auto)")
    for delta in (1e-6, None):
        for epsilon in EPSILONS:
            cells, found = [], []
            for params in (Params(), Params(dimension=0), Params(clip=7.0)):
                runs = [accuracy(epsilon, delta, params, seed) for seed in range(releases)]
                scores = np.array([score for score, _ in runs])
                cells.append(f"{scores.mean():.4f} +- {scores.std() / releases**0.5:.4f}")
                found = found or [dimension for _, dimension in runs]
            target = TARGETS.get((epsilon, delta))
            cells[0] += f" [{target}]" if target else ""
            print(
                f"{epsilon:>8} {delta or 'pure':>6}   {cells[0]:<26} {cells[1]:<18} {cells[2]:<18} {found}",
                flush=True,
            )


# --- a subspace -----------------------------------------------------------------------------------------


def on_a_subspace(n: int, d: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a k-dimensional affine subspace of the cube, in two skewed clusters, and its basis."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, k)))[0]
    t = rng.beta(2, 5, (n, k))
    t = np.where(rng.random((n, 1)) < 0.5, t, 1 - t / 2) - 0.5
    return 0.5 + 0.99 * t @ basis.T / np.abs(basis).sum(axis=1).max(), basis


def grid_w1(a: np.ndarray, b: np.ndarray, low: np.ndarray, side: float, cells: int) -> float:
    """W1 (l1 metric) of two samples rounded to a grid, exactly: the cheapest flow between its neighbours."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    k = a.shape[1]
    if k == 1:
        return float(np.abs(np.sort(a[:, 0]) - np.sort(b[:, 0])).mean())
    shape = (cells,) * k
    masses = []
    for x in (a, b):
        place = np.clip(((x - low) / side * cells).astype(int), 0, cells - 1)
        masses.append(np.bincount(np.ravel_multi_index(tuple(place.T), shape), minlength=cells**k) / len(x))
    node = np.arange(cells**k).reshape(shape)
    pairs = [(np.moveaxis(node, j, 0)[:-1].ravel(), np.moveaxis(node, j, 0)[1:].ravel()) for j in range(k)]
    tail = np.concatenate([p for p, _ in pairs] + [q for _, q in pairs])
    head = np.concatenate([q for _, q in pairs] + [p for p, _ in pairs])
    arc = np.arange(len(tail))
    ends = (np.concatenate([tail, head]), np.concatenate([arc, arc]))
    flow = coo_matrix((np.repeat([1.0, -1.0], len(arc)), ends), shape=(cells**k, len(arc))).tocsr()
    result = linprog(
        np.full(len(arc), side / cells), A_eq=flow[:-1], b_eq=(masses[0] - masses[1])[:-1], method="highs-ipm"
    )
    return float(result.fun)


def subspace(out: Path) -> None:
    """W1 of the release, in the subspace and beside it, against n; for three dimensions and direct pmm."""
    d, epsilon, repeats = 20, 1.0, 3
    omega = Domain(tuple(Column(f"x{j}", "continuous", lower=0.0, upper=1.0) for j in range(d)))
    lines = []
    print(
        "W1 (l1 along the subspace) + mean distance from it; epsilon 1, d = 20, add_remove; slope of the sum in log n"
    )
    for name, delta in ((FIRST, None), ("lowdim delta 1e-6", 1e-6), ("pmm, all columns", None)):
        for k in (1, 2, 3):
            sums = []
            for n in (10_000, 31_623, 100_000, 316_228):
                if name.startswith("pmm") and n > 100_000:
                    continue
                along, beside = [], []
                for seed in range(repeats):
                    x, basis = on_a_subspace(n, d, k, seed)
                    codes = {f"x{j}": np.rint(x[:, j] * (GRID - 1)).astype(np.int64) for j in range(d)}
                    ask, _, _, _ = asking(codes, omega, epsilon, delta)
                    if name.startswith("pmm"):
                        direct = mechanisms()["pmm"]
                        model = direct.run(ask, omega, direct.params(), direct.stages)
                    else:
                        model = MECHANISM.run(ask, omega, Params(inside="pmm", dimension=k), MECHANISM.stages)
                    table = drawn(model, n, seed)
                    z = np.column_stack([table[f"x{j}"] for j in range(d)]) / (GRID - 1)
                    real, made = (x - 0.5) @ basis, (z - 0.5) @ basis
                    side = 1.2 * float(np.ptp(real, axis=0).max())
                    low = real.min(axis=0) - 0.1 * side
                    along.append(grid_w1(real, made, low, side, {1: 0, 2: 48, 3: 14}[k]))
                    beside.append(float(np.linalg.norm((z - 0.5) - made @ basis.T, axis=1).mean()))
                sums.append((n, np.mean(along) + np.mean(beside)))
                lines.append((name, k, n, np.mean(along), np.mean(beside)))
                print(
                    f"{name:<18} d' = {k}  n = {n:>7}  {np.mean(along):.5f} + {np.mean(beside):.5f}",
                    flush=True,
                )
            ends = [(n, a) for what, dimension, n, a, _ in lines if (what, dimension) == (name, k)][-2:]
            inside = np.log(ends[1][1] / ends[0][1]) / np.log(ends[1][0] / ends[0][0])
            slope = np.polyfit(np.log([n for n, _ in sums]), np.log([w for _, w in sums]), 1)[0]
            print(
                f"{name:<18} d' = {k}  slope {slope:.2f}, at the end along the subspace {inside:.2f}  "
                f"((epsilon n)^(-1/d') is {-1 / k:.2f}; the PCA term -1)"
            )
    out.mkdir(parents=True, exist_ok=True)
    with (out / "lowdim_subspace.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("what", "dimension", "n", "w1_along", "distance_beside"), *lines])
    print(f"wrote {out / 'lowdim_subspace.csv'}")
    plot(out, lines)


def plot(out: Path, lines: list[tuple]) -> None:
    try:
        import matplotlib as mpl
    except ImportError:
        print("(no plot: matplotlib is not installed; pip install '.[bench]')")
        return
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharey=True)
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
    figure.savefig(out / "lowdim_subspace.png", dpi=120)
    print(f"wrote {out / 'lowdim_subspace.png'}")


# --- speed ----------------------------------------------------------------------------------------------


def speed(rows: int, columns: int) -> None:
    """CPU seconds of a whole release against reading and writing the file and one Gram product."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    causes = rng.normal(0, 0.07, (columns, 6))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wide.parquet"
        x = np.clip(0.5 + rng.normal(size=(rows, 6)) @ causes.T + rng.normal(0, 0.03, (rows, columns)), 0, 1)
        pq.write_table(pa.table({f"c{j}": x[:, j] for j in range(columns)}), path)
        spec = Path(folder) / "spec.yaml"
        spec.write_text(
            "dpsynth: 1\nname: wide\ninput: wide.parquet\noutput: made.parquet\n"
            "privacy: {epsilon: 1.0, delta: 1e-9}\nmechanism: {name: lowdim}\ncolumns:\n"
            + "".join(f"  c{j}: {{type: continuous, bounds: [0.0, 1.0]}}\n" for j in range(columns))
        )
        for _ in range(3):
            start = time.process_time()
            pq.write_table(pq.read_table(path), Path(folder) / "copy.parquet")
            files = time.process_time() - start
            start = time.process_time()
            x.T @ x
            gram = time.process_time() - start
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [
                sys.executable,
                "-c",
                "from dpsynth_cli.cli.main import run; run()",
                "release",
                str(spec),
                "--quiet",
            ]
            # Compiled modules are kept, as in any installation: the first line has the time of compiling them.
            kept = os.environ | {
                "PYTHONDONTWRITEBYTECODE": "",
                "PYTHONPYCACHEPREFIX": str(Path(folder) / "pyc"),
            }
            subprocess.run([*command, "--ledger", str(Path(folder) / "ledger")], check=True, env=kept)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            most = after.ru_maxrss / 2**10
            print(
                f"pyarrow {files:.2f} s, Gram {gram:.2f} s, release {own:.2f} s: {own / (files + gram):.2f} x; "
                f"at most {most:.0f} MiB in memory",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("digits", "subspace", "speed"))
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--data", type=Path, default=os.environ.get("DPSYNTH_DATA"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=64)
    args = parser.parse_args()
    if args.what == "digits":
        if args.data is None or not (Path(args.data) / "digits" / "train.csv").exists():
            sys.exit(
                "digits needs a folder with digits/train.csv and digits/test.csv: --data FOLDER or $DPSYNTH_DATA"
            )
        digits(Path(args.data), args.releases)
    elif args.what == "subspace":
        subspace(args.out)
    else:
        speed(args.rows, args.columns)


if __name__ == "__main__":
    main()
