"""Parents with their children: two files joined by a key, with a small part of both in memory.

A unit is all rows, of any of the tables, whose key is the same. The claim: **what a table of parents or of
children has of a unit is a function of the secret key and of the unit's own rows, whatever their order, and
is one row of parents, or at most t <= k rows of children.**

- Of several parents with one key the first in the unit's order is kept (`unit_rows.py`).
- Of its children the first k in that order, then sorted as the spec says, equal ones again in that order.
  What is before a child is told by all k; of these at most t, by another random order, are rows of the table.
- Children without a parent are left out: whether there is one is told by the unit's own rows.
- Rows without a key, and ruined records, are one unit together, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.trusted.rows.kept_rows import Kept
from dpsynth_cli.trusted.rows.unit_rows import Records, Truncation, least, runs, side_by_side


@dataclass(frozen=True)
class Order:
    """A column that children of a parent are sorted by: its number, its missing code, and whether the
    largest is first."""

    at: int
    missing: int
    falling: bool


def parent_rows(omega: Domain, parents: Truncation, children: Mapping[str, Truncation]) -> Kept:
    """The table of parents: the columns of a row, and how many children it has in each of the tables."""
    names = [column.name for column in parents.marked.columns]
    kept = Kept([column.name for column in omega])
    for own, found in _joined(parents, list(children.values())):
        numbers = [np.bincount(parent, minlength=len(own)) for parent, _ in found]
        every = dict(zip(names, own["codes"].T, strict=True))
        every |= {
            column.name: numbers[list(children).index(column.origin[1])]
            for column in omega
            if column.origin is not None
        }
        kept.add(np.column_stack([every[column.name] for column in omega]).astype(np.int32))
    return kept


def child_rows(
    omega: Domain,
    parents: Truncation,
    child: Truncation,
    others: Mapping[str, Truncation],
    order: Sequence[Order] = (),
) -> Kept:
    """The table of children, at most `omega.unit_rows` of a parent: a row's own columns, and those that come
    from its parent, from the child before it, from how many they are, and from its place among them."""
    assert omega.unit_rows is not None
    kept = Kept([column.name for column in omega])
    for above, (first, *rest) in _joined(parents, [child, *others.values()]):
        parent, rows = _sorted(*first, order)
        if not len(parent):
            continue
        begin = np.flatnonzero(np.diff(parent, prepend=-1))
        number = np.diff(np.append(begin, len(parent)))
        found: dict[tuple[str, str], NDArray[Any]] = {
            ("place", ""): np.arange(len(parent)) - np.repeat(begin, number),
            ("number", omega.table): np.repeat(number, number),
        }
        for name, (other, _) in zip(others, rest, strict=True):
            found["number", name] = np.bincount(other, minlength=len(above))[parent]
        for column, codes in zip(parents.marked.columns, above["codes"].T, strict=True):
            found["parent", column.name] = codes[parent]
        for column, codes in zip(child.marked.columns, rows["codes"].T, strict=True):
            found["", column.name] = codes
            none = found["place", ""] == 0
            found["previous", column.name] = np.where(none, column.size, np.roll(codes, 1))
        asked = _some(parent, rows["mark"][:, 1], omega.unit_rows)
        every = [found[column.origin or ("", column.name)][asked] for column in omega]
        kept.add(np.column_stack(every).astype(np.int32))
    return kept


def _joined(
    parents: Truncation, children: Sequence[Truncation]
) -> Iterator[tuple[Records, list[tuple[NDArray[np.int64], Records]]]]:
    """Some parents, one of a unit, and of each table their children: whose each is, rising, and its
    record."""
    tables = [parents, *children]
    with ExitStack() as opened:
        shelves = [opened.enter_context(closing(table.by_unit(table.marked.units.rows))) for table in tables]
        for groups in side_by_side(shelves):
            own, *found = [
                group[least(group, table.marked.units.rows)]
                for group, table in zip(groups, tables, strict=True)
            ]
            if len(own):
                yield own, [_of_parents(own, rows) for rows in found]


def _of_parents(parents: Records, rows: Records) -> tuple[NDArray[np.int64], Records]:
    """The rows that have a parent, parent by parent, each unit's in its own order."""
    order, first = runs(np.concatenate([parents["unit"], rows["unit"]]))
    unit = np.empty(len(order), np.int64)
    unit[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(order))))
    at = np.full(len(first), -1)
    at[unit[: len(parents)]] = np.arange(len(parents))
    parent = at[unit[len(parents) :]]
    there = np.flatnonzero(parent >= 0)
    there = there[np.argsort(parent[there], kind="stable")]
    return parent[there], rows[there]


def _sorted(
    parent: NDArray[np.int64], rows: Records, order: Sequence[Order]
) -> tuple[NDArray[np.int64], Records]:
    """Children of a parent by these columns, missing last; equal ones in the unit's own order."""
    keys: list[NDArray[np.integer]] = []
    for one in reversed(order):
        own = rows["codes"][:, one.at]
        keys.append(np.where(own == one.missing, 2**31 - 1, -own if one.falling else own))
    by = np.lexsort((*keys, parent))
    return parent[by], rows[by]


def _some(parent: NDArray[np.int64], random: NDArray[np.uint64], most: int) -> NDArray[np.int64]:
    """At most so many children of each parent: those of the least random numbers."""
    by = np.lexsort((random, parent))
    begin = np.flatnonzero(np.diff(parent[by], prepend=-1))
    number = np.arange(len(by)) - np.repeat(begin, np.diff(np.append(begin, len(by))))
    return by[number < most]
