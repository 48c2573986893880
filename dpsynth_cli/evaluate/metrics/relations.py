"""Relations that hold in the real table, and how far they still do: what follows from what, combinations that
never occur, values that are missing together."""

from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.metrics.cuts import DENSE, PARTS, CutTables, kinds
from dpsynth_cli.evaluate.metrics.marginals import paired
from dpsynth_cli.evaluate.metrics.scales import missing, share
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Floats

OPEN = 0.2  # of its entropy: what follows from another column leaves less than that open
SOME = 0.001  # of the rows: columns of which fewer are missing are not looked at


def relation_errors(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """All three kinds, pair by pair, and a figure for each kind."""
    few = Domain(paired(domain))
    cells = CutTables(real, (real, other), few, PARTS[2])
    follows, never = _follows(cells, few), _never(cells, real, few)
    gone, linked = _missing_together(real, other, few), _associations(cells, real, few)
    return {
        "determined": _mean([one["synthetic"] - one["real"] for one in follows]),
        "impossible": _mean([one["share"] for one in never]),
        "together": max((abs(one["synthetic"] - one["real"]) for one in gone), default=0.0),
        "follows": follows,
        "never": never,
        "missing_together": gone,
        "associations": linked,
    }


def _mean(found: list[float]) -> float:
    return float(np.mean(found)) if found else 0.0


def entropy(p: Floats) -> float:
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def _follows(cells: CutTables, domain: Domain) -> list[dict[str, Any]]:
    """Ordered pairs: b follows from a where a leaves little of b's entropy open in the real rows."""
    names = [column.name for column in domain]
    alone = {name: [entropy(p) for p in cells.shares((name,))] for name in names}
    used = {name: np.count_nonzero(cells.shares((name,))[0]) for name in names}
    found = []
    for pair in combinations(names, 2):
        if max(alone[pair[0]][0], alone[pair[1]][0]) <= 1e-9:
            continue
        joint = [entropy(p) for p in cells.shares(pair)]
        for a, b in (pair, pair[::-1]):
            if used[b] < 2 or used[a] >= cells.rows[0] / 4 or alone[b][0] <= 1e-9:
                continue
            left = [_left_open(*each) for each in zip(joint, alone[a], alone[b], strict=True)]
            if left[0] < OPEN:
                rows = _unusual(cells, a, b)
                found.append(
                    {"columns": [a, b], "real": left[0], "synthetic": left[1],
                     "rows": rows[1], "real_rows": rows[0]}
                )  # fmt: skip
    return found


def _left_open(joint: float, a: float, b: float) -> float:
    """H(b | a) / H(b); 1 where there is nothing to know."""
    return (joint - a) / b if b > 1e-9 else 1.0


def _unusual(cells: CutTables, a: str, b: str) -> list[float]:
    """The part of the rows of each table whose b is another cell than most real rows with the same a have;
    rows whose a no real row has are left out."""
    size, (one, _) = cells.sizes[b], cells.cells
    pairs, times = np.unique(one[a] * size + one[b], return_counts=True)
    order = np.argsort(times, kind="stable")  # the most frequent of each a is written last
    usual = np.full(cells.sizes[a], -1, np.int64)
    usual[pairs[order] // size] = pairs[order] % size
    found = []
    for own in cells.cells:
        expected = usual[own[a]]
        found.append(share((expected >= 0) & (expected != own[b])))
    return found


def _never(cells: CutTables, real: Table, domain: Domain) -> list[dict[str, Any]]:
    """Pairs of categories: the part of the rows with a pair of values that no real row has, and what it would
    be of independent columns; how many such pairs of values there are."""
    found = []
    for a, b in combinations([column.name for column in kinds(real, domain)[0]], 2):
        size = cells.sizes[b]
        (one, two) = (own[a] * size + own[b] for own in cells.cells)
        seen = np.unique(one)
        p, q = cells.shares((a,))[0], cells.shares((b,))[0]
        used = np.count_nonzero(p) * np.count_nonzero(q)
        found.append(
            {
                "columns": [a, b],
                "share": share(~np.isin(two, seen)),
                "pairs": int(used - len(seen)),
                "independent": max(0.0, 1.0 - float((p[seen // size] * q[seen % size]).sum()))
                if len(one)
                else 0.0,
            }
        )
    return found


def _associations(cells: CutTables, real: Table, domain: Domain) -> list[dict[str, Any]]:
    """Pairs of categories: Cramer's V of their cross-table, over rows that have both."""
    found = []
    for a, b in combinations([column.name for column in kinds(real, domain)[0]], 2):
        shape = cells.sizes[a], cells.sizes[b]
        if shape[0] * shape[1] > DENSE:
            continue
        counts = [
            np.bincount(own[a] * shape[1] + own[b], minlength=shape[0] * shape[1]) for own in cells.cells
        ]
        v = [cramers_v(own.reshape(shape)[:-2, :-2]) for own in counts]  # of values that real rows have
        found.append({"columns": [a, b], "real": v[0], "synthetic": v[1]})
    return found


def cramers_v(counts: NDArray[np.int64]) -> float:
    """The association in a cross-table, from 0 to 1, less what chance alone would show.

    >>> cramers_v(np.array([[50, 0], [0, 50]])), cramers_v(np.array([[25, 25], [25, 25]]))
    (1.0, 0.0)
    """
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    r, c = counts.shape
    if min(r, c) < 2:
        return 0.0
    n = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    squared = float(((counts - expected) ** 2 / expected).sum()) / n
    chance = (r - 1) * (c - 1) / n
    if squared <= chance:
        return 0.0
    return float(min(1.0, math.sqrt((squared - chance) / max(1e-9, min(r, c) - 1 - chance))))


def _missing_together(real: Table, other: Table, domain: Domain) -> list[dict[str, Any]]:
    """Ordered pairs of columns with missing values: P(b missing | a missing)."""
    gone = [{c.name: missing(t.codes[c.name], c) for c in domain if c.nullable} for t in (real, other)]
    names = [name for name, flags in gone[0].items() if share(flags) > SOME]
    return [
        {"columns": [a, b], "real": _if(gone[0], a, b), "synthetic": _if(gone[1], a, b)}
        for a, b in permutations(names, 2)
    ]


def _if(gone: dict[str, NDArray[np.bool_]], a: str, b: str) -> float:
    return share(gone[b][gone[a]])
