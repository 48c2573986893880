"""The tails of a number: where its rows stop standing above noise, and how many there are beyond that.

Counts of the cells that are farthest out are mostly noise. To believe them would put rows far from all
others, to call those cells empty loses the few rows that are there, which have much of a skewed number's
sum. So the rows of such cells are as a generalised Pareto law has them, which the ends of nearly all laws
come near to (Balkema and de Haan 1974, Pickands 1975): of the laws on a grid, weighed by how well they
explain all counts of the tail, the mean. Laws that end at once are among them.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import exp, log

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

STANDS, ALONE = 3.0, 1.0  # standard deviations: of a sum, and so much more of single cells: Laplace noise
RARER = 2.5  # so many more at most, however far out a cell is
SEEN, LEAST = 20.0, 100.0  # rows of a tail that a law is fitted to: times the noise of a cell, and at all
SHAPES = np.arange(-15, 16, 2) / 20  # of the law; below 0 it has an end, at 0 it is exponential
NEAR = 0.2  # that is how far shapes usually are from 0
WIDTHS = exp(np.arange(-15.0, 10.0) * (math.log(2) / 3))  # of the law, over that of the tail that is seen


def quiet(counts: Floats, sd: float, far: Floats | float = 1.0) -> int:
    """How many of the last cells are quiet: neither one of them nor neighbours together stand above noise of
    this standard deviation. All, if nothing does.

    Noise that is taken for rows does the more harm the farther out it is. So it takes more to believe cells
    that are so many times as `far` as most rows: as much as makes noise rarer by that, up to thirty times.

    >>> quiet(np.array([90.0, 30.0, 2.0, 4.5, -1.0]), 1.0)
    1
    >>> quiet(np.array([90.0, 30.0, 2.0, 4.5, -1.0]), 1.0, np.array([1.0, 1, 4, 16, 64]))
    3
    >>> quiet(np.array([90.0, 2.0, 3.0, 2.0, 3.0]), 1.0), quiet(np.zeros(3), 1.0)
    (0, 3)
    """
    reached = np.append(0.0, np.cumsum(counts[::-1]))
    rarer = np.minimum(log(np.maximum(far, 1.0)) / math.sqrt(2), RARER)
    rarer = np.broadcast_to(rarer, len(counts))[::-1]
    windows = [1 << i for i in range(len(counts).bit_length())]
    for end in range(1, len(counts) + 1):
        for w in windows:
            height = STANDS * math.sqrt(w) + ALONE + float(rarer[end - w]) if w <= end else math.inf
            if reached[end] - reached[end - w] >= sd * height:
                return end - w
    return len(counts)


def beyond(edges: Floats, counts: Floats, masses: Floats, sd: float, last: int, fine: Floats) -> Floats:
    """How many rows are between the `fine` edges, all of which are beyond the first `last` cells.

    `edges` rise from the middle outwards, `counts` of their cells have noise, `masses` are of the cells that
    stand.
    """
    below = np.cumsum(masses[:last][::-1])[::-1]
    enough = np.flatnonzero(below >= max(LEAST, SEEN * sd))
    first = int(enough[-1]) if len(enough) else 0
    known, start = float(below[first]), float(edges[first])
    widths = (float(edges[last]) - start) * WIDTHS[:, None]
    variance = sd**2 + np.maximum(np.append(masses[first:last], np.zeros(len(counts) - last)), 1.0)
    found, weights = [], []
    for shape in SHAPES.tolist():
        left = _left((edges[first:] - start) / widths, shape)
        scale = known / np.maximum(1.0 - left[:, last - first, None], 1e-9)
        away = counts[first:] - scale * (left[:, :-1] - left[:, 1:])
        weights.append(-0.5 * ((away * away / variance).sum(axis=1) + (shape / NEAR) ** 2))
        found.append(-scale * np.diff(_left((fine - start) / widths, shape)))
    likely = np.array(weights).ravel()
    likely = exp(likely - likely.max())
    mean = (np.concatenate(found) * (likely / likely.sum())[:, None]).sum(axis=0)
    return np.asarray(np.round(mean, 6))


def _left(z: Floats, shape: float) -> Floats:
    """What part of a generalised Pareto law is beyond z widths."""
    return exp(log(np.maximum(1.0 + shape * z, 1e-300)) * (-1.0 / shape))
