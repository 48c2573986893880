"""factor on Adult, on mushroom, on the paper's setting (I) and on a large table, through the real border.

    python benchmarks/factor.py adult DATA [releases] [--epsilon 1] [--delta 1e-9] [--strata income] [--no-auc]
    python benchmarks/factor.py mushroom DATA [releases]    # 2-way distance, factor and marginals
    python benchmarks/factor.py setting [runs]              # AUC on fresh rows, by model and by rows
    python benchmarks/factor.py large                       # 1e6 rows, 30 columns, one of 5,000 categories

DATA is the folder that holds adult/ and mushroom.csv; the judge is ../tools/evaluate.py beside it. Noise is drawn
anew for every release, so figures vary.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.adult_marginals import adult, decoded, judge_at
from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms import marginals
from dpsynth_cli.mechanisms.factor import factor
from tests.asking import asking, drawn


def released(mechanism, omega, codes, epsilon, delta, seed, **params):
    ask, accountant, _, _ = asking(codes, omega, epsilon, delta)
    start = time.process_time()
    model = mechanism.run(ask, omega, mechanism.Params(**params), dict(mechanism.MECHANISM.stages))
    rows = drawn(model, max(200, model.total), seed)
    assert accountant.spent == accountant.total
    return rows, time.process_time() - start


def on_adult(given: argparse.Namespace) -> None:
    judge = judge_at(given.data.parent / "tools" / "evaluate.py")
    omega, codes, schema = adult(given.data / "adult")
    omega = Domain(omega.columns, strata=given.strata)
    columns = schema["columns"]
    real = judge.decode(decoded(omega, codes).astype(object), columns)
    test = judge.decode(judge.read_table(str(given.data / "adult" / "test.csv")), columns)
    for epsilon in given.epsilon:
        for mechanism in (factor, marginals):
            found = []
            for seed in range(given.releases):
                rows, seconds = released(mechanism, omega, codes, epsilon, given.delta, seed)
                made = judge.decode(decoded(omega, rows).astype(object), columns)
                two = judge.marginal_distances(real, made, columns)[1]
                features = [judge.features(part, columns) for part in (real, made)]
                found.append({"tv2_mean": two.mean(), "tv2_max": two.max(), "cpu s": seconds})
                found[-1]["swd1"] = judge.sliced_w1(*features, 200, 0)[0]
                found[-1]["distinct fnlwgt"] = len(np.unique(rows["fnlwgt"]))
                if not given.no_auc and mechanism is factor:
                    found[-1]["auc"] = judge.tstr(made, test, columns, schema, 0, 3000)["mean_roc_auc"]
            mean = pd.DataFrame(found).mean().round(4).to_dict()
            name = mechanism.MECHANISM.name
            print(
                f"adult, {name}, epsilon {epsilon}, delta {given.delta}, strata {given.strata}: {mean}",
                flush=True,
            )


def on_mushroom(given: argparse.Namespace) -> None:
    table = pd.read_csv(given.data / "mushroom.csv", dtype=str, keep_default_na=False)
    kinds = {name: sorted(table[name].unique()) for name in table}
    omega = Domain(tuple(Column(name, "nominal", categories=tuple(kinds[name])) for name in table))
    codes = {name: pd.Categorical(table[name], kinds[name]).codes.astype(np.int64) for name in table}

    def distance(rows: dict[str, np.ndarray]) -> float:
        pairs = []
        for a, b in combinations(omega, 2):
            one, other = (
                np.bincount(t[a.name] * b.codes + t[b.name], minlength=a.codes * b.codes) / len(t[a.name])
                for t in (codes, rows)
            )
            pairs.append(np.abs(one - other).sum() / 2)
        return float(np.mean(pairs))

    for epsilon in given.epsilon:
        for delta in (None, 1e-9):
            means = [
                np.mean(
                    [distance(released(m, omega, codes, epsilon, delta, s)[0]) for s in range(given.releases)]
                )
                for m in (factor, marginals)
            ]
            print(
                f"mushroom, epsilon {epsilon}, delta {delta}: factor {means[0]:.4f}, marginals {means[1]:.4f}"
            )


def setting_one(n: int, rng: np.random.Generator) -> tuple[Domain, dict[str, np.ndarray]]:
    """Setting (I) of the paper, AR-1: 6 normal columns, 8 ordinal, 8 nominal, and the label."""
    sigma = 0.95 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    x = rng.multivariate_normal(np.zeros(6), sigma, n)
    counts = [3] * 4 + [2] * 4 + [4] * 4 + [2] * 4
    kinds = [rng.integers(k, size=n) for k in counts]
    beta = [3, 2.5, 2, 1.5, 1, 0.5, 0.3, 1, 0.1, 1, 0.2, 2, 0.5, 3, 1.5, 0.8, 0.5, 1.8]
    beta += [0.5, 1, 3, 0.5, 1, 2, 0.5, 1, 0.3, 0.5, 1, 0.2, 1, 1.5, 0.5, 0.5]
    dummies = [kind[:, None] == np.arange(1, k) for kind, k in zip(kinds, counts, strict=True)]
    linear = 1.5 + np.hstack([x, *dummies]) @ np.array(beta)
    label = (rng.random(n) < 1 / (1 + np.exp(-linear))).astype(np.int64)
    codes = {f"x{i}": ((np.clip(x[:, i], -4, 4) + 4) / 8 * (GRID - 1)).astype(np.int64) for i in range(6)}
    columns = [Column(name, "continuous", lower=-4.0, upper=4.0) for name in codes]
    for i, (kind, k) in enumerate(zip(kinds, counts, strict=True)):
        columns.append(Column(f"k{i}", "ordinal" if i < 8 else "nominal", categories=tuple("abcd"[:k])))
        codes[f"k{i}"] = kind
    columns.append(Column("y", "boolean", categories=("false", "true")))
    return Domain(tuple(columns)), codes | {"y": label}


def setting_auc(omega: Domain, rows: dict[str, np.ndarray], test: dict[str, np.ndarray]) -> float:
    """The mean AUC of logistic regression, forest and SVM trained on the rows; 0.5 where only one label came out."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.svm import SVC

    def features(t: dict[str, np.ndarray]) -> np.ndarray:
        numbers = [t[c.name][:, None] / GRID * 8 - 4 for c in omega if not c.categorical]
        hot = [t[c.name][:, None] == np.arange(c.codes) for c in omega if c.categorical and c.name != "y"]
        return np.hstack([*numbers, *hot]).astype(float)

    if len(np.unique(rows["y"])) < 2:
        return 0.5
    said = []
    for model in (LogisticRegression(max_iter=500), RandomForestClassifier(100, random_state=0), SVC()):
        model.fit(features(rows), rows["y"])
        score = (
            model.decision_function(features(test))
            if isinstance(model, SVC)
            else model.predict_proba(features(test))[:, 1]
        )
        said.append(roc_auc_score(test["y"], score))
    return float(np.mean(said))


