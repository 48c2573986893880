"""A forest of attributes, numbered 0 .. d-1: which pairs are linked, and every one after its parent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

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


def rooted(links: Sequence[Pair], d: int, root: int | None = None) -> Order:
    """Every attribute with its parent, parents first; the `root` stated comes first, else the attribute with
    most links.

    >>> rooted([(0, 1), (1, 2)], 4)
    [(1, None), (0, 1), (2, 1), (3, None)]
    >>> rooted([(0, 1), (1, 2)], 4, root=2)
    [(2, None), (1, 2), (0, 1), (3, None)]
    """
    beside: list[list[int]] = [[] for _ in range(d)]
    for i, j in links:
        beside[i].append(j)
        beside[j].append(i)
    order: Order = []
    seen: set[int] = set()
    for start in sorted(range(d), key=lambda i: (i != root, -len(beside[i]), i)):
        if start in seen:
            continue
        first = len(order)
        order.append((start, None))
        seen.add(start)
        while first < len(order):
            node = order[first][0]
            order += [(child, node) for child in beside[node] if child not in seen]
            seen.update(beside[node])
            first += 1
    return order
