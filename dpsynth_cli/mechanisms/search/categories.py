"""Which candidates there are: those that stand above the noise of a histogram over all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.questions import Floats


def labels_kept(column: Column, counts: Floats, reached: float) -> tuple[Column, bool]:
    """The column with the candidates that have at least so many noisy rows, in their order, and the other
    category, if it has one; whether there is any. If there is none, the highest is kept.

    >>> city = Column("city", "nominal", categories=("A", "B", "C", "rest"), other="rest", private=True)
    >>> labels_kept(city, np.array([90.0, 3.0, 40.0, -5.0]), 20.0)[0].categories
    ('A', 'C', 'rest')
    """
    there = counts >= reached
    sure = bool(there.any())
    if not sure:
        there[int(np.argmax(counts))] = True
    kept = [i for i, label in enumerate(column.categories) if there[i] or label == column.other]
    labels = tuple(column.categories[i] for i in kept)
    meanings = tuple(column.labels[i] for i in kept) if column.labels else ()
    return replace(column, categories=labels, labels=meanings, private=False), sure
