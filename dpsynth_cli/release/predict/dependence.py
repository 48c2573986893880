"""Scores between 0 and 1 for every cell of a table, even in each column, that depend on each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from dpsynth_cli.questions import Floats

Generator = np.random.Generator
Scores: TypeAlias = Callable[[int, int, Generator], Floats]  # rows, columns, and where chance comes from

CLUSTERS = 6
LINKED = 3  # columns in a group of which the first determines the others
BLOCKS = 12


def none(rows: int, columns: int, rng: Generator) -> Floats:
    return rng.random((rows, columns))


def correlated(rows: int, columns: int, rng: Generator) -> Floats:
    """One hidden quantity that all columns follow, closely or loosely, up or down."""
    return _one_factor(rows, columns, rng, 0.5, 0.98)


def strong(rows: int, columns: int, rng: Generator) -> Floats:
    """The same, all of them closely."""
    return _one_factor(rows, columns, rng, 0.85, 0.99)


def weak(rows: int, columns: int, rng: Generator) -> Floats:
    """The same, from not at all to loosely."""
    return _one_factor(rows, columns, rng, 0.0, 0.6)


def clustered(rows: int, columns: int, rng: Generator) -> Floats:
    """Few kinds of rows, each with a place of its own in every column; some columns do not know of kinds."""
    sizes = 1 / np.arange(1, CLUSTERS + 1)
    kind = rng.choice(CLUSTERS, rows, p=sizes / sizes.sum())
    centres = rng.random((CLUSTERS, columns))
    width = rng.choice([0.05, 0.2, 1.0], columns)
    return _even(centres[kind] + width * rng.standard_normal((rows, columns)))


def linked(rows: int, columns: int, rng: Generator) -> Floats:
    """Groups of columns of which the first determines much of the others; groups depend weakly."""
    first = _one_factor(rows, columns, rng, 0.2, 0.7)
    scores: Floats = first.copy()
    for j in range(columns):
        root = j - j % LINKED
        if j != root:
            order = rng.permutation(BLOCKS)
            block = np.minimum((first[:, root] * BLOCKS).astype(np.int64), BLOCKS - 1)
            inside = rng.random(rows) if rng.random() < 0.5 else first[:, root] * BLOCKS - block
            scores[:, j] = (order[block] + inside) / BLOCKS
    return np.asarray(scores)


def _one_factor(rows: int, columns: int, rng: Generator, low: float, high: float) -> Floats:
    loading = rng.uniform(low, high, columns) * rng.choice([-1, 1], columns)
    hidden = rng.standard_normal((rows, 1))
    return _even(loading * hidden + np.sqrt(1 - loading**2) * rng.standard_normal((rows, columns)))


def _even(values: Floats) -> Floats:
    """Each column by its ranks: the same order, evenly between 0 and 1."""
    ranks = np.argsort(np.argsort(values, axis=0), axis=0)
    return np.asarray((ranks + 0.5) / len(values))
