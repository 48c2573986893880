"""Counts of everything so far, release by release: rows of C x with noise, and what follows from them.

Claim. All answers of all releases together are private at the stream's budget, for one row of one push, also
where later rows depend on earlier answers. Each release measures the rows of C of its own number, once; in
each of them the levels of the partition have shares that add up to at most 1, and the noise of a level is
that of its share for a whole column of C (`factorisation.norm`). A row of the stream arrives for one
release i: it moves one cell of each level, in the rows of C that have an entry in column i, by that entry.
So for each row of C it pays the part of the budget that its entry is of the column's norm, and never more
than the whole. Under replace_one two columns move, or one twice: `sensitivity` doubles both norms. Noise is
drawn anew for every row and level, and what is not asked at a release cannot be asked later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Answer, Asking, CellCounts, Cells, Floats, Halves, Ints, Question, Total
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import TranscriptMismatch
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.core.sensitivity import is_free
from dpsynth_cli.trusted.noise.words import SystemSource
from dpsynth_cli.trusted.stream.blocks import Blocks, derived
from dpsynth_cli.trusted.stream.factorisation import Factorisation, rows_of
from dpsynth_cli.trusted.stream.leaves import Leaves
from dpsynth_cli.trusted.stream.release_prices import NOISE, release_bill, sd_of


@dataclass(frozen=True, eq=False)
class _Row:
    """Exact counts of the levels of a partition: one row of C, for all cells."""

    raw: Sequence[Leaves]
    entries: Sequence[int]
    partition: Cells

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        assert self.partition.order is not None
        depth, levels = (
            len(self.partition.order),
            [level_of(question, self.partition) for question in questions],
        )
        finest = max(levels, default=0)
        parts = [(leaves, entry) for leaves, entry in zip(self.raw, self.entries, strict=True) if entry]
        cells = np.concatenate([leaves.codes >> (depth - finest) for leaves, _ in parts])
        weights = np.concatenate([leaves.counts * entry for leaves, entry in parts])
        # Sums of integers below 2^53 are exact in float64: 2^34 rows and entries of 2^16.
        counts = np.bincount(cells, weights=weights, minlength=1 << finest).astype(np.int64)
        return [counts.reshape(1 << j, -1).sum(axis=1) for j in levels]


def prefix_counts(
    method: Factorisation,
    blocks: Blocks,
    partition: Cells,
    room: Callable[[int], Floats],
    omega: Domain,
    accountants: Sequence[Accountant],
    source: SystemSource,
    events: int | None,
) -> tuple[Asking, set[int]]:
    """An `ask` about everything so far, and the levels that were asked for. A question without a share,
    behind those that have one, is about a level that was known before: what is new lies there as the rest
    does.

    `accountants` are one whole budget for each row of C that is measured now. `events` is the public number
    of events; where it is None nothing is free: under replace_one, too, a row may be replaced by one of
    another time. Answers are not durable yet: nothing of them may leave the process before the state is.
    """
    currency = accountants[0].currency
    rows = rows_of(method, blocks.starts, blocks.release)
    bills = [release_bill(omega, each, blocks.release, most=method.most) for each in accountants]
    asks = [
        open_curator(_Row(blocks.raw, row, partition), bill, source, InMemory())
        for row, bill in zip(rows, bills, strict=True)
    ]
    asked: set[int] = set()

    def level_so_far(question: Question, noisy: Sequence[Answer]) -> Answer:
        level = level_of(question, partition)
        first = noisy[0]
        if level not in blocks.known:
            guide, doubt = first.values / method.unit, first.sd / method.unit
            blocks.known[level] = derived(blocks, level, guide, doubt, room(level))
        running = blocks.known[level]
        for row, answer in zip(rows, noisy, strict=True):
            running.take(row, answer.values, answer.sd**2)
        return Answer(running.total, first.lengths, NOISE[currency], running.variance**0.5)

    def unpaid(question: Question) -> Answer:
        """What follows from what is known: reads no row."""
        level = level_of(question, partition)
        asked.add(level)
        running = blocks.known[level]
        running.follow(blocks.known[max(j for j in asked if j < level)], room(level))
        return Answer(running.total, (1 << level,), NOISE[currency], running.variance**0.5)

    def answer(questions: Sequence[Question]) -> list[Answer]:
        if any(is_free(question, omega) for question in questions):
            if events is None or len(questions) > 1:
                raise ValueError("with private arrivals the number of rows is not free")
            return [Answer(np.array([events]), (1,), "none", 0.0)]
        paid = [question for question in questions if question.share]
        return measured(paid) + [unpaid(question) for question in questions[len(paid) :]]

    def measured(questions: Sequence[Question]) -> list[Answer]:
        levels = [level_of(question, partition) for question in questions]
        if asked & set(levels) or len(set(levels)) < len(levels):
            raise ValueError("a release measures each level once")
        asked.update(levels)
        rounds = [ask(questions) for ask in asks]
        return [
            level_so_far(question, [answers[i] for answers in rounds]) for i, question in enumerate(questions)
        ]

    return Asking(answer, partial(sd_of, bills[0])), asked


def level_of(question: Question, partition: Cells) -> int:
    """The level of the partition whose counts are asked for: the only thing that may be."""
    statistic = question.statistic
    if isinstance(statistic, Total) and question.by is None:
        return 0
    if isinstance(statistic, CellCounts) and question.by is None and isinstance(statistic.cells, Cells):
        assert partition.order is not None
        j = len(statistic.cells.order or ())
        if statistic.cells in (prefix(partition, j), Cells(())) and j <= len(partition.order):
            return j
    raise TranscriptMismatch("a stream counts rows in the levels of its own partition only")


def prefix(partition: Cells, j: int) -> Cells:
    """Level j of a partition by halves: the first j halvings."""
    assert partition.order is not None
    order = partition.order[:j]
    axes = tuple(
        Halves(axis.column, order.count(a))
        for a, axis in enumerate(partition.axes)
        if isinstance(axis, Halves)
    )
    return Cells(axes, order)
