"""How a column is counted for its marginal: which levels of its cells, with which shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.shared.focus import axis_of
from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.numeric.spikes import threshold
from dpsynth_cli.questions import Ask, Axis, Bins, CellCounts, Cells, Halves, Question
from dpsynth_cli.shares import divide

COARSE = 4  # halvings of a numeric column that are always counted: 16 cells
FEW = 7  # a column of at most 2^7 codes is counted code by code as well
DEEPEST = 16
COARSE_SHARE, SPIKE_SHARE = 0.65, 0.12  # of a column's share: its coarse level of two, its spikes


def weight(column: Column, scale: Scale | None = None) -> float:
    """Noise moves a histogram of m cells by m in all, so sqrt(m) each makes the sum least.

    Measured: of many categories most are rare, and cells beyond 24 count for nothing (beyond 32 where numbers
    are counted one by one); a column of many codes, which a tree smooths, counts as nine.
    """
    if column.categorical:
        return math.sqrt(min(column.codes, 24))
    codes = column.codes if scale is None else scale.codes
    return math.sqrt(min(codes, 32) if codes <= 2**FEW else 9)


@dataclass(frozen=True)
class ColumnPlan:
    """How one column is asked: its counted levels (none: code by code), and the share for spikes.

    `signed`: only by how much its upper half holds more rows than its lower; together with other columns.
    """

    column: Column
    scale: Scale
    levels: tuple[int, ...]
    questions: list[Question]
    spikes: Fraction | None = None
    signed: bool = False

    @property
    def may_have_spikes(self) -> bool:
        """Whether codes are not counted one by one anyway."""
        return bool(self.levels) and not (self.scale.plain and self.levels[-1] >= self.scale.bits)


def plan_for(
    ask: Ask,
    omega: Domain,
    column: Column,
    scale: Scale,
    share: Fraction,
    n: float,
    depth: int | None,
    signed: bool,
) -> ColumnPlan:
    beside = column.nullable + (not scale.plain)  # halvings of a scale that only tell what is outside
    coarse = COARSE + beside
    if column.categorical or column.bits <= coarse:
        every = Bins(column.name, tuple(range(column.codes + 1)))
        return ColumnPlan(column, scale, (), [count(omega, every, share)])
    sd = ask.sd(count(omega, Halves(column.name, coarse), share))
    rich = math.floor(math.log2(max(2.0, n * math.sqrt(2) / max(sd, 1e-9)))) - 3 + beside
    fine = min(rich, DEEPEST) if rich >= coarse + 3 else coarse
    if scale.bits <= FEW + column.nullable:
        fine = scale.bits
    fine = min(scale.bits, depth or fine)
    if fine == 1 and signed and not column.nullable:
        return ColumnPlan(column, scale, (1,), [], signed=True)
    levels = (coarse, fine) if fine >= coarse + 2 else (fine,)
    spikes = None
    rest, look = divide(share, [1 - SPIKE_SHARE, SPIKE_SHARE])
    lowest = threshold(np.ones(1), ask.sd(count(omega, Halves(column.name, 1), look)))
    whole = scale.plain and fine >= scale.bits  # every code is counted by itself
    if not whole and n > lowest[0]:  # else not even all rows in one code would stand out
        share, spikes = rest, look
    weights = [COARSE_SHARE, 1 - COARSE_SHARE] if len(levels) == 2 else [1.0]
    questions = [
        count(omega, axis_of(column, scale, level), own)
        for level, own in zip(levels, divide(share, weights), strict=True)
    ]
    return ColumnPlan(column, scale, levels, questions, spikes)


def count(omega: Domain, axis: Axis, share: Fraction) -> Question:
    return Question("columns", CellCounts(Cells((axis,))), share, omega.strata)
