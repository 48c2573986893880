"""What is asked about tables of several columns: how far they are from a prediction, and their counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.joint.characters import binary, character
from dpsynth_cli.mechanisms.joint.estimates import Counted
from dpsynth_cli.mechanisms.joint.frame import Frame, Scope
from dpsynth_cli.numeric.selection import sampling_part, weight_power
from dpsynth_cli.questions import Ask, Bins, CellCounts, Cells, Floats, Misfit, Question
from dpsynth_cli.shares import divide

OF_CHILDREN = 0.5  # of what sampling does to a table, counting it tells this part where noise is for families
HOPELESS = 0.15  # noise of a pair's gap, as a part of the rows, above which pairs are not asked for


@dataclass(frozen=True)
class Gap:
    """How far a table is from a prediction, as parts of all rows: beyond what sampling does, and by that."""

    beyond: float
    by_chance: float


class Survey:
    """Questions about tables of a frame. A table by class has the class as its first axis.

    `pooled`: all classes together. Noise is then by a root of the classes less, and what links differ by
    between classes is not seen.
    """

    def __init__(self, ask: Ask, omega: Domain, frame: Frame, pooled: bool = False) -> None:
        self.ask, self.omega, self.frame = ask, omega, frame
        self.rows = max(1.0, float(frame.totals.sum()))
        self.by = None if pooled else omega.strata
        self.classes = omega[self.by].codes if self.by else 1  # that are counted by themselves
        child = any(column.origin and column.origin[0] in ("parent", "place", "previous") for column in omega)
        self.told_of_chance = OF_CHILDREN if child else 1.0
        self._label = (Bins(self.by, tuple(range(self.classes + 1))),) if self.by else ()
        self.gaussian = is_gaussian(ask)

    def sd(self, share: float) -> float:
        """The noise of a count that gets such a share."""
        return self.ask.sd(Question("links", CellCounts(Cells(self._label)), Fraction(share)))

    def cells(self, scope: Scope) -> Cells:
        axes = [self.frame.ladders[j].axis(level) for j, level in zip(*scope, strict=True)]
        return Cells((*self._label, *axes))

    def binary(self, columns: Sequence[int]) -> bool:
        """Whether one number a class, a character, is asked of a table of these columns."""
        return all(binary(self.frame.ladders[j].column) for j in columns)

    def weight(self, scope: Scope) -> float:
        """How many numbers are asked of a table."""
        cells = math.prod(self.frame.shape(scope)[1:])
        return float(self.classes * (1 if self.binary(scope[0]) else cells))

    def gaps(self, expected: Mapping[Scope, Floats], share: Fraction) -> tuple[dict[Scope, Gap], float]:
        """For each table how far it is from what is expected, and the noise of that (parts of all rows)."""
        tables = [self.cells(scope) for scope in expected]
        predicted = [table if self.by else table.sum(axis=0) for table in expected.values()]
        gaps, noise = gaps_of(self.ask, tables, predicted, share, self.rows)
        return dict(zip(expected, gaps, strict=True)), noise

    def count(self, step: str, scopes: Sequence[Scope], share: Fraction, even: bool = False) -> list[Counted]:
        """The tables of these scopes; shares make the sum of all noise least, or are `even`."""
        power = 0.0 if even else weight_power(self.gaussian)
        shares = divide(share, [self.weight(scope) ** power for scope in scopes])
        questions = [self._question(step, scope, own) for scope, own in zip(scopes, shares, strict=True)]
        counted = []
        for scope, answer in zip(scopes, self.ask(questions), strict=True):
            values = answer.values.astype(np.float64)
            shaped = (
                values
                if self.binary(scope[0])
                else values.reshape(self.classes, *self.frame.shape(scope)[1:])
            )
            counted.append(Counted(scope, shaped, answer.sd**2))
        return counted

    def _question(self, step: str, scope: Scope, share: Fraction) -> Question:
        if self.binary(scope[0]):
            columns = [self.frame.ladders[j].column for j in scope[0]]
            return character(step, columns, share, self.by)
        return Question(step, CellCounts(self.cells(scope)), share)


def gaps_of(
    ask: Ask, tables: Sequence[Cells], predicted: Sequence[Floats], share: Fraction, rows: float
) -> tuple[list[Gap], float]:
    """How far each table is from what is predicted, beyond chance, and the noise of that. Drawn to the mean
    of all as far as noise could be what they differ by."""
    whole = tuple(tuple(np.rint(table).astype(np.int64).ravel().tolist()) for table in predicted)
    answer = ask([Question("misfit", Misfit(tuple(tables), (whole,)), share)])[0]
    noise = answer.sd / 2 / rows
    chance = np.array([sampling_part(table).sum() / 2 / rows for table in predicted])
    beyond = answer.values / 2 / rows - chance
    spread = max(float(beyond.var()), 1e-300)
    keep = max(0.0, 1 - noise**2 / spread) if len(beyond) > 1 else 1.0
    beyond = np.round(np.maximum(beyond.mean() + keep * (beyond - beyond.mean()), 0.0), 9)
    return [Gap(float(a), float(b)) for a, b in zip(beyond, chance, strict=True)], noise


def is_gaussian(ask: Ask) -> bool:
    """Gaussian noise grows by a root when the share halves; Laplace noise doubles."""
    one, half = (ask.sd(Question("links", CellCounts(Cells(())), Fraction(1, k))) for k in (10**6, 2 * 10**6))
    return half < 1.7 * one


def gap_noise(ask: Ask, tables: int, share: Fraction, rows: float) -> float:
    """The noise of gaps of so many tables, as a part of so many rows."""
    none = Misfit((Cells(()),) * tables, (((0,),) * tables,))
    return ask.sd(Question("misfit", none, share)) / 2 / rows
