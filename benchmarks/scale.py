"""Speed and memory against reading and writing the same Parquet file with pyarrow, in one run.

    python -m benchmarks scale [start] [noise] [rows] [widths] [inputs] [large] [--rows 1e5 1e6 1e7]
                               [--only MECHANISM ...] [--minutes M] [--folder FOLDER] [--write]

Tables are made in FOLDER: `places` with five columns in [0, 1], and `people` with 15 columns like those of a census.
Every figure is CPU time (user and system, all threads) of a process of its own, start-up included; a ratio is to the
process that reads the same columns and writes them again, at the same rows, run before and after. The part `large`,
which is not made by default, takes 1e8 rows and a CSV file of 20 GB (65 GB of disk at most, half an hour).
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.harness import DPSYNTH, ROOT, Cost, Finding, cost, installed, progress
from benchmarks.large_tables import WIDTHS, as_csv, as_gzip, in_pieces, make, spec
from benchmarks.noise import of_scales

HEADING = "## Scale and speed"
COPY = """
import sys
import pyarrow.parquet as pq
source, target, *names = sys.argv[1:]
with pq.ParquetFile(source) as file:
    writer = None
    for batch in file.iter_batches(2**18, columns=names):
        writer = writer or pq.ParquetWriter(target, batch.schema)
        writer.write_batch(batch)
    writer.close()
"""

CASES = {  # name of the line: mechanism, table, columns, what else its spec says
    "pmm, 2 columns": ("pmm", "places", 2, ""),
    "pmm, 5 columns": ("pmm", "places", 5, ""),
    "psmm, 2 columns": ("psmm", "places", 2, ""),
    "marginals, 15 columns": ("marginals", "people", 15, ""),
    "marginals by income, 15 columns": ("marginals", "people", 15, ", strata: income"),
    "joint, 15 columns": ("joint", "people", 15, ""),
    "microaggregation, 15 columns": ("microaggregation", "people", 15, ""),
    "factor, 15 columns": ("factor", "people", 15, ""),
    "lowdim, 6 numeric columns": ("lowdim", "people", 6, ""),
}
WIDE = ("marginals", "lowdim", "joint", "microaggregation", "factor")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=float, nargs="+", default=[1e5, 1e6, 1e7])
    known = sorted({mechanism for mechanism, *_ in CASES.values()})
    parser.add_argument("--only", nargs="+", default=known, choices=known, help="mechanisms")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="start no release of the part `rows` later"
    )


def mechanisms_of(given: argparse.Namespace) -> set[str]:
    from dpsynth_cli.mechanisms.registry import mechanisms

    return set(given.only) & set(mechanisms())


def released(folder: Path, table: Path, mechanism: str, count: int, more: str, *options: object) -> Cost:
    path, _ = spec(folder, table, mechanism, count, more)
    return cost(*DPSYNTH, "release", path, "-q", "--replace", "--ledger", folder / "ledger.sqlite", *options)


def copied(folder: Path, table: Path, count: int) -> Cost:
    names = pq.read_schema(table).names[:count]
    return cost(sys.executable, "-c", COPY, table, folder / "copy.parquet", *names)


def power(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The exponent between two points (size, seconds)."""
    return math.log(other[1] / one[1]) / math.log(other[0] / one[0])


# --- parts ------------------------------------------------------------------------------------------


def rows_part(given: argparse.Namespace) -> Iterator[Finding]:
    """Each mechanism at each size, small sizes first: ratio to pyarrow, exponent, peak memory."""
    sizes, until = [int(n) for n in given.rows], time.monotonic() + 60 * given.minutes
    cases = {name: case for name, case in CASES.items() if case[0] in mechanisms_of(given)}
    found: dict[tuple[str, int], Cost] = {}
    ratios: dict[tuple[str, int], float] = {}
    for rows in (1_000, *sizes):
        for name, (mechanism, kind, count, more) in cases.items():
            if time.monotonic() > until:
                continue
            table = make(given.folder, kind, rows)
            before = copied(given.folder, table, count).seconds
            ours = found[name, rows] = released(given.folder, table, mechanism, count, more)
            copies = (before + copied(given.folder, table, count).seconds) / 2
            ratios[name, rows] = ours.seconds / copies
            progress(f"{name}, {rows:,} rows: {ours} against {copies:.2f}: {ratios[name, rows]:.2f}")
    yield (
        "Each mechanism against pyarrow reading and writing the same columns, in CPU time. Start-up is included; the "
        "exponent is of the CPU time above that of 1,000 rows, over the sizes where that is more than 0.3 s."
    )
    for name in cases:
        line: dict[str, object] = {"mechanism": name}
        done = [n for n in sizes if (name, n) in found]
        for n in sizes:
            told = f"{found[name, n].seconds:.1f} ({ratios[name, n]:.2f})" if n in done else "not measured"
            line[f"{n:.0e} rows: CPU s (ratio)".replace("e+0", "e")] = told
        above = [(n, found[name, n].seconds - found[name, 1_000].seconds) for n in done]
        clear = [point for point in above if point[1] > 0.3]  # less is not told from start-up
        line["exponent in n"] = round(power(clear[0], clear[-1]), 2) if len(clear) > 1 else None
        line["peak MB"] = round(max((found[name, n].megabytes for n in done), default=math.nan))
        yield line


