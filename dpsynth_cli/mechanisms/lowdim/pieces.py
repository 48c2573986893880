"""The model of `lowdim`: a piece for each class; points are drawn from it and put back on the declared grid.

X'' = X' + mean with the synthetic X' (Algorithm 1; docs/privacy.md, E12), then the metric projection on the
box. That would move means, and make columns narrower: what is projected is centred and widened so that means
and variances come out as they should (`numeric/clipped.py`). Coordinates of categories may fall below 0: this
would make rare ones too frequent, so categories are weighed by what the private mean says of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.lowdim.classes import Spread
from dpsynth_cli.mechanisms.lowdim.inside import Box, Measure
from dpsynth_cli.numeric import clipped
from dpsynth_cli.numeric.projection import balanced, chosen, finely, normals, room, rounded, to_codes
from dpsynth_cli.numeric.sampling import portions, shuffled, whole
from dpsynth_cli.questions import Block, Floats, Ints

BLOCK_ROWS, NUMBERS = 2**17, 2**23  # of a block
PARTS = 64  # of a coordinate's range, among which its places are summed up
FULLEST = 0.98  # of the largest standard deviation that a mean leaves room for: a coin has no normal form
LEAST_INSIDE = 0.1  # chance of being inside the box, for which factors are lengthened at most
PILOT = 2**13  # points of all classes by which categories are weighed; an eighth of it for a class at least


@dataclass(frozen=True, eq=False)
class ClassModel:
    """A class: y = beside + V x' + F g + s e, with x' uniform in a cell of the measure and g, e normal."""

    measure: Measure
    mean: Floats
    beside: Floats
    vectors: Floats
    factor: Floats
    sd: Floats


def normal(omega: Domain, n: float, mean: Floats, spread: Spread | None) -> ClassModel:
    """Normal along all axes, and independently what the columns have left.

    Numbers are wider than their private variance, and centred elsewhere than at their private mean, so that
    both are right after the projection on the box. It weakens covariances too, by the chances of being
    inside; so factors are lengthened by as much, out of what the columns have left.
    """
    one = Measure(np.array([n]), np.zeros((1, 0)), np.zeros(0))
    none = np.zeros((len(mean), 0))
    if spread is None:
        return ClassModel(one, mean, rounded(mean), none, none, np.zeros(len(mean)))
    nominal = _nominal(omega)
    long = np.sqrt((spread.factor**2).sum(axis=1))
    most = np.sqrt(room(mean)) * FULLEST
    centre, wide = clipped.widened(mean, np.minimum(np.sqrt(long**2 + spread.left), most), -0.5, 0.5)
    inside = clipped.moments(centre, wide, -0.5, 0.5)[2]
    longer = np.minimum(1 / np.maximum(inside, LEAST_INSIDE), wide / np.maximum(long, 1e-12))
    left = np.sqrt(np.maximum(wide**2 - (longer * long) ** 2, 0.0))
    # Choosing a category gives its coordinates what they have left; and nothing may be far below 0.
    centre, left = np.where(nominal, mean, centre), np.where(nominal, 0.0, left)
    longer = np.where(nominal, np.minimum(1.0, mean / np.maximum(long, 1e-12)), longer)
    return ClassModel(
        one, mean, rounded(centre), none, rounded(spread.factor * longer[:, None]), rounded(left)
    )


def counted(omega: Domain, inside: Measure, mean: Floats, spread: Spread, box: Box) -> ClassModel:
    """Counted along the first axes, normal along the others; what is left is left out, as in the paper.

    All numbers are moved by a constant, so that the projection on the box moves no mean: along counted axes
    the counts say it, beside them the private mean.
    """
    found, vectors, c = spread.found, box.vectors, len(box.widths)
    factor = found.vectors[:, c:] * np.sqrt(found.values[c:])
    beside = mean - vectors @ (mean @ vectors)
    chances = (
        inside.mass / inside.mass.sum()
        if inside.mass.any()
        else np.full(len(inside.mass), 1 / len(inside.mass))
    )
    middle = inside.corner + inside.width / 2
    sd = np.sqrt((vectors**2) @ (inside.width**2 / 12) + (factor**2).sum(axis=1))
    due = np.clip(beside + vectors @ (chances @ middle), -0.5, 0.5)
    places = _places(vectors, middle, chances)
    centre = np.where(_nominal(omega), beside, clipped.centred(due, sd, -0.5, 0.5, places))
    return ClassModel(inside, mean, rounded(centre), vectors, rounded(factor), np.zeros(len(mean)))


def _nominal(omega: Domain) -> NDArray[np.bool_]:
    """Which coordinates are a category's."""
    return np.repeat([c.type == "nominal" for c in omega.modelled], [c.width for c in omega.modelled])


