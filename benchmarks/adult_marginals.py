"""marginals on the Adult table, by classes of income, and pmm on five of its columns, through the real border.

    python benchmarks/adult_marginals.py DATA [releases] [--epsilon 1 0.1] [--delta 1e-9] [--no-auc]
    python benchmarks/adult_marginals.py DATA [releases] --five     # pmm, plain and by copula, epsilon 1

DATA is the folder (or set DPSYNTH_DATA) that holds adult/{train,test}.csv and adult/schema.json; the judge is
../tools/evaluate.py beside it (or --judge). Noise is drawn anew for every release, so figures vary.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms import marginals
from dpsynth_cli.mechanisms.pmm import pmm
from tests.asking import asking, drawn


def arguments(text: str | None) -> argparse.ArgumentParser:
    """What the benchmarks on real tables share."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("data", type=Path, nargs="?", default=os.environ.get("DPSYNTH_DATA"))
    parser.add_argument("releases", type=int, nargs="?", default=5)
    parser.add_argument("--judge", type=Path, help="evaluate.py; default: ../tools/evaluate.py beside DATA")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 0.1])
    parser.add_argument("--delta", type=float, default=None)
    return parser


def judge_at(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("evaluate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def adult(folder: Path) -> tuple[Domain, dict[str, np.ndarray], dict]:
    """The declared domain, the codes of the training rows, and the judge's schema."""
    schema = json.loads((folder / "schema.json").read_text())
    table = pd.read_csv(folder / "train.csv", keep_default_na=False)
    columns, codes = [], {}
    for declared in schema["columns"]:
        name = declared["name"]
        if declared["type"] == "categorical":
            kinds = tuple(declared["categories"])
            columns.append(Column(name, "nominal", categories=kinds))
            codes[name] = pd.Categorical(table[name], categories=list(kinds)).codes.astype(np.int64)
        else:
            columns.append(Column(name, "integer", lower=declared["min"], upper=declared["max"]))
            codes[name] = table[name].to_numpy(np.int64) - declared["min"]
    return Domain(tuple(columns), strata="income"), codes, schema


def decoded(omega: Domain, rows: dict[str, np.ndarray]) -> pd.DataFrame:
    return pd.DataFrame({
        column.name: np.array(column.categories)[rows[column.name]]
        if column.categorical
        else rows[column.name] + int(column.lower)
        for column in omega
    })  # fmt: skip


FIVE = ("age", "education-num", "capital-gain", "hours-per-week", "income")


def five(
    judge: ModuleType,
    omega: Domain,
    codes: dict[str, np.ndarray],
    schema: dict,
    releases: int,
    delta: float | None,
) -> None:
    """Mean total variation distance of the 2-way marginals of five columns: independent, pmm, pmm by copula."""
    omega = Domain(tuple(omega[name] for name in FIVE))
    columns = [declared for declared in schema["columns"] if declared["name"] in FIVE]

    def judged(rows: dict[str, np.ndarray]) -> float:
        real, made = (judge.decode(decoded(omega, part).astype(object), columns) for part in (codes, rows))
        return float(judge.marginal_distances(real, made, columns)[1].mean())

    rng = np.random.default_rng(0)
    print(f"independent  {judged({name: rng.permutation(codes[name]) for name in FIVE}):.4f}", flush=True)
    for transform in ("none", "copula"):
        found = []
        for seed in range(releases):
            ask, *_ = asking({name: codes[name] for name in FIVE}, omega, 1.0, delta)
            model = pmm.run(ask, omega, pmm.Params(transform=transform), dict(pmm.MECHANISM.stages))
            found.append(judged(drawn(model, model.total, seed)))
        print(f"pmm, {transform:<7} {np.mean(found):.4f} (worst {max(found):.4f})", flush=True)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--five", action="store_true", help="pmm on five columns instead")
    parser.add_argument("--no-auc", action="store_true", help="leave the three classifiers out")
    given = parser.parse_args()
    folder = given.data / "adult"
    judge = judge_at(given.judge or given.data.parent / "tools" / "evaluate.py")
    omega, codes, schema = adult(folder)
    if given.five:
        five(judge, omega, codes, schema, given.releases, given.delta)
        return
    options = SimpleNamespace(no_tstr=given.no_auc, projections=200, svm_rows=3000, w1_grid=64, seed=0)
    zeros = {name: float((codes[name] == 0).mean()) for name in ("capital-gain", "capital-loss")}
    for epsilon in given.epsilon:
        found = []
        for seed in range(given.releases):
            ask, accountant, _, _ = asking(codes, omega, epsilon, given.delta)
            start = time.process_time()
            model = marginals.run(ask, omega, marginals.Params(), marginals.MECHANISM.stages)
            rows = drawn(model, model.total, seed)
            seconds = time.process_time() - start
            assert accountant.spent == accountant.total
            with tempfile.TemporaryDirectory() as place:
                path = f"{place}/synthetic.csv"
                decoded(omega, rows).to_csv(path, index=False)
                said = judge.evaluate(
                    str(folder / "train.csv"), str(folder / "test.csv"), path, schema, options
                )
            found.append({
                "tv1_mean": said["tv1_mean"],
                "tv2_mean": said["tv2_mean"],
                "tv2_max": said["tv2_max"],
                "swd1": said["swd1"],
                "auc": said.get("tstr", {}).get("mean_roc_auc", float("nan")),
                **{f"zeros {name}": float((rows[name] == 0).mean()) - at for name, at in zeros.items()},
                "cpu s": seconds,
            })  # fmt: skip
        table = pd.DataFrame(found)
        print(f"epsilon {epsilon}, {given.releases} releases", flush=True)
        print(pd.DataFrame({"mean": table.mean(), "worst": table.abs().max()}).round(5).to_string())


if __name__ == "__main__":
    main()
