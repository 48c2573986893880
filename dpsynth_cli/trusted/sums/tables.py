"""Counts of rows in many tables at once, and how far tables are from what was expected. Exact integers.

Columns are packed (`batch.py`) and packs counted by twos or, for tables of three columns, by threes; what was
counted of other columns is added up again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from math import isqrt, prod

import numpy as np

from dpsynth_cli.questions import Axis, Cells, Ints, Misfit
from dpsynth_cli.trusted.core.shapes import cell_count
from dpsynth_cli.trusted.sums.batch import Batch, Pack
from dpsynth_cli.trusted.sums.cells import joined

PACK = 2**8 - 1  # cells of a pack: two of them have fewer than 2^16
THIRD = 40  # cells of a pack: three of them have fewer than 2^16

Pair = tuple[int, int]


def count(total: Ints, cells: np.ndarray) -> None:
    """Add one to the cell of each row."""
    if len(total) <= len(cells):
        total += np.bincount(cells, minlength=len(total))
    else:  # a count of its own would cost as much as it has cells
        np.add.at(total, cells, 1)


def count_tables(total: Ints, tables: Sequence[Cells], batch: Batch) -> None:
    """Add the counts of all tables, row-major, one after the other.

    Tables of at most three axes are counted together with others; the rest, and any that has more cells than
    there are rows, alone.
    """
    ends = list(accumulate(map(cell_count, tables)))
    parts = [total[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    place: dict[Axis, int] = {}
    together: dict[Pair, list[tuple[Ints, bool]]] = {}
    triples: list[tuple[Cells, Ints]] = []
    for table, part in zip(tables, parts, strict=True):
        if len(set(table.axes)) == len(table.axes) == 3 and len(part) <= batch.rows:
            triples.append((table, part))
        elif len(set(table.axes)) == len(table.axes) in (1, 2) and len(part) <= batch.rows:
            at = [place.setdefault(axis, len(place)) for axis in table.axes]
            together.setdefault((min(at), max(at)), []).append((part, at[0] > at[-1]))
        elif table.axes:
            count(part, batch.path(table))
        else:
            part += batch.rows
    for pair, counted in pair_tables(tuple(place), together, batch):
        for part, turned in together[pair]:
            part += (counted.T if turned else counted).ravel()
    if triples:
        count_triples(triples, batch)


def count_triples(tables: Sequence[tuple[Cells, Ints]], batch: Batch) -> None:
    """Add the counts of tables of three axes, those of the same packs together."""
    axes = dict.fromkeys(axis for table, _ in tables for axis in table.axes)
    place = {axis: at for at, axis in enumerate(axes)}
    packs = batch.packs(tuple(axes), min(THIRD, round(batch.rows ** (1 / 3))))
    home = {member: number for number, pack in enumerate(packs) for member in pack.members}
    of_packs: dict[tuple[int, ...], list[tuple[Cells, Ints]]] = {}
    for table, part in tables:
        key = tuple(sorted({home[place[axis]] for axis in table.axes}))
        of_packs.setdefault(key, []).append((table, part))
    for key, wanted in of_packs.items():
        own = [(packs[number].number, packs[number].cells) for number in key]
        cells = prod(size for _, size in own)
        if len(wanted) == 1 or cells > batch.rows:
            for table, part in wanted:
                count(part, batch.path(table))
            continue
        members = [member for number in key for member in packs[number].members]
        whole = np.bincount(joined(own), minlength=cells)
        whole = whole.reshape([size for number in key for size in packs[number].sizes])
        inside = len(packs[key[0]].members)
        halfway: dict[tuple[int, ...], Ints] = {}  # what is asked of the first pack, and all of the others
        for table, part in wanted:
            at = [members.index(place[axis]) for axis in table.axes]
            first = tuple(sorted(axis for axis in at if axis < inside))
            if first not in halfway:
                halfway[first] = added(whole, (*first, *range(inside, whole.ndim)))
            rest = [axis - inside + len(first) for axis in sorted(at) if axis >= inside]
            found = added(halfway[first], (*range(len(first)), *rest))
            part += found.transpose([sorted(at).index(axis) for axis in at]).ravel()


def pair_tables(axes: tuple[Axis, ...], wanted: Iterable[Pair], batch: Batch) -> Iterator[tuple[Pair, Ints]]:
    """The table of each wanted pair of places i < j among the axes; i = j is the axis's own histogram."""
    packs = batch.packs(axes, min(PACK, isqrt(batch.rows)))  # a table costs as much as it has cells
    home = {place: number for number, pack in enumerate(packs) for place in pack.members}
    of_packs: dict[Pair, list[Pair]] = {}
    for i, j in wanted:
        of_packs.setdefault((min(home[i], home[j]), max(home[i], home[j])), []).append((i, j))
    for (one, other), pairs in of_packs.items():
        yield from _inside(packs[one], pairs) if one == other else _across(packs[one], packs[other], pairs)


def _inside(pack: Pack, pairs: Sequence[Pair]) -> Iterator[tuple[Pair, Ints]]:
    """The tables of pairs whose columns are in one pack."""
    whole = np.bincount(pack.number, minlength=pack.cells).reshape(pack.sizes)
    for pair in pairs:
        yield pair, added(whole, tuple(pack.members.index(place) for place in sorted(set(pair))))


def _across(one: Pack, other: Pack, pairs: Sequence[Pair]) -> Iterator[tuple[Pair, Ints]]:
    """The tables of pairs with a column in each of two packs."""
    number = joined([(one.number, one.cells), (other.number, other.cells)])
    both = np.bincount(number, minlength=one.cells * other.cells).reshape(*one.sizes, other.cells)
    halfway: dict[int, Ints] = {}  # one column of the first pack and all of the second
    for i, j in pairs:
        a, b = (i, j) if i in one.members else (j, i)
        if a not in halfway:
            own = added(both, (one.members.index(a), len(one.members)))
            halfway[a] = own.reshape(-1, *other.sizes)
        pair = added(halfway[a], (0, 1 + other.members.index(b)))
        yield (i, j), pair if a == i else pair.T


def added(table: Ints, axes: tuple[int, ...]) -> Ints:
    """The table summed over all axes but these, which rise."""
    return np.asarray(table.sum(axis=tuple(i for i in range(table.ndim) if i not in axes)))


def distances(asked: Misfit, tables: Ints) -> Ints:
    """Of each table, class by class, the sum of |count - expected|.

    Claim: a row more or less moves each distance of its own class by 1 and none of another. It holds for the
    counts of all rows together, so this comes after the last merge, once.
    """
    expected = np.fromiter(chain.from_iterable(chain.from_iterable(asked.expected)), np.int64, len(tables))
    sizes = [cell_count(table) for table in asked.tables] * len(asked.expected)
    starts = np.cumsum([0, *sizes[:-1]])
    return np.asarray(np.add.reduceat(np.abs(tables - expected), starts))
