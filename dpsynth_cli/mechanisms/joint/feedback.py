"""How a column is drawn, block by block: what rows so far have too many of is drawn less often from then on.

After each block its counts are compared with what every table of the column says of rows like these, and the
factors of the next block lean against the difference, so that it does not grow with the rows as chance would
have it. Tables overlap: a value that is too frequent shows in all of them. So the column itself is corrected
once, and each table only by what its own columns do together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.mechanisms.joint.frame import Frame
from dpsynth_cli.mechanisms.joint.fused import fused
from dpsynth_cli.mechanisms.joint.steps import Step
from dpsynth_cli.questions import Floats, Ints

PULL = 0.4  # of a difference, what the next block makes up for
CALM = 1.0  # rows; a cell that is due fewer in a block is corrected less
OWED = 3.0  # standard deviations of a cell's count in a block, at most, that are remembered
NOTHING = 1e-200  # of a product of factors
STRONGEST = 2.0  # a factor is changed by so many times at most


class Owed:
    """Cells of one table or more: the share that each is due of the rows of its row of cells, and what rows
    so far have above that. `margins` are coarser tables, whose excess is corrected elsewhere: which cells
    they have, and the number of the coarser cell of each."""

    def __init__(self, due: Floats, row: Ints, margins: Sequence[tuple[Ints, Ints]] = ()) -> None:
        self._row, self._margins = row, margins
        sums = np.bincount(row, due)[row]
        self._given = np.divide(due, sums, out=np.zeros_like(due), where=sums > 0)
        self._known = sums > 0
        self._due: Floats = np.zeros(len(due))
        self._excess: Floats = np.zeros(len(due))

    def add(self, counts: Floats) -> None:
        """A block had these counts. What is remembered is no more than chance could have made: what tables
        that contradict each other leave would only grow."""
        self._due = np.asarray(np.bincount(self._row, counts)[self._row] * self._given, np.float64)
        most = OWED * np.sqrt(self._due)
        away = np.where(self._known, counts - self._due, 0.0)
        self._excess = np.clip(self._excess + away, -most, most)

    def correction(self) -> Floats:
        """What the factor of each cell is multiplied by."""
        ratio, weight = self._excess / (self._due + CALM), self._due + 1e-9
        for cells, margin in self._margins:
            own, each = ratio[cells], weight[cells]
            ratio[cells] = own - (np.bincount(margin, own * each) / np.bincount(margin, each))[margin]
        return np.clip(1 - PULL * ratio, 1 / STRONGEST, STRONGEST)


class Feedback:
    """Of one step: its factors in few tables of at most so many numbers, and what is owed."""

    def __init__(self, frame: Frame, step: Step, most: int) -> None:
        self.step, self.tables = step, fused(frame, step, most)
        classes, cells = step.start.shape
        self._given = step.given()
        self._own = Owed(step.start.ravel(), np.repeat(np.arange(classes), cells))
        self._fit = np.concatenate([np.zeros(0), *[own.fit.ravel() for own in step.factors]])
        self._owed = Owed(
            np.concatenate([np.zeros(0), *[own.counts.ravel() for own in step.factors]]),
            _numbered([np.repeat(np.arange(len(own.counts)), own.counts.shape[1]) for own in step.factors]),
            _margins(frame, step),
        )

    def products(self) -> list[NDArray[np.float32]]:
        """Of each table (or of the classes, if there is none) what rows of its cells are multiplied by; the
        first has the column itself, or its link. The largest number of a row is 1."""
        own = self._own.correction().reshape(self.step.start.shape)
        if not self.tables:
            return [_scaled(self.step.start * own)]
        factors = self._fit * self._owed.correction()
        found = [table.product(factors) for table in self.tables]
        classes = np.arange(len(found[0])) // (len(found[0]) // len(own))
        linked = self.tables[0].linked
        begin = own[classes] * self._given[classes if linked is None else linked]
        found[0] *= begin
        nothing = found[0].max(axis=1) <= NOTHING  # factors that contradict each other: the link alone
        found[0][nothing] = begin[nothing]
        return [_scaled(each) for each in found]

    def seen(self, classes: Ints, indices: Sequence[Ints], v: Ints) -> None:
        """A block was drawn: the class of each row, its cell in each table, and its own cell."""
        cells = self.step.start.shape[1]
        self._own.add(np.bincount(classes * cells + v, minlength=self.step.start.size).astype(np.float64))
        if not self.tables:
            return
        there = np.zeros(len(self._fit))
        for table, index in zip(self.tables, indices, strict=True):
            counts = np.bincount(index * cells + v, minlength=table.shape[0] * cells)
            table.sums(counts.astype(np.float64), there)
        self._owed.add(there)


def _scaled(table: Floats) -> NDArray[np.float32]:
    largest = np.maximum(table.max(axis=1, keepdims=True), 1e-300)
    return np.asarray(table / largest, np.float32)


def _numbered(parts: Sequence[Ints]) -> Ints:
    """Numbers of several parts, one after the other, those of different parts apart."""
    found, most = [np.zeros(0, np.int64)], 0
    for part in parts:
        found.append(part + most)
        most += int(part.max()) + 1
    return np.concatenate(found)


def _margins(frame: Frame, step: Step) -> list[tuple[Ints, Ints]]:
    """Of the cells of all factors: the column alone; and, of tables of three columns and more, with one
    other, for the first, the second and so on; each by class."""
    starts = np.cumsum([0, *[own.counts.size for own in step.factors]])
    alone: list[Ints] = []
    pairs: dict[int, list[tuple[Ints, Ints]]] = {}
    for at, factor in enumerate(step.factors):
        own = factor.counts.shape[1]
        sizes = [frame.ladders[i].size(level) for i, level in zip(factor.others, factor.levels, strict=True)]
        k, *others, v = np.indices((len(step.start), *sizes, own)).reshape(len(sizes) + 2, -1)
        alone.append(k * own + v)
        for number, (other, size) in enumerate(zip(others, sizes, strict=True) if len(others) > 1 else ()):
            margin = (k * size + other) * own + v
            pairs.setdefault(number, []).append((np.arange(starts[at], starts[at + 1]), margin))
    found = [(np.arange(starts[-1]), _numbered(alone))]
    for each in pairs.values():
        found.append((np.concatenate([cells for cells, _ in each]), _numbered([m for _, m in each])))
    return found
