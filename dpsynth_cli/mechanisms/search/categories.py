"""Which labels there are: of candidates, those that stand above the noise of a histogram over all of them; of
labels that nobody has listed, those that were found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.labels import in_order, unpacked
from dpsynth_cli.questions import Floats, Ints


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


def labels_found(column: Column, values: Ints) -> tuple[Column, bool]:
    """The column with the labels of an answer, in order, and the other category behind them; whether there is
    any."""
    assert column.other is not None
    labels = unpacked(values)[0]
    kept = in_order([label for label in labels if label != column.other])
    return replace(column, categories=(*kept, column.other), private=False, open=False), bool(labels)
