"""A real stream: room occupancy, a reading a minute, pushed day by day through the command line.

    python benchmarks/occupancy.py FOLDER [--picture FILE.svg]

FOLDER has occupancy_stream.csv (UCI Occupancy Detection: date, sensors, Occupancy). Each day is one push of the hour of the day and
whether the room was occupied; after each push the snapshot is published and verified. Prints, per release, how far the
synthetic share of occupied minutes by hour is from the real one so far, and draws it. The picture needs matplotlib.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
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


def followed(stream: pd.DataFrame) -> list[tuple[str, int, int, np.ndarray, np.ndarray]]:
    """Per day: its date, real and synthetic rows so far, and the occupancy by hour of both."""
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "spec.yaml").write_text(SPEC)

        def dpsynth(*words: str) -> None:
            command = [sys.executable, "-m", "dpsynth_cli", *words, "--ledger", "ledger.sqlite", "--quiet"]
            subprocess.run(command, cwd=root, check=True)

        dpsynth("stream", "init", "spec.yaml")
        so_far = []
        for day, rows in stream.groupby("day"):
            rows[["hour", "occupied"]].to_csv(root / "day.csv", index=False)
            dpsynth("stream", "push", "spec.yaml", "day.csv", "--batch-id", str(day), "--publish")
            dpsynth("verify", "snapshot.audit.public.json")
            so_far.append(rows)
            real, made = pd.concat(so_far), pd.read_csv(root / "snapshot.csv")
            seen.append((str(day), len(real), len(made), by_hour(real), by_hour(made)))
    return seen


def draw(seen: list[tuple[str, int, int, np.ndarray, np.ndarray]], path: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "dpsynth", "svg.fonttype": "none"})
    from matplotlib import pyplot

    days = [0, len(seen) // 3, len(seen) - 1]
    figure, axes = pyplot.subplots(1, 4, figsize=(13, 2.9))
    for axis, number in zip(axes, days, strict=False):
        day, count, _, real, made = seen[number]
        axis.bar(np.arange(24) + 0.5, made, width=0.9, color="#9ecae1", label="synthetic snapshot")
        axis.step(
            np.arange(25), np.append(real, real[-1]), where="post", color="#08306b", label="real so far"
        )
        axis.set_title(f"{day}: {count:,} readings", fontsize=9)
        axis.set_xlabel("hour of the day")
        axis.set_ylim(0, 1)
    axes[0].set_ylabel("share of occupied minutes")
    axes[0].legend(fontsize=7)
    axes[3].plot(
        [count for _, count, *_ in seen], [np.abs(real - made).mean() for *_, real, made in seen], "o-"
    )
    axes[3].set_title("mean error over the hours", fontsize=9)
    axes[3].set_xlabel("readings so far")
    axes[3].set_ylim(bottom=0)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--picture")
    chosen = parser.parse_args()
    table = pd.read_csv(chosen.folder / "occupancy_stream.csv", parse_dates=["date"])
    time = table["date"].dt
    stream = pd.DataFrame(
        {
            "day": time.strftime("%Y-%m-%d"),
            "hour": time.hour + time.minute / 60,
            "occupied": table["Occupancy"].astype(bool),
        }
    )
    seen = followed(stream)
    print("day, real rows so far, synthetic rows, mean and largest error of the occupied share by hour")
    for day, count, rows, real, made in seen:
        gap = np.abs(real - made)
        print(f"{day} {count:>7,} {rows:>7,} {gap.mean():.4f} {gap.max():.4f}")
    if chosen.picture:
        draw(seen, chosen.picture)


if __name__ == "__main__":
    main()
