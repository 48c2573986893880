"""Rows of a mixture of product distributions: first the part, then one cell for each attribute.

One categorical draw for each attribute: rounding every bit of a one-hot vector by itself, as 001 prints it,
gives rows with no category or with two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.mechanisms.attributes import Attribute
from dpsynth_cli.numeric.sampling import shuffled, whole
from dpsynth_cli.questions import Block, Floats, Ints


@dataclass(frozen=True, eq=False)
class Mixture:
    """The parts of one class: their masses, and for each attribute a table of masses, part x cell."""

    weights: Floats
    tables: tuple[Floats, ...]

    def rows(self, k: int, attributes: Sequence[Attribute], rows: int, rng: np.random.Generator) -> Block:
        """Codes of so many rows of class k."""
        counts = whole(self.weights, rows, rng)
        place = rng.permutation(rows)  # rows are made part by part and put anywhere
        block: Block = {}
        for attribute, table in zip(attributes, self.tables, strict=True):
            cells: Ints = np.empty(rows, np.int64)
            at = 0
            for part, count in enumerate(counts.tolist()):
                cells[place[at : at + count]] = shuffled(whole(table[part], count, rng), rng)
                at += count
            block[attribute.column.name] = attribute.codes(k, cells, rng)
        return block
