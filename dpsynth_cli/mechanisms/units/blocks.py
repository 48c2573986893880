"""Blocks of a model's rows, put together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Block, Ints, Model

TOGETHER = 2**17  # rows that are put together as units at once


def first_rows(model: Model, omega: Domain, rows: int) -> dict[str, Ints]:
    """Some rows of the model, always the same."""
    blocks = list(model.draw(rows, np.random.default_rng(0))) if rows else []
    none = np.zeros(0, np.int64)
    return {c.name: np.concatenate([np.asarray(block[c.name]) for block in blocks] or [none]) for c in omega}


def gathered(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same rows in blocks of TOGETHER, or a few more."""
    held: list[Block] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += len(next(iter(block.values())))
        if size >= TOGETHER:
            yield joined(held)
            held, size = [], 0
    if size:
        yield joined(held)


def joined(blocks: list[Block]) -> Block:
    return {name: np.concatenate([np.asarray(block[name]) for block in blocks]) for name in blocks[0]}
