"""Online release: against offline pmm at the same t, `blocks` against `sparse`, cost, and a real stream.

    python -m benchmarks online error [--runs 5] [--columns 1] [--every 1] [--first 256] [--last 131072]
                                      [--picture FILE.svg]
    python -m benchmarks online growth [--picture FILE.svg]
    python -m benchmarks online horizons
    python -m benchmarks online attainable
    python -m benchmarks online endless
    python -m benchmarks online monotone
    python -m benchmarks online cost
    python -m benchmarks online occupancy --data DIR [--picture FILE.svg]
    python -m benchmarks online tables --data DIR [--table adult ...] [--epsilon 1 ...] [--runs 5] [--each 8]

Epsilon 1, 131,072 events, 8 releases while the number of events doubles. `error`: mean W1 of the runs to the events
so far, at every release from 256 events on (exact in one column; in two columns on a grid of 64 x 64, l1), of
`blocks` and of pmm by add_remove, without a delta and with one of 1e-9, and (with `--public`) of both algorithms with
public arrivals by replace_one (in two columns at level ends only), through the real border, in memory. `growth`: the
noise of a count of everything so far, as a multiple of that of one release, for 16,000 releases. `attainable`: that of other
strategies without a delta, by arithmetic, `endless` with one, and `monotone` of counts that are projected over time. `occupancy`: a reading a minute of a room (UCI Occupancy Detection,
occupancy_stream.csv), pushed day by day through the command line; each snapshot is published and verified. `tables`: mixed tables in 100
pushes (`algorithm: joint`), the 2-way total variation distance of the last snapshot against that of one release of
`joint`. Pictures need matplotlib.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import benchmarks.tables as tables
from benchmarks.harness import (
    DPSYNTH,
    Finding,
    cost,
    least,
    pictures,
    progress,
    real_tables,
    released,
    save,
    timed,
)
from benchmarks.online_attainable import attainable, endless, monotone
from benchmarks.online_growth import growth, horizons
from benchmarks.online_occupancy import occupancy
from benchmarks.online_tables import tables as mixed
from dpsynth_cli.questions import Model
from dpsynth_cli.release.stream.snapshot import header_of, model_of
from dpsynth_cli.release.stream.step import advance, stream_of
from dpsynth_cli.spec.spec import Spec, from_document
from dpsynth_cli.trusted.stream.leaves import Gathered
from dpsynth_cli.trusted.stream.state import StreamState
from tests.asking import drawn

if TYPE_CHECKING:
    pass

EVENTS, PER_DOUBLING = 2**17, 8
TIMES = sorted({math.ceil(2 ** (k / PER_DOUBLING) - 1e-9) for k in range(17 * PER_DOUBLING + 1)})
PRIVATE = {"releases_per_doubling": 10_000}  # every push is a release, and there is one push a release time
DELTAS = {"": None, ", delta": 1e-9}
PUBLIC = {"releases_per_doubling": PER_DOUBLING, "arrivals": "public"}


def options(parser: argparse.ArgumentParser) -> None:
    real_tables(parser)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--columns", type=int, default=1, choices=(1, 2))
    parser.add_argument("--every", type=int, default=1, help="look at every so-many-th release only")
    parser.add_argument("--first", type=int, default=256, help="look at releases from so many events on")
    parser.add_argument("--last", type=int, default=EVENTS, help="and up to so many")
    parser.add_argument("--public", action="store_true", help="public arrivals and `sparse`, too")
    parser.add_argument("--kinds", nargs="+", default=["uniform", "clusters", "skewed"])
    parser.add_argument("--table", nargs="+", default=["adult"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--each", type=int, default=PER_DOUBLING, help="releases while the pushes double")
    parser.add_argument("--picture", type=Path)


def stream_spec(d: int, neighbours: str, delta: float | None = None, **params: object) -> Spec:
    return from_document(
        {
            "dpsynth": 1,
            "name": "benchmark",
            "output": "-",
            "privacy": {"epsilon": "1", "neighbours": neighbours} | ({"delta": delta} if delta else {}),
            "mechanism": {"name": "online", **params},
            "columns": [{"name": f"x{i}", "type": "continuous", "bounds": [0, 1]} for i in range(d)],
        }
    )


def run(points: np.ndarray, spec: Spec) -> Iterator[tuple[int, StreamState]]:
    """The state after every release time."""
    state = StreamState("0" * 32, "0" * 64, {}, 0)
    codes, cells, before = tables.to_codes(points, spec.domain), stream_of(spec).partition, 0
    for number, t in enumerate(t for t in TIMES if t <= len(points)):
        batch = Gathered(cells, spec.domain)
        batch.add({name: column[before:t] for name, column in codes.items()}, t - before)
        assert advance(state, spec, batch.leaves(), str(number), "2026-01-01")
        before = t
        yield t, state


def snapshot(state: StreamState, spec: Spec) -> Model:
    return model_of(spec, header_of(state), state.answers)[0]


def w1(points: np.ndarray, made: dict[str, np.ndarray], spec: Spec) -> float:
    synthetic = tables.to_points(made, spec.domain)
    if points.shape[1] == 1:
        return tables.line_w1(points[:, 0], synthetic[:, 0])
    return tables.grid_w1(points, synthetic, 64)


def online(points: np.ndarray, state: StreamState, spec: Spec) -> float:
    model = snapshot(state, spec)
    return w1(points, drawn(model, max(1, model.total)), spec)


def offline(points: np.ndarray, spec: Spec) -> float:
    delta = None if spec.privacy.delta is None else float(spec.privacy.delta)
    made = released("pmm", spec.domain, tables.to_codes(points, spec.domain), delta=delta)
    return w1(points, made.rows, spec)


# --- error ------------------------------------------------------------------------------------------


class Runs:
    """One figure of several runs: its mean, and how sure that is."""

    def __init__(self, values: list[float]) -> None:
        self.mean = float(np.mean(values))
        self.wide = float(np.std(values) / math.sqrt(max(1, len(values) - 1)))

    def over(self, other: Runs) -> tuple[float, float]:
        """The ratio of the means, and its standard error."""
        ratio = self.mean / other.mean
        return ratio, ratio * math.hypot(self.wide / self.mean, other.wide / other.mean)


Curves = dict[str, dict[int, Runs]]


def curves_of(points: np.ndarray, given: argparse.Namespace, shown: set[int], ends: set[int]) -> Curves:
    """W1 at the releases looked at, of each way."""
    d = points.shape[1]
    public = shown if d == 1 else ends  # a flow for each distance in two columns takes half a second
    private = {name: stream_spec(d, "add_remove", delta, **PRIVATE) for name, delta in DELTAS.items()}
    ways = {f"blocks{name}": (spec, shown) for name, spec in private.items()}
    if given.public:
        ways["blocks, public"] = stream_spec(d, "replace_one", **PUBLIC), public
        ways["sparse, public"] = stream_spec(d, "replace_one", algorithm="sparse", **PUBLIC), public
    curves: Curves = {}
    for way, (spec, when) in ways.items():
        found: dict[int, list[float]] = {}
        for _ in range(given.runs):
            for t, state in run(points, spec):
                if t in when:
                    found.setdefault(t, []).append(online(points[:t], state, spec))
        curves[way] = {t: Runs(values) for t, values in found.items()}
        progress(f"{way}: done")
    for name, spec in private.items():
        curves[f"pmm{name}"] = {
            t: Runs([offline(points[:t], spec) for _ in range(given.runs)]) for t in sorted(shown)
        }
    return curves


def error(given: argparse.Namespace) -> Iterator[Finding]:
    d = given.columns
    shown = set(TIMES[::-1][:: given.every]) & {t for t in TIMES if given.first <= t <= given.last}
    ends = {t for t in shown if t & (t - 1) == 0}
    every: dict[str, Curves] = {}
    for kind in given.kinds:
        points = tables.three_clusters(kind, EVENTS, d, np.random.default_rng(d))[: given.last]
        curves = every[kind] = curves_of(points, given, shown, ends)
        ratios: dict[str, list[tuple[float, float, int]]] = {name: [] for name in DELTAS}
        gains = []
        for t in sorted(shown):
            line: dict[str, object] = {"columns": d, "rows": kind, "events": t}
            for name in DELTAS:
                blocks, pmm = curves[f"blocks{name}"][t], curves[f"pmm{name}"][t]
                ratios[name].append((*blocks.over(pmm), t))
                line |= {
                    f"pmm{name}": pmm.mean,
                    f"blocks{name}": blocks.mean,
                    f"ratio{name}": ratios[name][-1][0],
                }
            if t in curves.get("sparse, public", {}):
                public, sparse = curves["blocks, public"][t], curves["sparse, public"][t]
                gain = sparse.over(public)
                if t in ends and t >= 4000:
                    gains.append((*gain, t))
                line |= {
                    "blocks, public": public.mean,
                    "sparse, public": sparse.mean,
                    "sparse / blocks": gain[0],
                }
            yield line
        for name, found in ratios.items():
            mean, (worst, wide, at) = np.mean([ratio for ratio, *_ in found]), max(found)
            yield (
                f"{kind}{name}: blocks / pmm has mean {mean:.2f}, at worst {worst:.2f} +- {wide:.2f} ({at:,} events)."
            )
        if gains:
            gained, wide, at = min(gains)
            yield f"{kind}: sparse / blocks at level ends is at least {gained:.2f} +- {wide:.2f} ({at:,} events)."
    if given.picture:
        yield draw_error(every, d, given.picture)


def draw_error(every: dict[str, Curves], d: int, path: Path) -> str:
    figure, axes = pictures().subplots(
        1, len(every), figsize=(4 * len(every), 3.2), sharey=True, squeeze=False
    )
    for axis, (kind, curves) in zip(axes[0], every.items(), strict=True):
        for way in reversed(curves):
            values = [w1.mean for w1 in curves[way].values()]
            axis.loglog(list(curves[way]), values, label=way.replace("pmm", "pmm, offline"))
        axis.set_title(f"{kind}, {d} column{'s' if d > 1 else ''}")
        axis.set_xlabel("events so far")
    axes[0][0].set_ylabel("W1 to the events so far")
    axes[0][0].legend(fontsize=7)
    return save(figure, path)


# --- cost -------------------------------------------------------------------------------------------


def costs(given: argparse.Namespace) -> Iterator[Finding]:
    """CPU of all pushes and snapshots, and bytes an event of the state."""
    for d in (1, 2):
        points = tables.three_clusters("clusters", EVENTS, d, np.random.default_rng(d))
        for name, spec in (
            ("blocks", stream_spec(d, "add_remove", **PRIVATE)),
            ("blocks, delta", stream_spec(d, "add_remove", 1e-9, **PRIVATE)),
            ("sparse", stream_spec(d, "replace_one", algorithm="sparse", **PUBLIC)),
        ):
            _, spent = timed(
                lambda points=points, spec=spec: [snapshot(s, spec) for _, s in run(points, spec)]
            )
            sizes = {}
            for t, state in run(points, spec):
                sizes[t] = len(state.as_bytes()) / t
            bytes_at = {f"bytes an event, {t:,}": sizes[t] for t in (2**10, 2**13, 2**15, 2**17)}
            yield {"columns": d, "algorithm": name, "CPU s": spent, **bytes_at}
    yield from million(given.folder)


def million(folder: Path) -> Iterator[Finding]:
    """A push of 1e6 rows against reading them: CPU of all threads, Parquet and CSV."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    rng = np.random.default_rng(0)
    table = pa.table({"x0": rng.random(10**6), "x1": rng.random(10**6)})
    ways = (("csv", csv.write_csv), ("parquet", parquet.write_table))
    for kind, write in ways:
        write(table, folder / f"batch.{kind}")
        write(table[:10], folder / f"ten.{kind}")
    yield "A push of 1e6 rows inside one process that has everything imported: all but the ledger, least of 15."
    yield from (inside(str(folder / f"batch.{kind}")) for kind, _ in ways)
    yield "Processes of their own, from start to end, and a script that only reads; least of 7."
    yield from (whole(folder, kind) for kind, _ in ways)


