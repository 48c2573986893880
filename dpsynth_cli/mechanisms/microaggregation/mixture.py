"""Rows of a mixture of product distributions: first the part, then one cell for each attribute.

One categorical draw for each attribute: rounding every bit of a one-hot vector by itself, as 001 prints it,
gives rows with no category or with two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.mechanisms.shared.attributes import Attribute
from dpsynth_cli.mechanisms.shared.drawing import Deal
from dpsynth_cli.numeric.decks import Deck, cards_for, dealt
from dpsynth_cli.numeric.sampling import shuffled, whole
from dpsynth_cli.questions import Block, Floats, Ints


@dataclass(frozen=True, eq=False)
class Mixture:
    """The parts of one class: their masses, and for each attribute a table of masses, part x cell."""

    weights: Floats
    tables: tuple[Floats, ...]

    def deal(self, k: int, attributes: Sequence[Attribute], rows: int, rng: np.random.Generator) -> Deal:
        """Rows of class k, about so many in all."""
        counts = whole(self.weights, cards_for(rows, rng), rng)
        parts = Deck(shuffled(counts, rng))
        decks = []
        for own, table in zip(attributes, self.tables, strict=True):
            if counts.sum() < rows:  # of another length for each attribute
                counts = whole(self.weights, cards_for(rows, rng), rng)
            decks.append(_decks(own, k, table, np.maximum(counts, 1), rng))

        def deal(count: int) -> Block:
            part = parts.deal(count)
            order = np.argsort(part, kind="stable")
            each = np.bincount(part, minlength=len(self.weights))
            block: Block = {}
            for own, mine in zip(attributes, decks, strict=True):
                runs = np.empty(count, np.int32)
                runs[order] = dealt(mine, each)
                block[own.column.name] = own.marginal.codes(runs, rng)
            return block

        return deal


def _decks(own: Attribute, k: int, table: Floats, counts: Ints, rng: np.random.Generator) -> list[Deck]:
    """For each part a deck of the attribute's runs: its cells as the table says, runs of a cell as those of
    the class."""
    each = zip(table, counts.tolist(), strict=True)
    cells = np.array([whole(masses, count, rng) for masses, count in each])
    runs = own.decks(k, cells.sum(axis=0), rng)
    decks = []
    for due in cells:
        cards = dealt(runs, due).astype(np.int64)
        rng.shuffle(cards)
        decks.append(Deck(cards))
    return decks
