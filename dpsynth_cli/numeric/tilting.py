"""A denoised table of two columns that keeps the moments of its noisy counts.

Denoising draws every cell towards what is expected of it. What all cells say together, that a large x goes
with a large y, is drawn to it as well, though it is known far better than any of them. So the table is
tilted: cells are multiplied by exp(lambda s(x) t(y)), with the lambda at which the sum of n s(x) t(y) is what
the noisy counts say, as far as its noise allows (exponential tilting). Zeros stay, and the sums of rows and
columns too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import exp

Floats: TypeAlias = NDArray[np.float64]
Scores: TypeAlias = tuple[Floats | None, Floats | None]

ROUNDS = 6  # of a step of Newton's method and a fit of the sums
STEP = 0.5  # of lambda, in one round, at most
NEAR = 0.003  # of lambda: less is not worth a round
TYPICAL = 0.2  # of lambda, where scores are in standard deviations: about a correlation


def tilted(
    table: Floats, noisy: Floats, variance: float, scores: Scores, fit: Callable[[Floats], Floats]
) -> Floats:
    """Tables (classes x rows x columns) with the moments of their noisy counts, whose cells have noise of
    this variance. `scores` are of the cells of both columns; of a column that has None each cell is a moment
    of its own, by the scores of the other. `fit` gives a table its sums again.

    >>> flat = np.full((1, 2, 2), 50.0)
    >>> noisy = flat + np.array([[[30.0, -30.0], [-30.0, 30.0]]])
    >>> ends = np.array([-1.0, 1.0])
    >>> fit = lambda table: table * (200 / table.sum())
    >>> tilted(flat, noisy, 1.0, (ends, ends), fit).round().tolist()
    [[[80.0, 20.0], [20.0, 80.0]]]
    >>> tilted(flat, noisy, 1e6, (ends, ends), fit).round().tolist()
    [[[50.0, 50.0], [50.0, 50.0]]]
    """
    first, second = scores
    squares = (None if first is None else first**2, None if second is None else second**2)
    ones = (None if first is None else np.ones(len(first)), None if second is None else np.ones(len(second)))
    away = moments(noisy - table, scores)
    noise = moments(np.full(table.shape, variance), squares)
    rows = np.maximum(moments(table, ones), 1e-9)
    there = moments(table, scores)
    spread = np.maximum(moments(table, squares) - there**2 / rows, 1.0)
    wanted = there + _kept(away / spread, noise / spread**2) * away
    for _ in range(ROUNDS):
        each = np.clip((wanted - there) / spread, -STEP, STEP)
        if (np.abs(each) < NEAR).all():
            break
        table = fit(table * exp(_field(each, scores)))
        there = moments(table, scores)
        spread = np.maximum(moments(table, squares) - there**2 / rows, 1.0)
    return table


def _kept(found: Floats, variances: Floats) -> Floats:
    """The part of each lambda that is not noise (empirical Bayes): how large they are is learnt from all of
    them, and one is `TYPICAL` before."""
    clear = 1 / (1 + variances / TYPICAL**2) ** 2
    square = (TYPICAL**2 + float(((found**2 - variances) * clear).sum())) / (1 + float(clear.sum()))
    return np.asarray(max(0.0, square) / (max(0.0, square) + variances + 1e-12))


def moments(tables: Floats, scores: Scores) -> Floats:
    """The sums of cells times both scores: classes x 1 x 1, or a column without scores has all its cells."""
    for axis, own in enumerate(scores, start=1):
        if own is not None:
            along = own[:, None] if axis == 1 else own
            tables = (tables * along).sum(axis=axis, keepdims=True)
    return tables


def _field(each: Floats, scores: Scores) -> Floats:
    for axis, own in enumerate(scores, start=1):
        if own is not None:
            each = each * (own[:, None] if axis == 1 else own)
    return each