def on_setting(given: argparse.Namespace) -> None:
    forms = {
        "model, strata": (factor, "y", {}),
        "model, no strata": (factor, None, {}),
        "rows": (factor, None, {"release": "rows"}),
    }
    real = []
    for run in range(given.releases):
        rng = np.random.default_rng(run)
        omega, codes = setting_one(200, rng)
        real.append(setting_auc(omega, codes, setting_one(2000, rng)[1]))
    print(f"setting (I), real rows: AUC {np.mean(real):.3f}", flush=True)
    for epsilon in (0.1, 1.0, 5.0):
        for name, (mechanism, strata, params) in forms.items():
            found = []
            for run in range(given.releases):
                rng = np.random.default_rng(run)
                omega, codes = setting_one(200, rng)
                omega = Domain(omega.columns, "replace_one" if params else "add_remove", strata=strata)
                rows, _ = released(mechanism, omega, codes, epsilon, None, run, **params)
                found.append(setting_auc(omega, rows, setting_one(2000, rng)[1]))
            print(
                f"setting (I), epsilon {epsilon}, {name}: AUC {np.mean(found):.3f} of {given.releases}",
                flush=True,
            )


def on_large(given: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    n = 1_000_000
    hidden = rng.standard_normal((3, n))
    columns = [Column("many", "nominal", categories=tuple(f"c{i}" for i in range(5000)))]
    codes = {"many": np.minimum(rng.geometric(0.002, n) - 1, 4999)}
    for i in range(29):
        z = 0.7 * hidden[i % 3] + 0.7 * rng.standard_normal(n)
        name = f"a{i}"
        if i % 2:
            columns.append(Column(name, "continuous", lower=-5.0, upper=5.0))
            codes[name] = ((np.clip(z, -5, 5) + 5) / 10 * (GRID - 1)).astype(np.int64)
        else:
            columns.append(Column(name, "nominal", categories=tuple("abcdefgh")))
            codes[name] = np.digitize(z, np.linspace(-1.5, 1.5, 7))
    _, seconds = released(factor, Domain(tuple(columns)), codes, 1.0, 1e-9, 0)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"1e6 rows x 30 columns: {seconds:.1f} s of CPU, {memory:.2f} GB with the table")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("adult", "mushroom", "setting", "large"))
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--delta", type=float, default=None)
    parser.add_argument("--strata", default=None)
    parser.add_argument("--no-auc", action="store_true")
    given = parser.parse_args()
    if given.what in ("adult", "mushroom"):
        given.data = Path(given.rest.pop(0))
    given.releases = int(given.rest[0]) if given.rest else 12 if given.what == "setting" else 5
    {"adult": on_adult, "mushroom": on_mushroom, "setting": on_setting, "large": on_large}[given.what](given)


if __name__ == "__main__":
    main()
