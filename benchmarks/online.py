"""Online release against offline pmm at the same t, `blocks` against `sparse`, CPU and size of the state.

    python benchmarks/online.py error [--runs 5] [--columns 1] [--every 1] [--first 256] [--last 131072]
                                      [--picture FILE.svg]
    python benchmarks/online.py cost

Epsilon 1, 131,072 events, 8 releases while the number of events doubles. `error`: mean W1 of the runs to the events so far, at
every release from 256 events on (exact in one column; in two columns on a grid of 64 x 64, l1), of `blocks` and of pmm by
add_remove, and of both algorithms with public arrivals by replace_one (in two columns at level ends only). Everything goes through the real border, in memory. The picture needs matplotlib.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.pmm_accuracy import data, w1_line, w1_square
from benchmarks.scale import ENVIRONMENT
from dpsynth_cli.domain import GRID
from dpsynth_cli.mechanisms.pmm import pmm
from dpsynth_cli.questions import Model
from dpsynth_cli.release.stream_snapshot import model_of
from dpsynth_cli.release.stream_step import advance, stream_of
from dpsynth_cli.spec.spec import Spec, from_document
from dpsynth_cli.trusted.stream.leaves import Gathered
from dpsynth_cli.trusted.stream.state import StreamState
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
    codes, cells, before = codes_of(points, spec), stream_of(spec).partition, 0
    for number, t in enumerate(t for t in TIMES if t <= len(points)):
        batch = Gathered(cells, spec.domain)
        batch.add({name: column[before:t] for name, column in codes.items()}, t - before)
        assert advance(state, spec, batch.leaves(), str(number), "2026-01-01")
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


def error(
    d: int, runs: int, every: int, kinds: list[str], picture: str | None, first: int, last: int
) -> None:
    shown = set(TIMES[::-1][::every]) & {t for t in TIMES if first <= t <= last}
    ends = {t for t in shown if t & (t - 1) == 0}
    curves: dict[tuple[str, str], dict[int, Runs]] = {}
    for kind in kinds:
        points = data(kind, EVENTS, d, np.random.default_rng(d))[:last]
        ways = {
            "blocks": (stream_spec(d, "add_remove", **PRIVATE), shown),
            # A flow for each distance in two columns takes half a second.
            "blocks, public": (stream_spec(d, "replace_one", **PUBLIC), shown if d == 1 else ends),
            "sparse, public": (
                stream_spec(d, "replace_one", algorithm="sparse", **PUBLIC),
                shown if d == 1 else ends,
            ),
        }
        for way, (spec, when) in ways.items():
            found: dict[int, list[float]] = {}
            for _ in range(runs):
                for t, state in run(points, spec):
                    if t in when:
                        found.setdefault(t, []).append(distance(points[:t], snapshot(state, spec), spec))
            curves[kind, way] = {t: Runs(values) for t, values in found.items()}
        spec = ways["blocks"][0]
        curves[kind, "pmm"] = {
            t: Runs([distance(points[:t], offline(points[:t], spec), spec) for _ in range(runs)])
            for t in sorted(shown)
        }
        print(f"{d} column(s), {kind}, mean of {runs}: W1 of each, blocks/pmm, sparse/blocks (public)")
        ratios, gains = [], []
        for t in sorted(shown):
            blocks, pm = curves[kind, "blocks"][t], curves[kind, "pmm"][t]
            ratios.append((*blocks.over(pm), t))
            told = f"{t:>7} pmm {pm.mean:.5f} blocks {blocks.mean:.5f} {ratios[-1][0]:5.2f}"
            if t in curves[kind, "sparse, public"]:
                public, sparse = curves[kind, "blocks, public"][t], curves[kind, "sparse, public"][t]
                gain = sparse.over(public)
                told += f"   public: blocks {public.mean:.5f} sparse {sparse.mean:.5f} {gain[0]:6.2f}"
                if t in ends:
                    told += " level end"
                    gains += [(*gain, t)] if t >= 4000 else []
            print(told, flush=True)
        mean, (worst, wide, at) = np.mean([ratio for ratio, *_ in ratios]), max(ratios)
        print(
            f"  blocks/pmm at {len(ratios)} releases: mean {mean:.2f}, worst {worst:.2f} +- {wide:.2f} at {at:,}"
        )
        if gains:
            print("  sparse/blocks at level ends: least {:.2f} +- {:.2f} at {:,}".format(*min(gains)))
    if picture:
        draw(curves, d, picture)


class Runs:
    """One figure of several runs: its mean, and how sure that is."""

    def __init__(self, values: list[float]) -> None:
        self.mean = float(np.mean(values))
        self.wide = float(np.std(values) / math.sqrt(max(1, len(values) - 1)))

    def over(self, other: Runs) -> tuple[float, float]:
        """The ratio of the means, and its standard error."""
        ratio = self.mean / other.mean
        return ratio, ratio * math.hypot(self.wide / self.mean, other.wide / other.mean)


def draw(curves: dict[tuple[str, str], dict[int, Runs]], d: int, path: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "dpsynth", "svg.fonttype": "none"})
    from matplotlib import pyplot

    kinds = list(dict.fromkeys(kind for kind, _ in curves))
    figure, axes = pyplot.subplots(1, len(kinds), figsize=(4 * len(kinds), 3.2), sharey=True, squeeze=False)
    for axis, kind in zip(axes[0], kinds, strict=True):
        for way in ("sparse, public", "blocks, public", "blocks", "pmm"):
            curve = curves[kind, way]
            axis.loglog(
                list(curve), [w1.mean for w1 in curve.values()], label="pmm, offline" if way == "pmm" else way
            )
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

    rng = np.random.default_rng(0)
    table = pa.table({"c0": rng.random(10**6), "c1": rng.random(10**6)})
    with tempfile.TemporaryDirectory() as folder:
        for kind, write in (("csv", csv.write_csv), ("parquet", parquet.write_table)):
            write(table, f"{folder}/batch.{kind}")
            write(table[:10], f"{folder}/ten.{kind}")
            inside(f"{folder}/batch.{kind}")
            whole(folder, kind)


def inside(path: str) -> None:
    """In one process that has everything imported: all that a push does but the ledger."""
    from pyarrow import csv, parquet

    from dpsynth_cli.trusted.engines.local import added_up
    from dpsynth_cli.trusted.rows.read import open_scan

    spec = stream_spec(2, "add_remove", **PRIVATE)

    def read() -> None:
        csv.read_csv(path) if path.endswith("csv") else parquet.read_table(path)

    def encode() -> None:
        with closing(open_scan(path, spec.domain.columns, spec.csv)) as scan:
            for piece in scan.pieces():
                scan.encode(piece)

    def push() -> None:
        with closing(open_scan(path, spec.domain.columns, spec.csv)) as scan:
            first, *rest = added_up(scan, lambda: Gathered(stream_of(spec).partition, spec.domain))
        for tally in rest:
            first.merge(tally)
        state = StreamState("0" * 32, "0" * 64, {}, 0)
        advance(state, spec, first.leaves(), "1", "2026-01-01")
        state.as_bytes()

    told = []
    for what, work in (("pyarrow reads", read), ("read to codes", encode), ("push", push)):
        spent = []
        for _ in range(15):
            begun = time.process_time()
            work()
            spent.append(time.process_time() - begun)
        told.append(f"{what} {min(spent) * 1000:.0f} ms")
    print(f"1e6 rows of {Path(path).suffix}, inside one process: {', '.join(told)} (least of 15)")


READ = "import sys; from pyarrow import csv, parquet; p = sys.argv[1]; csv.read_csv(p) if p[-1] == 'v' else parquet.read_table(p)"


def whole(folder: str, kind: str) -> None:
    """Processes of their own, from start to end: what a cron job costs, and a script that only reads."""
    spec, ledger = f"{folder}/spec.yaml", ("--ledger", f"{folder}/ledger.sqlite", "--quiet")
    columns = "".join(f"  c{i}: {{type: continuous, bounds: [0, 1]}}\n" for i in range(2))
    Path(spec).write_text(
        f"dpsynth: 1\nname: {kind}\noutput: out.csv\nprivacy: {{epsilon: 1.0}}\nmechanism: {{name: online}}\n"
        f"columns:\n{columns}"
    )
    dpsynth = (sys.executable, "-m", "dpsynth_cli", "stream")
    subprocess.run([*dpsynth, "init", spec, *ledger], check=True, env=ENVIRONMENT)
    least: dict[str, float] = {}
    for number in range(7):
        for rows, name in (("1e6", "batch"), ("10", "ten")):
            path = f"{folder}/{name}.{kind}"
            for what, words in (
                (f"pyarrow reads {rows}", [sys.executable, "-c", READ, path]),
                (
                    f"push of {rows}",
                    [*dpsynth, "push", spec, path, "--batch-id", f"{rows} {number}", *ledger],
                ),
            ):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(words, check=True, env=ENVIRONMENT)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                least[what] = min(spent, least.get(what, math.inf))
    told = ", ".join(f"{what} {seconds:.2f} s" for what, seconds in least.items())
    print(f".{kind}, whole processes: {told} (least of 7)")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("error", "cost"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--columns", type=int, default=1, choices=(1, 2))
    parser.add_argument("--every", type=int, default=1, help="look at every so-many-th release only")
    parser.add_argument("--first", type=int, default=256, help="look at releases from so many events on")
    parser.add_argument("--last", type=int, default=EVENTS, help="and up to so many")
    parser.add_argument("--kinds", nargs="+", default=["uniform", "clusters", "skewed"])
    parser.add_argument("--picture")
    chosen = parser.parse_args()
    if chosen.what == "cost":
        cost()
    else:
        within = (chosen.first, chosen.last)
        error(chosen.columns, chosen.runs, chosen.every, chosen.kinds, chosen.picture, *within)


if __name__ == "__main__":
    main()
