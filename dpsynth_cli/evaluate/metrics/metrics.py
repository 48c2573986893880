"""The metrics by name, each with its formula, and a synthetic table judged by them beside its references."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.metrics import classifiers
from dpsynth_cli.evaluate.metrics.cuts import FEW, PARTS
from dpsynth_cli.evaluate.metrics.groups import group_errors
from dpsynth_cli.evaluate.metrics.joint import ROWS as GRID_ROWS
from dpsynth_cli.evaluate.metrics.joint import SAMPLE, SIDE, joint_w1
from dpsynth_cli.evaluate.metrics.marginals import PAIRED, TABLES, table_errors
from dpsynth_cli.evaluate.metrics.matches import exact_matches
from dpsynth_cli.evaluate.metrics.moments import moment_errors
from dpsynth_cli.evaluate.metrics.names import NAMES
from dpsynth_cli.evaluate.metrics.propensity import FEATURES, propensity
from dpsynth_cli.evaluate.metrics.quantiles import quantile_errors
from dpsynth_cli.evaluate.metrics.regressions import ROWS as FITTED_ROWS
from dpsynth_cli.evaluate.metrics.regressions import regression_errors
from dpsynth_cli.evaluate.metrics.relations import OPEN, relation_errors
from dpsynth_cli.evaluate.metrics.scales import ordered
from dpsynth_cli.evaluate.metrics.search import what_differs_most
from dpsynth_cli.evaluate.metrics.wasserstein import (
    GRID,
    PAIRS,
    SLICES,
    columns_w1,
    plane_w1,
    planes,
    sliced_w1,
)
from dpsynth_cli.evaluate.tables import Table, halves, independent
from dpsynth_cli.evaluate.verdict.verdict import verdict

Compare = Callable[[Table, Table, Domain], dict[str, Any]]
REFERENCES = ("real_split", "independent")
MANY = 100_000  # rows of each table that tables are counted from


@dataclass(frozen=True)
class Metric:
    """What is compared, by which formula, on how many rows of each table at most, for which tables.

    `more` adds to the figures of the synthetic table alone. One that `knows_references` gives those too; one
    `by_distance` is told how far apart rows are.
    """

    formula: str
    compare: Callable[..., dict[str, Any]]
    most: int | None = None
    fits: Callable[[Domain], bool] = lambda domain: True
    more: Compare | None = None
    knows_references: bool = False
    by_distance: bool = False


def _tables(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    return table_errors(real, other, domain, PARTS)


METRICS: dict[str, Metric] = {
    "w1": Metric(
        "W1 of each column: the integral of |F - G|, F and G the distribution functions, in interquartile "
        "ranges of "
        "the real column; `units`, in its units; `range`, in parts of the declared range; for nominal and "
        "boolean "
        "columns sum |p - q| / 2; values that are missing on their own",
        columns_w1,
    ),
    "w1_2d": Metric(
        "W1 of two ordered columns in parts of the declared range, by a flow of least cost between counts on "
        f"{GRID} x {GRID} cells; the {PAIRS} pairs that differ most; rows are apart by the distance of the "
        "mechanism (`metric`; else linf), l2 being up to 3.1 % too long",
        plane_w1,
        MANY,
        by_distance=True,
        fits=lambda domain: bool(planes(domain)),
    ),
    "w1_joint": Metric(
        "W1 on scales of quantiles of the real columns: of the 3, 4 and 5 columns that differ most, l_inf, "
        "by an "
        f"exact flow of least cost between counts of {GRID_ROWS:,} rows on grids with {SIDE[3]}, {SIDE[4]} "
        "and "
        f"{SIDE[5]} parts a number; of all columns, mean of their distances, by an exact assignment of "
        f"{SAMPLE:,} "
        "rows of each table",
        joint_w1,
        MANY,
        fits=lambda domain: len(domain.columns) > 2,
        knows_references=True,
    ),
    "sliced": Metric(
        f"mean W1 of {SLICES} random projections of all columns on scales of quantiles of the real ones, "
        "categories one-hot",
        sliced_w1,
        50_000,
    ),
    "marginals": Metric(
        "sum |p - q| / 2 over the cells of tables of 1 to 5 columns: all columns and pairs "
        f"(of {PAIRED} columns at most), {TABLES[3]}, {TABLES[4]} and {TABLES[5]} tables of 3, 4 and 5; "
        "numbers cut "
        f"at quantiles of the real column into {', '.join(map(str, PARTS.values()))} parts, each cut point, "
        "each "
        f"category, missing and each of up to {FEW} whole numbers a cell of its own",
        _tables,
        MANY,
        more=what_differs_most,
    ),
    "quantiles": Metric(
        "mean over numbers of the mean |synthetic - real quantile|, 5 to 95 %, in interquartile ranges of "
        "the real "
        "column; means; distinct values in 10,000 rows; decimals",
        quantile_errors,
        200_000,
    ),
    "regressions": Metric(
        "difference of "
        "Spearman's correlation over pairs of numbers; difference of R^2 of each number by least "
        f"squares on all other columns, on {FITTED_ROWS:,} rows, categories as indicators",
        regression_errors,
        MANY,
    ),
    "groups": Metric(
        "mean over pairs of a category and a number of the error of group means, in standard deviations of "
        "the "
        "number, weighted by the size of the group",
        group_errors,
        MANY,
    ),
    "relations": Metric(
        f"determined: where H(b|a) < {OPEN} H(b) in the real table, H(b|a) / H(b) of the synthetic less the "
        "real one; "
        "impossible: mean share of rows with a pair of categories that no real row has; together: largest "
        "error of "
        "P(b missing | a missing)",
        relation_errors,
        MANY,
    ),
    "moments": Metric(
        "norm of the difference of the means, and Frobenius and spectral norm of that of the covariances, of "
        "ordered columns in their real standard deviation",
        moment_errors,
        200_000,
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
    """What to judge by: metrics by name, the column that classifiers predict, beside which references, how
    many rows at most a metric looks at, and the distance between rows."""

    metrics: tuple[str, ...]
    target: str | None = None
    references: tuple[str, ...] = REFERENCES
    most: int | None = None
    distance: str = "linf"


def distance_of(params: Any) -> str:
    """The distance between rows that a mechanism was asked for."""
    return str(getattr(params, "metric", "linf"))


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
    problems: Mapping[str, Mapping[str, Any]] | None = None,
    written: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, Any]:
    """The verdict; and every metric of the synthetic table, beside it of half of the real rows against the
    other half (what sampling alone does) and of independent columns.
    """
    pairs = {"synthetic": (real, synthetic)}
    if "real_split" in wanted.references:
        pairs["real_split"] = halves(real)
    if "independent" in wanted.references:
        pairs["independent"] = (real, independent(real))
    result: dict[str, Any] = {
        "verdict": {},
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
        most = min((rows for rows in (metric.most, wanted.most) if rows is not None), default=None)
        line: dict[str, Any] = {"formula": metric.formula}
        sizes = {"real": len(real), "synthetic": len(synthetic)}
        line["compared_rows"] = {key: min(rows, most or rows) for key, rows in sizes.items()}
        if line["compared_rows"] != sizes:
            line["sample_rows"] = most
        how = {"metric": wanted.distance} if metric.by_distance else {}
        line |= how
        if metric.knows_references:
            known = metric.compare(real.at_most(most), synthetic.at_most(most), domain)
            line |= {key: known[key] for key in pairs}
        for key, (one, other) in pairs.items():
            if not metric.knows_references:
                line[key] = metric.compare(one.at_most(most), other.at_most(most), domain, **how)
            if metric.more is not None and key == "synthetic":
                line[key] |= metric.more(one.at_most(most), other.at_most(most), domain)
            progress("comparing", 1, None)
        result["metrics"][name] = line
    for which, decimals in (written or {}).items():  # as the files have them, where that is known
        for column, digits in decimals.items():
            if column in (columns := result["metrics"]["quantiles"]["synthetic"]["columns"]):
                columns[column]["decimals"][which] = digits
    result["verdict"] = verdict(result["metrics"], domain, problems or {})
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
