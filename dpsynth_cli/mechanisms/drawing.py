"""Rows of a model that was made class by class: the class is drawn first, then its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.numeric.sampling import shuffled, whole
from dpsynth_cli.questions import Block, Floats

ROWS = 2**17  # of a block


def by_class(
    omega: Domain, totals: Floats, columns: Callable[[int, int, np.random.Generator], Block]
) -> Callable[[int, np.random.Generator], Iterator[Block]]:
    """The `draw` of a model: classes in proportion to `totals`, `columns(k, rows, rng)` for each of them."""

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        for start in range(0, rows, ROWS):
            count = min(ROWS, rows - start)
            label = shuffled(whole(totals, count, rng), rng)
            block = {column.name: np.empty(count, np.int64) for column in omega.modelled}
            for k in range(omega.classes):
                own = np.flatnonzero(label == k)
                if len(own):
                    for name, codes in columns(k, len(own), rng).items():
                        block[name][own] = codes
            if omega.strata:
                block[omega.strata] = label
            yield block

    return draw
