"""The reference family: a few generated tables with the declared columns, to predict errors on.

What a release loses depends on how the data lie in the declared domain: how skewed columns are, where values
heap up, how far columns depend on each other, what is missing together. None of this is public, so no single
table stands for the data. The family covers what tables are like, from almost constant columns to columns
that determine each other, and a prediction is the range over it. Tables follow from the declaration and a
fixed seed.

A table is made in two steps. Scores between 0 and 1, one a cell, even in every column, carry the dependence
(`dependence.py`); a curve for each column then says how much of it lies where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Floats, Ints
from dpsynth_cli.release.predict import dependence
from dpsynth_cli.spec.spec import Spec

SEED = 20_260_101
Generator = np.random.Generator
Curve = Callable[[Floats, Generator], Floats]  # scores to places between the bounds, 0 to 1


@dataclass(frozen=True)
class Member:
    """One table: how columns depend on each other, how a number lies between its bounds, how uneven
    categories are (the exponent of Zipf's law), what part of a nullable column is missing, and whether
    together.
    """

    words: str
    scores: dependence.Scores
    curve: Curve
    zipf: float
    missing: float = 0.0
    together: bool = False


def even(u: Floats, rng: Generator) -> Floats:
    return u


def bell(u: Floats, rng: Generator) -> Floats:
    """A hump somewhere in the middle, narrow or wide."""
    centre, width = rng.uniform(0.3, 0.7), rng.uniform(0.03, 0.15)
    return np.asarray(centre + width * np.log(u / (1 - u)))


def skewed(u: Floats, rng: Generator) -> Floats:
    """Most values near one bound and a long tail: exponential, or even on a logarithmic scale."""
    rate = float(np.exp(rng.uniform(np.log(8), np.log(150))))
    tail = -np.log1p(-u) / rate if rng.random() < 0.5 else np.exp(-rate / 2 * (1 - u))
    return 1 - tail if rng.random() < 0.2 else tail


def heaped(u: Floats, rng: Generator) -> Floats:
    """Two thirds of the rows on few round values, more of them on low ones."""
    x = u ** rng.uniform(1, 4)
    steps = int(rng.integers(4, 21))
    return np.where(rng.random(len(u)) < 2 / 3, np.floor(x * steps) / steps, x)


def mostly_one(u: Floats, rng: Generator) -> Floats:
    """One value for most rows, and a tail."""
    usual, rest = rng.uniform(0.8, 0.98), skewed(u, rng)
    return np.where(u < usual, 0.0, rest)


FAMILY = {
    "even": Member("even columns, independent of each other", dependence.none, even, 0.0),
    "correlated": Member("numbers in a hump, correlated", dependence.correlated, bell, 0.7, 0.03),
    "aligned": Member("numbers all over their range, strongly correlated", dependence.strong, even, 0.3),
    "clustered": Member("rows in a few clusters", dependence.clustered, even, 0.5, 0.1, True),
    "zipf": Member("long tails and rare categories", dependence.weak, skewed, 1.3, 0.1),
    "spiky": Member("round values, columns that determine others", dependence.linked, heaped, 0.9, 0.2, True),
    "sparse": Member("one value for most rows, much missing", dependence.weak, mostly_one, 3.0, 0.6, True),
}  # fmt: skip

EXAMPLE = "correlated"  # whose questions are shown where those of one table are
FEW = (EXAMPLE, "spiky", "zipf", "clustered")  # that have most of the range, what adds most first


def family(spec: Spec, rows: int, names: Iterable[str] = tuple(FAMILY)) -> dict[str, Table]:
    """These tables by name, of so many rows each; every one keeps the spec's rules."""
    return {name: _table(spec, rows, name) for name in names}


def _table(spec: Spec, rows: int, name: str) -> Table:
    member = FAMILY[name]
    rng = np.random.default_rng((SEED, list(FAMILY).index(name)))
    scores = member.scores(rows, len(spec.domain.columns), rng)
    shared = rng.random(rows)
    codes = {}
    for column, u in zip(spec.domain, scores.T, strict=True):
        codes[column.name] = _codes(column, u, member, rng)
        if column.nullable and member.missing:
            share = min(0.97, member.missing * rng.uniform(0, 2))
            hidden = shared if member.together else rng.random(rows)
            codes[column.name][hidden < share] = column.size
    return Table(spec.keeper.kept(codes, rng), rows)


def _codes(column: Column, u: Floats, member: Member, rng: Generator) -> Ints:
    if column.type in ("nominal", "boolean"):
        chances = 1 / np.arange(1, column.size + 1) ** (member.zipf * rng.uniform(0.5, 1.5))
        ends = np.cumsum(chances / chances.sum())
        return np.asarray(rng.permutation(column.size)[np.searchsorted(ends[:-1], u)], np.int64)
    x = member.curve(np.clip(u, 1e-9, 1 - 1e-9), rng)
    return np.asarray(np.clip(np.floor(x * column.size), 0, column.size - 1), np.int64)
