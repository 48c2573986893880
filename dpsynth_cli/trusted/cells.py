"""Row by row: codes -> cells and fixed-point values. Exact integer functions of that row alone.

Claim: each function's result for a row depends on that row's codes and public arguments only,
whatever the other rows of the batch are. No float matrix product decides a cell, because its
blocking would let neighbours in the batch change a last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Affine, Axis, Bins, Cells, Halves, Ints, RowScores, Scored

TABLE = 2**16  # columns of up to this many codes are looked up in a table


def axis_cells(axis: Axis, omega: Domain) -> int:
    """How many cells an axis has."""
    return 2**axis.bits if isinstance(axis, Halves) else len(axis.edges) - 1


def cell_count(cells: Cells, omega: Domain) -> int:
    """How many cells a partition has."""
    count = 1
    for axis in cells.axes:
        count *= axis_cells(axis, omega)
    return count


def check_cells(cells: Cells, omega: Domain) -> None:
    """Refuse a partition that is not one: edges that miss codes, an order that does not fit."""
    for number, axis in enumerate(cells.axes):
        check_axis(axis, omega)
        if cells.order is not None and axis_cells(axis, omega) != 2 ** cells.order.count(number):
            raise ValueError("order does not fit the axes")
    if cells.order is not None and not set(cells.order) <= set(range(len(cells.axes))):
        raise ValueError("order names an axis that is not there")


def check_axis(axis: Axis, omega: Domain) -> None:
    """Refuse an axis whose cells do not cover every code exactly once."""
    if isinstance(axis, Halves):
        omega[axis.column]
        if not 0 <= axis.bits <= 31:
            raise ValueError("too many or too few halvings")
        return
    if any(abs(edge) >= 2**62 for edge in axis.edges):
        raise ValueError("edges do not fit in 64 bits")
    edges = np.asarray(axis.edges)
    if len(edges) < 2 or (np.diff(edges) < 0).any():
        raise ValueError("edges must not fall")
    if isinstance(axis, Bins) and (edges[0] != 0 or edges[-1] != omega[axis.column].codes):
        raise ValueError("edges must cover all codes")
    if isinstance(axis, Affine):
        q = 2**axis.bits - 1
        width = sum(omega[name].width for name in axis.columns)
        fits = len(axis.weights) == width and 1 <= axis.bits <= 28
        if not fits or sum(map(abs, axis.weights)) * q >= 2**53:
            raise ValueError("weights do not fit")
    if isinstance(axis, Scored):
        if not all(isinstance(inner, Halves | Bins) for inner in axis.attributes):
            raise ValueError("scores are of the cells of one column each")
        sizes = [axis_cells(inner, omega) for inner in axis.attributes]
        if not sizes or sizes != [len(row) for row in axis.scores]:
            raise ValueError("scores do not fit their axes")
        if sum(max(map(abs, row)) for row in axis.scores) >= 2**62:
            raise ValueError("scores do not fit in 64 bits")
        for inner in axis.attributes:
            check_axis(inner, omega)


def cells_of(axis: Axis, codes: Mapping[str, np.ndarray], omega: Domain) -> np.ndarray:
    """The cell of each row on one axis."""
    if isinstance(axis, Affine):
        score = np.zeros(_rows(codes), dtype=np.int64)
        weights = np.asarray(axis.weights, dtype=np.int64)
        for name in axis.columns:
            own, weights = np.split(weights, [omega[name].width])
            if omega[name].type == "nominal":
                score += (own * (2**axis.bits - 1))[codes[name]]
            else:
                score += own[0] * centred(codes[name], omega[name], axis.bits)
        return np.searchsorted(np.asarray(axis.edges[1:-1], dtype=np.int64), score, side="right")
    if isinstance(axis, Scored):
        score = np.zeros(_rows(codes), dtype=np.int64)
        for inner, row in zip(axis.attributes, axis.scores, strict=True):
            score += np.asarray(row, dtype=np.int64)[cells_of(inner, codes, omega)]
        return np.searchsorted(np.asarray(axis.edges[1:-1], dtype=np.int64), score, side="right")
    column, u = omega[axis.column], codes[axis.column]
    if column.codes <= TABLE:
        return np.asarray(_table(axis, column)[u])
    if isinstance(axis, Bins):
        return np.searchsorted(_inner_edges(axis), u, side="right")
    return _halved(u, column, axis.bits)


def path_of(cells: Cells, codes: Mapping[str, np.ndarray], omega: Domain) -> np.ndarray:
    """The cell number of each row in a partition: row-major, or the path from the root."""
    if not cells.axes:
        return np.zeros(_rows(codes), dtype=np.int64)
    number: np.ndarray | None = None
    for position, axis in enumerate(cells.axes):
        cell = cells_of(axis, codes, omega)
        if cells.order is None:
            number = cell if number is None else number * axis_cells(axis, omega) + cell
        else:
            spread = _spread(cells.order, position)
            part = cell if spread is None else spread[cell]
            number = part if number is None else number + part
    assert number is not None
    return number


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


def clipped(z: Ints, bound: int) -> Ints:
    """Rows shrunk, toward zero, to integer norm at most bound. A row within the bound is unchanged.

    Norms are integer sums, so they are exact in any order; each row's factor is its own. Rounding
    toward zero can still leave a row above the bound by the float division, so the integer norm is
    checked and the row shrunk again until it holds.
    """
    z = z.copy()
    square = (z * z).sum(axis=1)
    factor = 1.0
    while (long := square > bound * bound).any():
        shrink = bound / np.sqrt(square[long].astype(np.float64)) * factor
        z[long] = np.trunc(z[long] * shrink[:, None]).astype(np.int64)
        square = (z * z).sum(axis=1)
        factor = 1.0 - 2.0**-20
    return z


def row_scores(statistic: RowScores, codes: Mapping[str, np.ndarray], omega: Domain) -> Ints:
    """Each row's coordinates, of integer norm at most the bound; integers, of that row alone."""
    scores = [
        np.asarray(row, dtype=np.int64)[cells_of(axis, codes, omega)]
        for row, axis in zip(statistic.scores, statistic.axes, strict=True)
    ]
    w = np.zeros((len(scores[0]), len(statistic.weights)), dtype=np.int64)
    for f, weights in enumerate(statistic.weights):
        for score, weight in zip(scores, weights, strict=True):
            w[:, f] += weight * score
    return clipped(w, statistic.bound)


