"""Errors of tables of one to five columns, cut in the data's own terms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.cuts import PARTS, Columns, CutTables
from dpsynth_cli.evaluate.tables import Table

TABLES = {3: 300, 4: 100, 5: 100}  # that are looked at, at most
PAIRED = 64  # columns that are looked at in twos and more, at most
LISTED = 2**15  # sets of columns up to which all are listed and some of them drawn


def paired(domain: Domain) -> tuple[Column, ...]:
    """The columns that are looked at in twos and threes: all, or a fixed choice where there are very many."""
    if len(domain.columns) <= PAIRED:
        return domain.columns
    chosen = np.random.default_rng(0).choice(len(domain.columns), PAIRED, replace=False)
    return tuple(domain.columns[i] for i in sorted(chosen))


def sets(domain: Domain, ways: int) -> list[Columns]:
    """The sets of so many columns that are looked at: all, or a fixed choice of them where there are many."""
    if ways == 1:
        return [(column.name,) for column in domain]
    names, rng = [column.name for column in paired(domain)], np.random.default_rng(0)
    whole, most = math.comb(len(names), ways), TABLES.get(ways, math.inf)
    if whole <= max(most, LISTED):
        every: list[Columns] = list(combinations(names, ways))
        return every if whole <= most else [every[i] for i in rng.permutation(whole)[: int(most)]]
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < most:
        drawn[tuple(sorted(rng.choice(len(names), ways, replace=False).tolist()))] = None
    return [tuple(names[i] for i in each) for each in drawn]


def table_errors(real: Table, other: Table, domain: Domain, ways: Iterable[int]) -> dict[str, Any]:
    """Mean and worst total variation distance over tables of so many columns."""
    result: dict[str, Any] = {}
    for k in ways:
        if not (chosen := sets(domain, k)):
            continue
        cells = CutTables(real, (real, other), Domain(paired(domain)) if k > 1 else domain, PARTS[k])
        found = {columns: cells.tvd(columns) for columns in chosen}
        worst = max(found, key=lambda columns: found[columns])
        result[f"tvd{k}"] = {
            "mean": float(np.mean(list(found.values()))),
            "worst": found[worst],
            "worst_columns": list(worst),
            "tables": len(found),
        }
        if k == 1:
            result["tvd1"]["columns"] = {columns[0]: tvd for columns, tvd in found.items()}
        if k == 2:
            result["tvd2"]["pairs"] = [[*columns, tvd] for columns, tvd in found.items()]
    return result
