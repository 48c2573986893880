"""The model of `lowdim`: a piece for each class; points are drawn from it and put back on the declared grid.

X'' = X' + mean with the synthetic X' (Algorithm 1; docs/privacy.md, E12), then the metric projection on the
box. Coordinates of categories may fall below 0, which would make rare ones too frequent: categories are
weighed so that each is as frequent as the private mean says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.lowdim.classes import Spread
from dpsynth_cli.mechanisms.lowdim.inside import Box, Measure
from dpsynth_cli.numeric.projection import balanced, chosen, finely, normals, rounded, to_codes
from dpsynth_cli.numeric.sampling import portions, shuffled, whole
from dpsynth_cli.questions import Block, Floats, Ints

BLOCK_ROWS, NUMBERS = 2**17, 2**23  # of a block
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
    """Normal along all axes, and independently what the columns have left."""
    one = Measure(np.array([n]), np.zeros((1, 0)), np.zeros(0))
    none = np.zeros((len(mean), 0))
    if spread is None:
        return ClassModel(one, mean, rounded(mean), none, none, np.zeros(len(mean)))
    # Choosing a category gives its coordinates what they have left; and nothing may be far below 0.
    nominal = np.repeat([c.type == "nominal" for c in omega.modelled], [c.width for c in omega.modelled])
    left = np.where(nominal, 0.0, np.sqrt(spread.left))
    long = np.sqrt((spread.factor**2).sum(axis=1))
    shorter = np.where(nominal, np.minimum(1.0, mean / np.maximum(long, 1e-12)), 1.0)
    return ClassModel(
        one, mean, rounded(mean), none, rounded(spread.factor * shorter[:, None]), rounded(left)
    )


def counted(inside: Measure, mean: Floats, spread: Spread, box: Box) -> ClassModel:
    """Counted along the first axes, normal along the others; what is left is left out, as in the paper."""
    found, vectors, c = spread.found, box.vectors, len(box.widths)
    factor = found.vectors[:, c:] * np.sqrt(found.values[c:])
    beside = mean - vectors @ (mean @ vectors)
    return ClassModel(inside, mean, rounded(beside), vectors, rounded(factor), np.zeros(len(mean)))


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
