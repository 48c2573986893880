"""Coverage of the intervals of `dpsynth query`: how often they hold what they claim to, and how wide they are.

    python -m benchmarks coverage                                  # simulated populations, all kinds of statistics
    python -m benchmarks coverage measured --runs 1000             # only what follows from counts
    python -m benchmarks coverage real analyses --data DIR         # a real table as the population; three analyses of it
    python -m benchmarks coverage simulated --mechanism joint --runs 200 --epsilon 1

For each release a table is drawn from the population and released; every query is answered from what is public.
`coverage` is the part of intervals (of 95 %) that hold the number of the table that was released; `population` that of
the intervals with --population that hold the number of the population (of every fourth release, as replicates are).
`none` is the part of numbers that were marked instead. `width` is the mean width beside 2 * 1.96 standard errors on the
real rows. The noise of these releases is seeded: they are simulations, and their rows are generated or public.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Finding, real_tables, releases
from benchmarks.surveys import ADULT, ADULT_FEW, ADULT_QUERIES, ANALYSES, COLUMNS, FEW, QUERIES, population
from benchmarks.tables import real
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.sampling import numbers, sampling_variance
from dpsynth_cli.inference.combine import combine
from dpsynth_cli.inference.honesty import why_not
from dpsynth_cli.inference.language import parse_query
from dpsynth_cli.inference.query import Published
from dpsynth_cli.inference.replicates import replicate_tables
from dpsynth_cli.inference.simulate import Drawn, simulated
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.spec.spec import Spec, from_document

HEADING = "Coverage of intervals"
WHOLE = 400_000  # rows of a population


def options(parser: argparse.ArgumentParser) -> None:
    releases(parser, runs=200, epsilon=(0.3, 1.0, 3.0))
    real_tables(parser)
    parser.add_argument("--mechanism", nargs="+", default=["marginals", "pmm", "joint"])
    parser.add_argument("--rows", type=int, default=5000, help="of each table; default: 5000")
    parser.add_argument("--replicates", type=int, default=20, help="of every fourth release; default: 20")


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
        shown = Published(spec, release.outcome, release.known(), release.seed, run)
        for name, own in statistics.items():
            real = numbers(own, table)
            error = np.sqrt(sampling_variance(own, table, rng)) if run < 4 else np.full(len(real), np.nan)
            for of_population in (False, True) if run % 4 == 0 else (False,):
                target = truth[name] if of_population else real
                for k, one in enumerate(shown.answer(own.query, population=of_population)):
                    line = tallies.setdefault((name, one.source), [])
                    line.append(_line(of_population, one.low, one.high, target[k], error[k]))
        if run % 4 == 0 and given.replicates:
            for name, k, low, high in _replicated(shown, statistics, given.replicates, rng):
                line = tallies.setdefault((name, f"{given.replicates} replicates"), [])
                line.append(_line(False, low, high, numbers(statistics[name], table)[k], np.nan))
        print(f"{named} release {run + 1}", end="\r", file=sys.stderr)
    for (name, source), line in sorted(tallies.items()):
        found = np.array(line)
        alone, more = found[found[:, 0] == 0], found[found[:, 0] == 1]
        yield named | {
            "statistic": name,
            "from": source,
            "numbers": len(alone),
            "none": f"{np.isnan(alone[:, 1]).mean():.0%}",
            "coverage": _percent(alone[:, 1]),
            "population": _percent(more[:, 1]),
            "width": _mean(alone[:, 2]),
            "width on real rows": _mean(alone[:, 3]),
        }


def _line(
    of_population: bool, low: float | None, high: float | None, target: float, error: float
) -> list[float]:
    if low is None or high is None:
        return [float(of_population), np.nan, np.nan, 2 * 1.96 * error]
    return [float(of_population), float(low <= target <= high), high - low, 2 * 1.96 * error]


def _replicated(
    shown: Published, statistics: dict[str, Statistic], count: int, rng: np.random.Generator
) -> Iterator[tuple[str, int, float, float]]:
    """Intervals as somebody's own code gets them from replicates, where the query has one."""
    tables = [Drawn(own, shown.domain, shown.released.total) for own in replicate_tables(shown, count, 0)]
    for name in ("mean", "means of groups", "correlation", "linear regression", "logistic regression"):
        if name not in statistics or why_not(statistics[name], shown.known):
            continue
        own = Statistic(statistics[name].query, shown.domain, shown.spec.stated.relations)
        found = np.stack([numbers(own, table) for table in tables])
        within = sampling_variance(own, tables[0], rng)
        for k in range(found.shape[1]):
            _, low, high = combine(found[:, k].tolist(), [float(within[k])])
            yield name, k, low, high


