"""pmm on taxi pick-ups in New York (two columns), through the real border, judged by exact W1.

    python benchmarks/uber.py DATA [releases] [--epsilon 0.1 1 3] [--paper]

DATA is the folder (or set DPSYNTH_DATA) that holds uber2d/{train,test}.csv and uber2d/schema.json; the judge
is ../tools/evaluate.py beside it (or --judge): W1 in the l1 metric on the unit square, on a grid of 64 x 64,
pure epsilon, add_remove. Noise is drawn anew for every release, so figures vary. --paper adds the paper's rule.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.adult_marginals import arguments, judge_at
from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.pmm import pmm
from tests.asking import asking, drawn


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(epsilon=[0.1, 1.0, 3.0])
    parser.add_argument("--paper", action="store_true", help="the paper's rule as well")
    given = parser.parse_args()
    judge = judge_at(given.judge or given.data.parent / "tools" / "evaluate.py")
    schema = json.loads((given.data / "uber2d" / "schema.json").read_text())
    table = pd.read_csv(given.data / "uber2d" / "train.csv")
    bounds = {c["name"]: (float(c["min"]), float(c["max"])) for c in schema["columns"]}
    real = np.stack([(table[name] - low) / (high - low) for name, (low, high) in bounds.items()], axis=1)
    real = np.clip(real, 0.0, 1.0)
    omega = Domain(
        tuple(Column(name, "continuous", lower=low, upper=high) for name, (low, high) in bounds.items())
    )
    codes = {
        column.name: np.minimum((real[:, i] * GRID).astype(np.int64), GRID - 1)
        for i, column in enumerate(omega)
    }
    rules = {"default": pmm.Params()}
    if given.paper:
        rules["paper"] = pmm.Params(consistency="uniform", levels="all")
    print(f"{'rule':<8} {'epsilon':>7} {'W1 mean':>9} {'W1 worst':>9} {'cpu s':>6}  depth")
    for name, params in rules.items():
        for epsilon in given.epsilon:
            found, seconds = [], 0.0
            for seed in range(given.releases):
                ask, *_ = asking(codes, omega, epsilon, given.delta)
                start = time.process_time()
                model = pmm.run(ask, omega, params, dict(pmm.MECHANISM.stages))
                rows = drawn(model, model.total, seed)
                seconds += time.process_time() - start
                made = np.stack([(rows[column.name] + 0.5) / GRID for column in omega], axis=1)
                found.append(judge.grid_w1_l1(real, made, 64))
            print(
                f"{name:<8} {epsilon:7g} {np.mean(found):9.5f} {max(found):9.5f} "
                f"{seconds / given.releases:6.2f}  {model.facts['depth'][0]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
