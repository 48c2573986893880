"""Errors of 1-, 2- and 3-way marginals, and the questions that count them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.scales import cells
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Bins, CellCounts, Cells, Floats, Gram, Ints, Question

NUMERIC, CATEGORIES = 16, 64  # even cells of a column in 1- and 2-way tables
NUMERIC_3, CATEGORIES_3 = 8, 16  # in 3-way tables
TRIPLES = 100
PAIRED = 64  # columns that are looked at in twos and threes, at most

Columns = tuple[str, ...]


def axes(columns: Iterable[Column]) -> tuple[Bins, ...]:
    """How each column is cut for 1- and 2-way tables."""
    return tuple(cells(column, NUMERIC, CATEGORIES) for column in columns)


def paired(domain: Domain) -> tuple[Column, ...]:
    """The columns that are looked at in twos and threes: all, or a fixed choice where there are very many."""
    if len(domain.columns) <= PAIRED:
        return domain.columns
    chosen = np.random.default_rng(0).choice(len(domain.columns), PAIRED, replace=False)
    return tuple(domain.columns[i] for i in sorted(chosen))


def pair_question(domain: Domain, share: Fraction = Fraction(0)) -> Question:
    """All 1- and 2-way tables of the `paired` columns, in one question."""
    cut = axes(paired(domain))
    lone = CellCounts(Cells(cut))
    return Question("evaluate", Gram(cut, diagonal=True) if len(cut) > 1 else lone, share)


def pair_tables(values: Ints, domain: Domain, diagonal: bool = True) -> dict[Columns, Ints]:
    """The answer to `pair_question`, or without the diagonal to a Gram of its axes, table by table."""
    cut = axes(paired(domain))
    names, sizes = [axis.column for axis in cut], [len(axis.edges) - 1 for axis in cut]
    order: list[tuple[int, ...]] = []
    for i in range(len(cut)):
        order += [*([(i,)] if diagonal else []), *((i, j) for j in range(i + 1, len(cut)))]
    ends = np.cumsum([np.prod([sizes[i] for i in columns]) for columns in order])
    parts = np.split(values, ends[:-1])
    return {tuple(names[i] for i in columns): part for columns, part in zip(order, parts, strict=True)}


def triples(domain: Domain) -> list[Columns]:
    """All sets of three columns, or a fixed choice of them where there are many."""
    every: list[Columns] = list(combinations([column.name for column in paired(domain)], 3))
    if len(every) <= TRIPLES:
        return every
    chosen = np.random.default_rng(0).choice(len(every), TRIPLES, replace=False)
    return [every[i] for i in sorted(chosen)]


def errors(p: Floats, q: Floats) -> tuple[float, float]:
    """Total variation distance of two tables of proportions, and the sum of squared differences."""
    gap = p - q
    return float(np.abs(gap).sum() / 2), float((gap * gap).sum())


def marginal_errors(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """Mean and worst total variation distance over all tables of 1, 2 and 3 columns, and their mean squared
    error over all cells.
    """
    question = pair_question(domain)
    counted = [pair_tables(t.sums([question], domain)[0], domain) for t in (real, other)]
    alone = [column for column in domain if (column.name,) not in counted[0]]
    ones = [Question("evaluate", CellCounts(Cells((axis,))), Fraction(0)) for axis in axes(alone)]
    for tables, table in zip(counted, (real, other), strict=True):
        tables |= dict(zip(((c.name,) for c in alone), table.sums(ones, domain), strict=True))
    chosen = triples(domain)
    in_threes = {c.name: cells(c, NUMERIC_3, CATEGORIES_3) for c in domain}
    questions = [
        Question("evaluate", CellCounts(Cells(tuple(in_threes[name] for name in names))), Fraction(0))
        for names in chosen
    ]
    for tables, table in zip(counted, (real, other), strict=True):
        tables |= dict(zip(chosen, table.sums(questions, domain), strict=True))
    n, m = max(1, len(real)), max(1, len(other))
    found = {names: (*errors(counted[0][names] / n, counted[1][names] / m), counted[0][names].size)
             for names in counted[0]}  # fmt: skip
    return _by_ways(found, chosen)


def _by_ways(found: dict[Columns, tuple[float, float, int]], chosen: Sequence[Columns]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for ways in (1, 2, 3):
        own = {names: values for names, values in found.items() if len(names) == ways}
        if not own:
            continue
        distances = {names: tvd for names, (tvd, _, _) in own.items()}
        worst = max(distances, key=lambda names: distances[names])
        result[f"tvd{ways}"] = {
            "mean": float(np.mean(list(distances.values()))),
            "worst": distances[worst],
            "worst_columns": list(worst),
            "mean_squared_error": sum(s for _, s, _ in own.values()) / sum(c for _, _, c in own.values()),
            "tables": len(own),
        }
        if ways == 1:
            result["tvd1"]["columns"] = {names[0]: tvd for names, tvd in distances.items()}
        if ways == 2:
            result["tvd2"]["pairs"] = [[*names, tvd] for names, tvd in distances.items()]
    return result
