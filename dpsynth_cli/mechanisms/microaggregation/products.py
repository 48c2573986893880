"""A mixture of product distributions: its parts from noisy sums.

A row is the vector of its attributes' one-hot cells, p cells in all. Its covariance between attributes is
asked for (`covariance.py`), and inside each it is what its marginal says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.histogram import on_simplex

Floats: TypeAlias = NDArray[np.float64]

ROUNDS = 20


def within(means: Sequence[Floats]) -> Floats:
    """The covariance inside each attribute, which its means tell."""
    first = np.cumsum([0, *map(len, means)])
    whole = np.zeros((first[-1], first[-1]))
    for i, mean in enumerate(means):
        at = slice(first[i], first[i + 1])
        whole[at, at] = np.diag(mean) - np.outer(mean, mean)
    return whole


def weights(tables: Sequence[Floats], total: float) -> Floats:
    """How many rows each part has: every attribute's table of noisy sums (part x cell) has all of them, so
    the best estimate weighs each by the number of cells whose noise it adds up."""
    parts = [table.sum(axis=1) / table.shape[1] for table in tables]
    return on_simplex(np.sum(parts, axis=0) / sum(1 / table.shape[1] for table in tables), total)


def fitted(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Non-negative masses near a noisy table, with these row sums and column sums.

    Each row goes to its simplex; then rows and columns are scaled in turn.
    """
    mass = np.array([on_simplex(row, total) for row, total in zip(table, rows, strict=True)])
    # Where there are rows, no cell of the marginal stays empty for ever.
    mass += 1e-9 * np.outer(rows, columns) / max(float(columns.sum()), 1e-9)
    for _ in range(ROUNDS):
        mass *= columns / np.maximum(mass.sum(axis=0), 1e-300)
        mass *= (rows / np.maximum(mass.sum(axis=1), 1e-300))[:, None]
    return mass


def attenuated(tables: Sequence[Floats], known: Floats) -> list[Floats]:
    """The tables (part x cell) nearer to independence, by the one factor that fits what is known best.

    Parts that are cut by a sum of attributes differ in all of these, even where attributes are independent:
    what is lost inside a part would make up for it. So differences between parts are scaled by c, and c^2 is
    the least-squares coefficient of the parts' own covariance in the known one; never more than 1.
    """
    rows = tables[0].sum(axis=1)
    n = max(float(rows.sum()), 1e-300)
    even = [np.outer(rows, table.sum(axis=0) / n) for table in tables]
    apart = np.hstack([table - alike for table, alike in zip(tables, even, strict=True)])
    own = apart.T @ (apart / np.maximum(rows, 1e-300)[:, None]) / n
    attribute = np.repeat(np.arange(len(tables)), [table.shape[1] for table in tables])
    own[attribute[:, None] == attribute[None, :]] = 0.0
    fit = float((own * known).sum()) / max(float((own**2).sum()), 1e-300)
    c = np.rint(np.sqrt(min(max(fit, 0.0), 1.0)) * 2.0**20) * 2.0**-20  # the same on every machine
    return [alike + c * (table - alike) for table, alike in zip(tables, even, strict=True)]
