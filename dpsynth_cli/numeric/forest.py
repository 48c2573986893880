"""A forest of attributes: which pairs are linked, what it says of all other pairs, rows from root to leaf.

Attributes are numbered 0 .. d-1, each with the masses of its cells; a link has the table of its two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.sampling import whole

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[int, int]
Order: TypeAlias = list[tuple[int, int | None]]  # attributes, each after its parent


def spanning(scores: Mapping[Pair, float], d: int) -> list[Pair]:
    """The links of greatest score without a cycle, only positive ones (Kruskal).

    >>> spanning({(0, 1): 3.0, (0, 2): 2.0, (1, 2): 1.0, (2, 3): 0.0}, 4)
    [(0, 1), (0, 2)]
    """
    part, links = list(range(d)), []
    for pair in sorted(scores, key=lambda pair: (-scores[pair], pair)):
        one, other = part[pair[0]], part[pair[1]]
        if scores[pair] > 0 and one != other:
            part = [one if p == other else p for p in part]
            links.append(pair)
    return links


def rooted(links: Sequence[Pair], d: int) -> Order:
    """Every attribute with its parent, parents first; the attribute with most links is a root.

    >>> rooted([(0, 1), (1, 2)], 4)
    [(1, None), (0, 1), (2, 1), (3, None)]
    """
    beside: list[list[int]] = [[] for _ in range(d)]
    for i, j in links:
        beside[i].append(j)
        beside[j].append(i)
    order: Order = []
    seen: set[int] = set()
    for root in sorted(range(d), key=lambda i: (-len(beside[i]), i)):
        if root in seen:
            continue
        first = len(order)
        order.append((root, None))
        seen.add(root)
        while first < len(order):
            node = order[first][0]
            order += [(child, node) for child in beside[node] if child not in seen]
            seen.update(beside[node])
            first += 1
    return order


def implied(order: Order, masses: Sequence[Floats], tables: Mapping[Pair, Floats]) -> dict[Pair, Floats]:
    """The table of every pair i < j when attributes depend on each other along the links only."""
    total = max(float(masses[0].sum()), 1e-9)
    found: dict[Pair, Floats] = {}
    for at, (node, parent) in enumerate(order):
        for other, _ in order[:at]:
            if parent is None:
                table = np.outer(masses[other], masses[node]) / total
            elif other == parent:
                table = _oriented(tables, parent, node)
            else:
                table = _oriented(found, other, parent) @ _given(tables, parent, node)
            # Rounded: the last bits of a matrix product differ between machines.
            table = np.round(table, 6)
            found[min(other, node), max(other, node)] = table if other < node else table.T
    return found


def _oriented(tables: Mapping[Pair, Floats], i: int, j: int) -> Floats:
    return tables[i, j] if i < j else tables[j, i].T


def _given(tables: Mapping[Pair, Floats], parent: int, node: int) -> Floats:
    """The distribution of a node given its parent's cell; 0 where the parent has no mass."""
    table = _oriented(tables, parent, node)
    sums = table.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(table, sums, out=np.zeros_like(table), where=sums > 0))


def cells_drawn(
    order: Order, masses: Sequence[Floats], tables: Mapping[Pair, Floats], rows: int, rng: np.random.Generator
) -> Ints:
    """Rows from root to leaf, a column of cells for each attribute.

    Systematic: of the rows with one cell of the parent, each cell of the child gets as many as are due.
    """
    cells = np.zeros((rows, len(masses)), np.int64)
    for node, parent in order:
        mixed = rng.permutation(rows)
        if parent is None:
            cells[mixed, node] = np.repeat(np.arange(len(masses[node])), whole(masses[node], rows, rng))
            continue
        above = cells[mixed, parent]
        counts = np.bincount(above, minlength=len(masses[parent]))
        given = _given(tables, parent, node)
        due = [
            whole(given[cell] if given[cell].any() else masses[node], int(counts[cell]), rng)
            for cell in np.flatnonzero(counts)
        ]
        drawn = [np.repeat(np.arange(len(part)), part) for part in due]
        cells[mixed[np.argsort(above, kind="stable")], node] = np.concatenate([np.zeros(0, np.int64), *drawn])
    return cells
