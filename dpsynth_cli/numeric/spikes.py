"""Single codes that many rows have, found inside runs of codes that have many rows.

A run is a range of neighbouring codes with a mass. Heavy runs are cut into pieces, and the pieces counted
again; one that stands above the noise of all its neighbours is a spike and keeps its count, and what is
left of the run is even over its other codes.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import log

RARE = 7  # e^-7 / 2 is the chance of one piece

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


def threshold(pieces: NDArray[np.generic], sd: float) -> Floats:
    """What Laplace noise alone reaches once in 2,200 times in any of so many pieces; Gaussian noise, rarer.

    A column has some ten runs, and a spike that is none takes all rows of its run.
    """
    return np.asarray(sd / math.sqrt(2) * (log(np.maximum(pieces, 1)) + RARE), np.float64)


def cut(first: Ints, width: Ints, pieces: Ints) -> tuple[Ints, Ints]:
    """The first codes of all pieces when each run is cut into so many, and the run each is in.

    >>> [part.tolist() for part in cut(np.array([0, 2]), np.array([2, 6]), np.array([1, 4]))]
    [[0, 2, 4, 5, 7], [0, 1, 1, 1, 1]]
    """
    run = np.repeat(np.arange(len(first)), pieces)
    step = np.arange(len(run)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return first[run] + -(-step * width[run] // pieces[run]), run


def divided(
    masses: Floats, run: Ints, width: Ints, spike: NDArray[np.bool_], counts: Floats, sd: float = 0.0
) -> Floats:
    """The masses of pieces: spikes by their counts, the rest of each run even over its other codes.

    A rest that is not beyond twice the noise of the counts is noise too: then the spikes have all of the run.

    >>> run, width, spike = np.array([0, 1, 1, 1]), np.array([5, 1, 1, 2]), np.array([0, 0, 1, 0], bool)
    >>> divided(np.array([7.0, 12.0]), run, width, spike, np.array([8.0, -1.0, 9.0, 0.0])).tolist()
    [7.0, 1.0, 9.0, 2.0]
    """
    runs = len(masses)
    mass = np.where(spike, np.maximum(counts, 0.0), 0.0)
    others = np.where(spike, 0, width)
    found, codes = np.bincount(run, mass, runs), np.bincount(run, others, runs)
    # Spikes take no more than there is, and all of it where nothing else can have it or seems to.
    everything = (found > 0) & ((masses - found < 2 * sd) | (codes == 0))
    scale = np.divide(masses, found, out=np.ones(runs), where=everything | (found > masses))
    left = np.maximum(masses - found * scale, 0.0)
    even = np.divide(left, codes, out=np.zeros(runs), where=codes > 0)
    mass = mass * scale[run] + others * even[run]
    lost = (codes == 0) & (found == 0)  # all spikes, all counts negative: even after all
    whole = np.bincount(run, width, runs)
    return np.where(lost[run], masses[run] * width / whole[run], mass)