def widths(given: argparse.Namespace) -> Iterator[Finding]:
    rows = int(min(given.rows))
    table = make(given.folder, "wide", rows)
    yield f"CPU seconds as columns are added ({rows:,} rows)."
    for mechanism in WIDE:
        if mechanism in mechanisms_of(given):
            spent = {d: round(released(given.folder, table, mechanism, d, "").seconds, 1) for d in WIDTHS}
            ends = (WIDTHS[0], spent[WIDTHS[0]]), (WIDTHS[-1], spent[WIDTHS[-1]])
            yield {
                "mechanism": mechanism,
                **{f"d = {d}": seconds for d, seconds in spent.items()},
                "exponent in d": round(power(*ends), 2),
            }


def inputs(given: argparse.Namespace) -> Iterator[Finding]:
    """The same rows by other ways in: CSV, gzip, a folder of files, and the Dask engine."""
    folder, rows = given.folder, int(given.rows[len(given.rows) // 2])
    table = make(folder, "people", rows)
    base = released(folder, table, "marginals", 15, "").seconds

    def line(name: str, seconds: float) -> dict[str, object]:
        return {
            "input of marginals, 15 columns": name,
            "CPU s": round(seconds, 1),
            "against Parquet": seconds / base,
        }

    yield f"Other ways in ({rows:,} rows)."
    yield line("Parquet", base)
    ways: dict[str, list[object]] = {
        "CSV": ["-i", as_csv(table)],
        "1,000 Parquet files": ["-i", in_pieces(table)],
        "gzipped CSV": ["-i", as_gzip(table)],
    }
    if installed("distributed"):
        ways["Parquet, --engine dask"] = ["--engine", "dask"]
    for name, options in ways.items():
        yield line(name, released(folder, table, "marginals", 15, "", *options).seconds)
    path, _ = spec(folder, table, "marginals", 15, "")
    release = [*DPSYNTH, "release", path, "-q", "--replace", "-i", "-", "--ledger", folder / "ledger.sqlite"]
    piped = f"gzip -dc {shlex.quote(str(as_gzip(table)))} | {shlex.join(map(str, release))}"
    yield line("gzipped CSV from a pipe, with gzip's own time", cost("/bin/sh", "-c", piped).seconds)
    parse = "import pyarrow.csv, sys; pyarrow.csv.read_csv(sys.argv[1])"
    parsed = cost(sys.executable, "-c", parse, as_csv(table))
    yield line("(parsing that CSV with pyarrow alone)", parsed.seconds)


def large(given: argparse.Namespace) -> Iterator[Finding]:
    """A hundred million rows, and 20 GB of CSV; every table is removed after its line."""
    folder = given.folder

    def line(table: str, mechanism: str, ours: Cost, theirs: float | None) -> dict[str, object]:
        return {
            "table": table,
            "mechanism": mechanism,
            "CPU s": round(ours.seconds),
            "reading and writing it": round(theirs) if theirs else "not measured",
            "ratio": ours.seconds / theirs if theirs else None,
            "peak MB": round(ours.megabytes),
        }

    yield "More than memory holds."
    for kind, mechanism, count in (("places", "pmm", 2), ("people", "marginals", 15)):
        table = make(folder, kind, 10**8)
        theirs = copied(folder, table, count).seconds
        ours = released(folder, table, mechanism, count, "")
        yield line(f"1e8 rows, {count} columns, Parquet", mechanism, ours, theirs)
        table.unlink()
    table = make(folder, "people", 10**6)
    head, _, body = as_csv(table).read_bytes().partition(b"\n")
    long, times = folder / "long.csv", -(-(20 * 10**9) // len(body))
    with open(long, "wb") as target:
        target.write(head + b"\n")
        for _ in range(times):
            target.write(body)
    ours = released(folder, table, "marginals", 15, "", "-i", long)
    size = long.stat().st_size / 1e9
    yield line(f"{size:.0f} GB of CSV, {times:,}e6 rows, 15 columns", "marginals", ours, None)
    long.unlink()


def start(given: argparse.Namespace) -> Iterator[Finding]:
    """Start-up against an interpreter that does nothing: the least of seven."""
    ways: dict[str, tuple[object, ...]] = {
        "`python -c pass`": (sys.executable, "-c", "pass"),
        "`dpsynth --help`": (*DPSYNTH, "--help"),
        "`dpsynth check` (pmm)": (*DPSYNTH, "check", ROOT / "configs" / "trips_pmm.yaml"),
        "(`import numpy`)": (sys.executable, "-c", "import numpy"),
    }
    yield "Start-up."
    nothing = None
    for name, command in ways.items():
        found = min(cost(*command).seconds for _ in range(7))
        nothing = nothing or found
        yield {
            "command": name,
            "CPU ms": round(1000 * found),
            "against `python -c pass`": round(found / nothing, 1),
        }


def noise(given: argparse.Namespace) -> Iterator[Finding]:
    """Exact noise a value, beside numpy's inexact noise and OpenDP's exact one."""
    yield "Noise."
    yield from of_scales({"laplace": [Fraction(10)], "gaussian": [Fraction(100)]}, 2**20)


PARTS = {
    "start": start,
    "noise": noise,
    "rows": rows_part,
    "widths": widths,
    "inputs": inputs,
    "large": large,
}
DEFAULT = ("start", "noise", "rows", "widths", "inputs")
