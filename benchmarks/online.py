"""Online release against offline pmm at the same t, `blocks` against `sparse`, CPU and size of the state.

    python benchmarks/online.py error [--runs 5] [--columns 1] [--every 1] [--picture FILE.svg]
    python benchmarks/online.py cost

Epsilon 1, 131,072 events, 8 releases while the number of events doubles. `error`: mean W1 of the runs to the events so far
(exact in one column; in two columns on a grid of 64 x 64, l1), of `blocks` and of pmm by add_remove, and of both algorithms
with public arrivals by replace_one. Everything goes through the real border, in memory. The picture needs matplotlib.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.pmm_accuracy import data, w1_line, w1_square
from dpsynth_cli.domain import GRID
from dpsynth_cli.mechanisms import pmm
from dpsynth_cli.questions import Model
from dpsynth_cli.spec import Spec, from_document
from dpsynth_cli.stream_snapshot import model_of
from dpsynth_cli.stream_step import advance, partition_of
from dpsynth_cli.trusted.leaves import Gathered
from dpsynth_cli.trusted.stream_state import StreamState
from tests.asking import asking, drawn

EVENTS, PER_DOUBLING = 2**17, 8
TIMES = sorted({math.ceil(2 ** (k / PER_DOUBLING) - 1e-9) for k in range(17 * PER_DOUBLING + 1)})
PRIVATE = {"releases_per_doubling": 10_000}  # every push is a release, and there is one push a release time
PUBLIC = {"releases_per_doubling": PER_DOUBLING, "arrivals": "public"}


def stream_spec(d: int, neighbours: str, **params: object) -> Spec:
    return from_document(
        {
            "dpsynth": 1,
            "name": "benchmark",
            "output": "-",
            "privacy": {"epsilon": "1", "neighbours": neighbours},
            "mechanism": {"name": "online", **params},
            "columns": [{"name": f"c{i}", "type": "continuous", "bounds": [0, 1]} for i in range(d)],
        }
    )


def codes_of(points: np.ndarray, spec: Spec) -> dict[str, np.ndarray]:
    scaled = np.minimum((points * GRID).astype(np.int64), GRID - 1)
    return {column.name: scaled[:, i] for i, column in enumerate(spec.domain)}


def run(points: np.ndarray, spec: Spec) -> Iterator[tuple[int, StreamState]]:
    """The state after every release time."""
    state = StreamState("0" * 32, "0" * 64, {}, 0)
    codes, cells, before = codes_of(points, spec), partition_of(spec), 0
    for number, t in enumerate(TIMES):
        batch = Gathered(cells, spec.domain)
        batch.add({name: column[before:t] for name, column in codes.items()}, t - before)
        assert advance(state, spec, batch.leaves(), str(number))
        before = t
        yield t, state


def snapshot(state: StreamState, spec: Spec) -> Model:
    return model_of(spec, state.release["number"], state.release["clock"], state.blocks)[0]


def offline(points: np.ndarray, spec: Spec) -> Model:
    ask, *_ = asking(codes_of(points, spec), spec.domain, 1.0)
    return pmm.run(ask, spec.domain, pmm.Params(), dict(pmm.MECHANISM.stages))


def distance(points: np.ndarray, model: Model, spec: Spec) -> float:
    made = drawn(model, max(1, model.total))
    synthetic = np.stack([made[column.name] / GRID for column in spec.domain], axis=1)
    return w1_line(points[:, 0], synthetic[:, 0]) if points.shape[1] == 1 else w1_square(points, synthetic)


def error(d: int, runs: int, every: int, kinds: list[str], picture: str | None) -> None:
    shown = set(TIMES[::-1][: 72 * every : every]) & {t for t in TIMES if t >= 256}
    curves: dict[tuple[str, str], dict[int, float]] = {}
    for kind in kinds:
        points = data(kind, EVENTS, d, np.random.default_rng(d))
        ways = {
            "blocks": stream_spec(d, "add_remove", **PRIVATE),
            "blocks, public": stream_spec(d, "replace_one", **PUBLIC),
            "sparse, public": stream_spec(d, "replace_one", algorithm="sparse", **PUBLIC),
        }
        for way, spec in ways.items():
            found: dict[int, list[float]] = {}
            for _ in range(runs):
                for t, state in run(points, spec):
                    if t in shown:
                        found.setdefault(t, []).append(distance(points[:t], snapshot(state, spec), spec))
            curves[kind, way] = {t: float(np.mean(values)) for t, values in found.items()}
        spec = ways["blocks"]
        curves[kind, "pmm"] = {
            t: float(np.mean([distance(points[:t], offline(points[:t], spec), spec) for _ in range(runs)]))
            for t in sorted(shown)
        }
        print(f"{d} column(s), {kind}, mean of {runs}: W1 of each, blocks/pmm, sparse/blocks (public)")
        for t in sorted(shown):
            blocks, public, sparse, pm = (
                curves[kind, way][t] for way in ("blocks", "blocks, public", "sparse, public", "pmm")
            )
            end = "level end" if t & (t - 1) == 0 else ""
            print(
                f"{t:>7} pmm {pm:.5f} blocks {blocks:.5f} {blocks / pm:5.2f}   public: blocks {public:.5f} "
                f"sparse {sparse:.5f} {sparse / public:6.2f} {end}",
                flush=True,
            )
        ratios = [curves[kind, "blocks"][t] / curves[kind, "pmm"][t] for t in sorted(shown)]
        print(f"  blocks/pmm: mean {np.mean(ratios):.2f}, worst {max(ratios):.2f} of {len(ratios)} releases")
    if picture:
        draw(curves, d, picture)


def draw(curves: dict[tuple[str, str], dict[int, float]], d: int, path: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "dpsynth", "svg.fonttype": "none"})
    from matplotlib import pyplot

    kinds = list(dict.fromkeys(kind for kind, _ in curves))
    figure, axes = pyplot.subplots(1, len(kinds), figsize=(4 * len(kinds), 3.2), sharey=True, squeeze=False)
    for axis, kind in zip(axes[0], kinds, strict=True):
        for way in ("sparse, public", "blocks, public", "blocks", "pmm"):
            curve = curves[kind, way]
            axis.loglog(list(curve), list(curve.values()), label="pmm, offline" if way == "pmm" else way)
        axis.set_title(f"{kind}, {d} column{'s' if d > 1 else ''}")
        axis.set_xlabel("events so far")
    axes[0][0].set_ylabel("W1 to the events so far")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def cost() -> None:
    for d in (1, 2):
        points = data("clusters", EVENTS, d, np.random.default_rng(d))
        for name, spec in (
            ("blocks", stream_spec(d, "add_remove", **PRIVATE)),
            ("sparse", stream_spec(d, "replace_one", algorithm="sparse", **PUBLIC)),
        ):
            begun = time.process_time()
            for _, state in run(points, spec):
                snapshot(state, spec)
            spent = time.process_time() - begun
            sizes = {}
            for t, state in run(points, spec):
                held, state.open = state.open, []
                sizes[t] = len(state.as_bytes()) / t
                state.open = held
            told = ", ".join(f"{sizes[t]:.2f} at t = {t:,}" for t in (2**10, 2**13, 2**15, 2**17))
            print(
                f"{d} column(s), {name}: all {len(TIMES)} pushes and snapshots {spent:.2f} s of CPU; state without "
                f"the open blocks, bytes an event: {told}"
            )
    million()


def million() -> None:
    """A push of 1e6 rows against reading them: CPU of all threads, Parquet and CSV."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from dpsynth_cli.trusted.engines.local import added_up
    from dpsynth_cli.trusted.read import open_scan

    spec = stream_spec(2, "add_remove", **PRIVATE)
    rng = np.random.default_rng(0)
    table = pa.table({"c0": rng.random(10**6), "c1": rng.random(10**6)})
    with tempfile.TemporaryDirectory() as folder:
        csv.write_csv(table, f"{folder}/batch.csv")
        parquet.write_table(table, f"{folder}/batch.parquet")
        for name in ("batch.csv", "batch.parquet"):
            path = f"{folder}/{name}"
            best: dict[str, float] = {}
            for _ in range(5):
                begun = time.process_time()
                csv.read_csv(path) if name.endswith("csv") else parquet.read_table(path)
                best["pyarrow reads"] = min(best.get("pyarrow reads", 1e9), time.process_time() - begun)
                begun = time.process_time()
                with closing(open_scan(path, spec.domain.columns, spec.csv)) as scan:
                    for piece in scan.pieces():
                        scan.encode(piece)
                best["read to codes"] = min(best.get("read to codes", 1e9), time.process_time() - begun)
                begun = time.process_time()
                with closing(open_scan(path, spec.domain.columns, spec.csv)) as scan:
                    first, *rest = added_up(scan, lambda: Gathered(partition_of(spec), spec.domain))
                for tally in rest:
                    first.merge(tally)
                state = StreamState("0" * 32, "0" * 64, {}, 0)
                advance(state, spec, first.leaves(), "1")
                state.as_bytes()
                best["push"] = min(best.get("push", 1e9), time.process_time() - begun)
            told = ", ".join(f"{what} {seconds:.2f} s" for what, seconds in best.items())
            print(f"1e6 rows of {name.removeprefix('batch')}: {told} (best of 5)")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("error", "cost"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--columns", type=int, default=1, choices=(1, 2))
    parser.add_argument("--every", type=int, default=1, help="look at every so-many-th release only")
    parser.add_argument("--kinds", nargs="+", default=["uniform", "clusters", "skewed"])
    parser.add_argument("--picture")
    chosen = parser.parse_args()
    if chosen.what == "cost":
        cost()
    else:
        error(chosen.columns, chosen.runs, chosen.every, chosen.kinds, chosen.picture)


if __name__ == "__main__":
    main()
