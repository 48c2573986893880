"""Coverage of the intervals of `dpsynth query`: how often they hold what they claim to, and how wide they are.

    python -m benchmarks coverage                                   # simulated populations
    python -m benchmarks coverage real --data DIR                   # the same with a real table as the population
    python -m benchmarks coverage simulated --mechanism joint --runs 200 --epsilon 1

For each release a table is drawn from the population and released; every query is answered from what is public.
`coverage` is the part of intervals (of 95 %) that hold the number of the table that was released; `population`
that of the intervals with --population that hold the number of the population (of every fourth release). `none` is the part of numbers that
were marked instead. `width` is the mean width beside 2 * 1.96 standard errors on the real rows. The noise of these
releases is seeded: they are simulations, and their rows are generated or public.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Finding, in_data, real_tables, releases
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.bootstrap import numbers, sampling_variance
from dpsynth_cli.inference.language import parse_query
from dpsynth_cli.inference.query import Published
from dpsynth_cli.inference.simulate import Drawn, simulated
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.spec.spec import Spec, from_document

HEADING = "Coverage of intervals"
WHOLE = 400_000  # rows of a population

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
    "logistic regression": "logistic: hours > 38 ~ age + sex",
}


def options(parser: argparse.ArgumentParser) -> None:
    releases(parser, runs=200, epsilon=(0.3, 1.0, 3.0))
    real_tables(parser)
    parser.add_argument("--mechanism", nargs="+", default=["marginals", "pmm", "joint"])
    parser.add_argument("--rows", type=int, default=5000, help="of each table; default: 5000")
    parser.add_argument("--simulations", type=int, default=20, help="of each release; default: 20")


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


def _spec(mechanism: str, epsilon: float, delta: float | None, columns: dict[str, Any]) -> Spec:
    privacy: dict[str, Any] = {"epsilon": str(epsilon)} | ({} if delta is None else {"delta": str(delta)})
    document = {"dpsynth": 1, "name": "coverage", "input": "none.csv", "output": "released.csv"}
    return from_document(
        document | {"privacy": privacy, "mechanism": {"name": mechanism}, "columns": columns}
    )


def _simulated(given: argparse.Namespace) -> Iterator[Finding]:
    yield from measure(given, population(WHOLE, np.random.default_rng(1)), COLUMNS, FEW, QUERIES)


def measure(
    given: argparse.Namespace,
    whole: dict[str, np.ndarray],
    columns: dict[str, Any],
    few: tuple[str, ...],
    queries: dict[str, str],
) -> Iterator[Finding]:
    """Coverage of all queries for each mechanism and epsilon, over tables drawn from a population."""
    for mechanism in given.mechanism:
        own = {name: columns[name] for name in (few if mechanism in ("pmm", "psmm") else columns)}
        for epsilon in given.epsilon:
            spec = _spec(mechanism, epsilon, given.delta, own)
            yield from _covered(given, spec, whole, queries, {"mechanism": mechanism, "epsilon": epsilon})


def _covered(
    given: argparse.Namespace,
    spec: Spec,
    whole: dict[str, np.ndarray],
    queries: dict[str, str],
    named: dict[str, Any],
) -> Iterator[Finding]:
    domain, relations = spec.domain, spec.stated.relations
    of_all = len(next(iter(whole.values())))
    kept = {
        name: text
        for name, text in queries.items()
        if set(parse_query(text).named) <= {c.name for c in domain}
    }
    statistics = {name: Statistic(parse_query(text), domain, relations) for name, text in kept.items()}
    truth = {
        name: numbers(own, Drawn(Table({c.name: whole[c.name] for c in domain}, of_all), domain, given.rows))
        for name, own in statistics.items()
    }
    tallies: dict[tuple[str, str], list[list[float]]] = {}
    for run in range(given.runs):
        rng = np.random.default_rng((run, round(1000 * named["epsilon"])))
        chosen = rng.integers(of_all, size=given.rows)
        table = Drawn(Table({c.name: whole[c.name][chosen] for c in domain}, given.rows), domain, given.rows)
        release = simulated(spec, table, rng)
        shown = Published(spec, release.outcome, release.asked, release.seed, given.simulations, run)
        for name, own in statistics.items():
            real = numbers(own, table)
            error = np.sqrt(sampling_variance(own, table, rng)) if run < 20 else None
            for population in (False, True) if run % 4 == 0 else (False,):
                for k, one in enumerate(shown.answer(own.query, population=population)):
                    line = tallies.setdefault((name, one.source), [])
                    target = truth[name][k] if population else real[k]
                    inside = (
                        np.nan
                        if one.low is None or one.high is None
                        else float(one.low <= target <= one.high)
                    )
                    width = np.nan if one.low is None or one.high is None else one.high - one.low
                    beside = np.nan if error is None else 2 * 1.96 * error[k]
                    bias = one.estimate - target
                    line.append([float(population), inside, width, beside, bias, abs(target)])
        print(f"{named} release {run + 1}", end="\r", file=sys.stderr)
    for (name, source), line in tallies.items():
        found = np.array(line)
        alone, more = found[found[:, 0] == 0], found[found[:, 0] == 1]
        with np.errstate(all="ignore"):
            yield named | {
                "statistic": name,
                "from": source,
                "numbers": len(alone),
                "none": f"{np.isnan(alone[:, 1]).mean():.0%}",
                "coverage": _percent(alone[:, 1]),
                "population": _percent(more[:, 1]),
                "width": f"{_mean(alone[:, 2]):.4g}",
                "width on real rows": f"{_mean(alone[:, 3]):.4g}",
            }


def _percent(inside: np.ndarray) -> str:
    there = inside[~np.isnan(inside)]
    return f"{100 * there.mean():.1f}" if len(there) else "-"


def _mean(values: np.ndarray) -> float:
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else float("nan")


def _real(given: argparse.Namespace) -> Iterator[Finding]:
    yield in_data(given, "adult").name


PARTS = {"simulated": _simulated, "real": _real}
