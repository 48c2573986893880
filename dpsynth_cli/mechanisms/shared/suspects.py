"""Cells that have more rows than their neighbours would have them have: one value may have many of them.

To see such a value its code has to be counted with little noise, which takes a larger share than most columns
are worth. So it is taken only where a cell stands out, and just as much as it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpsynth_cli.numeric.spikes import threshold
from dpsynth_cli.questions import Floats, Ints

CLEAR = 4.0  # standard deviations of a cell's count
SURE = 0.8  # of the rows that stand out have to be above the noise of single codes,
MANY = 1 / 12  # or so much of all rows: a cell may stand out for other reasons too
STEPS = 16  # in which more is taken


def excess(mass: Floats, width: Ints) -> Floats:
    """How many more rows each run has than the geometric mean of the densities on its two sides would give
    it, or where it is the first or last, that of the only one.

    >>> excess(np.array([64.0, 32.0, 80.0, 8.0]), np.ones(4, np.int64)).tolist()
    [32.0, 0.0, 64.0, 0.0]
    """
    if len(mass) < 2:
        return np.zeros(len(mass))
    density = np.maximum(mass, 0.0) / width
    left, right = np.append(density[1], density[:-1]), np.append(density[1:], density[-2])
    return np.asarray(np.maximum(mass - np.sqrt(left * right) * width, 0.0))


def share_to_see(
    mass: Floats, width: Ints, sd: float, noise: Callable[[Fraction], float], own: Fraction, most: Fraction
) -> Fraction:
    """What to spend besides `own`, at most `most`, so that a code with all the rows that stand out of a run
    would be seen; nothing if no run stands out, if it is seen without, or if `most` is not enough.

    `sd` is the noise of a run, `noise` that of a code counted for a share.
    """
    out = excess(mass, width)
    out = np.where((out > CLEAR * sd) & (width > 1), out, 0.0)
    if not out.any() or not most:
        return Fraction(0)
    run = int(np.argmax(out))
    for rows in sorted({min(SURE * float(out[run]), MANY * float(mass.sum())), SURE * float(out[run])}):
        for step in range(STEPS + 1):
            more = most * Fraction(step, STEPS)
            if own + more and threshold(width[run : run + 1], noise(own + more))[0] <= rows:
                return more
    return Fraction(0)
