"""Speed and memory against reading and writing the same Parquet file with pyarrow, in one run.

    python benchmarks/scale.py [--rows 1e5 1e6 1e7] [--folder FOLDER] [--parts PART ...] [--only NAME ...]
                               [--minutes M] [--write]

Tables are made in FOLDER (default: a temporary one, removed after): `places` with five columns in [0, 1], and
`people` with 15 columns like those of a census. Every figure is CPU time (user and system, all threads) of a
process of its own, start-up included; a ratio is to the process that reads the same columns and writes them
again, at the same rows, run before and after. The part `large`, which is not made by default, takes 1e8 rows and
a CSV file of 20 GB (65 GB of disk at most, half an hour). --write puts the tables into benchmarks/RESULTS.md, under this benchmark's own heading.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import shlex
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.tables import WIDTHS, as_csv, as_gzip, in_pieces, make, spec

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


# As installed packages are: compiled once, not at every start.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Cost:
    seconds: float
    megabytes: float


def cost(*command: object) -> Cost:
    """CPU time and peak memory of a process and those it waited for."""
    words = list(map(str, command))
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.execve(words[0], words, ENVIRONMENT)
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(words)}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


# --- measurements -----------------------------------------------------------------------------------


def released(folder: Path, table: Path, mechanism: str, count: int, more: str, *options: object) -> Cost:
    path, _ = spec(folder, table, mechanism, count, more)
    return cost(*DPSYNTH, "release", path, "-q", "--ledger", folder / "ledger.sqlite", *options)


def copied(folder: Path, table: Path, count: int) -> Cost:
    names = pq.read_schema(table).names[:count]
    return cost(sys.executable, "-c", COPY, table, folder / "copy.parquet", *names)


def rows_table(folder: Path, sizes: list[int], only: list[str], until: float) -> list[str]:
    """Each mechanism at each size, small sizes first: ratio to pyarrow, exponent, peak memory."""
    from dpsynth_cli.mechanisms.registry import mechanisms

    cases = {
        name: case
        for name, case in CASES.items()
        if case[0] in mechanisms() and (not only or case[0] in only)
    }
    found: dict[tuple[str, int], Cost] = {}
    ratios: dict[tuple[str, int], float] = {}
    for rows in (1_000, *sizes):
        for name, (mechanism, kind, count, more) in cases.items():
            if time.monotonic() > until:
                continue
            table = make(folder, kind, rows)
            before = copied(folder, table, count).seconds
            ours = found[name, rows] = released(folder, table, mechanism, count, more)
            copies = (before + copied(folder, table, count).seconds) / 2
            ratios[name, rows] = ours.seconds / copies
            print(f"{name}, {rows:,} rows: {ours} against {copies:.2f}: {ratios[name, rows]:.2f}", flush=True)
    head = " | ".join(f"{n:.0e} rows: CPU s (ratio)".replace("e+0", "e") for n in sizes)
    lines = [f"| mechanism | {head} | exponent in n | peak MB |", f"|---|{'---:|' * (len(sizes) + 2)}"]
    for name in cases:
        done = [n for n in sizes if (name, n) in found]
        cells = [
            f"{found[name, n].seconds:.1f} ({ratios[name, n]:.2f})" if n in done else "not measured"
            for n in sizes
        ]
        above = {n: found[name, n].seconds - found[name, 1_000].seconds for n in done}
        clear = [n for n in done if above[n] > 0.3]  # less is not told from start-up
        power = "-"
        if len(clear) > 1:
            power = f"{math.log(above[clear[-1]] / above[clear[0]]) / math.log(clear[-1] / clear[0]):.2f}"
        peak = max((found[name, n].megabytes for n in done), default=math.nan)
        lines.append(f"| {name} | {' | '.join(cells)} | {power} | {peak:.0f} |")
    return lines


def widths_table(folder: Path, rows: int) -> list[str]:
    """Cost as columns are added."""
    table = make(folder, "wide", rows)
    lines = [f"| mechanism | {' | '.join(f'd = {d}' for d in WIDTHS)} | exponent in d |"]
    lines.append(f"|---|{'---:|' * (len(WIDTHS) + 1)}")
    for mechanism in ("marginals", "lowdim", "joint", "microaggregation", "factor"):
        spent = [released(folder, table, mechanism, d, "").seconds for d in WIDTHS]
        power = math.log(spent[-1] / spent[0]) / math.log(WIDTHS[-1] / WIDTHS[0])
        lines.append(f"| {mechanism} | {' | '.join(f'{s:.1f}' for s in spent)} | {power:.2f} |")
        print(lines[-1], flush=True)
    return lines


def inputs_table(folder: Path, rows: int) -> list[str]:
    """The same rows by other ways in: CSV, gzip, a folder of files, and the Dask engine."""
    table = make(folder, "people", rows)
    base = released(folder, table, "marginals", 15, "").seconds
    parsed = cost(
        sys.executable, "-c", "import pyarrow.csv, sys; pyarrow.csv.read_csv(sys.argv[1])", as_csv(table)
    )
    lines = ["| input of marginals, 15 columns | CPU s | against Parquet |", "|---|---:|---:|"]
    lines.append(f"| Parquet | {base:.1f} | 1.00 |")
    ways: dict[str, list[object]] = {
        "CSV": ["-i", as_csv(table)],
        "1,000 Parquet files": ["-i", in_pieces(table)],
        "gzipped CSV": ["-i", as_gzip(table)],
    }
    if has("distributed"):
        ways["Parquet, --engine dask"] = ["--engine", "dask"]
    for name, options in ways.items():
        found = released(folder, table, "marginals", 15, "", *options).seconds
        lines.append(f"| {name} | {found:.1f} | {found / base:.2f} |")
    path, _ = spec(folder, table, "marginals", 15, "")
    release = [*DPSYNTH, "release", path, "-q", "-i", "-", "--ledger", folder / "ledger.sqlite"]
    piped = f"gzip -dc {shlex.quote(str(as_gzip(table)))} | {shlex.join(map(str, release))}"
    found = cost("/bin/sh", "-c", piped).seconds
    lines.append(f"| gzipped CSV from a pipe, with gzip's own time | {found:.1f} | {found / base:.2f} |")
    lines.append(
        f"| (parsing that CSV with pyarrow alone) | {parsed.seconds:.1f} | {parsed.seconds / base:.2f} |"
    )
    print("\n".join(lines[2:]), flush=True)
    return lines


def large_table(folder: Path) -> list[str]:
    """A hundred million rows, and 20 GB of CSV; every table is removed after its line."""
    lines = [
        "| table | mechanism | CPU s | reading and writing it | ratio | peak MB |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for kind, mechanism, count in (("places", "pmm", 2), ("people", "marginals", 15)):
        table = make(folder, kind, 10**8)
        theirs = copied(folder, table, count).seconds
        ours = released(folder, table, mechanism, count, "")
        lines.append(
            f"| 1e8 rows, {count} columns, Parquet | {mechanism} | {ours.seconds:.0f} | {theirs:.0f} | "
            f"{ours.seconds / theirs:.2f} | {ours.megabytes:.0f} |"
        )
        print(lines[-1], flush=True)
        table.unlink()
    table = make(folder, "people", 10**6)
    head, _, body = as_csv(table).read_bytes().partition(b"\n")
    long, times = folder / "long.csv", -(-(20 * 10**9) // len(body))
    with open(long, "wb") as target:
        target.write(head + b"\n")
        for _ in range(times):
            target.write(body)
    ours = released(folder, table, "marginals", 15, "", "-i", long)
    lines.append(
        f"| {long.stat().st_size / 1e9:.0f} GB of CSV, {times:,}e6 rows, 15 columns | marginals | {ours.seconds:.0f} | "
        f"not measured | | {ours.megabytes:.0f} |"
    )
    print(lines[-1], flush=True)
    long.unlink()
    return lines


def start_table() -> list[str]:
    """Start-up against an interpreter that does nothing: the least of seven."""

    def least(*command: object) -> float:
        return min(cost(*command).seconds for _ in range(7))

    nothing = least(sys.executable, "-c", "pass")
    lines = ["| command | CPU ms | against `python -c pass` |", "|---|---:|---:|"]
    lines.append(f"| `python -c pass` | {1000 * nothing:.0f} | 1.0 |")
    ways: dict[str, list[object]] = {
        "`dpsynth --help`": [*DPSYNTH, "--help"],
        "`dpsynth check` (pmm)": [*DPSYNTH, "check", ROOT / "configs" / "trips_pmm.yaml"],
        "(`import numpy`)": [sys.executable, "-c", "import numpy"],
    }
    for name, command in ways.items():
        found = least(*command)
        lines.append(f"| {name} | {1000 * found:.0f} | {found / nothing:.1f} |")
    print("\n".join(lines[2:]), flush=True)
    return lines


def noise_table() -> list[str]:
    """Exact noise a value, beside numpy's inexact noise and OpenDP's exact one."""
    from fractions import Fraction

    from benchmarks.noise import nanoseconds, opendp
    from dpsynth_cli.trusted.noise import samplers as noise
    from dpsynth_cli.trusted.noise.words import system_source

    source, rng, size = system_source(), np.random.default_rng(), 2**20
    lines = ["| noise | ns a value | numpy (inexact) | OpenDP (exact) |", "|---|---:|---:|---:|"]
    for kind, parameter in (("laplace", Fraction(10)), ("gaussian", Fraction(100))):
        exact = {"laplace": noise.discrete_laplace, "gaussian": noise.discrete_gaussian}[kind]
        inexact = {"laplace": rng.laplace, "gaussian": rng.normal}[kind]
        ours = nanoseconds(lambda n, exact=exact, p=parameter: exact(p, n, source), size)
        theirs = nanoseconds(lambda n, inexact=inexact: inexact(0.0, 10.0, n), size)
        other = opendp(kind, parameter)
        third = f"{nanoseconds(other, size >> 10):,.0f}" if other else "not installed"
        lines.append(f"| discrete {kind}, scale 10 | {ours:.0f} | {theirs:.0f} | {third} |")
    print("\n".join(lines[2:]), flush=True)
    return lines


def has(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


# --- the report -------------------------------------------------------------------------------------

DPSYNTH = [sys.executable, "-m", "dpsynth_cli"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, nargs="+", default=[1e5, 1e6, 1e7])
    parser.add_argument("--folder", type=Path)
    parser.add_argument(
        "--parts", nargs="+", help="start, noise, rows, widths, inputs; all by default; large"
    )
    known = sorted({mechanism for mechanism, *_ in CASES.values()})
    parser.add_argument("--only", nargs="+", default=[], choices=known, help="mechanisms")
    parser.add_argument("--write", action="store_true", help="into benchmarks/RESULTS.md")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="start no release of the first part later"
    )
    given = parser.parse_args()
    sizes, until = [int(n) for n in given.rows], time.monotonic() + 60 * given.minutes
    middle = sizes[len(sizes) // 2]
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        measured = {
            "start": lambda: ["Start-up.", start_table()],
            "noise": lambda: ["Noise.", noise_table()],
            "rows": lambda: [
                "Each mechanism against pyarrow reading and writing the same columns, in CPU time.",
                rows_table(folder, sizes, given.only, until),
            ],
            "widths": lambda: [
                f"CPU seconds as columns are added ({min(sizes):,} rows).",
                widths_table(folder, min(sizes)),
            ],
            "large": lambda: ["More than memory holds.", large_table(folder)],
            "inputs": lambda: [f"Other ways in ({middle:,} rows).", inputs_table(folder, middle)],
        }
        wanted = given.parts or [name for name in measured if name != "large"]
        parts = [line for name in wanted for line in measured[name]()]
    if given.write:
        write(ROOT / "benchmarks" / "RESULTS.md", parts)


def write(path: Path, parts: list) -> None:
    """Replace the section under HEADING, and leave the others alone."""
    packages = ", ".join(
        f"{name} {has(name)}" for name in ("numpy", "pyarrow", "distributed", "opendp") if has(name)
    )
    about = (
        f"Made by `python benchmarks/scale.py` on {date.today()}: Python {platform.python_version()}, {packages}; "
        f"{platform.machine()}, {os.cpu_count()} cores. Start-up is included everywhere; the exponent is of the "
        "CPU time above that of a release of 1,000 rows, over the sizes where that is more than 0.3 s."
    )
    body = "\n\n".join("\n".join(part) if isinstance(part, list) else part for part in parts)
    old = path.read_text() if path.exists() else "# Results\n"
    kept = re.sub(rf"^{HEADING}\n.*?(?=^## |\Z)", "", old, flags=re.M | re.S).rstrip()
    path.write_text(f"{kept}\n\n{HEADING}\n\n{about}\n\n{body}\n")


if __name__ == "__main__":
    main()
