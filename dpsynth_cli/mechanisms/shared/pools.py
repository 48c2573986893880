"""Rows of cells made once for each class, and any number of rows drawn from them.

What is too slow to be done for every row of a large release, exchanges above all, is done for a pool; its
rows are taken in turn, and each gets its codes inside its cells anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.shared.attributes import Attribute
from dpsynth_cli.mechanisms.shared.drawing import Deal, by_class, pooled
from dpsynth_cli.numeric.exchange import Pair, exchanged
from dpsynth_cli.numeric.sampling import whole
from dpsynth_cli.questions import Block, Floats, Ints

POOL = 2**16  # different rows of cells; more rows are drawn from these
SWEEPS, WORK = 8, 5e7  # of exchanges, at most; and rows times pairs that they may touch in all


def from_pools(
    omega: Domain,
    attributes: Sequence[Attribute],
    totals: Floats,
    pools: Callable[[Ints, np.random.Generator], list[Ints]],
) -> Callable[[int, np.random.Generator], Iterator[Block]]:
    """The `draw` of a model. `pools` makes the rows of each class, so many, a cell of each attribute."""

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        if not rows:
            return
        made = pools(np.maximum(whole(totals, min(rows, POOL), rng), 1), rng)

        def begin(k: int, count: int, rng: np.random.Generator) -> Deal:
            return pooled(k, attributes, list(made[k].T), count, rng)

        yield from by_class(omega, totals, begin)(rows, rng)

    return draw


def towards(
    cells: Ints,
    sizes: Sequence[int],
    targets: Mapping[Pair, Floats],
    impossible: Mapping[Pair, NDArray[np.bool_]],
    rng: np.random.Generator,
) -> Ints:
    """The rows after exchanges towards these pair tables, as many as `WORK` allows."""
    rows, d = cells.shape
    sweeps = math.ceil(min(SWEEPS, WORK / (rows * d**2)))
    return exchanged(cells, sizes, targets, impossible, sweeps, rng)