def _places(vectors: Floats, points: Floats, chances: Floats) -> tuple[Floats, Floats]:
    """Places of each coordinate and their chances, few of them: the means of equal parts of its range."""
    places, weights = np.zeros((len(vectors), PARTS)), np.zeros((len(vectors), PARTS))
    for j, vector in enumerate(vectors):
        own = points @ vector
        low, high = float(own.min()), float(own.max())
        part = np.minimum(((own - low) / max(high - low, 1e-12) * PARTS).astype(np.int64), PARTS - 1)
        weights[j] = np.bincount(part, chances, PARTS)
        places[j] = np.bincount(part, chances * own, PARTS) / np.maximum(weights[j], 1e-300)
    return places, weights


def drawing(
    omega: Domain, pieces: Sequence[ClassModel], missing: Floats
) -> Callable[[int, np.random.Generator], Iterator[Block]]:
    """Rows of all classes, mixed; `missing` is the part of each column that comes out missing."""
    mass = np.concatenate([piece.measure.mass for piece in pieces])
    mass = mass if mass.any() else np.ones(len(mass))
    start = np.cumsum([0] + [len(piece.measure.mass) for piece in pieces])
    owner = np.repeat(np.arange(len(pieces)), np.diff(start))
    d = len(pieces[0].mean)
    block = max(1, min(BLOCK_ROWS, NUMBERS // max(1, d)))
    ends = np.cumsum([c.width for c in omega.modelled]).tolist()
    each = zip(omega.modelled, ends, strict=True)
    nominal = [slice(end - c.width, end) for c, end in each if c.type == "nominal"]

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        counts = whole(mass, rows, rng)
        pilot = max(PILOT // 8, PILOT // len(pieces))
        weights = [_weights(piece, nominal, pilot, rng) for piece in pieces] if rows else []
        for part in portions(counts, rng, block) if rows else ():
            cell = shuffled(part, rng)
            label = owner[cell]
            y = np.empty((d, len(cell)))
            for k, piece in enumerate(pieces):
                own = np.flatnonzero(label == k) if len(pieces) > 1 else slice(None)
                points = _points(piece, cell[own] - start[k], rng)
                for at, weight in zip(nominal, weights[k], strict=True):
                    points[at] *= weight
                y[:, own] = points
            made = _codes(omega, y, rng)
            for column, rate in zip(omega.modelled, missing, strict=True):
                if rate > 0:
                    made[column.name][rng.random(len(cell)) < rate] = column.size
            yield {c.name: label if c.name == omega.strata else made[c.name] for c in omega}

    return draw


def _weights(
    piece: ClassModel, nominal: Sequence[slice], pilot: int, rng: np.random.Generator
) -> list[Floats]:
    """For each nominal column what to multiply its coordinates with, by a pilot."""
    if not nominal:
        return []
    mass = piece.measure.mass if piece.measure.mass.any() else np.ones(len(piece.measure.mass))
    count = max(1, min(pilot, NUMBERS // len(piece.mean)))
    y = _points(piece, shuffled(whole(mass, count, rng), rng), rng)
    return [balanced(y[at], piece.mean[at])[:, None] for at in nominal]


def _points(piece: ClassModel, cell: Ints, rng: np.random.Generator) -> Floats:
    y = piece.factor @ normals((piece.factor.shape[1], len(cell)), rng)
    y += piece.beside[:, None]
    if piece.vectors.shape[1]:
        inside = rng.random((len(cell), len(piece.measure.width)))
        y += piece.vectors @ finely(piece.measure.corner[cell] + piece.measure.width * inside).T
    if piece.sd.any():
        y += normals(y.shape, rng, piece.sd)
    return np.asarray(y)


def _codes(omega: Domain, y: Floats, rng: np.random.Generator) -> Block:
    """Numbers by projection on their grid; of a nominal column one category, by its coordinates."""
    made: Block = {}
    row = 0
    for column in omega.modelled:
        own = y[row : row + column.width]
        row += column.width
        if column.type == "nominal":
            made[column.name] = chosen(own, rng)
        else:
            (made[column.name],) = to_codes(own, [column.size], rng)
    return made
