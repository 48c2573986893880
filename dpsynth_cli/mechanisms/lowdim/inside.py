"""Counts in a subspace, for `lowdim`: a private measure on boxes along a few axes, by pmm or by psmm.

Algorithms 4 and 5 of the paper on the box of each class: its side along an axis v is four standard
deviations to both sides of the mean, and ends where the image of the cube ends (docs/privacy.md, E16). pmm is
a tree that halves the longest side, with depth, levels and consistency as in `pmm.py` (E1, E2, E4); psmm is a
lattice of cubes and the closest measure in linf, as in `psmm.py` (E3, E5-E8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.psmm.guarantee import DRAWS, mean_off
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.numeric.consistency import combined, descend, posterior
from dpsynth_cli.numeric.histogram import best_total
from dpsynth_cli.numeric.lattice import Axis, Lattice
from dpsynth_cli.numeric.moved_rows import ABSOLUTE, Moved, moved_rows
from dpsynth_cli.numeric.partition import along
from dpsynth_cli.numeric.projection import BITS, cubes, halvings, reach, rounded
from dpsynth_cli.numeric.spectrum import Axes
from dpsynth_cli.numeric.transport import closest, effort
from dpsynth_cli.questions import Affine, Answer, Ask, CellCounts, Cells, Floats, Question
from dpsynth_cli.shares import divide

MOST_AXES = 6  # that are counted, if the spec does not say
SHAPE = 0.5  # what a normal in the place of a counted axis is off by, in standard deviations of the axis
GRAIN = 3 / 16  # what k counted axes are off by, in sides of the box times (epsilon n)^(-1/k)
SIGMAS = 4
DEEPEST = 20
SECONDS = 60.0  # what psmm may take at worst, in all


@dataclass(frozen=True, eq=False)
class Box:
    """A class's box along its axes: `low` and `high` are multiples of 2^-18, as the axes are."""

    vectors: Floats
    low: Floats
    high: Floats

    @property
    def widths(self) -> Floats:
        return self.high - self.low

    def diameter(self, widths: Floats) -> float:
        """Of a cell with these sides, in the largest coordinate."""
        return float((np.abs(self.vectors) @ widths).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Measure:
    """How many rows each cell has, its lower corner (cells x axes) and how wide it is along each axis. By the
    noisy counts: by how many rows all together are off at most, on average, and how far rows have to be moved
    if so many are drawn for each of the mass."""

    mass: Floats
    corner: Floats
    width: Floats
    rows_off: float = 0.0
    seconds: float = 0.0  # that it takes to say so, at worst
    moved: Callable[[float], Moved] = field(default=lambda drawn: Moved(0.0, 0.0, 0), repr=False)


def box(found: Axes, mean: Floats, dimension: int | None, strength: float = 1.0) -> Box:
    """The box about a mean along all axes that the spec asks for, else along as many as `counted` says."""
    half = SIGMAS * np.sqrt(np.maximum(found.seen, found.edge))
    count = counted(found.values, 2 * half, strength) if dimension is None else len(found)
    vectors = rounded(found.vectors[:, :count])
    centre, far = mean @ vectors, reach(vectors)
    low, high = np.maximum(centre - half[:count], -far), np.minimum(centre + half[:count], far)
    low = rounded(low)
    return Box(vectors, low, np.maximum(rounded(high), low + 2.0**-BITS))


def counted(variances: Floats, widths: Floats, strength: float) -> int:
    """How many axes to count: k that balances what the others lose by being normal with what k axes lose in
    cells and noise, which is in proportion to (epsilon n)^(-1/k); `strength` is epsilon n (Theorem 4.2).

    >>> [counted(np.array([4.0, 1.0, 0.25]), np.array([16.0, 8.0, 4.0]), x) for x in (10, 1000, 10**6)]
    [1, 2, 3]
    """
    most = min(len(variances), MOST_AXES)
    lost = [
        SHAPE**2 * float(variances[k:].sum())
        + GRAIN**2 * float((widths[:k] ** 2).sum()) * max(1.0, strength) ** (-2 / k)
        for k in range(1, most + 1)
    ]
    return int(np.argmin(lost)) + 1 if lost else 0


def strength(ask: Ask, omega: Domain, share: Fraction, classes: int) -> float:
    """The epsilon of Laplace noise as large as that of one count."""
    return math.sqrt(2) / max(ask.sd(question(omega, [Cells(())] * classes, share)), 0.1)


def measures(
    ask: Ask,
    omega: Domain,
    inside: str,
    share: Fraction,
    sizes: Sizes,
    boxes: Sequence[Box],
    bits: int,
) -> list[Measure]:
    """One measure a class, with its size as total, inside its box."""
    epsilon = strength(ask, omega, share, len(boxes))
    by = _by_tree if inside == "pmm" else _by_lattice
    return by(ask, omega, share, epsilon, sizes, boxes, bits)


def _by_tree(
    ask: Ask, omega: Domain, share: Fraction, epsilon: float, sizes: Sizes, boxes: Sequence[Box], bits: int
) -> list[Measure]:
    d = max(len(box.widths) for box in boxes)
    rows = max(1.0, float(sizes.rows.mean()))
    depth = round(math.log2(max(2.0, epsilon * rows))) + min(3 * d - 7, 4)
    depth = min(max(1, depth), DEEPEST)
    count = max(1, round(depth / (4 if d < 3 else 5)))
    levels = [round(depth * (i + 1) / count) for i in range(count)]
    orders = [halvings(box.widths, depth if len(box.widths) else 0) for box in boxes]

    # Noisy counts of every measured level.
    weights = [(0.8 if d == 1 else 1.0) ** i for i in range(count)]
    questions = []
    for j, own in zip(levels, divide(share, weights), strict=True):
        cells = [halved(omega, b, order[:j], bits) for b, order in zip(boxes, orders, strict=True)]
        questions.append(question(omega, cells, own))
    answers = ask(questions)

    # Consistency: least squares upwards, then each parent divided between its children.
    found = []
    for k, (part, order) in enumerate(zip(boxes, orders, strict=True)):
        noisy: list[Floats | None] = [None] * (len(order) + 1)
        variances = [0.0] * (len(order) + 1)
        for j, answer in zip(levels, answers, strict=True):
            at = min(j, len(order))  # a class without axes has one cell on every level
            noisy[at], variances[at] = answer.blocks[k].astype(np.float64), answer.sd**2
        everywhere = np.ones(2 ** len(order))
        estimates, spread = combined(noisy, variances, everywhere)
        root = (float(estimates[0][0]), float(spread[0][0]))
        total = max(0.0, best_total([(float(sizes.rows[k]), sizes.variance), root]))
        mass = descend(total, estimates, spread, everywhere, posterior)
        place = [along(order, axis) for axis in range(len(part.widths))]
        made = measure(part, mass, place, [2 ** order.count(a) for a in range(len(place))])
        moved = partial(moved_rows, estimates, spread, mass, _diameters(part, order))
        found.append(replace(made, rows_off=_rows_off(part, total, root), moved=moved))
    return found


def _diameters(box: Box, order: tuple[int, ...]) -> list[Floats]:
    """By level, that of each of its cells."""
    halved = [[order[:level].count(a) for a in range(len(box.widths))] for level in range(len(order) + 1)]
    return [
        np.full(1 << level, box.diameter(box.widths / 2.0 ** np.array(times)))
        for level, times in enumerate(halved)
    ]


def _rows_off(box: Box, total: float, estimate: tuple[float, float]) -> float:
    """How many rows too many or too few, if counts say so many, with this variance; times their distance."""
    off = abs(total - estimate[0]) + ABSOLUTE * math.sqrt(estimate[1])
    return off * max(1.0, box.diameter(box.widths))


def _by_lattice(
    ask: Ask, omega: Domain, share: Fraction, epsilon: float, sizes: Sizes, boxes: Sequence[Box], bits: int
) -> list[Measure]:
    epsilon *= 2 if omega.neighbours == "replace_one" else 1
    shapes = []
    for n, part in zip(sizes.rows.tolist(), boxes, strict=True):
        most = max(1.0, n * min(1.0, epsilon / (8 if len(part.widths) < 3 else 4)))
        shape = cubes(part.widths, most) if len(part.widths) else ()
        while effort(lattice(shape))[0] * len(boxes) > SECONDS:
            most /= 2
            shape = cubes(part.widths, most)
        shapes.append(shape)
    cells = [divided(omega, b, shape, bits) for b, shape in zip(boxes, shapes, strict=True)]
    answer = ask([question(omega, cells, share)])[0]
    found = []
    for k, (part, shape, nu) in enumerate(zip(boxes, shapes, answer.blocks, strict=True)):
        own = (float(nu.sum()), answer.sd**2 * len(nu))
        total = max(0, round(best_total([(float(sizes.rows[k]), sizes.variance), own])))
        nearest = closest(nu, total, lattice(shape))
        mass = nearest.counts.astype(np.float64)
        place = np.unravel_index(np.arange(len(mass)), shape) if shape else ()
        made = measure(part, mass, list(place), list(shape))
        side = part.diameter(made.width)
        moved = partial(_moved_on, lattice(shape), nearest.distance, answer, mass, side)
        seconds = DRAWS[0] * effort(lattice(shape))[0]
        off = _rows_off(part, total, own)
        found.append(replace(made, rows_off=off, seconds=seconds, moved=moved))
    return found


def _moved_on(
    lattice: Lattice, distance: float, answer: Answer, mass: Floats, side: float, drawn: float
) -> Moved:
    """By what the noise of the counts is worth, and how far the closest measure is from them; cells are so
    far apart as they are wide."""
    due = mass * drawn
    rounding = (
        float(((due - np.floor(due)) * (np.ceil(due) - due)).sum()) / drawn * max(lattice.shape, default=1)
    )
    off = mean_off(lattice, answer.noise, answer.sd, 0.0, np.random.default_rng(0)) * lattice.side
    return Moved(side * (distance + off + rounding), side * float(mass.sum()), 0)


def lattice(shape: tuple[int, ...]) -> Lattice:
    return Lattice(tuple(Axis(k) for k in shape), max(shape, default=1))


def question(omega: Domain, cells: Sequence[Cells], share: Fraction) -> Question:
    each = tuple(cells) if omega.strata else cells[0]
    return Question("counts", CellCounts(each), share, omega.strata)


def halved(omega: Domain, box: Box, order: tuple[int, ...], bits: int) -> Cells:
    axes = [_affine(omega, box, a, 2 ** order.count(a), bits) for a in range(len(box.widths))]
    return Cells(tuple(axes), order)


def divided(omega: Domain, box: Box, shape: tuple[int, ...], bits: int) -> Cells:
    return Cells(tuple(_affine(omega, box, a, k, bits) for a, k in enumerate(shape)))


def _affine(omega: Domain, box: Box, axis: int, cells: int, bits: int) -> Affine:
    """Equal cells of one side of the box, in integers: the same question on every machine."""
    scale = 2.0**BITS
    weights = tuple(int(w) for w in box.vectors[:, axis] * scale)
    low, high = int(box.low[axis] * scale), int(box.high[axis] * scale)
    unit = 2 * (2**bits - 1)  # z = unit y
    edges = tuple(unit * low + unit * (high - low) * i // cells for i in range(cells + 1))
    return Affine(tuple(c.name for c in omega.modelled), weights, edges, bits)


def measure(box: Box, mass: Floats, place: Sequence[np.ndarray], cells: Sequence[int]) -> Measure:
    width = box.widths / np.array(cells, dtype=np.float64)
    corner = np.zeros((len(mass), len(width)))
    for a, index in enumerate(place):
        corner[:, a] = box.low[a] + width[a] * index
    return Measure(mass, corner, width)
