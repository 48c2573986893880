"""How far rows have to be moved, at most, until the cells of a tree hold what a synthetic table has in them.

n_c are the real counts of the cells, known by unbiased estimates with their variances; m_c the masses that a
synthetic table is drawn from, b_c its whole rows. Let the cells above have the right number of rows already:
then half of sum |n_c - b_c| of them have to be moved, each inside the cell of the level before (He, Vershynin
and Zhu, Lemma 3.14, for any number of children). So for any levels 0 = j_0 < j_1 < .. < j_k

    n W1 <= |n - b| diam(Omega) + sum_i sum_(c of level j_i) |n_c - b_c| / 2 diam(c's cell of level j_(i-1))
               + sum_(c of level j_k) b_c diam(c),

and |n_c - b_c| is at most |n_c - estimate| + |estimate - m_c| + |m_c - b_c|. The middle one is known. The
first is on average at most sqrt(2/pi) standard deviations (noise is a mixture of normals), the last is
2 f (1 - f), f the fraction of m_c, since rounding is systematic. Which levels are taken follows from
variances and diameters alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.consistency import pyramid

Floats: TypeAlias = NDArray[np.float64]

DEEPEST = 18  # levels that are looked at: stopping above the leaves is allowed
ABSOLUTE = math.sqrt(2 / math.pi)  # mean of |x| over the standard deviation, of a normal x


@dataclass(frozen=True)
class Moved:
    """Rows times distance: of the rows that noise moves between cells, of all rows inside their cell of the
    last level that is looked at, and of rows that the estimates lack."""

    between: float
    inside: float
    level: int
    lacking: float = 0.0


def moved_rows(
    estimates: Sequence[Floats],
    variances: Sequence[Floats],
    mass: Floats,
    diameters: Sequence[Floats],
    drawn: float = 1.0,
    lacking: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Moved:
    """All of the formula but its first term, for the best choice of levels.

    By level: estimates of the counts, their variances, the cells' diameters. `mass` is of the leaves; `drawn`
    rows are drawn for each of it. Where estimates are too small: how many rows all cells of each level are
    `lacking` together, and what was to be expected of that.

    >>> flat = [np.array([9.0]), np.array([5.0, 4.0])]
    >>> moved_rows(flat, [np.zeros(1), np.zeros(2)], flat[1], [np.ones(1), np.array([0.5, 0.5])])
    Moved(between=0.0, inside=4.5, level=1, lacking=0.0)
    """
    masses = pyramid(mass)
    deepest = min(len(masses) - 1, DEEPEST)
    total = float(masses[0][0])
    lack, expected = lacking if lacking is not None else ([0.0] * len(masses), [0.0] * len(masses))
    steps = _steps([2 * ABSOLUTE * np.sqrt(v) for v in variances[: deepest + 1]], expected, diameters)
    chain = _shortest(steps, [total * float(d.mean()) for d in diameters[: deepest + 1]])
    between = lacked = 0.0
    for above, level in pairwise(chain):
        due = masses[level] * drawn
        rounding = 2 * (due - np.floor(due)) * (np.ceil(due) - due) / drawn
        off = np.abs(estimates[level] - masses[level]) + ABSOLUTE * np.sqrt(variances[level]) + rounding
        between += _inside(off, level - above, diameters[above])
        lacked += lack[level] / 2 * float(diameters[above].max())
    last = chain[-1]
    return Moved(between, float(masses[last] @ diameters[last]), last, lacked)


def _inside(off: Floats, times: int, diameters: Floats) -> float:
    """Half of all that is off, moved inside the cells so many halvings above."""
    return float(off.reshape(len(diameters), 1 << times).sum(axis=1) @ diameters) / 2


def _steps(off: Sequence[Floats], lacking: Sequence[float], diameters: Sequence[Floats]) -> list[list[float]]:
    """What it costs to go from each level to each below."""
    return [
        [
            _inside(off[level], level - above, diameters[above])
            + lacking[level] / 2 * float(diameters[above].max())
            for above in range(level)
        ]
        for level in range(len(off))
    ]


def _shortest(steps: Sequence[Sequence[float]], stop: Sequence[float]) -> list[int]:
    """The levels that cost least, from the root to where it is best to stop."""
    least, before = [0.0], [0]
    for level in range(1, len(steps)):
        costs = [least[above] + steps[level][above] for above in range(level)]
        before.append(int(np.argmin(costs)))
        least.append(min(costs))
    chain = [int(np.argmin([cost + end for cost, end in zip(least, stop, strict=True)]))]
    while chain[0]:
        chain.insert(0, before[chain[0]])
    return chain
