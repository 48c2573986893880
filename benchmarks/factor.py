"""factor beside marginals on Adult and mushroom, the paper's setting (I), and a large table.

python -m benchmarks factor beside --data DIR --tools DIR [--table adult mushroom] [--runs 5] [--epsilon 1]
                                   [--delta 1e-9] [--strata] [--no-auc]
python -m benchmarks factor setting [--runs 24]     # AUC on fresh rows, by model and by rows; scikit-learn
python -m benchmarks factor large                   # 1e6 rows, 30 columns, one of 5,000 categories
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Finding, need, released
from benchmarks.joint import mean_figures, options_of_releases
from benchmarks.tables import real
from dpsynth_cli.domain import GRID, Column, Domain

Codes = dict[str, np.ndarray]


def options(parser: argparse.ArgumentParser) -> None:
    options_of_releases(parser, 5, (1.0,))
    parser.add_argument("--table", nargs="+", default=["adult", "mushroom"])


def beside(given: argparse.Namespace) -> Iterator[Finding]:
    for name in given.table:
        table = real(given, name)
        for epsilon in given.epsilon:
            for mechanism in ("factor", "marginals"):
                found = mean_figures(given, table, mechanism, epsilon, given.delta)
                yield {
                    "table": name,
                    "epsilon": epsilon,
                    "delta": given.delta or "pure",
                    "mechanism": mechanism,
                    "strata": table.target if given.strata else "none",
                    **found,
                }


# --- setting (I) ------------------------------------------------------------------------------------


def setting_one(n: int, rng: np.random.Generator) -> tuple[Domain, Codes]:
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


def setting_auc(omega: Domain, rows: Codes, test: Codes) -> float:
    """The mean AUC of logistic regression, forest and SVM trained on the rows; 0.5 where only one label came out."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.svm import SVC

    def features(t: Codes) -> np.ndarray:
        numbers = [t[c.name][:, None] / GRID * 8 - 4 for c in omega if not c.categorical]
        hot = [t[c.name][:, None] == np.arange(c.codes) for c in omega if c.categorical and c.name != "y"]
        return np.hstack([*numbers, *hot]).astype(float)

    if len(np.unique(rows["y"])) < 2:
        return 0.5
    said = []
    for model in (LogisticRegression(max_iter=500), RandomForestClassifier(100, random_state=0), SVC()):
        model.fit(features(rows), rows["y"])
        x = features(test)
        score = model.decision_function(x) if isinstance(model, SVC) else model.predict_proba(x)[:, 1]
        said.append(roc_auc_score(test["y"], score))
    return float(np.mean(said))


FORMS = {  # strata and parameters
    "model, strata": ("y", {}),
    "model, no strata": (None, {}),
    "rows": (None, {"release": "rows"}),
}


def setting(given: argparse.Namespace) -> Iterator[Finding]:
    """The same training and test rows for every form."""
    need("sklearn")
    tables = []
    for run in range(given.runs):
        rng = np.random.default_rng(run)
        tables.append((*setting_one(200, rng), setting_one(2000, rng)[1]))
    real_rows = np.mean([setting_auc(*table) for table in tables])
    yield {"epsilon": "real rows", "form": "", "runs": given.runs, "AUC": float(real_rows)}
    for epsilon in (0.1, 1.0, 5.0):
        for form, (strata, params) in FORMS.items():
            found = []
            for run, (omega, codes, test) in enumerate(tables):
                known = Domain(omega.columns, "replace_one" if params else "add_remove", strata=strata)
                made = released("factor", known, codes, epsilon, None, run, at_least=200, **params)
                found.append(setting_auc(known, made.rows, test))
            yield {"epsilon": epsilon, "form": form, "runs": given.runs, "AUC": float(np.mean(found))}


# --- a large table ----------------------------------------------------------------------------------


def large(given: argparse.Namespace) -> Iterator[Finding]:
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
    seconds = released("factor", Domain(tuple(columns)), codes, 1.0, 1e-9).seconds
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield {"rows": n, "columns": 30, "CPU s": seconds, "GB with the table": memory}


PARTS = {"beside": beside, "setting": setting, "large": large}
