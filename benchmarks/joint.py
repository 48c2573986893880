"""joint beside marginals on Adult, on mushroom and on a simulated wide table, through the real border.

    python benchmarks/joint.py DATA [releases] [--table adult] [--epsilon 1] [--delta 1e-9] [--no-strata] [--no-auc]
    python benchmarks/joint.py DATA [releases] --table mushroom wide --against   # marginals as well, and the ratio

DATA is the folder (or set DPSYNTH_DATA) that holds adult/{train,test}.csv, adult/schema.json and mushroom.csv; the
judge is ../tools/evaluate.py beside it (or --judge). Noise is drawn anew for every release, so figures vary.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from adult_marginals import adult, arguments, judge_at

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms import joint, marginals
from dpsynth_cli.mechanisms.registry import Mechanism
from tests.asking import asking, drawn

Codes = dict[str, np.ndarray]


def mushroom(path: Path) -> tuple[Domain, Codes]:
    """23 nominal columns. Its categories are those of the file here; a steward would take the documented ones."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    kinds = {name: tuple(sorted(table[name].unique())) for name in table}
    codes = {name: pd.Categorical(table[name], kinds[name]).codes.astype(np.int64) for name in table}
    columns = tuple(Column(name, "nominal", categories=kinds[name]) for name in table)
    return Domain(columns, strata=columns[0].name), codes


def wide(rows: int = 20_000, columns: int = 100) -> tuple[Domain, Codes]:
    """Mixed columns that follow five hidden normals, and a label that follows the first of them."""
    rng = np.random.default_rng(5)
    hidden = rng.normal(size=(rows, 5))
    label = Column("label", "nominal", categories=("no", "yes"))
    declared, codes = [label], {"label": (hidden[:, 0] + 0.5 * rng.normal(size=rows) > 0.5).astype(int)}
    for j in range(columns - 1):
        x = hidden @ (rng.normal(size=5) * (rng.random(5) < 0.3)) + rng.normal(size=rows)
        name = f"c{j}"
        if j % 4 == 0:
            declared.append(Column(name, "integer", lower=0, upper=999))
            codes[name] = np.clip((x + 5) * 100, 0, 999).astype(int)
        else:
            k = int(rng.integers(2, 9))
            declared.append(Column(name, "nominal", categories=tuple(f"v{i}" for i in range(k))))
            codes[name] = np.searchsorted(np.sort(rng.normal(size=k - 1)) * 1.5, x)
    return Domain(tuple(declared), strata="label"), codes


def judged(judge: ModuleType, omega: Domain, real: Codes, made: Codes) -> dict[str, float]:
    """Distances of one-way and two-way marginals, and sliced W1, by the judge's own functions."""
    columns = [
        {"name": c.name, "type": "categorical", "categories": c.categories}
        if c.categorical
        else {"name": c.name, "type": "integer", "min": c.lower, "max": c.upper}
        for c in omega
    ]
    tables = [
        {c.name: part[c.name] + (0 if c.categorical else c.lower) for c in omega} for part in (real, made)
    ]
    one, two = judge.marginal_distances(*tables, columns)
    features = [judge.features(part, columns) for part in tables]
    found = {"tv1_mean": float(np.mean(list(one.values()))), "tv2_mean": two.mean(), "tv2_max": two.max()}
    return found | {"swd1": judge.sliced_w1(*features, 200, 0)[0]}


def released(
    mechanism: Mechanism, omega: Domain, codes: Codes, epsilon: float, delta: float | None, seed: int
) -> tuple[Codes, float]:
    """Rows of one release, and the seconds of CPU for all but reading and writing."""
    ask, accountant, _, _ = asking(codes, omega, epsilon, delta)
    start = time.process_time()
    model = mechanism.run(ask, omega, mechanism.params(), mechanism.stages)
    rows = drawn(model, max(1, model.total), seed)
    seconds = time.process_time() - start
    assert accountant.spent == accountant.total
    return rows, seconds


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--table", nargs="+", choices=["adult", "mushroom", "wide"], default=["adult"])
    parser.add_argument("--against", action="store_true", help="marginals too")
    parser.add_argument("--no-strata", action="store_true")
    parser.add_argument("--no-auc", action="store_true", help="leave the three classifiers out (Adult only)")
    parser.set_defaults(epsilon=[1.0])
    given = parser.parse_args()
    judge = judge_at(given.judge or given.data.parent / "tools" / "evaluate.py")
    for name in given.table:
        test = schema = None
        if name == "adult":
            omega, codes, schema = adult(given.data / "adult")
            test = judge.decode(judge.read_table(str(given.data / "adult" / "test.csv")), schema["columns"])
        else:
            omega, codes = mushroom(given.data / "mushroom.csv") if name == "mushroom" else wide()
        if given.no_strata:
            omega = replace(omega, strata=None)
        for epsilon in given.epsilon:
            for mechanism in (marginals, joint) if given.against else (joint,):
                found = []
                for seed in range(given.releases):
                    rows, seconds = released(mechanism.MECHANISM, omega, codes, epsilon, given.delta, seed)
                    found.append(judged(judge, omega, codes, rows) | {"cpu s": seconds})
                    if test is not None and schema is not None and not given.no_auc:
                        made = {c.name: rows[c.name] + (0 if c.categorical else int(c.lower)) for c in omega}
                        scores = judge.tstr(made, test, schema["columns"], schema, 0, 3000)
                        found[-1]["auc"] = scores["mean_roc_auc"]
                table = pd.DataFrame(found)
                said = "  ".join(f"{key} {table[key].mean():.4f}" for key in table)
                print(f"{name} epsilon {epsilon:g} {mechanism.MECHANISM.name}: {said}", flush=True)


if __name__ == "__main__":
    main()
