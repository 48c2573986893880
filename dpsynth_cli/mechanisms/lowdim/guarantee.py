"""How far rows that were counted in a subspace are from the real ones: Theorem 4.2 of the paper that
`lowdim.py` names, with all constants, from private numbers.

Rows x (of class k) are moved, step by step, to the synthetic ones; W1 is at most the sum of
- `outside_axes`, the tail: to m_k + P (x - m_k), P the projection on the counted axes: the root of the mean
  of |(I - P)(x - m_k)|^2, linear in the sums of x and x x^T, so that their noisy answers tell it. P was
  chosen by the noise A of the second moments: tr(P A) is at most the sum of the largest eigenvalues of A, as
  many as there are axes (Lemma 2.2 has 2 d' |A| for it), and this is simulated;
- `box`: a row further out than b from the mean along an axis is counted at the end of the box, and
  (|u| - b)_+ <= u^2 / (4 b);
- `noise`, `cells`, `number_of_rows`: what counts say (`numeric/moved_rows.py`; psmm: `psmm/guarantee.py`);
- `normal`: axes that were not counted are drawn normal, and all is moved by a constant for the sake of means;
- `grid`: a row is rounded to the declared values. Projection on the box brings no row further away.

Two small steps are not proved: axes that were rounded to a grid are taken as orthonormal, and where a private
mean is multiplied by the size of its own noise, by the expected one.
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
from dpsynth_cli.numeric.projection import FINE, reach
from dpsynth_cli.questions import Floats

OURS = "this release, by its private moments and counts (Theorem 4.2, with all constants)"
DRAWS = 12  # of a noise matrix
SECONDS = 10.0  # that it may take to simulate noise on lattices
WIDEST = 400  # coordinates, above which noise matrices take too long


@dataclass(frozen=True, eq=False)
class Counted:
    """What the release knows of its classes; `moments` says of whom second moments were asked: of all rows
    together, else of each class."""

    omega: Domain
    sums: Sums
    moments: bool
    laplace: bool
    centres: Floats
    boxes: Sequence[Box]
    measures: Sequence[Measure]
    pieces: Sequence[ClassModel]


def known(omega: Domain, clip: float | None) -> bool:
    """Whether a bound is known: of numbers that are never missing, as they are."""
    plain = all(c.type != "nominal" and not c.nullable for c in omega.modelled)
    return plain and clip is None and len(omega.modelled) <= WIDEST


def expected_w1(counted: Counted, rows: int) -> Bound | None:
    """The bound, for so many rows that are drawn."""
    total = float(sum(measure.mass.sum() for measure in counted.measures))
    if rows < 1 or round(total) < 1 or not all(len(box.widths) for box in counted.boxes):
        return None
    if sum(measure.seconds for measure in counted.measures) > SECONDS:
        return None
    n = max(1.0, float(counted.sums.sizes.sum()))
    tail, clipped = _outside(counted)
    moved = [measure.moved(rows / total) for measure in counted.measures]
    drawn = zip(counted.pieces, counted.measures, strict=True)
    normal = sum(
        _beside(piece, counted.centres[k]) * float(m.mass.sum()) for k, (piece, m) in enumerate(drawn)
    )
    steps = [(0.5 if c.size > FINE else 1.0) / max(1, c.size - 1) for c in counted.omega.modelled]
    return Bound.of_terms(
        OURS,
        outside_axes=math.sqrt(max(0.0, tail) / n),
        box=clipped / n,
        noise=sum(one.between for one in moved) / total,
        cells=sum(one.inside for one in moved) / total,
        number_of_rows=sum(measure.rows_off for measure in counted.measures) / total,
        normal=normal / total,
        grid=max(steps),
    )


def _outside(counted: Counted) -> tuple[float, float]:
    """Of all rows together: squared distances from the counted axes, and distances from the boxes."""
    sums, centres, boxes = counted.sums, counted.centres, counted.boxes
    if counted.moments:
        axes = min(len(box.widths) for box in boxes)  # that all classes have
        groups = [(sums.second, sums.second_noise, boxes[0].vectors[:, :axes], range(len(boxes)))]
    else:
        assert sums.by_class is not None
        groups = [
            (second, sums.class_noise, box.vectors, range(k, k + 1))
            for k, (second, box) in enumerate(zip(sums.by_class, boxes, strict=True))
        ]
    tail = clipped = 0.0
    for second, noise, vectors, classes in groups:
        d, k = vectors.shape
        largest = _largest_eigenvalues(d, k, math.sqrt(noise), counted.laplace)
        about = _about(second, sums, centres, classes)
        slack = sum(_slack(sums, centres[c]) for c in classes)
        tail += float(np.trace(about)) - float(np.trace(vectors.T @ about @ vectors)) + sum(largest) + slack
        nearest = _nearest_ends([boxes[c] for c in classes], centres[list(classes)])
        for axis, end in zip(max((boxes[c].vectors for c in classes), key=np.size).T, nearest, strict=True):
            spread = float(axis @ about @ axis) + largest[0] + slack
            clipped += max(0.0, spread) / (4 * end) * float(np.abs(axis).max())
    return tail, clipped


def _about(second: Floats, sums: Sums, centres: Floats, classes: range) -> Floats:
    """Sums of (x - m_k)(x - m_k)^T over the classes, from noisy sums."""
    about = second.copy()
    for k in classes:
        cross = np.outer(sums.first[k], centres[k])
        about -= cross + cross.T - sums.sizes[k] * np.outer(centres[k], centres[k])
    return np.asarray(about)


def _slack(sums: Sums, mean: Floats) -> float:
    """What the noise of a class's sums and size does to that, on average at most."""
    size = float(mean @ mean)
    of_sums = 2 * math.sqrt(size * sums.first_noise * len(mean))
    return of_sums + math.sqrt(sums.size_noise) * size


