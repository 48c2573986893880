"""A grid on private axes of one-hot rows, as a question names it: integers, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsynth_cli.mechanisms.shared.attributes import Attribute
from dpsynth_cli.numeric.projection import BITS
from dpsynth_cli.questions import Cells, Floats, Scored


def grid(attributes: Sequence[Attribute], vectors: Floats, cuts: Sequence[Floats]) -> Cells:
    """Cells between the cuts of each axis. A row's place on an axis is the sum of its cells' entries.

    Entries and cuts are rounded to 2^-18; a row on a cut belongs to the cell above it, whoever it is.
    """
    ends = np.cumsum([attribute.cells for attribute in attributes])[:-1]
    bins = tuple(attribute.axis for attribute in attributes)
    axes = []
    for vector, own in zip(vectors.T, cuts, strict=True):
        scores = tuple(tuple(part.tolist()) for part in np.split(_whole(vector), ends))
        inner = _whole(np.asarray(own))
        axes.append(Scored(bins, scores, (int(inner[0]) - 1, *inner.tolist(), int(inner[-1]) + 1)))
    return Cells(tuple(axes))


def _whole(values: Floats) -> np.ndarray:
    return np.asarray(np.rint(values * 2.0**BITS).astype(np.int64))
