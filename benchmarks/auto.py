"""What `mechanism: auto` costs: its errors beside those of every mechanism that takes the table.

    python -m benchmarks auto --data DIR --tools DIR [--table adult ...] [--epsilon 0.1 1 10] [--pure] [--runs 2]

Every table is released by each mechanism with its defaults, and judged by analyst.py (and kway.py where all columns are
categories). `regret` is the error of auto by the least error of all, a figure at a time: 1.0 is the best choice, 1.1 is
ten per cent worse. Which one auto takes depends on the declaration, the private number of rows and the budget alone,
so its own line is that of the mechanism it chose. Packaged tables need what packaged.py says.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import packaged, tables
from benchmarks.harness import Finding, progress, real_tables, releases
from benchmarks.joint import mean_figures
from dpsynth_cli.errors import UsageError

HEADING = "## Which mechanism: auto"
MECHANISMS = ["joint", "marginals", "factor", "lowdim", "microaggregation", "pmm", "psmm"]
TABLES = ["adult", "mushroom", "nltcs", "br2000", "titanic", "uber2d", "digits"]
PACKAGED = [
    "flights",
    "diamonds",
    "fair",
    "HI",
    "penguins",
    "anes96",
    "weather",
    "bfi",
    "breast_cancer",
    "baseball",
]
# Few columns of those, since mechanisms for few numeric columns are candidates there: table, columns.
FEW = {
    "diamonds: price, carat": ("diamonds", ["price", "carat"]),
    "diamonds: price, carat, depth": ("diamonds", ["price", "carat", "depth"]),
    "adult: sex, race, income": ("adult", ["sex", "race", "income"]),
    "adult: age, hours, sex": ("adult", ["age", "hours-per-week", "sex"]),
}
FIGURES = ("analyst tvd1", "analyst tvd2", "analyst tvd3", "analyst quantiles", "3-way")
JUDGED_BY = FIGURES[1:3]


def options(parser: argparse.ArgumentParser) -> None:
    real_tables(parser)
    releases(parser, 2, (0.1, 0.3, 1.0, 3.0, 10.0))
    parser.add_argument("--pure", action="store_true", help="pure epsilon; default: delta 1e-9")
    every = [*TABLES, *PACKAGED, *FEW]
    parser.add_argument("--table", nargs="+", default=every, help=f"default: {', '.join(every)}")
    parser.add_argument("--mechanism", nargs="+", default=MECHANISMS, help="candidates")
    parser.add_argument("--rows", type=int, default=20_000, help="of packaged tables, at most")
    parser.set_defaults(by=["analyst", "kway"], no_auc=True, strata=False)


def table_of(given: argparse.Namespace, name: str) -> tables.Real:
    """A table of the data folder, of a package, or a few columns of one."""
    if name in FEW:
        whole, columns = FEW[name]
        found = table_of(given, whole)
        return few(found, columns, given.folder / f"{name.replace(' ', '')}.csv")
    if name in PACKAGED:
        path = given.folder / f"{name}.csv"
        return tables.Real(name, path, packaged.packaged(packaged.JUDGED[name], path, given.rows))
    return tables.real(given, name)


def few(table: tables.Real, columns: list[str], path: Path) -> tables.Real:
    import pandas as pd

    pd.read_csv(table.train, usecols=columns)[columns].to_csv(path, index=False)
    return tables.Real(table.name, path, {name: table.columns[name] for name in columns})


def regret(given: argparse.Namespace) -> Iterator[Finding]:
    """Every table at every epsilon by every candidate; then auto beside the best."""
    from dpsynth_cli.mechanisms.auto import choice_of

    delta = None if given.pure else given.delta or 1e-9
    lines: list[dict[str, Any]] = []
    for name in given.table:
        table = table_of(given, name)
        for epsilon in given.epsilon:
            found = measured(given, table, epsilon, delta)
            chosen = choice_of(table.domain).mechanism.name
            lines.append(line(name, epsilon, chosen, found))
            yield lines[-1]
    worst = max(lines, key=lambda one: one["regret"])
    within = sum(one["regret"] <= 1.1 for one in lines)
    yield (
        f"{within} of {len(lines)} lines are within 10 % of the best; the worst is {worst['regret']:.2f} "
        f"({worst['table']}, epsilon {worst['epsilon']:g}, {worst['best']})."
    )


def measured(
    given: argparse.Namespace, table: tables.Real, epsilon: float, delta: float | None
) -> dict[str, dict[str, float]]:
    """Mean figures by mechanism, of those that take the table."""
    found = {}
    for mechanism in given.mechanism:
        try:
            figures = mean_figures(given, table, mechanism, epsilon, delta)
        except UsageError as error:
            progress(f"{table.name}, {mechanism}: {error.happened}")
            continue
        found[mechanism] = {key: value for key, value in figures.items() if key in FIGURES}
    return found


def line(table: str, epsilon: float, chosen: str, found: dict[str, dict[str, float]]) -> dict[str, Any]:
    scores = {mechanism: score(figures) for mechanism, figures in found.items()}
    best = min(scores, key=lambda mechanism: scores[mechanism])
    return {
        "table": table,
        "epsilon": epsilon,
        "auto": chosen,
        "best": best,
        "regret": scores[chosen] / scores[best],
        **{mechanism: scores.get(mechanism) for mechanism in MECHANISMS},
        "_figures": found,
    }


def score(figures: dict[str, float]) -> float:
    """The mean of the 2- and, if there are three columns, 3-way errors of analyst.py."""
    judged = [figures[key] for key in JUDGED_BY if figures.get(key)]
    return sum(judged) / len(judged)


PARTS = {"regret": regret}
