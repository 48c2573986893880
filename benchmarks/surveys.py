"""Populations of people for the benchmark of coverage, and what is asked about them."""

from __future__ import annotations

from typing import Any

import numpy as np

COLUMNS: dict[str, Any] = {
    "sex": {"type": "nominal", "categories": ["female", "male"]},
    "education": {"type": "ordinal", "categories": ["low", "mid", "high", "top"]},
    "region": {"type": "nominal", "categories": ["north", "south", "east", "west", "islands"]},
    "age": {"type": "integer", "bounds": [18, 90]},
    "hours": {"type": "integer", "bounds": [0, 80]},
    "income": {"type": "continuous", "bounds": [0, 200000]},
    "works": {"type": "boolean"},
}
FEW = ("sex", "age", "hours", "income")  # for mechanisms of few columns
QUERIES = {
    "count": "count() by sex",
    "cross-table": "count() by sex, education",
    "shares in groups": "share(works) by education",
    "mean": "mean(income)",
    "mean of whole numbers": "mean(age)",
    "means of groups": "mean(income) by sex",
    "median": "median(income)",
    "upper decile": "quantile(income, 0.9)",
    "correlation": "corr(age, income)",
    "linear regression": "income ~ age + sex",
    "means of two columns": "mean(income) by sex, education",
    "logistic regression": "logistic: hours > 38 ~ age + sex",
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
ANALYSES = {
    "wage regression (log-odds of more than 50K)": "logistic: income ~ age + sex + `education-num`",
    "cross-table of sex and income": "count() by sex, income",
    "difference of groups (hours of men and women)": "`hours-per-week` ~ sex",
}


def population(rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """People whose income depends on age, sex and education; codes of COLUMNS."""
    sex = (rng.random(rows) < 0.48).astype(np.int64)
    age = np.clip(18 + rng.gamma(4.0, 6.5, rows), 18, 90).astype(np.int64)
    draw = rng.normal(0, 1, rows) + 0.01 * (age - 44)
    education = np.digitize(draw, [-0.8, 0.4, 1.3])
    region = rng.choice(5, rows, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    hours = np.clip(36 + 3.5 * sex + rng.normal(0, 9, rows) - 0.004 * (age - 40) ** 2, 0, 80).astype(np.int64)
    log = 9.9 + 0.22 * sex + 0.18 * education + 0.012 * (age - 40) - 0.0004 * (age - 40) ** 2
    income = np.clip(np.exp(log + rng.normal(0, 0.5, rows)), 0, 199_999.9)
    works = (rng.random(rows) < 1 / (1 + np.exp(-(0.8 + 0.5 * education - 0.03 * (age - 40))))).astype(
        np.int64
    )
    return {
        "sex": sex,
        "education": education,
        "region": region,
        "age": age - 18,
        "hours": hours,
        "income": (income / 200_000 * 2**30).astype(np.int64),
        "works": works,
    }
