"""Links between latent normals and the cells of a column: one rule for ordered and for nominal columns.

A column's cells have scores phi_c in a few dimensions, with mean 0 and variance 1 over its masses. A latent
z, independent standard normals, belongs to the cell with the largest phi_c . z + b_c, and the offsets b make
the masses right: in one dimension these are thresholds along the order of the scores, in more a multinomial
link. (It is the optimal transport from the normal distribution to the cells.) Scores, offsets and z are
multiples of 2^-18, so that which cell wins is exact, on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import exp, log
from dpsynth_cli.numeric.projection import rounded

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

CHUNK = 2**12  # latents at a time: they stay in the cache
POINTS = 2**12  # of the lattice of normals that offsets are fitted on
COOLING = (2.0, 1.0, 0.5, 0.25, 0.12)
STEPS = 12  # at each temperature
LAST = 100  # steps with each point in one cell
LEAST = 1e-7  # the least mass of a cell that a link aims at


@dataclass(frozen=True, eq=False)
class Link:
    """Scores (cells x dimensions), offsets (cells), and `carried`, E[phi_c z^T]: what of z the cells keep."""

    scores: Floats
    offsets: Floats
    carried: Floats

    @property
    def dimensions(self) -> int:
        return int(self.scores.shape[1])

    def cells(self, z: Floats) -> Ints:
        """The cell of each latent; one column of z each."""
        found = np.empty(z.shape[1], np.int64)
        for start in range(0, z.shape[1], CHUNK):
            here = slice(start, start + CHUNK)
            found[here] = _highest(self.scores @ z[:, here] + self.offsets[:, None])
        return found


def _highest(worth: Floats) -> Ints:
    """In which row each column has its largest number, the first of equal ones: argmax, but row by row, which
    is many times faster where rows are few and long."""
    best, at = worth[0].copy(), np.zeros(worth.shape[1], np.int64)
    for row, own in enumerate(worth[1:], 1):
        np.putmask(at, own > best, row)
        np.maximum(best, own, out=best)
    return at


def link(scores: Floats, masses: Floats) -> Link:
    """The link with these scores to these masses.

    >>> made = link(np.array([[-1.0], [1.0]]), np.array([0.5, 0.5]))
    >>> made.cells(np.array([[-0.1, 0.1]])).tolist(), made.carried.round(2).tolist()
    ([0, 1], [[0.8]])
    """
    part = np.maximum(masses / masses.sum(), LEAST)
    part /= part.sum()
    scores = rounded(scores)
    points = lattice(scores.shape[1])
    offsets = _thresholds(scores[:, 0], part) if scores.shape[1] == 1 else _offsets(scores, part, points)
    made = Link(scores, rounded(offsets), np.zeros(0))
    carried = scores[made.cells(points)].T @ points.T / points.shape[1]
    return Link(made.scores, made.offsets, carried)


def lattice(m: int) -> Floats:
    """About 2^12 points that stand for m independent standard normals: all combinations of m quantiles."""
    from scipy.special import ndtri

    side = round(POINTS ** (1 / m))
    line = ndtri((np.arange(side) + 0.5) / side)
    line = rounded(line / max(float(np.sqrt((line**2).mean())), 1e-9))  # variance 1, in spite of cut tails
    return np.stack(np.meshgrid(*[line] * m, indexing="ij")).reshape(m, -1)


def settled(cells: Ints, due: Ints, rng: np.random.Generator) -> Ints:
    """The cells with as few rows moved, at random, as make each cell hold the number that is due.

    >>> settled(np.array([0, 0, 0, 1]), np.array([2, 1, 1]), np.random.default_rng(0)).tolist()
    [0, 0, 2, 1]
    """
    have = np.bincount(cells, minlength=len(due))
    mixed = rng.permutation(len(cells))
    order = mixed[np.argsort(cells[mixed].astype(np.uint16 if len(due) < 2**16 else np.int64), kind="stable")]
    sorted_cells = cells[order]
    place = np.arange(len(cells)) - (np.cumsum(have) - have)[sorted_cells]
    moved = order[place < np.maximum(have - due, 0)[sorted_cells]]
    free = np.repeat(np.arange(len(due)), np.maximum(due - have, 0))
    rng.shuffle(free)
    cells = cells.copy()
    cells[moved] = free
    return cells


def _thresholds(scores: Floats, part: Floats) -> Floats:
    """In one dimension: cell after cell in the order of the scores, each between its two quantiles."""
    from scipy.special import ndtri

    order = np.argsort(scores, kind="stable")
    between = ndtri(np.clip(np.cumsum(part[order])[:-1], 1e-12, 1 - 1e-12))
    offsets = np.empty(len(part))
    offsets[order] = np.append(0.0, -np.cumsum(between * np.diff(scores[order])))
    return offsets


def _offsets(scores: Floats, part: Floats, points: Floats) -> Floats:
    """In more: each point shared between the cells by a softmax that is cooled down, offsets raised where
    a cell has too little (Sinkhorn's iteration); at last each point in one cell, and small steps. What is
    still missing at the end is `settled` in drawing."""
    worth = scores @ points
    offsets: Floats = -0.5 * (scores**2).sum(axis=1)
    for temperature in COOLING:
        for _ in range(STEPS):
            shares = worth + offsets[:, None]
            shares /= temperature
            shares -= shares.max(axis=0)
            shares = exp(shares)
            shares /= shares.sum(axis=0)
            offsets = offsets + temperature * log(part / np.maximum(shares.mean(axis=1), 1e-12))
    step = 0.3
    for _ in range(LAST):
        offsets = rounded(offsets)  # so that every machine has the same winners
        held = np.bincount(_highest(worth + offsets[:, None]), minlength=len(part)) / worth.shape[1]
        offsets = offsets + step * (part - held) / np.sqrt(part + 1e-3)
        step *= 0.95
    return offsets
