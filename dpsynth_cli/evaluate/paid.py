"""Evaluation that is paid for: how far the real rows are from tables of the synthetic ones, and their means.

The synthetic table is public once the mechanism is done, and everything here follows from it: where tables
are cut (at its quantiles), which pairs and triples of columns are looked at (its strongest links, and a fixed
draw of others), and what each cell should hold. A `Misfit` then gives the distance of the real rows from each
table at a price that does not grow with its cells; the noise of a distance has mean zero, and its standard
deviation stands beside it. Answers are in the transcript, so that `verify` makes the errors again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.marginals import paired
from dpsynth_cli.evaluate.metrics.moments import BITS, means, moments_question
from dpsynth_cli.evaluate.metrics.scales import ordered
from dpsynth_cli.evaluate.tables import Sample, Table
from dpsynth_cli.questions import Answer, Bins, Block, CellCounts, Cells, Ints, Misfit, Question
from dpsynth_cli.shares import divide
from dpsynth_cli.trusted.sums.tally import Tally

WEIGHTS = {1: 0.3, 2: 0.4, 3: 0.15}  # of tables of so many columns in the evaluation's share
MEANS = 0.15
PAIRS, TRIPLES = 40, 10  # tables, at most: each one more adds noise to all
NUMERIC = {1: 16, 2: 8, 3: 4}  # parts of a column of numbers, by its quantiles, in tables of so many columns
CATEGORIES = {1: 64, 2: 16, 3: 8}  # categories that have cells of their own; more are cut by quantiles too
LOOKED_AT = 50_000  # synthetic rows by which cuts and links are chosen
STRONG = 2  # of so many pairs one is a strong link, the others are drawn

Columns = tuple[str, ...]
Draw = Callable[[], Iterable[Block]]


@dataclass(frozen=True)
class Paid:
    """The questions of a paid evaluation, the columns of each table in their order, the synthetic means."""

    questions: list[Question]
    tables: list[Columns]
    sums: Ints | None


def table_counts(domain: Domain) -> dict[int, int]:
    """How many tables of one, two and three columns are compared: by the number of columns alone."""
    d, several = len(domain.columns), len(paired(domain))
    counts = {1: d, 2: min(math.comb(several, 2), 2 * d, PAIRS), 3: min(math.comb(several, 3), d, TRIPLES)}
    return {ways: count for ways, count in counts.items() if count}


def shares_of(domain: Domain, share: Fraction) -> dict[int, Fraction]:
    """What tables of one, two and three columns get of the share; the means (0) the rest."""
    weights = {ways: WEIGHTS[ways] for ways in table_counts(domain)} | ({0: MEANS} if ordered(domain) else {})
    return dict(zip(weights, divide(share, list(weights.values())), strict=True))


def priced_questions(domain: Domain, share: Fraction) -> list[Question]:
    """Questions with the prices of `paid_questions`, known before there is a synthetic table."""
    shares, counts = shares_of(domain, share), table_counts(domain)
    asked = [_misfit((Cells(()),) * many, [[0]] * many, shares[ways]) for ways, many in counts.items()]
    return [*asked, moments_question(domain, 1, shares[0])] if 0 in shares else asked


def paid_questions(domain: Domain, share: Fraction, draw: Draw, rows: int, total: int) -> Paid:
    """How far are the real rows from the synthetic tables, cut at quantiles; and what are their means?

    `draw` gives the synthetic rows, the same each time: `rows` of them. A cell of a table of the private
    number of real rows, `total`, is expected to hold its part of that.
    """
    shares, counts, sample = shares_of(domain, share), table_counts(domain), Sample(LOOKED_AT)
    for block in draw():
        sample.add(block)
    looked_at = sample.table(domain)
    cut = {ways: {c.name: quantile_cells(c, looked_at, ways) for c in domain} for ways in counts}
    chosen = choose(domain, looked_at, counts, cut)
    tables = {
        ways: [Cells(tuple(cut[ways][name] for name in names)) for names in own]
        for ways, own in chosen.items()
    }
    every = [_counting(cells) for own in tables.values() for cells in own]
    every += [moments_question(domain, 1)] if 0 in shares else []
    tally = Tally(every, domain)
    for block in draw():
        tally.add(block, len(next(iter(block.values()))))
    sums = tally.sums()
    questions, at = [], 0
    for ways, own in tables.items():
        expected = [_scaled(counted, rows, total) for counted in sums[at : at + len(own)]]
        questions.append(_misfit(tuple(own), expected, shares[ways]))
        at += len(own)
    questions += [moments_question(domain, 1, shares[0])] if 0 in shares else []
    return Paid(
        questions, [names for own in chosen.values() for names in own], sums[at] if 0 in shares else None
    )


def quantile_cells(column: Column, synthetic: Table, ways: int) -> Bins:
    """A column cut at quantiles of its synthetic values; a value that many rows have, and missing, alone."""
    if column.categorical and column.codes <= CATEGORIES[ways]:
        return Bins(column.name, tuple(range(column.codes + 1)))
    codes = np.sort(np.asarray(synthetic.codes[column.name], np.int64))
    codes = codes[codes < column.size]
    parts = CATEGORIES[ways] if column.categorical else NUMERIC[ways]
    at = codes[np.arange(1, parts) * len(codes) // parts] if len(codes) else np.zeros(0, np.int64)
    edges = {0, column.size, column.codes, *at.tolist()}
    values, times = np.unique(at, return_counts=True)
    edges |= {value + 1 for value in values[times > 1].tolist()}
    return Bins(column.name, tuple(sorted(edges)))


def choose(
    domain: Domain, synthetic: Table, counts: dict[int, int], cut: dict[int, dict[str, Bins]]
) -> dict[int, list[Columns]]:
    """Which tables are compared: every column; of pairs the strongest links and a fixed draw; triples around
    strong links."""
    chosen: dict[int, list[Columns]] = {1: [(column.name,) for column in domain]}
    if 2 not in counts:
        return chosen
    names = [column.name for column in paired(domain)]
    pairs: list[Columns] = list(combinations(names, 2))
    strength = dict(zip(pairs, _links(domain, synthetic, pairs, cut[2]), strict=True))
    by_strength = sorted(pairs, key=lambda pair: -strength[pair])  # a stable sort: ties as they are declared
    strong = by_strength[: -(-counts[2] // STRONG)]
    rest = [pair for pair in pairs if pair not in set(strong)]
    drawn = np.random.default_rng(0).permutation(len(rest))[: counts[2] - len(strong)]
    chosen[2] = [*strong, *(rest[i] for i in sorted(drawn))]
    if 3 in counts:
        link = strength | {(b, a): value for (a, b), value in strength.items()}
        triples: dict[Columns, None] = {}
        for a, b in by_strength:
            third = max((c for c in names if c not in (a, b)), key=lambda c: link[a, c] + link[b, c])
            triples[tuple(name for name in names if name in (a, b, third))] = None
        others = (three for three in combinations(names, 3) if three not in triples)
        chosen[3] = [*triples, *others][: counts[3]]
    return chosen


def _links(domain: Domain, synthetic: Table, pairs: Sequence[Columns], cut: dict[str, Bins]) -> list[float]:
    """How far each pair of synthetic columns is from independent ones: total variation, to six decimals."""
    found = []
    asked = [_counting(Cells((cut[a], cut[b]))) for a, b in pairs]
    for (a, b), counted in zip(pairs, synthetic.sums(asked, domain), strict=True):
        table = counted.reshape(len(cut[a].edges) - 1, len(cut[b].edges) - 1) / max(1, len(synthetic))
        apart = table.sum(axis=1)[:, None] * table.sum(axis=0)[None, :]
        found.append(_round(np.abs(table - apart).sum() / 2))
    return found


def paid_errors(
    domain: Domain, paid: Paid, answers: Sequence[Answer], rows: int, total: int
) -> dict[str, Any]:
    """Total variation distances of the synthetic tables from the real ones, and errors of means, each with
    the standard deviation of its noise.

    `noise` is that of the figure beside it; of `mean`, of the mean. A distance below 0 or above 1 is noise.
    """
    n, m = max(1, total), max(1, rows)
    tvd: dict[Columns, tuple[float, float]] = {}
    for answer in answers[: len(answers) - (paid.sums is not None)]:
        names = paid.tables[len(tvd) : len(tvd) + len(answer.values)]
        found = (answer.values / (2 * n)).tolist()
        tvd |= {own: (value, answer.sd / (2 * n)) for own, value in zip(names, found, strict=True)}
    result: dict[str, Any] = {}
    for ways in (1, 2, 3):
        if own := [figure for names, figure in tvd.items() if len(names) == ways]:
            found = [value for value, _ in own]
            result[f"tvd{ways}"] = {
                "mean": _part(float(np.mean(found))),
                "worst": _part(max(found)),
                "noise": _round(own[0][1] / math.sqrt(len(own))),
            }
    result["columns"] = {names[0]: _figure(*own) for names, own in tvd.items() if len(names) == 1}
    for key, ways in (("pairs", 2), ("triples", 3)):
        several = {names: figure for names, figure in tvd.items() if len(names) == ways}
        if several:
            result[key] = [{"columns": list(names)} | _figure(*own) for names, own in several.items()]
    if paid.sums is not None:
        gap = means(paid.sums, m) - means(answers[-1].values, n)
        sd = answers[-1].sd / (2 * (2**BITS - 1) * n)
        result["means"] = {
            column.name: {"error": _round(value), "standard_deviation": _round(sd)}
            for column, value in zip(ordered(domain), gap.tolist(), strict=True)
        }
    return result


def _misfit(tables: tuple[Cells, ...], expected: Sequence[Sequence[int]], share: Fraction) -> Question:
    return Question("evaluate", Misfit(tables, (tuple(map(tuple, expected)),)), share)


def _counting(cells: Cells) -> Question:
    return Question("evaluate", CellCounts(cells), Fraction(0))


def _scaled(counted: Ints, rows: int, total: int) -> list[int]:
    """What a table of `rows` rows is in one of `total`, to the nearest whole number."""
    n, m = max(0, total), max(1, rows)
    return [(2 * count * n + m) // (2 * m) for count in counted.tolist()]


def _figure(tvd: float, noise: float) -> dict[str, float]:
    return {"tvd": _part(tvd), "noise": _round(noise)}


def _part(value: float) -> float:
    """Between 0 and 1: what is beyond is noise."""
    return _round(min(1.0, max(0.0, value)))


def _round(value: float) -> float:
    """Six decimals: another machine may add floats up in another order."""
    return round(float(value), 6)
