"""How far rows that were counted in a subspace are from the real ones: Theorem 4.2 of the paper that
`lowdim.py` names, with all constants, from private numbers.

Rows x (of class k) are moved, step by step, to the synthetic ones; W1 is at most the sum of
- `outside_axes`, the tail: x goes to m_k + V V^T (x - m_k), V the counted axes, rounded to a grid: by the
  root of the mean of |P (x - m_k)|^2, P = I - V V^T, which the sums of x and x x^T tell but for their noise
  (`tail.py`);
- `box`: a row further out than b from the mean along an axis is counted at the end of the box, and
  (|u| - b)_+ <= u^2 / (4 b);
- `noise`, `cells`, `number_of_rows`: what counts say (`numeric/moved_rows.py`; psmm: `psmm/guarantee.py`);
- `normal`: axes that were not counted are drawn normal, and all is moved by a constant for the sake of means;
- `grid`: a row is rounded to the declared values, to 14 bits where it is counted, and the ends of boxes to a
  grid. Projection on the box brings no row further away;
- `by_chance`: the noise of the sums is larger than `tail.py` says with this probability, and W1 is at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.bounds import Bound
from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.lowdim.classes import Sums
from dpsynth_cli.mechanisms.lowdim.inside import Box, Measure
from dpsynth_cli.mechanisms.lowdim.pieces import ClassModel
from dpsynth_cli.mechanisms.lowdim.tail import Noise, Noises, noise_of
from dpsynth_cli.numeric.projection import FINE, reach
from dpsynth_cli.questions import Floats

OURS = "this release, by its private moments and counts (Theorem 4.2, with all constants)"
SECONDS = 10.0  # that it may take to simulate noise on lattices
WIDEST = 10**8  # classes times coordinates cubed, above which noise matrices take too long
NEAR = 2.0**-16  # an end of a box that is so near to that of the cube's image is the same
FINENESS = 14  # bits of a coordinate in counts and sums


@dataclass(frozen=True, eq=False)
class Counted:
    """What the release knows of its classes; `moments` says of whom second moments were asked: of all rows
    together, else of each class."""

    omega: Domain
    sums: Sums
    moments: bool
    noises: Noises
    centres: Floats
    boxes: Sequence[Box]
    measures: Sequence[Measure]
    pieces: Sequence[ClassModel]


def known(omega: Domain, clip: float | None) -> bool:
    """Whether a bound is known: of numbers that are never missing, as they are."""
    plain = all(c.type != "nominal" and not c.nullable for c in omega.modelled)
    return plain and clip is None and omega.classes * len(omega.modelled) ** 3 <= WIDEST


def expected_w1(counted: Counted, rows: int) -> Bound | None:
    """The bound, for so many rows that are drawn."""
    total = float(sum(measure.mass.sum() for measure in counted.measures))
    if rows < 1 or round(total) < 1 or not all(len(box.widths) for box in counted.boxes):
        return None
    if sum(measure.seconds for measure in counted.measures) > SECONDS:
        return None
    noise = noise_of(counted.sums, counted.noises, [(len(v), v.shape[1]) for _, v, _ in _groups(counted)])
    n = max(1.0, float(counted.sums.sizes.sum()) - noise.of_rows)
    tail, clipped = _outside(counted, noise)
    moved = [measure.moved(rows / total) for measure in counted.measures]
    drawn = zip(counted.pieces, counted.measures, strict=True)
    normal = sum(
        _beside(piece, counted.centres[k]) * float(m.mass.sum()) for k, (piece, m) in enumerate(drawn)
    )
    steps = [(0.5 if c.size > FINE else 1.0) / max(1, c.size - 1) for c in counted.omega.modelled]
    ends = max(float(np.abs(box.vectors).sum(axis=1).max()) for box in counted.boxes) * NEAR
    return Bound.of_terms(
        OURS,
        outside_axes=math.sqrt(max(0.0, tail) / n),
        box=clipped / n,
        noise=sum(one.between for one in moved) / total,
        cells=sum(one.inside for one in moved) / total,
        number_of_rows=sum(measure.rows_off for measure in counted.measures) / total,
        normal=normal / total,
        grid=max(steps) + 2.0 ** (1 - FINENESS) + ends,
        by_chance=noise.chance,
    )


def _outside(counted: Counted, noise: Noise) -> tuple[float, float]:
    """Of all rows together: squared distances from the counted axes, and distances from the boxes. Both are
    no less than they are unless the noise of the sums is larger than `noise`."""
    sums, centres, boxes = counted.sums, counted.centres, counted.boxes
    clipped, tail, beside = 0.0, noise.tail, []
    for second, vectors, classes in _groups(counted):
        d = len(vectors)
        about = _about(second, sums, centres, classes)
        P = np.eye(d) - vectors @ vectors.T
        P = P @ P  # V is not quite orthonormal, so that P is no projection
        tail += float(np.trace(P @ about))
        beside += [P @ centres[k] for k in classes]
        nearest = _nearest_ends([boxes[c] for c in classes], centres[list(classes)])
        slack = noise.of_means(centres[list(classes)], centres[list(classes)])
        for axis, end in zip(max((boxes[c].vectors for c in classes), key=np.size).T, nearest, strict=True):
            spread = float(axis @ about @ axis) + float(axis @ axis) * (noise.largest + slack)
            clipped += max(0.0, spread) / (4 * end) * float(np.abs(axis).max())
    # Classes with more axes than those that all have: what these are off from orthonormal, at most.
    skew = max(float(np.linalg.norm(b.vectors.T @ b.vectors - np.eye(len(b.widths)), 2)) for b in boxes)
    tail += skew**2 * sums.second.shape[0] * float(sums.sizes.sum())
    return tail + noise.of_means(np.array(beside), centres), clipped


def _groups(counted: Counted) -> list[tuple[Floats, Floats, range]]:
    """Sums of x x^T, the axes that all their classes have, and these classes."""
    boxes, sums = counted.boxes, counted.sums
    if counted.moments:
        axes = min(len(box.widths) for box in boxes)
        return [(sums.second, boxes[0].vectors[:, :axes], range(len(boxes)))]
    assert sums.by_class is not None
    each = enumerate(zip(sums.by_class, boxes, strict=True))
    return [(second, box.vectors, range(k, k + 1)) for k, (second, box) in each]


def _about(second: Floats, sums: Sums, centres: Floats, classes: range) -> Floats:
    """Sums of (x - m_k)(x - m_k)^T over the classes, from noisy sums."""
    about = second.copy()
    for k in classes:
        cross = np.outer(sums.first[k], centres[k])
        about -= cross + cross.T - sums.sizes[k] * np.outer(centres[k], centres[k])
    return np.asarray(about)


def _nearest_ends(boxes: Sequence[Box], means: Floats) -> Floats:
    """How near to the mean each axis of a box ends, in any class; where the image of the cube ends, too,
    nothing is beyond."""
    nearest = np.full(max(len(box.widths) for box in boxes), np.inf)
    for box, mean in zip(boxes, means, strict=True):
        centre, far = mean @ box.vectors, reach(box.vectors)
        below = np.where(box.low > -far + NEAR, centre - box.low, np.inf)
        above = np.where(box.high < far - NEAR, box.high - centre, np.inf)
        own = nearest[: len(far)]
        np.minimum(own, np.maximum(np.minimum(below, above), 1e-9), out=own)
    return nearest


def _beside(piece: ClassModel, mean: Floats) -> float:
    """How far the rows of a class are drawn from where they were counted, on average and at most."""
    due = mean - piece.vectors @ (mean @ piece.vectors)
    deviations = np.sqrt((piece.factor**2).sum(axis=1))
    largest = math.sqrt(2 * math.log(2 * len(mean))) * float(deviations.max(initial=0.0))
    return float(np.abs(piece.beside - due).max()) + min(float(np.sqrt(deviations @ deviations)), largest)