def _measured(given: argparse.Namespace) -> Iterator[Finding]:
    whole = population(WHOLE, np.random.default_rng(1))
    kept = ("count", "cross-table", "shares in groups", "mean of whole numbers")
    for mechanism in given.mechanism:
        own = {name: COLUMNS[name] for name in (FEW if mechanism in ("pmm", "psmm") else COLUMNS)}
        for epsilon in given.epsilon:
            spec = _spec(mechanism, epsilon, given.delta, own)
            named = {"mechanism": mechanism, "epsilon": epsilon}
            yield from _from_counts(given, spec, whole, {name: QUERIES[name] for name in kept}, named)


def _from_counts(
    given: argparse.Namespace,
    spec: Spec,
    whole: dict[str, np.ndarray],
    queries: dict[str, str],
    named: dict[str, Any],
) -> Iterator[Finding]:
    domain, held = spec.domain, dict[str, list[float]]()
    kept = {
        name: text
        for name, text in queries.items()
        if set(parse_query(text).named) <= {c.name for c in domain}
    }
    statistics = {
        name: Statistic(parse_query(text), domain, spec.stated.relations) for name, text in kept.items()
    }
    for run in range(given.runs):
        rng = np.random.default_rng((run, round(1000 * named["epsilon"]), 1))
        chosen = rng.integers(WHOLE, size=given.rows)
        table = Drawn(Table({c.name: whole[c.name][chosen] for c in domain}, given.rows), domain, given.rows)
        release = simulated(spec, table, rng)
        shown = Published(spec, release.outcome, release.known(), release.seed, run)
        for name, own in statistics.items():
            for found, true in zip(shown.measured(own), numbers(own, table), strict=True):
                if found is not None:
                    held.setdefault(name, []).append(abs(found.value - true) <= found.width(0.95))
        print(f"{named} release {run + 1}", end="\r", file=sys.stderr)
    for name, inside in held.items():
        yield named | {
            "statistic": name, "releases": given.runs, "numbers": len(inside), "coverage": _percent(np.array(inside))
        }  # fmt: skip


def _percent(inside: np.ndarray) -> str:
    there = inside[~np.isnan(inside.astype(np.float64))]
    return f"{100 * there.mean():.1f}" if len(there) else "-"


def _mean(values: np.ndarray) -> float | None:
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else None


def _adult(given: argparse.Namespace) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    table = real(given, "adult")
    _, codes = table.codes()
    return {name: table.columns[name] for name in ADULT}, codes


def _real(given: argparse.Namespace) -> Iterator[Finding]:
    columns, codes = _adult(given)
    yield f"Adult: tables of {given.rows:,} rows, drawn from its {len(codes['sex']):,}."
    yield from measure(given, codes, columns, ADULT_FEW, ADULT_QUERIES)


def _analyses(given: argparse.Namespace) -> Iterator[Finding]:
    """True, naive (synthetic rows taken as real ones) and corrected, side by side."""
    columns, codes = _adult(given)
    yield f"Adult, all {len(codes['sex']):,} rows and six columns, joint, one release for each epsilon."
    for epsilon in given.epsilon:
        spec = _spec("joint", epsilon, given.delta, columns)
        rows = len(codes["sex"])
        table = Drawn(Table({c.name: codes[c.name] for c in spec.domain}, rows), spec.domain, rows)
        rng = np.random.default_rng(round(1000 * epsilon))
        release = simulated(spec, table, rng)
        shown = Published(spec, release.outcome, release.known(), release.seed)
        for analysis, text in ANALYSES.items():
            own = Statistic(parse_query(text), spec.domain, spec.stated.relations)
            naive, error = numbers(own, shown.released), np.sqrt(sampling_variance(own, shown.released, rng))
            for k, one in enumerate(shown.answer(own.query)):
                yield {
                    "epsilon": epsilon,
                    "analysis": analysis,
                    "number": ", ".join(str(label) for _, label in one.key),
                    "true": float(numbers(own, table)[k]),
                    "naive": _interval(naive[k] - 1.96 * error[k], naive[k] + 1.96 * error[k]),
                    "corrected": one.note if one.low is None else _interval(one.low, one.high),
                    "from": one.source,
                }


def _interval(low: float | None, high: float | None) -> str:
    return f"{low:.4g} to {high:.4g}"


PARTS = {"simulated": _simulated, "measured": _measured, "real": _real, "analyses": _analyses}
