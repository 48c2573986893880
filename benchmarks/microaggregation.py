"""microaggregation: pairs on Adult and mushroom, beside marginals, groups against MDAV, a large file.

    python -m benchmarks microaggregation pairs --data DIR [--runs 5]                  # one-hot error of all pairs
    python -m benchmarks microaggregation beside --data DIR --tools DIR [--runs 5] [--epsilon 1 0.1] [--no-auc]
    python -m benchmarks microaggregation groups --data DIR                            # bisection and net against MDAV
    python -m benchmarks microaggregation large --data DIR --table FILE.parquet        # Adult's columns, many rows

Adult one-hot has 14 attributes: all but the sampling weight fnlwgt, numbers in 5 equal public bins. A large file like
Adult is made by make_large.py of the tools folder. Noise is drawn anew for every release, so figures vary.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import yaml

from benchmarks.harness import DPSYNTH, Finding, cost, released, timed
from benchmarks.joint import mean_figures, options_of_releases
from benchmarks.tables import real
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.microaggregation import printed as damped
from dpsynth_cli.trusted import similar as partitions
from dpsynth_cli.trusted.groups import points
from tests.asking import asking

Rows = dict[str, np.ndarray]
BINS = 5


def options(parser: argparse.ArgumentParser) -> None:
    options_of_releases(parser, 5, (1.0, 0.1))
    parser.add_argument("--table", type=Path, help="the Parquet file of `large`")


# --- pairs ------------------------------------------------------------------------------------------


def one_hot(omega: Domain, codes: Rows) -> tuple[Domain, Rows]:
    """Every column as a category, numbers in equal bins, without the sampling weight."""
    columns, binned = [], {}
    for column in omega:
        if column.name == "fnlwgt":
            continue
        columns.append(column)
        binned[column.name] = codes[column.name]
        if not column.categorical:
            columns[-1] = Column(column.name, "ordinal", categories=tuple(map(str, range(BINS))))
            binned[column.name] = codes[column.name] * BINS // column.size
    return Domain(tuple(columns)), binned


def pair_tables(omega: Domain, rows: Rows) -> list[np.ndarray]:
    n = len(next(iter(rows.values())))
    return [
        np.bincount(rows[a.name] * b.codes + rows[b.name], minlength=a.codes * b.codes) / n
        for a, b in combinations(omega.columns, 2)
    ]


def error(real: list[np.ndarray], made: list[np.ndarray]) -> float:
    """The mean squared error over all pairs of one-hot cells of different attributes."""
    return float(((np.concatenate(real) - np.concatenate(made)) ** 2).mean())


def as_printed(omega: Domain, rows: Rows, epsilon: float) -> list[np.ndarray]:
    """The 2-way marginals of the printed Algorithm 2, whose bits are rounded by themselves, in expectation."""
    known = Domain(omega.columns, "replace_one")
    ask, *_ = asking(rows, known, epsilon)
    attributes = [damped.public(column) for column in omega]
    mixture, _ = damped.damped(ask, attributes, float(len(next(iter(rows.values())))))
    weighted = [table * mixture.weights[:, None] for table in mixture.tables]
    return [(weighted[i].T @ mixture.tables[j]).ravel() for i, j in combinations(range(len(attributes)), 2)]


def pairs(given: argparse.Namespace) -> Iterator[Finding]:
    """The squared error of all pairs: ours, independent columns without noise, and the printed algorithm."""
    rng = np.random.default_rng(0)
    for name, epsilon, delta in (("adult", 1.0, None), ("adult", 0.5, None), ("mushroom", 1.0, 1e-9)):
        omega, rows = one_hot(*real(given, name).codes())
        truth = pair_tables(omega, rows)
        made = [released("microaggregation", omega, rows, epsilon, delta, seed) for seed in range(given.runs)]
        ours = [error(truth, pair_tables(omega, one.rows)) for one in made]
        alone = {key: rng.permutation(codes) for key, codes in rows.items()}
        theirs = np.mean([error(truth, as_printed(omega, rows, epsilon)) for _ in range(given.runs)])
        yield {
            "table": name,
            "epsilon": epsilon,
            "delta": delta or "pure",
            "runs": given.runs,
            "squared error": float(np.mean(ours)),
            "worst": max(ours),
            "independent": error(truth, pair_tables(omega, alone)),
            "as printed": float(theirs),
            "printed / ours": float(theirs / np.mean(ours)),
            "CPU s": float(np.mean([one.seconds for one in made])),
        }


def beside(given: argparse.Namespace) -> Iterator[Finding]:
    """microaggregation and marginals on Adult by income."""
    table = real(given, "adult")
    for epsilon in given.epsilon:
        for mechanism in ("microaggregation", "marginals"):
            found = mean_figures(given, table, mechanism, epsilon, given.delta, "income")
            yield {"epsilon": epsilon, "mechanism": mechanism, "runs": given.runs, **found}


# --- groups, without differential privacy -----------------------------------------------------------


def mdav(x: np.ndarray, g: int) -> np.ndarray:
    """Maximum distance to average vector (Domingo-Ferrer and Mateo-Sanz 2002): what others do."""
    left, of_row, count = np.arange(len(x)), np.empty(len(x), np.int64), 0

    def far(point: np.ndarray) -> np.ndarray:
        return x[left[np.argmax(((x[left] - point) ** 2).sum(axis=1))]]

    def take(point: np.ndarray) -> None:
        nonlocal left, count
        near = np.argpartition(((x[left] - point) ** 2).sum(axis=1), g - 1)[:g]
        of_row[left[near]] = count
        left, count = np.delete(left, near), count + 1

    while len(left) >= 3 * g:
        first = far(x[left].mean(axis=0))
        take(first)
        take(far(first))
    if len(left) >= 2 * g:
        take(far(x[left].mean(axis=0)))
    of_row[left] = count
    return of_row


def lost(x: np.ndarray, of_row: np.ndarray, cross: np.ndarray) -> float:
    """The mean squared error of pairs of cells when each row becomes the mean of its group."""
    sizes = np.bincount(of_row)
    means = np.zeros((len(sizes), x.shape[1]))
    np.add.at(means, of_row, x)
    means /= sizes[:, None]
    gap = (x.T.astype(float) @ x - (means * sizes[:, None]).T @ means) / len(x)
    return float((gap[cross] ** 2).mean())


def groups(given: argparse.Namespace) -> Iterator[Finding]:
    """What groups lose and how long they take, on 12,000 rows of Adult; and 100,000 rows of 100 bits."""
    omega, rows = one_hot(*real(given, "adult").codes())
    pick = np.random.default_rng(0).permutation(len(rows["income"]))[:12_000]
    some = {name: codes[pick] for name, codes in rows.items()}
    plain = Domain(tuple(Column(c.name, "nominal", categories=c.categories) for c in omega))
    x = points(some, plain)
    attribute = np.repeat(np.arange(len(omega.columns)), [c.codes for c in omega])
    cross = attribute[:, None] != attribute[None, :]
    ways = {"bisection": partitions.bisected, "net": partitions.by_net, "MDAV": mdav}
    for g in (20, 100):
        first = None
        for name, partition in ways.items():
            of_row, seconds = timed(lambda partition=partition, g=g: partition(x, g))
            found = lost(x, of_row, cross)
            first = first or (found, seconds)
            yield {"g": g, "groups by": name, "squared error": found, "of bisection's": found / first[0],
                   "CPU s": seconds, "of bisection's time": seconds / first[1]}  # fmt: skip
    rng = np.random.default_rng(0)
    bits = (rng.random((100_000, 100)) < rng.random(100)).astype(np.float32)
    of_row, seconds = timed(lambda: partitions.bisected(bits, 20))
    least = np.bincount(of_row).min()
    yield f"100,000 rows x 100 bits, g 20: {seconds:.2f} s of CPU, groups of at least {least} rows."


def large(given: argparse.Namespace) -> Iterator[Finding]:
    """A release of a file with Adult's columns by the command line, from file to file."""
    table = real(given, "adult")
    columns = {
        name: column | ({} if "categories" in column else {"nullable": True})
        for name, column in table.columns.items()
    }
    output = given.folder / "made.parquet"
    spec = replace(table, train=given.table.resolve(), columns=columns).spec(
        "microaggregation", 1.0, strata="income", output=output
    )
    path = given.folder / "spec.yaml"
    by_name = {c["name"]: {k: v for k, v in c.items() if k != "name"} for c in spec.effective["columns"]}
    path.write_text(yaml.safe_dump(spec.effective | {"columns": by_name}, sort_keys=False))
    spent = cost(*DPSYNTH, "release", path, "-q", "--ledger", given.folder / "ledger.sqlite")
    yield {"columns": len(columns), "CPU s": spent.seconds, "peak MB": spent.megabytes}


PARTS = {"pairs": pairs, "beside": beside, "groups": groups, "large": large}
