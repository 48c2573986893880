"""Judges that others wrote, on releases of ours: SDMetrics, anonymeter, SynthEval, mostlyai-qa.

    python -m benchmarks judges install --environments DIR               # once: an environment for each judge
    python -m benchmarks judges --environments DIR --data DIR [--table adult ...] [--mechanism joint] [--epsilon 1 ...]
    python -m benchmarks judges --environments DIR --table SPEC.yaml --made FILE.csv --held-out FILE.csv

The rows of a table are dealt into two equal halves: one is released, the other is held out, as the control of attacks. A judge
sees as many rows of each, and judges the release, other real rows that were not released (the best that can be
had), a copy of the released rows (a leak: what a judge says of it shows whether it would notice one), and the released rows
with each column shuffled. With --made, a release that there is already is judged: the table is its
input, and --held-out has rows that were not. A judge without an environment is left out. What each figure means
is in `benchmarks/outside/`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import benchmarks.tables as tables
from benchmarks.harness import Finding, need, progress, real_tables, releases

HERE = Path(__file__).resolve().parent / "outside"
JUDGES = {  # by the name of their script: what is installed
    "sdmetrics": "sdmetrics==0.32.0",
    "anonymeter": "anonymeter==1.1.0",
    "syntheval": "syntheval==1.7.3",
    "mostlyai": "mostlyai-qa==1.10.11",
}
LONGEST = 3600  # seconds of one judge on one table


def options(parser: argparse.ArgumentParser) -> None:
    real_tables(parser)
    releases(parser, runs=1)
    parser.set_defaults(delta=1e-9)
    found = os.environ.get("DPSYNTH_JUDGES") or None
    parser.add_argument(
        "--environments", type=Path, metavar="DIR", default=found, help="default: $DPSYNTH_JUDGES"
    )
    parser.add_argument("--judge", nargs="+", choices=list(JUDGES), default=list(JUDGES), help="default: all")
    parser.add_argument("--table", nargs="+", default=["adult"], help="names or specs; default: adult")
    parser.add_argument("--mechanism", default="joint", help="default: joint")
    parser.add_argument("--most", type=int, default=8000, help="rows that a judge sees; default: 8000")
    parser.add_argument("--made", type=Path, help="judge this release of the one table, made of all its rows")
    parser.add_argument("--held-out", type=Path, help="with --made: rows that were not released")


def install(given: argparse.Namespace) -> Iterator[Finding]:
    """An environment for each judge, from the Python index."""
    for name in given.judge:
        folder = environments(given) / name
        if not folder.exists():
            venv.create(folder, with_pip=True)
        python = folder / "bin" / "python"
        ran = subprocess.run([python, "-m", "pip", "install", "--quiet", JUDGES[name]], check=False)
        yield f"{JUDGES[name]}: {'installed' if ran.returncode == 0 else 'could not be installed'}."


def judge(given: argparse.Namespace) -> Iterator[Finding]:
    """Each table, by each judge: the release and its references, a line each."""
    need("pandas")
    if given.made and (given.held_out is None or len(given.table) != 1):
        sys.exit("--made needs one --table, and --held-out: rows of the same kind that were not released")
    for name in given.table:
        table = tables.real(given, name)
        for epsilon in given.epsilon if not given.made else given.epsilon[:1]:
            kinds = {c.name: kind(c.type) for c in table.domain}
            what, files = parts(given, table, epsilon, list(kinds))
            described = given.folder / "columns.json"
            described.write_text(json.dumps(kinds))
            yield f"{what}, {date.today()}."
            for one in given.judge:
                yield from lines(given, one, files, described)


def lines(
    given: argparse.Namespace, judge: str, files: Mapping[str, Path], described: Path
) -> Iterator[Finding]:
    """What one judge says of each table to be judged."""
    python = environments(given).absolute() / judge / "bin" / "python"
    if not python.exists():
        yield f"{judge}: no environment (python -m benchmarks judges install)."
        return
    for made in [name for name in files if name not in ("released", "held out")]:
        command = [python, HERE / f"by_{judge}.py", files["released"], files["held out"], files[made]]
        # A judge may look for updates or send what it was used for: it is told not to.
        quiet = os.environ | {"DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
        ran = subprocess.run(
            [*(str(Path(word).absolute()) for word in (*command, described)), str(given.most)],
            capture_output=True, text=True, timeout=LONGEST, env=quiet, check=False,
            cwd=given.folder,  # some write files where they are
        )  # fmt: skip
        if ran.returncode:
            progress(ran.stderr[-2000:])
            yield f"{judge} failed on {made}: exit code {ran.returncode}."
            continue
        yield {JUDGES[judge]: made} | json.loads(ran.stdout.splitlines()[-1])


def parts(
    given: argparse.Namespace, table: tables.Real, epsilon: float, names: list[str]
) -> tuple[str, dict[str, Path]]:
    """What is judged, in words, and the files that judges are given: all of the same number of rows."""
    import pandas as pd

    rng = np.random.default_rng(0)
    rows = frame(table.train)
    rows = rows.iloc[rng.permutation(len(rows))]
    if given.made:
        released, others, made = rows, frame(given.held_out), frame(given.made)
        what = f"`{given.made.name}`, a release of {len(rows):,} rows of `{table.name}`"
    else:
        middle = len(rows) // 2
        released, others = rows.iloc[:middle], rows.iloc[middle : 2 * middle]
        made = pd.concat(frame(one) for one in released_files(given, table, released, epsilon))
        how = f"{given.mechanism}, epsilon {epsilon:g}, delta {given.delta:g}"
        what = f"`{table.name}`: {how}, {given.runs} release(s) of {middle:,} rows, {middle:,} held out"
    few = min(given.most, len(released), len(others) // 2, len(made))
    seen = released.iloc[:few]
    shuffled = seen.apply(lambda column: column.to_numpy()[rng.permutation(few)])
    every = {
        "released": seen,
        "held out": others.iloc[:few],
        "the release": made.iloc[rng.permutation(len(made))[:few]],
        "other real rows": others.iloc[few : 2 * few],
        "a copy": seen,
        "shuffled columns": shuffled,
    }
    files = {}
    for name, part in every.items():
        files[name] = given.folder / f"{name.replace(' ', '_')}.csv"
        part[names].to_csv(files[name], index=False)
    return f"{what}; judges see {few:,} rows of each", files


def released_files(
    given: argparse.Namespace, table: tables.Real, rows: Any, epsilon: float
) -> Iterator[Path]:
    """Releases of these rows, from file to file."""
    from dataclasses import replace

    from dpsynth_cli import api

    half = given.folder / "half.csv"
    rows.to_csv(half, index=False)
    own = replace(table, train=half)
    for seed in range(given.runs):
        made = given.folder / f"made{seed}.csv"
        spec = own.spec(given.mechanism, epsilon, given.delta, seed=seed, output=made)
        api.release(spec, ledger=given.folder / "ledger.sqlite", replace=True)
        yield made


def frame(path: Path) -> Any:
    """A table as text, as it is in the file."""
    import pandas as pd

    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def kind(type: str) -> str:
    """A column in the words of the judges."""
    if type in ("nominal", "ordinal", "boolean"):
        return "categorical"
    return "datetime" if type in ("date", "datetime") else "numerical"


def environments(given: argparse.Namespace) -> Path:
    if given.environments is None:
        sys.exit("judges have environments of their own: --environments DIR or $DPSYNTH_JUDGES")
    return Path(given.environments)


PARTS = {"judge": judge, "install": install}
