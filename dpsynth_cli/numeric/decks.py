"""Decks of cards: indices in proportion to a measure, shuffled once and dealt in order.

A deck with a card for each row deals every index as often as is due. For more than `MOST_CARDS` rows it has
fewer cards and begins again when they are dealt; its length is random then, so that columns that are dealt
side by side do not meet again in the same order. To deal is to copy; to shuffle costs ten times as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.sampling import Floats, Ints, shuffled, whole

MOST_CARDS = 2**18  # cards


class Deck:
    """Cards in their order, and how far they were dealt."""

    def __init__(self, cards: Ints) -> None:
        self._cards: NDArray[Any] = cards.astype(np.min_scalar_type(int(cards.max())))
        self._next = 0

    def deal(self, count: int) -> NDArray[Any]:
        """The next so many cards; not to be written on.

        >>> deck = Deck(np.array([3, 1, 2]))
        >>> [deck.deal(count).tolist() for count in (2, 3, 4)]
        [[3, 1], [2, 3, 1], [2, 3, 1, 2]]
        """
        start, size = self._next, len(self._cards)
        self._next = (start + count) % size
        if start + count <= size:
            return self._cards[start : start + count]
        whole, left = divmod(start + count - size, size)
        return np.concatenate([self._cards[start:], *[self._cards] * whole, self._cards[:left]])


def deck(
    measure: Floats, rows: int, rng: np.random.Generator, most: int = MOST_CARDS, first: int = 0
) -> Deck:
    """A deck of first, first + 1, ... in proportion to a measure, to deal about so many rows of."""
    return Deck(first + shuffled(whole(measure, cards_for(rows, rng, most), rng), rng))


def dealt(decks: Sequence[Deck], counts: Ints) -> NDArray[Any]:
    """So many cards of each deck, one deck after the other."""
    return np.concatenate([own.deal(count) for own, count in zip(decks, counts.tolist(), strict=True)])


def cards_for(rows: int, rng: np.random.Generator, most: int = MOST_CARDS) -> int:
    """How many cards to deal so many rows of: one each, else at most `most` and at least 7/8 of that."""
    return max(1, rows) if rows <= most else most - int(rng.integers(most // 8))
