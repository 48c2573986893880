"""Rows drawn from a chain, block by block: no two blocks have the same rows of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.joint.chain import Chain
from dpsynth_cli.mechanisms.joint.frame import Frame, without_impossible
from dpsynth_cli.mechanisms.joint.model import classes_of
from dpsynth_cli.mechanisms.shared.rules import Rules
from dpsynth_cli.numeric.sampling import portions, whole
from dpsynth_cli.questions import Block, Ints

BLOCK = 2**16  # rows, at most
TURNS = 16  # in which the columns of an output are drawn, if each has
LEAST = 2**6  # rows
FEW = 2**13  # rows of an output that are settled


def drawing(
    omega: Domain, frame: Frame, chain: Chain, rules: Rules
) -> Callable[[int, np.random.Generator], Iterator[Block]]:
    """The `draw` of a model."""

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        if not rows:
            return
        feedback = chain.feedback()
        turns = max(1, min(TURNS, rows // LEAST) * min(BLOCK, rows) // rows)
        for counts in portions(whole(frame.totals, rows, rng), rng, BLOCK):
            classes = classes_of(counts)
            cells = chain.draw(classes, feedback, rng, turns=turns, few=rows <= FEW)
            cells = without_impossible(frame, omega, rules, classes, cells, rng)
            yield _block(omega, frame, classes, cells, rng)

    return draw


def _block(omega: Domain, frame: Frame, classes: Ints, cells: Ints, rng: np.random.Generator) -> Block:
    """Codes inside the finest cells, in random order."""
    mixed = rng.permutation(len(classes))
    made: Block = {}
    for own, cell in zip(frame.ladders, cells, strict=True):
        made[own.column.name] = own.finest.codes(classes, cell, rng)[mixed]
    if omega.strata:
        made[omega.strata] = classes[mixed]
    return {column.name: made[column.name] for column in omega}
