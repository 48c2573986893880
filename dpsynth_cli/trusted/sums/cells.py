"""Row by row: codes -> cells and fixed-point values. Exact integer functions of that row alone.

Claim: each function's result for a row depends on that row's codes and public arguments only,
whatever the other rows of the batch are. No float matrix product decides a cell, because its
blocking would let neighbours in the batch change a last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.questions import Bins, Halves, Ints
from dpsynth_cli.trusted.core.shapes import axis_cells

TABLE = 2**17  # columns of up to this many codes are looked up in a table
WIDE = 2**21  # of up to this many, if their cells are so narrow that little else helps
STEPS = 16  # edges of a bucket that are passed one by one
FEW = 8  # edges that a number is compared with one by one


def holding(most: int) -> np.dtype[Any]:
    """The smallest type for numbers of cells up to `most`: rows in small types are counted faster."""
    kinds = (np.uint8, np.uint16, np.int32, np.int64)
    return np.dtype(next(kind for kind in kinds if most <= np.iinfo(kind).max))


def column_cells(axis: Halves | Bins, u: np.ndarray, column: Column) -> np.ndarray:
    """The cell of each code on an axis of its column."""
    if column.codes <= TABLE:
        table = _table(axis, column)
        return u if table is None else table.take(u)
    if isinstance(axis, Halves):
        return _halved(u, column, axis.bits)
    # Codes with the same high bits are mostly in one cell: only the others are looked for.
    shift, first, more, steps = _buckets(axis, column)
    if steps > STEPS and column.codes <= WIDE:
        return _wide_table(axis).take(u)
    bucket = u >> shift
    cell = first.take(bucket)
    rest = np.flatnonzero(more.take(bucket))
    code, inner = u.take(rest), _inner_edges(axis)
    if steps > STEPS:
        cell[rest] = np.searchsorted(inner, code, side="right")
        return cell
    found, ends = cell.take(rest), np.append(inner, column.codes)
    for _ in range(steps):  # past each edge in the bucket that is not above the code
        found += ends.take(found) <= code
    cell[rest] = found
    return cell


def between(edges: Sequence[int], score: np.ndarray) -> np.ndarray:
    """The cell of each number: how many of the inner edges are at or below it."""
    inner = np.asarray(edges[1:-1], dtype=score.dtype)
    if len(inner) > FEW:
        return np.searchsorted(inner, score, side="right")
    cell = np.zeros(len(score), dtype=np.uint8)
    for edge in inner:
        cell += score >= edge
    return cell


def joined(parts: Sequence[tuple[np.ndarray, int]]) -> np.ndarray:
    """The number of each row's cell in a product of (cells, how many): row-major, the last fastest."""
    kind = holding(prod(size for _, size in parts))
    number = parts[0][0].astype(kind, copy=len(parts) > 1)
    for cell, size in parts[1:]:
        number *= kind.type(size)
        number += cell.astype(kind, copy=False)
    return number


@lru_cache(maxsize=64)
def spread(order: tuple[int, ...], position: int) -> np.ndarray | None:
    """For each cell of one axis, its bits at their places in the path; None where that is itself."""
    places = [len(order) - 1 - level for level, axis in enumerate(order) if axis == position]
    if places == list(range(len(places) - 1, -1, -1)):
        return None
    cell = np.arange(2 ** len(places), dtype=np.int64)
    path = np.zeros_like(cell)
    for bit, place in enumerate(reversed(places)):
        path |= ((cell >> bit) & 1) << place
    return path.astype(np.int32) if len(order) < 31 else path


def fixed_point(u: np.ndarray, column: Column, bits: int) -> Ints:
    """x in [0, q], q = 2^bits - 1: the code's place between the column's bounds, rounded; missing is 0."""
    q = 2**bits - 1
    last = column.size - 1
    if last == 0:
        return np.zeros(len(u), dtype=np.int64)
    x = u.astype(np.int64)
    x *= 2 * q
    x += last
    x //= 2 * last
    return np.where(u == column.size, 0, x) if column.nullable else x


