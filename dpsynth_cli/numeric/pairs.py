"""All pair tables of several attributes: the blocks of a Gram matrix of one-hot rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


def pair_tables(values: NDArray[np.generic], cells: Sequence[int]) -> dict[tuple[int, int], Floats]:
    """The tables of all pairs i < j from their integers, pair after pair, each row by row.

    >>> tables = pair_tables(np.arange(11), [2, 1, 3])
    >>> tables[0, 2].tolist()
    [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]
    """
    tables, at = {}, 0
    for i, j in combinations(range(len(cells)), 2):
        size = cells[i] * cells[j]
        tables[i, j] = values[at : at + size].astype(np.float64).reshape(cells[i], cells[j])
        at += size
    return tables
