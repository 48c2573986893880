"""Box lattices of cells with an integer metric, and sparse graphs in which paths are as long as distances.

An axis has `cells` in a row, `step` units from one to the next, and `apart` more cells (categories, missing)
that are at the unit distance, `side` units, from every other cell of the axis. Cells of a lattice are
numbered row-major; their distance is the largest (linf), the sum (l1) or the root of the sum of squares (l2)
of the distances along the axes. Under l2 paths are a little longer: by how much at most, `stretch` says
(`star.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.star import UNITS, euclidean, longest, star

Ints: TypeAlias = NDArray[np.int64]
Move: TypeAlias = tuple[tuple[int, ...], int]


@dataclass(frozen=True)
class Axis:
    """Cells in a row, and cells apart."""

    cells: int
    step: int = 1
    apart: int = 0

    @property
    def length(self) -> int:
        return self.cells + self.apart


@dataclass(frozen=True)
class Lattice:
    """The product of axes; no axis is longer than `side`, the unit distance.

    >>> Lattice((Axis(3), Axis(1, apart=1)), side=3).distances().tolist()[0]
    [0, 3, 1, 3, 2, 3]
    """

    axes: tuple[Axis, ...]
    side: int
    metric: str = "linf"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self.axes)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def diameter(self) -> int:
        """That of the whole domain, in units: 1 for the unit cube under linf, d under l1, root d under l2."""
        d = max(1, len(self.axes))
        if self.metric == "l2":
            return math.isqrt(d * self.side**2 - 1) + 1
        return self.side * (1 if self.metric == "linf" else d)

    @property
    def stretch(self) -> float:
        """How many times longer than the distance a shortest path of the graph may be."""
        if self.metric != "l2":
            return 1.0
        cells, steps = [axis.cells for axis in self.axes], [axis.step for axis in self.axes]
        apart = sum(axis.apart > 0 and axis.length > 1 for axis in self.axes)
        return longest(cells, steps, apart, self.side)

    def distances(self) -> Ints:
        """Between all pairs of cells, in units (under l2 rounded up): a dense matrix."""
        whole = np.zeros((self.size, self.size), np.int64)
        for axis, place in zip(self.axes, np.indices(self.shape).reshape(len(self.axes), -1), strict=True):
            far = axis.step * np.abs(place[:, None] - place)
            discrete = (place[:, None] >= axis.cells) | (place >= axis.cells)
            far = np.where(discrete & (far > 0), self.side, far)
            far = far**2 if self.metric == "l2" else far
            whole = np.maximum(whole, far) if self.metric == "linf" else whole + far
        return euclidean(whole) if self.metric == "l2" else whole

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """Steps between neighbours, with their lengths: every distance is that of a path of such steps, under
        l2 nearly.

        Under l1 one cell along one axis. Under linf all steps that are not two shorter ones, one after the
        other; with equal axes these are the moves of a king. Under l2 those of a king and a knight.

        >>> sorted(move for move, _ in Lattice((Axis(9), Axis(9)), side=9).moves)
        [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]
        """
        steps = [axis.step for axis in self.axes]
        if self.metric == "l1":
            axes = range(len(steps))
            forward = [(tuple(int(a == b) for b in axes), steps[a]) for a in axes if self.axes[a].cells > 1]
        else:
            moves = star if self.metric == "l2" else _primitive
            forward = moves([axis.cells for axis in self.axes], steps)
        signed = []
        for move, length in forward:
            for signs in product(*((1, -1) if part else (1,) for part in move)):
                signed.append((tuple(s * part for s, part in zip(signs, move, strict=True)), length))
        return tuple(signed)

    def arcs(self, enough: float = math.inf) -> int:
        """How many arcs the graph has, without making it; where that is beyond `enough`, about so many.

        The estimate counts what goes with one cell along the axis of the longest step: all those are moves.
        Under l2, where there are far more, it counts only the nearest neighbours.
        """
        rowed = [axis for axis in self.axes if axis.cells > 1]
        longest_step = max((axis.step for axis in rowed), default=1)
        if self.metric == "linf":
            about = self.size * math.prod(min(axis.cells, longest_step // axis.step) for axis in rowed)
        else:
            about = 2 * len(rowed) * self.size
        if self.metric != "l1" and about > enough:
            return about
        moves = np.array([move for move, _ in self.moves], np.int64).reshape(-1, len(self.axes))
        rows = np.array([axis.cells for axis in self.axes], np.int64)
        count = int(np.where(moves, np.maximum(0, rows - np.abs(moves)), self.shape).prod(axis=1).sum())
        hubs = [axis for axis in self.axes if axis.length > 1 and axis.apart]
        return count + 2 * self.size * (min(1, len(hubs)) if self.metric == "linf" else len(hubs))

    def graph(self) -> Graph:
        """Arcs between neighbours, both ways, and through a hub half a unit distance from its cells.

        Under linf one hub is enough: whoever changes a category may go anywhere at the same price. Under l1
        and l2 every line along an axis with cells apart has its own.
        """
        number = np.arange(self.size, dtype=np.int32).reshape(self.shape)
        tails, heads, costs = [], [], []
        for move, length in self.moves:
            start, end = _shifted(self.axes, move)
            tails.append(number[start].ravel())
            heads.append(number[end].ravel())
            costs.append(np.full(tails[-1].size, 2 * length, np.int32))
        nodes = self.size
        for line in self._hubs(number):
            hub = nodes + np.arange(len(line), dtype=np.int32)
            spoke, rim = np.repeat(hub, line.shape[1]), line.ravel()
            tails += [spoke, rim]
            heads += [rim, spoke]
            costs.append(np.full(2 * rim.size, self.side, np.int32))
            nodes += len(line)
        none = np.zeros(0, np.int32)
        return Graph(nodes, *(np.concatenate(parts) if parts else none for parts in (tails, heads, costs)))

    def _hubs(self, number: NDArray[np.int32]) -> Iterator[NDArray[np.int32]]:
        split = [a for a, axis in enumerate(self.axes) if axis.apart and axis.length > 1]
        if self.metric == "linf":
            yield from [number.reshape(1, -1)] if split else []
        else:
            for a in split:
                yield np.moveaxis(number, a, -1).reshape(-1, self.shape[a])


@dataclass(frozen=True)
class Scale:
    """What is divided along an axis: how many values, in order or not, and whether some are missing."""

    values: int
    nominal: bool = False
    nullable: bool = False
    length: float = 1.0  # of the whole, 1 at most: less is cut into fewer cells


def divided(scales: Sequence[Scale], cells: int, metric: str = "linf", nearest: bool = False) -> Lattice:
    """The lattice with as many cells as there may be (or as near as can be): every scale cut alike.

    Missing is a cell of its own, whatever the number. Categories come before the rest, because two that
    share a cell are a unit distance apart. A scale with fewer values than the others have cells has
    longer steps, rounded to whole units.

    >>> divided([Scale(2**30), Scale(3), Scale(2, nominal=True)], 100).axes
    (Axis(cells=16, step=1, apart=0), Axis(cells=3, step=5, apart=0), Axis(cells=1, step=1, apart=1))
    """

    def parts(of_nominal: int, of_others: int) -> list[int]:
        others = [max(1, round(s.length * of_others)) for s in scales]
        return [min(s.values, of_nominal if s.nominal else k) for s, k in zip(scales, others, strict=True)]

    def size(of_nominal: int, of_others: int) -> int:
        counts = parts(of_nominal, of_others)
        return math.prod(count + s.nullable for count, s in zip(counts, scales, strict=True))

    top = max((s.values for s in scales), default=1)
    categories = last_where(lambda k: size(k, 1) <= cells, top)
    others = last_where(lambda k: size(categories, k) <= cells, top)
    if nearest and size(categories, others) * size(categories, others + 1) < cells**2:
        others += 1
    counts = parts(categories, others)
    side = max((round(k / s.length) for k, s in zip(counts, scales, strict=True) if not s.nominal), default=1)
    axes = []
    for k, scale in zip(counts, scales, strict=True):
        if scale.nominal:
            axes.append(Axis(1, 1, k - 1 + scale.nullable))
        else:
            whole = max(1, round(side * scale.length))
            step = max(1, min(round(whole / k), whole // max(1, k - 1)))
            axes.append(Axis(k, step, int(scale.nullable)))
    if metric == "l2":
        axes = [Axis(axis.cells, UNITS * axis.step, axis.apart) for axis in axes]
    return Lattice(tuple(axes), side * (UNITS if metric == "l2" else 1), metric)


def strides(d: int) -> list[float]:
    """Steps, one an axis, whose multiples modulo 1 fill the unit cube evenly: powers of the root of
    x^(d+1) = x + 1 (the golden ratio for d = 1).

    >>> [round(step, 3) for step in strides(2)]
    [0.755, 0.57]
    """
    x = 1.5
    for _ in range(64):
        x = (1 + x) ** (1 / (d + 1))
    return [x ** -(a + 1) for a in range(d)]


def last_where(holds: Callable[[int], bool], most: int) -> int:
    """The largest k in 1..most for which it holds, if for all smaller ones too; 1 if for none."""
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


@dataclass(frozen=True, eq=False)
class Graph:
    """Arcs in half units, each with its reverse; the first nodes are the cells, the others hubs."""

    nodes: int
    tail: NDArray[np.int32]
    head: NDArray[np.int32]
    cost: NDArray[np.int32]


def _shifted(axes: tuple[Axis, ...], move: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The cells from which a move stays inside the rows of cells, and where it leads."""
    start, end = [], []
    for axis, by in zip(axes, move, strict=True):
        last = axis.length if by == 0 else max(0, axis.cells - abs(by))
        start.append(slice(max(0, -by), max(0, -by) + last))
        end.append(slice(max(0, by), max(0, by) + last))
    return tuple(start), tuple(end)