def centred(u: np.ndarray, column: Column, bits: int) -> Ints:
    """z = 2x - q in [-q, q]; 0, the centre, where missing or where the column has one value."""
    if column.size == 1:
        return np.zeros(len(u), dtype=np.int64)
    z = 2 * fixed_point(u, column, bits) - (2**bits - 1)
    return np.where(u == column.size, 0, z) if column.nullable else z


def coordinates(u: np.ndarray, column: Column, bits: int) -> list[Ints]:
    """z of one column: centred; of a nominal one q at the row's code and 0 at all others."""
    if column.type != "nominal":
        return [centred(u, column, bits)]
    return [np.where(u == code, 2**bits - 1, 0) for code in range(column.codes)]


def size(z: Ints, norm: int) -> Ints:
    """The sum of each row's absolute values (norm 1), or of its squares (2)."""
    return np.asarray(np.abs(z).sum(axis=1) if norm == 1 else (z * z).sum(axis=1))


def clipped(z: Ints, bound: int, norm: int = 2) -> Ints:
    """Rows shrunk, toward zero, to integer norm (1 or 2) at most bound. A row within the bound is unchanged.

    Norms are integer sums, so they are exact in any order; each row's factor is its own. Rounding
    toward zero can still leave a row above the bound by the float division, so the integer norm is
    checked and the row shrunk again until it holds.
    """
    z = z.copy()
    found = size(z, norm)
    factor = 1.0
    while (long := found > bound**norm).any():
        shrink = bound / found[long].astype(np.float64) ** (1 / norm) * factor
        z[long] = np.trunc(z[long] * shrink[:, None]).astype(np.int64)
        found = size(z, norm)
        factor = 1.0 - 2.0**-20
    return z


def _halved(u: np.ndarray, column: Column, bits: int) -> np.ndarray:
    if bits == 0:
        return np.zeros_like(u)
    # Missing, code `size`, lands on 2^b by the same formula: the first cell of the upper half.
    b = bits - column.nullable
    if column.size & (column.size - 1) == 0 and b <= column.size.bit_length() - 1:
        return u >> (column.size.bit_length() - 1 - b)
    return (u.astype(np.int64) << b) // column.size


@lru_cache(maxsize=256)
def _table(axis: Halves | Bins, column: Column) -> np.ndarray | None:
    """The cell of every code; None where that is the code itself."""
    u = np.arange(column.codes, dtype=np.int64)
    cell = _cell_of_each(axis) if isinstance(axis, Bins) else _halved(u, column, axis.bits)
    return None if (cell == u).all() else cell.astype(holding(axis_cells(axis)))


@lru_cache(maxsize=16)
def _wide_table(axis: Bins) -> np.ndarray:
    return _cell_of_each(axis)


def _cell_of_each(axis: Bins) -> np.ndarray:
    cells, edges = axis_cells(axis), np.asarray(axis.edges, dtype=np.int64)
    return np.repeat(np.arange(cells, dtype=holding(cells)), edges[1:] - edges[:-1])


@lru_cache(maxsize=64)
def _buckets(axis: Bins, column: Column) -> tuple[int, np.ndarray, np.ndarray, int]:
    """By how much to shift a code to its bucket; of each bucket its first cell, and whether it has more; how
    many more it has at most."""
    shift = max(0, (column.codes - 1).bit_length() - TABLE.bit_length() + 1)
    low = np.arange((column.codes - 1 >> shift) + 1, dtype=np.int64) << shift
    inner = _inner_edges(axis)
    first = np.searchsorted(inner, low, side="right")
    last = np.searchsorted(inner, low + (1 << shift) - 1, side="right")
    return shift, first.astype(holding(axis_cells(axis))), first != last, int((last - first).max())


@lru_cache(maxsize=64)
def _inner_edges(axis: Bins) -> Ints:
    return np.asarray(axis.edges[1:-1], dtype=np.int64)