def _rows(codes: Mapping[str, np.ndarray]) -> int:
    return len(next(iter(codes.values())))


def _halved(u: np.ndarray, column: Column, bits: int) -> np.ndarray:
    if bits == 0:
        return np.zeros_like(u)
    # Missing, code `size`, lands on 2^b by the same formula: the first cell of the upper half.
    b = bits - column.nullable
    if column.size & (column.size - 1) == 0 and b <= column.size.bit_length() - 1:
        return u >> (column.size.bit_length() - 1 - b)
    return (u.astype(np.int64) << b) // column.size


@lru_cache(maxsize=512)
def _table(axis: Halves | Bins, column: Column) -> np.ndarray:
    u = np.arange(column.codes, dtype=np.int64)
    if isinstance(axis, Bins):
        return np.searchsorted(_inner_edges(axis), u, side="right")
    return np.asarray(_halved(u, column, axis.bits))


@lru_cache(maxsize=64)
def _inner_edges(axis: Bins) -> Ints:
    return np.asarray(axis.edges[1:-1], dtype=np.int64)


@lru_cache(maxsize=64)
def _spread(order: tuple[int, ...], position: int) -> np.ndarray | None:
    """For each cell of one axis, its bits at their places in the path; None where that is itself."""
    places = [len(order) - 1 - level for level, axis in enumerate(order) if axis == position]
    if places == list(range(len(places) - 1, -1, -1)):
        return None
    cell = np.arange(2 ** len(places), dtype=np.int64)
    path = np.zeros_like(cell)
    for bit, place in enumerate(reversed(places)):
        path |= ((cell >> bit) & 1) << place
    return path.astype(np.int32) if len(order) < 31 else path
