"""The metrics by name, each with its formula, and a synthetic table judged by them beside its references."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate import classifiers
from dpsynth_cli.evaluate.marginals import (
    CATEGORIES,
    CATEGORIES_3,
    NUMERIC,
    NUMERIC_3,
    PAIRED,
    TRIPLES,
    marginal_errors,
)
from dpsynth_cli.evaluate.matches import exact_matches
from dpsynth_cli.evaluate.moments import moment_errors
from dpsynth_cli.evaluate.names import NAMES
from dpsynth_cli.evaluate.propensity import FEATURES, propensity
from dpsynth_cli.evaluate.scales import ordered
from dpsynth_cli.evaluate.tables import Table, halves, independent, uniform
from dpsynth_cli.evaluate.wasserstein import GRID, PAIRS, SLICES, columns_w1, plane_w1, planes, sliced_w1

Compare = Callable[[Table, Table, Domain], dict[str, Any]]


@dataclass(frozen=True)
class Metric:
    """What is compared, by which formula, on how many rows of each table at most, for which tables."""

    formula: str
    compare: Compare
    most: int | None = None
    fits: Callable[[Domain], bool] = lambda domain: True


METRICS: dict[str, Metric] = {
    "w1": Metric(
        "W1 of each column: the integral of |F - G|, F and G the distribution functions on the unit scale; "
        "for nominal and boolean columns sum |p - q| / 2; values that are missing on their own",
        columns_w1,
    ),
    "w1_2d": Metric(
        f"W1 of two ordered columns, l_inf, by an exact flow of least cost between counts on {GRID} x {GRID} "
        f"cells; the first {PAIRS} pairs",
        plane_w1,
        fits=lambda domain: bool(planes(domain)),
    ),
    "sliced": Metric(
        f"mean W1 of {SLICES} random projections of all columns on the unit scale, categories one-hot",
        sliced_w1,
        100_000,
    ),
    "marginals": Metric(
        f"sum |p - q| / 2 over the cells of every table of 1 and 2 columns ({NUMERIC} even cells a numeric "
        f"column, {CATEGORIES} for categories at most; pairs of {PAIRED} columns at most) and of {TRIPLES} "
        f"tables of 3 at most ({NUMERIC_3} and {CATEGORIES_3} cells); mean squared error: "
        "mean of (p - q)^2 over all cells",
        marginal_errors,
    ),
    "moments": Metric(
        "norm of the difference of the means, and Frobenius and spectral norm of that of the covariances, of "
        "ordered columns on the unit scale",
        moment_errors,
        fits=lambda domain: bool(ordered(domain)),
    ),
    "propensity": Metric(
        f"mean of (p_i - c)^2, p_i the chance by logistic regression (up to {FEATURES} features, columns "
        "and products) that row i is synthetic, c their share; ratio to what equal distributions give",
        propensity,
        10_000,
    ),
    "matches": Metric(
        "synthetic rows that equal a real row in all columns, and those that equal a unique real row",
        exact_matches,
    ),
}
CLASSIFIERS = "classifiers"
assert (*METRICS, CLASSIFIERS) == NAMES


@dataclass(frozen=True)
class Judged:
    """What to judge by: metrics by name, the column that classifiers predict, and whether with references."""

    metrics: tuple[str, ...]
    target: str | None = None
    references: bool = True


def chosen(metrics: Collection[str], domain: Domain, target: str | None) -> tuple[tuple[str, ...], list[str]]:
    """Those of the metrics that this table has, and notes about what was left out."""
    kept = [name for name, metric in METRICS.items() if name in metrics and metric.fits(domain)]
    notes = []
    if CLASSIFIERS in metrics:
        if target is None:
            notes.append("classifiers left out: no column to predict (strata, or --target)")
        elif not classifiers.available():
            notes.append(f"classifiers left out: {classifiers.INSTALL}")
        else:
            kept.append(CLASSIFIERS)
    return tuple(kept), notes


def check_target(domain: Domain, target: str | None) -> None:
    """Refuse to predict what is no class, or from nothing."""
    names = [column.name for column in domain if column.categorical]
    if target is not None and (target not in names or len(domain.columns) < 2):
        raise UsageError(
            f"classifiers cannot predict {target}: it must be a declared ordinal, nominal or boolean column "
            "beside others.",
            next_step=f"Such columns here: {', '.join(names) or 'none'}.",
        )


def judge(
    real: Table,
    synthetic: Table,
    domain: Domain,
    wanted: Judged,
    test: Table | None = None,
    progress: Callable[[str, int, int | None], None] = lambda what, done, whole: None,
) -> dict[str, Any]:
    """Every metric of the synthetic table and, beside it, of the references: one half of the real rows
    against the other (what sampling alone does), independent columns, and uniform rows.
    """
    pairs = {"synthetic": (real, synthetic)}
    if wanted.references:
        rows = max(1, len(real))
        pairs |= {
            "real_split": halves(real),
            "independent": (real, independent(real)),
            "uniform": (real, uniform(domain, rows)),
        }
    result: dict[str, Any] = {
        "rows": {"real": real.rows, "synthetic": synthetic.rows},
        "compared_rows": {"real": len(real), "synthetic": len(synthetic)},
        "metrics": {},
    }
    progress("comparing", 0, len(wanted.metrics) * len(pairs))
    for name in wanted.metrics:
        if name == CLASSIFIERS:
            result["metrics"][name] = _classifiers(pairs, domain, wanted.target, test, progress)
            continue
        metric = METRICS[name]
        line: dict[str, Any] = {"formula": metric.formula}
        if metric.most is not None and max(len(real), len(synthetic)) > metric.most:
            line["sample_rows"] = metric.most
        for key, (one, other) in pairs.items():
            line[key] = metric.compare(one.at_most(metric.most), other.at_most(metric.most), domain)
            progress("comparing", 1, None)
        result["metrics"][name] = line
    return result


def _classifiers(
    pairs: dict[str, tuple[Table, Table]],
    domain: Domain,
    target: str | None,
    test: Table | None,
    progress: Callable[[str, int, int | None], None],
) -> dict[str, Any]:
    assert target is not None
    real = pairs["synthetic"][0]
    learn, held_out = halves(real)
    tested = held_out if test is None else test
    line: dict[str, Any] = {
        "formula": "accuracy, ROC AUC and macro F1 on real rows, trained on the table",
        "target": target,
        "train_rows": classifiers.TRAIN,
        "svm_train_rows": classifiers.SVM_TRAIN,
        "test_rows": min(len(tested), classifiers.TEST),
        "test": "a table of its own"
        if test is not None
        else "half of the real rows, which the synthetic ones came from too",
    }
    trained = {key: other for key, (_, other) in pairs.items()}
    if "real_split" in trained:
        trained["real_split"] = learn if test is None else real
    for key, table in trained.items() if len(tested) else ():
        line[key] = classifiers.scores(table, tested, domain, target)
        progress("comparing", 1, None)
    return line
