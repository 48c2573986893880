"""A real stream through the command line: each day pushed, its snapshot published and verified."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.harness import DPSYNTH, ENVIRONMENT, Finding, in_data, pictures, save

if TYPE_CHECKING:
    import pandas as pd

SPEC = """\
dpsynth: 1
name: occupancy
input: day.csv
output: snapshot.csv
privacy: {epsilon: 1.0}
mechanism: {name: online, releases_per_doubling: 1000}
columns:
  hour:     {type: continuous, bounds: [0, 24]}
  occupied: {type: boolean}
sampling: {seed: 7}
"""


def by_hour(table: pd.DataFrame) -> np.ndarray:
    """The share of occupied minutes in each hour of the day, 0 where there is none."""
    hour = np.minimum(table["hour"].astype(float).to_numpy().astype(int), 23)
    occupied = table["occupied"].to_numpy().astype(float)
    count = np.bincount(hour, minlength=24)
    return np.bincount(hour, weights=occupied, minlength=24) / np.maximum(count, 1)


@dataclass(frozen=True)
class Day:
    """Rows so far, and the occupancy by hour of both tables, after one day's push."""

    name: str
    rows: int
    made_rows: int
    real: np.ndarray
    made: np.ndarray


def followed(stream: pd.DataFrame, folder: Path) -> Iterator[Day]:
    """Each day pushed, its snapshot published and verified."""
    import pandas as pd

    def dpsynth(*words: str) -> None:
        command = [*DPSYNTH, *words, "--ledger", "ledger.sqlite", "--quiet"]
        subprocess.run(command, cwd=folder, check=True, env=ENVIRONMENT)

    (folder / "spec.yaml").write_text(SPEC)
    dpsynth("stream", "init", "spec.yaml")
    so_far = []
    for day, rows in stream.groupby("day"):
        rows[["hour", "occupied"]].to_csv(folder / "day.csv", index=False)
        dpsynth("stream", "push", "spec.yaml", "day.csv", "--batch-id", str(day), "--publish")
        dpsynth("verify", "snapshot.audit.public.json")
        so_far.append(rows)
        real, made = pd.concat(so_far), pd.read_csv(folder / "snapshot.csv")
        yield Day(str(day), len(real), len(made), by_hour(real), by_hour(made))


def occupancy(given: argparse.Namespace) -> Iterator[Finding]:
    """How far the synthetic share of occupied minutes by hour is from the real one so far."""
    import pandas as pd

    table = pd.read_csv(in_data(given, "occupancy_stream.csv"), parse_dates=["date"])
    time = table["date"].dt
    stream = pd.DataFrame({
        "day": time.strftime("%Y-%m-%d"),
        "hour": time.hour + time.minute / 60,
        "occupied": table["Occupancy"].astype(bool),
    })  # fmt: skip
    seen = []
    for day in followed(stream, given.folder):
        seen.append(day)
        gap = np.abs(day.real - day.made)
        yield {
            "day": day.name,
            "real rows so far": day.rows,
            "synthetic rows": day.made_rows,
            "mean error": float(gap.mean()),
            "largest error": float(gap.max()),
        }
    if given.picture:
        yield draw_days(seen, given.picture)


def draw_days(seen: list[Day], path: Path) -> str:
    figure, axes = pictures().subplots(1, 4, figsize=(13, 2.9))
    for axis, number in zip(axes, (0, len(seen) // 3, len(seen) - 1), strict=False):
        day = seen[number]
        axis.bar(np.arange(24) + 0.5, day.made, width=0.9, color="#9ecae1", label="synthetic snapshot")
        edges, heights = np.arange(25), np.append(day.real, day.real[-1])
        axis.step(edges, heights, where="post", color="#08306b", label="real so far")
        axis.set_title(f"{day.name}: {day.rows:,} readings", fontsize=9)
        axis.set_xlabel("hour of the day")
        axis.set_ylim(0, 1)
    axes[0].set_ylabel("share of occupied minutes")
    axes[0].legend(fontsize=7)
    axes[3].plot([day.rows for day in seen], [np.abs(day.real - day.made).mean() for day in seen], "o-")
    axes[3].set_title("mean error over the hours", fontsize=9)
    axes[3].set_xlabel("readings so far")
    axes[3].set_ylim(bottom=0)
    return save(figure, path)
