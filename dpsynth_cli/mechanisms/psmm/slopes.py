"""Where in its cell a row is likely to be: nearer to the neighbour with more rows.

A lattice says how many rows a cell has, not where in it they are. But a density is seldom flat: between an
empty neighbour and a full one most rows are on the side of the full one. So along each axis the density in a
cell is 1 + lean (2x - 1) for x in [0, 1), a straight line whose lean in [-1, 1] comes from both neighbours.
It is 0 where their difference is not twice what chance makes, of the noise and of the rows. Counts of cells
stay what they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.lattice import Lattice

Floats = NDArray[np.float64]


def slopes_of(counts: NDArray[np.int64], lattice: Lattice, sd: float) -> Floats:
    """Of each axis and cell: (after - before) / (after + before) of the counts beside it, less what chance
    explains: noise of this standard deviation, and that of counting rows. A cell at an end is its own
    neighbour; cells apart have none.

    >>> from dpsynth_cli.numeric.lattice import Axis
    >>> slopes_of(np.array([0, 2000, 6000, 2000]), Lattice((Axis(4),), side=4), sd=3.0).round(2).tolist()
    [[1.0, 1.0, 0.0, -0.5]]
    """
    of = np.zeros((len(lattice.axes), *lattice.shape))
    for a, axis in enumerate(lattice.axes):
        row = np.moveaxis(counts.reshape(lattice.shape), a, 0)[: axis.cells].astype(np.float64)
        before, after = np.concatenate([row[:1], row[:-1]]), np.concatenate([row[1:], row[-1:]])
        further, both = after - before, np.maximum(after + before, 1)
        seen = np.maximum(0, 1 - 4 * (2 * sd**2 + both) / np.maximum(further**2, 1))
        np.moveaxis(of[a], a, 0)[: axis.cells] = seen * further / both
    return of.reshape(len(lattice.axes), -1)


def along_slope(u: Floats, lean: Floats) -> Floats:
    """Even places u in [0, 1) as places of the density with this lean: where its distribution function,
    lean x^2 + (1 - lean) x, is u.

    >>> along_slope(np.array([0.0, 0.25, 0.25, 0.25]), np.array([1.0, 1.0, 0.0, -1.0])).round(3).tolist()
    [0.0, 0.5, 0.25, 0.134]
    """
    root = np.sqrt((1 - lean) ** 2 + 4 * lean * u)
    return np.minimum(2 * u / np.maximum(1 - lean + root, 1e-300), 1 - 2**-53)
