"""A mixture of product distributions: its axes from noisy pair tables, its parts from noisy sums.

A row is the vector of its attributes' one-hot cells, p cells in all. Its covariance has the attributes' own
marginals on the diagonal blocks, and what pair tables say elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.histogram import on_simplex

Floats: TypeAlias = NDArray[np.float64]

CORRELATION = 0.15  # what two one-hot cells of different attributes may be expected to have
ROUNDS = 20


def covariance(
    tables: Mapping[tuple[int, int], Floats], means: Sequence[Floats], n: float, sd: float
) -> Floats:
    """The covariance of one-hot rows: n rows in noisy pair tables of noise `sd`, and their private means.

    Row and column sums of a pair's covariance are 0, so they are taken out. Each entry is kept in the part
    that its likely size has of itself and the noise: rare cells, whose entries are small and many, would
    turn the axes otherwise.
    """
    first = np.cumsum([0, *map(len, means)])
    whole = np.zeros((first[-1], first[-1]))
    for i, mean in enumerate(means):
        at = slice(first[i], first[i + 1])
        whole[at, at] = np.diag(mean) - np.outer(mean, mean)
    for (i, j), table in tables.items():
        block = table / n - np.outer(means[i], means[j])
        block += block.mean() - block.mean(axis=1, keepdims=True) - block.mean(axis=0, keepdims=True)
        likely = CORRELATION**2 * np.outer(means[i] * (1 - means[i]), means[j] * (1 - means[j]))
        block *= likely / (likely + max((sd / n) ** 2, 1e-300))
        one, other = slice(first[i], first[i + 1]), slice(first[j], first[j + 1])
        whole[one, other], whole[other, one] = block, block.T
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