def _primitive(cells: list[int], steps: list[int]) -> list[Move]:
    """The moves upwards whose length, max of steps[a] * move[a], is not that of two shorter ones together.

    In each cone where one axis decides the length, length is additive, so these are the cones' Hilbert
    bases, and no element of those is as long as d times the least common multiple of the steps.

    >>> _primitive([4, 4], [1, 3])
    [((1, 0), 1), ((0, 1), 3), ((1, 1), 3), ((2, 1), 3), ((3, 1), 3)]
    """
    used = [step for count, step in zip(cells, steps, strict=True) if count > 1]
    limit = len(used) * math.lcm(*used) if used else 0
    most = [min(count - 1, limit // step) for count, step in zip(cells, steps, strict=True)]
    box = tuple(part + 1 for part in most)
    grid = np.indices(box).reshape(len(box), -1)
    length = (grid * np.array(steps)[:, None]).max(axis=0) if cells else np.zeros(1, np.int64)
    composed = length == 0
    lengths, parts = length.reshape(box), composed.reshape(box)
    order = np.argsort(length, kind="stable")
    found = []
    for equal in np.split(order, np.flatnonzero(np.diff(length[order])) + 1):
        for k in equal[~composed[equal]]:  # no two of one length make another one of that length
            move = tuple(int(part) for part in grid[:, k])
            beyond = tuple(slice(part, None) for part in move)
            rest = lengths[tuple(slice(0, size - part) for size, part in zip(box, move, strict=True))]
            parts[beyond] |= (rest > 0) & (rest + length[k] == lengths[beyond])
            found.append((move, int(length[k])))
    return found