def _largest_eigenvalues(d: int, k: int, sd: float, laplace: bool) -> list[float]:
    """Means of the k largest eigenvalues of a symmetric matrix of noise: simulated, never a release's."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS):
        entries = rng.laplace(0.0, sd / math.sqrt(2), (d, d)) if laplace else rng.normal(0.0, sd, (d, d))
        noise = np.triu(entries)
        found.append(np.linalg.eigvalsh(noise + np.triu(noise, 1).T)[::-1][: max(1, k)])
    spread = np.std(found, axis=0, ddof=1) / math.sqrt(DRAWS)
    return [float(x) for x in np.maximum(np.mean(found, axis=0) + 4 * spread, 0.0)]


def _nearest_ends(boxes: Sequence[Box], means: Floats) -> Floats:
    """How near to the mean each axis of a box ends, in any class; where the image of the cube ends, too,
    nothing is beyond."""
    nearest = np.full(max(len(box.widths) for box in boxes), np.inf)
    for box, mean in zip(boxes, means, strict=True):
        centre, far = mean @ box.vectors, reach(box.vectors)
        below = np.where(box.low > -far + 1e-4, centre - box.low, np.inf)
        above = np.where(box.high < far - 1e-4, box.high - centre, np.inf)
        own = nearest[: len(far)]
        np.minimum(own, np.maximum(np.minimum(below, above), 1e-9), out=own)
    return nearest


def _beside(piece: ClassModel, mean: Floats) -> float:
    """How far the rows of a class are drawn from where they were counted, on average and at most."""
    due = mean - piece.vectors @ (mean @ piece.vectors)
    deviations = np.sqrt((piece.factor**2).sum(axis=1))
    largest = math.sqrt(2 * math.log(2 * len(mean))) * float(deviations.max(initial=0.0))
    return float(np.abs(piece.beside - due).max()) + min(float(np.sqrt(deviations @ deviations)), largest)
