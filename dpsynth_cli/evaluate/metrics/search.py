"""The tables of two and more columns that differ most from the real ones, found by search."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.metrics.cuts import PARTS, Columns, CutTables, distance
from dpsynth_cli.evaluate.metrics.marginals import paired, sets
from dpsynth_cli.evaluate.tables import Table, halves, independent
from dpsynth_cli.questions import Floats

MOST = 10  # pairs and triples that are named
TRIPLES, BEAM = 1500, 20  # triples up to which all are tried; else how many pairs are extended
ROWS = 20_000  # of each table that the search looks at


def what_differs_most(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """`pairs` and `triples` whose tables differ most, beyond what sampling does; `links`: pairs that differ
    most beyond either of their columns alone. Each beside what half of the real rows against the other half
    and independent columns give."""
    domain = Domain(paired(domain))
    if len(domain.columns) < 2 or not len(real) or not len(other):
        return {"most": {"pairs": [], "links": [], "triples": []}}
    few = real.at_most(ROWS), other.at_most(ROWS)
    pairs, links = _pairs(few, domain)
    triples = _triples(few, domain, pairs)
    chosen = {"pairs": _top(pairs), "links": _top(links), "triples": _top(triples)}
    return {"most": {key: beside(real, other, domain, own) for key, own in chosen.items()}}


def differ_most(real: Table, other: Table, domain: Domain, most: int, ways: int = 2) -> list[Columns]:
    """The sets of two or three columns whose tables differ most, the worst first."""
    few = real.at_most(ROWS), other.at_most(ROWS)
    pairs = _pairs(few, domain)[0]
    return _top(pairs if ways == 2 else _triples(few, domain, pairs), most)


def extended(real: Table, other: Table, domain: Domain, columns: Columns) -> Columns:
    """One column more: the one with which the table differs most."""
    few = real.at_most(ROWS), other.at_most(ROWS)
    names = [column.name for column in domain]
    larger = [tuple(n for n in names if n in (*columns, more)) for more in names if more not in columns]
    return _top(_beyond_sampling(few, domain, larger))[0]


def by_sampling(p: Floats, rows: tuple[int, int]) -> float:
    """About the total variation distance of two samples of these shares."""
    scale = math.sqrt(sum(1 / max(1, n) for n in rows) * 2 / math.pi) / 2
    return scale * float(np.sqrt(p * (1 - p)).sum())


def _beyond_sampling(few: tuple[Table, Table], domain: Domain, tried: list[Columns]) -> dict[Columns, float]:
    """By how much each table differs, beyond what two samples of one distribution do."""
    cells, rows = CutTables(few[0], few, domain, PARTS[len(tried[0])]), (len(few[0]), len(few[1]))
    found = {}
    for columns in tried:
        p, q = cells.shares(columns)
        found[columns] = distance(p, q) - by_sampling((p + q) / 2, rows)
    return found


def _pairs(few: tuple[Table, Table], domain: Domain) -> tuple[dict[Columns, float], dict[Columns, float]]:
    """Of all pairs: by how much they differ, and by how much beyond either of their columns."""
    pairs = _beyond_sampling(few, domain, sets(domain, 2))
    cells = CutTables(few[0], few, domain, PARTS[2])
    alone = {column.name: cells.tvd((column.name,)) for column in domain}
    return pairs, {pair: gap - max(alone[name] for name in pair) for pair, gap in pairs.items()}


def _triples(few: tuple[Table, Table], domain: Domain, pairs: dict[Columns, float]) -> dict[Columns, float]:
    """All triples where they are few; else those around the pairs that differ most, and a fixed draw."""
    names = [column.name for column in domain]
    tried: list[Columns] = []
    if math.comb(len(names), 3) <= TRIPLES:
        tried = list(combinations(names, 3))
    else:
        around = {
            tuple(name for name in names if name in (*pair, third))
            for pair in _top(pairs, BEAM)
            for third in names
            if third not in pair
        }
        tried = sorted(around | set(sets(domain, 3)))
    return _beyond_sampling(few, domain, tried) if tried else {}


def _top(found: dict[Columns, float], most: int = MOST) -> list[Columns]:
    return sorted(found, key=lambda columns: -found[columns])[:most]


def beside(real: Table, other: Table, domain: Domain, chosen: list[Columns]) -> list[dict[str, Any]]:
    """The distances of these tables, with the references of each; `beyond`: beyond the worst of its parts."""
    if not chosen:
        return []
    ways = len(chosen[0])
    names = {name for columns in chosen for name in columns}
    few = Domain(tuple(column for column in domain if column.name in names))
    cells = CutTables(real, (real, other, *halves(real), independent(real)), few, PARTS[ways])
    found = []
    for columns in chosen:
        p, q, one, two, apart = cells.shares(columns)
        tvd = distance(p, q)
        found.append(
            {
                "columns": list(columns),
                "tvd": tvd,
                "beyond": max(0.0, tvd - max(cells.tvd(part) for part in combinations(columns, ways - 1))),
                "real_split": distance(one, two),
                "independent": distance(p, apart),
            }
        )
    return found
