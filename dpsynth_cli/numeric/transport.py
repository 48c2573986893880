"""The closest measure to a signed one, in the bounded-Lipschitz distance, over integers.

Given signed counts nu on the cells of a lattice and a total n, `closest` gives counts tau >= 0 with sum n
that minimise d_BL(tau, nu) = max of sum f (tau - nu) over f with |f| <= diam and |f(x) - f(y)| <= rho(x, y).
By duality that is the cheapest way to turn nu into tau: a unit moved from x to y costs rho(x, y), a unit
made or destroyed costs diam, anywhere. All data are integers, so one of the best tau is integral, and these
functions find such a one exactly: no rounding, no tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.isotonic import isotonic_l1
from dpsynth_cli.numeric.lattice import Axis, Graph, Lattice

Ints: TypeAlias = NDArray[np.int64]
Settled: TypeAlias = Callable[[int], None]  # told how many more cells are done
LARGEST = 29  # bits of a capacity: two of them add up inside the 32 bits of scipy's maximum flow


def nobody(cells: int) -> None:
    """Does not watch."""


@dataclass(frozen=True, eq=False)
class Closest:
    """Non-negative counts, and how far they are from the signed ones, in units of the lattice."""

    counts: Ints
    distance: int


def evenly(amount: int, cells: int) -> Ints:
    """An amount, of either sign, divided over cells as evenly as integers can be.

    >>> evenly(-5, 4).tolist()
    [-2, -1, -1, -1]
    """
    return np.diff(_products(np.arange(cells + 1), amount) // max(1, cells)).astype(np.int64)


def rescaled(counts: Ints, total: int) -> Ints:
    """Counts in the same proportions with another total: cumulative sums are rounded, so no part drifts.

    >>> rescaled(np.array([3, 0, 1, 2]), 3).tolist()
    [1, 0, 1, 1]
    """
    reached = np.concatenate([[0], np.cumsum(counts)])
    return np.diff(_products(reached, total) // max(1, int(reached[-1]))).astype(np.int64)


def levelled(values: NDArray[Any], weights: NDArray[Any], total: int) -> Ints:
    """Non-negative integers with this total: max(0, values - theta weights), rounded.

    With weights in proportion to variances, the likeliest such numbers near to values.

    >>> levelled(np.array([5, -3, 1, 4]), np.ones(4), 7).tolist()
    [4, 0, 0, 3]
    """
    order = np.argsort(-values / weights, kind="stable")
    theta = np.max((np.cumsum(values[order]) - total) / np.cumsum(weights[order]))
    level = np.maximum(values - theta * weights, 0)
    whole: Ints = np.floor(level).astype(np.int64)
    nearest = np.argsort(whole - level, kind="stable")
    whole[nearest[: total - int(whole.sum())]] += 1
    return whole


def debiased(nu: Ints, total: int) -> Ints:
    """Signed counts that add up to total, the same amount taken from every cell.

    When sums differ, where d_BL makes or destroys the difference is arbitrary: everything in one corner
    is as good as an even spread. What is known of equal noise says even.
    """
    return nu - evenly(int(nu.sum()) - total, len(nu))


def effort(lattice: Lattice) -> tuple[float, float]:
    """About how many seconds and bytes `closest` takes at worst: measured (benchmarks/psmm.py).

    A round of the flow passes over all arcs, and there is at most one for each distance: that is reached when
    one corner has everything. Where there is much noise and little else, ways are long and wind, and a round
    passes more often, in two dimensions above all. Noise around clusters takes a fifth of this.
    """
    rowed = sum(axis.cells > 1 for axis in lattice.axes)
    summed = lattice.metric != "linf"
    hubs = summed and any(axis.apart for axis in lattice.axes)
    fibres = 1 if summed else math.prod(1 + axis.apart for axis in lattice.axes)
    if rowed <= 1 and not hubs:
        return 5e-6 * lattice.size + 2e-4 * fibres * rowed, 400.0 * lattice.size
    euclid = lattice.metric == "l2"  # of fine units, in which most distances are none's
    arcs = lattice.arcs(enough=2e9 / lattice.diameter if euclid else 2e7)
    widest = math.prod(sorted(axis.cells for axis in lattice.axes)[-2:])
    each = (1.3e-7 if euclid else 2e-7) * lattice.diameter + 3e-9 * widest
    seconds = 5e-6 * lattice.size + 4e-3 * fibres + arcs * each
    return seconds, 400.0 * lattice.size + 160.0 * arcs


def closest(nu: Ints, total: int, lattice: Lattice, settled: Settled = nobody) -> Closest:
    """The closest non-negative counts with this total >= 0, by the quickest exact way for the lattice.

    Sums are made equal first (`debiased`); the distance is from there. `settled` is told of cells that lack
    nothing any more, until it has been told of all.
    """
    nu = debiased(nu, total)
    if lattice.metric == "linf" and any(axis.apart for axis in lattice.axes):
        return _closest_by_fibre(nu, total, lattice, settled)
    return _closest_inside(nu, lattice, {}, settled)


def _closest_inside(nu: Ints, lattice: Lattice, graphs: dict[Lattice, Graph], settled: Settled) -> Closest:
    """With the total that nu has; graphs are made where there are none yet."""
    long = [axis for axis in lattice.axes if axis.length > 1]
    if (nu >= 0).all():
        settled(len(nu))
        return Closest(nu, 0)
    if not long or (len(long) == 1 and not long[0].apart):
        found = closest_on_a_line(nu, long[0].step if long else 1)
        settled(len(nu))
        return found
    if lattice not in graphs:
        graphs[lattice] = lattice.graph()
    return closest_by_flow(nu, int(nu.sum()), graphs[lattice], lattice.diameter, settled)


def closest_on_a_line(nu: Ints, step: int = 1) -> Closest:
    """For cells in a row: moving costs what the prefix sums differ by, so they are fitted by rising ones."""
    total = int(nu.sum())
    prefix = np.cumsum(nu)[:-1]
    rising = isotonic_l1(prefix, 0, total)
    counts = np.diff(rising, prepend=0, append=total)
    return Closest(counts, step * int(np.abs(rising - prefix).sum()))


def closest_by_flow(nu: Ints, total: int, graph: Graph, diameter: int, settled: Settled = nobody) -> Closest:
    """On any graph: what cells lack is fetched from cells that have it, by a flow of least cost.

    If nu has more than total, the rest of it is destroyed in proportion to what is left; if it has less,
    what is made goes to the cells that are dearest to fill, and then to all evenly.
    """
    surplus = int(nu.sum()) - total
    made = max(0, -surplus)
    spare, lack = np.zeros(graph.nodes, np.int64), np.zeros(graph.nodes, np.int64)
    spare[: len(nu)], lack[: len(nu)] = np.maximum(nu, 0), np.maximum(-nu, 0)
    settled(int(np.count_nonzero(nu >= 0)))
    cost = _fetch(graph, spare, lack, int(lack.sum()) - made, settled)
    counts = spare[: len(nu)]
    counts = rescaled(counts, total) if surplus > 0 else counts + evenly(made - int(lack.sum()), len(nu))
    return Closest(counts, diameter * abs(surplus) + cost // 2)


def _closest_by_fibre(nu: Ints, total: int, lattice: Lattice, settled: Settled) -> Closest:
    """Under linf, with equal sums: cells that differ in a category, or in what is missing, are a unit
    distance apart whatever the rest. So each such fibre is a lattice of its own. One that has less than
    nothing is filled from the others, wherever that is taken, and so filled that the rest costs least:
    by the measure closest to what it lacks.
    """
    if all(axis.cells == 1 for axis in lattice.axes):
        lacking = int(np.maximum(-nu, 0).sum())
        settled(len(nu))
        return Closest(levelled(nu, np.ones(len(nu)), total), lattice.side * lacking)
    fibres = list(_fibres(lattice))
    sums = np.array([nu[cells].sum() for cells, _ in fibres])
    wanted = levelled(sums, np.array([len(cells) for cells, _ in fibres]), total)
    graphs: dict[Lattice, Graph] = {}
    counts = np.zeros_like(nu)
    distance = 0
    for (cells, part), has, keeps in zip(fibres, sums.tolist(), wanted.tolist(), strict=True):
        own = _closest_inside(nu[cells] if has >= 0 else -nu[cells], part, graphs, settled)
        distance += own.distance + lattice.side * max(0, -has)
        if has >= 0:
            counts[cells] = rescaled(own.counts, keeps)
    return Closest(counts, distance)


def _fibres(lattice: Lattice) -> Iterator[tuple[Ints, Lattice]]:
    """The cells of each fibre, and the lattice that they are."""
    number = np.arange(lattice.size).reshape(lattice.shape)
    rows = [[(range(axis.cells), axis.step)] for axis in lattice.axes]
    for axis, row in zip(lattice.axes, rows, strict=True):
        row += [(range(cell, cell + 1), 1) for cell in range(axis.cells, axis.length)]
    for parts in product(*rows):
        axes = tuple(Axis(len(cells), step) for cells, step in parts)
        yield number[np.ix_(*(cells for cells, _ in parts))].ravel(), Lattice(axes, lattice.side)


def _fetch(graph: Graph, spare: Ints, lack: Ints, amount: int, settled: Settled) -> int:
    """Move `amount` units from spare to lack, in place, at the least cost, which is returned in half units.

    The primal-dual method: potentials rise by the distances from cells that have something to spare, in
    the graph of what is left, and a maximum flow uses up all shortest ways at once. A distance is dealt with
    once, so there are at most as many rounds as there are distances. Nodes are shuffled, always alike,
    because a maximum flow prefers low numbers and would fetch from one side.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra, maximum_flow

    nodes, sink, end, source = graph.nodes, graph.nodes, graph.nodes + 1, graph.nodes + 2
    place = np.random.default_rng(0).permutation(nodes)
    key = place[graph.tail] * nodes + place[graph.head]
    order = np.argsort(key)
    key, cost = key[order], graph.cost[order].astype(np.int64)
    tail, head = np.divmod(key, nodes)
    first = np.searchsorted(tail, np.arange(nodes + 1))
    flow = np.zeros(len(key), np.int64)  # along an arc and along its reverse: one is minus the other
    potential = np.zeros(nodes, np.int64)
    has, lacks = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    has[place], lacks[place] = spare, lack

    def slack() -> Ints:
        return np.where(flow < 0, -cost, cost) + potential[tail] - potential[head]

    def push(shift: int) -> int:
        """A maximum flow along arcs without slack, in multiples of 2^shift."""
        tight, full, empty = np.flatnonzero(slack() == 0), np.flatnonzero(has), np.flatnonzero(lacks)
        room = np.where(flow[tight] < 0, -flow[tight], 2**62)
        starts = np.concatenate([tail[tight], np.full(len(full), source), empty, [sink]])
        ends = np.concatenate([head[tight], full, np.full(len(empty), sink), [end]])
        rooms = np.concatenate([room, has[full], lacks[empty], [amount]]) >> shift
        network = csr_array(
            (np.minimum(rooms, 2**LARGEST).astype(np.int32), (starts, ends)), shape=(nodes + 3, nodes + 3)
        )
        used = maximum_flow(network, source, end).flow.tocoo()
        row, column, units = used.row.astype(np.int64), used.col, used.data.astype(np.int64) << shift
        inside = (row < nodes) & (column < nodes) & (units != 0)
        flow[np.searchsorted(key, row[inside] * nodes + column[inside])] += units[inside]
        left, filled = row == source, (column == sink) & (row < nodes)
        has[column[left]] -= units[left]
        lacks[row[filled]] -= units[filled]
        return int(units[filled].sum())

    while amount > 0:
        ways = csr_array((slack().astype(np.float64), head, first), shape=(nodes, nodes))
        distance = dijkstra(ways, indices=np.flatnonzero(has), min_only=True)
        potential += np.minimum(distance, distance[lacks > 0].min()).astype(np.int64)
        before = np.count_nonzero(lacks)
        for shift in range(max(0, amount.bit_length() - LARGEST), -1, -1):
            amount -= push(shift)
        settled(int(before - np.count_nonzero(lacks)))
    spare[:], lack[:] = has[place], lacks[place]
    return int((np.maximum(flow, 0) * cost).sum())


def _products(numbers: NDArray[np.int64], factor: int) -> NDArray[Any]:
    """Exact products: in Python's integers where 64 bits are too few."""
    if int(np.abs(numbers).max(initial=0)) * abs(factor) < 2**63:
        return numbers * factor
    return numbers.astype(object) * factor