def inside(path: str) -> dict[str, object]:
    """CPU milliseconds of reading, of encoding, and of a push."""
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

    ways = {"pyarrow reads": read, "read to codes": encode, "push": push}
    return {"file": Path(path).suffix} | {
        f"{what}, ms": 1000 * least(work, 15) for what, work in ways.items()
    }


READ = "import sys; from pyarrow import csv, parquet; p = sys.argv[1]; csv.read_csv(p) if p[-1] == 'v' else parquet.read_table(p)"


def whole(folder: Path, kind: str) -> dict[str, object]:
    """CPU seconds of what a cron job runs."""
    spec, ledger = folder / f"{kind}.yaml", ("--ledger", folder / f"{kind}.sqlite", "--quiet")
    tables.in_unit_cube(spec, "online", 2)
    cost(*DPSYNTH, "stream", "init", spec, *ledger)
    fewest: dict[str, float] = {}
    for number in range(7):
        for rows, name in (("1e6", "batch"), ("10", "ten")):
            path = folder / f"{name}.{kind}"
            push = (*DPSYNTH, "stream", "push", spec, path, "--batch-id", f"{rows} {number}", *ledger)
            ways = {f"pyarrow reads {rows}": (sys.executable, "-c", READ, path), f"push of {rows}": push}
            for what, command in ways.items():
                fewest[what] = min(cost(*command).seconds, fewest.get(what, math.inf))
    return {"file": f".{kind}"} | {f"{what}, s": seconds for what, seconds in fewest.items()}


PARTS = {
    "error": error,
    "growth": growth,
    "horizons": horizons,
    "attainable": attainable,
    "endless": endless,
    "monotone": monotone,
    "cost": costs,
    "occupancy": occupancy,
    "tables": mixed,
}
