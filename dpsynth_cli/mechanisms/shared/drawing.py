"""Rows of a model that was made class by class: the class is drawn first, then its columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.shared.attributes import Attribute, Spread
from dpsynth_cli.numeric.decks import Deck, cards_for
from dpsynth_cli.numeric.sampling import shuffled, whole
from dpsynth_cli.questions import Block, Floats, Ints

BLOCK_ROWS = 2**17  # of a block

Deal: TypeAlias = Callable[[int], Block]  # the next so many rows of a class


def by_class(
    omega: Domain, totals: Floats, begin: Callable[[int, int, np.random.Generator], Deal]
) -> Callable[[int, np.random.Generator], Iterator[Block]]:
    """The `draw` of a model: classes in proportion to `totals`, rows of each as `begin(k, rows, rng)` deals
    them, where rows is how many there will be (more or less, if the table is long)."""

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        if not rows:
            return
        counts = whole(totals, cards_for(rows, rng), rng)
        labels = Deck(shuffled(counts, rng))
        due = [math.ceil(int(count) * rows / int(counts.sum())) for count in counts]
        deals = [begin(k, count, rng) if count else None for k, count in enumerate(due)]
        for start in range(0, rows, BLOCK_ROWS):
            label = labels.deal(min(BLOCK_ROWS, rows - start))
            block = _block(label, deals)
            if omega.strata:
                block[omega.strata] = label.astype(np.int64)
            yield block

    return draw


def _block(label: np.ndarray, deals: Sequence[Deal | None]) -> Block:
    """Rows of the classes that the label says."""
    if len(deals) == 1 and deals[0]:
        return deals[0](len(label))
    block: Block = {}
    for k, deal in enumerate(deals):
        own = np.flatnonzero(label == k)
        if deal and len(own):
            for name, codes in deal(len(own)).items():
                block.setdefault(name, np.empty(len(label), np.int64))[own] = codes
    return block


def pooled(
    k: int, attributes: Sequence[Attribute], cells: Sequence[Ints], rows: int, rng: np.random.Generator
) -> Deal:
    """Rows of cells (one array a column) dealt again and again; each time with other codes in the cells, and
    from another row on."""
    size = len(cells[0])
    times = -(-rows // size)
    spreads = {
        own.column.name: Spread(own, k, cell, times, rng) for own, cell in zip(attributes, cells, strict=True)
    }
    codes: Block = {}
    left = at = 0

    def deal(count: int) -> Block:
        nonlocal codes, left, at
        parts: list[Block] = []
        while count:
            if not left:
                codes = {name: spread.codes(rng) for name, spread in spreads.items()}
                left, at = size, int(rng.integers(size))
            some = min(count, left, size - at)
            parts.append({name: own[at : at + some] for name, own in codes.items()})
            count, left, at = count - some, left - some, (at + some) % size
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([part[name] for part in parts]) for name in codes}

    return deal
