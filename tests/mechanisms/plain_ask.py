"""A reference `ask` over a dictionary of code arrays: counts from the definitions, noise from numpy.

Written from the docstrings of `questions.py` alone, so that it can disagree with the trusted core. Its
noise is fit for tests and experiments only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import (
    Answer,
    Axis,
    Bins,
    CellCounts,
    Cells,
    Halves,
    Ints,
    Misfit,
    Question,
    Total,
    no_progress,
)


class PlainAsk:
    """Answers `Total`, `CellCounts` and `Misfit`; what was asked is in `asked`, what was spent in `spent`.

    `rho` makes the noise Gaussian, else it is pure `epsilon`. With `exact` no noise is drawn, although
    `sd` still tells what it would have been.
    """

    progress = staticmethod(no_progress)

    def __init__(
        self,
        omega: Domain,
        codes: Mapping[str, Ints],
        epsilon: float = 1.0,
        rho: float | None = None,
        seed: int = 0,
        exact: bool = False,
    ) -> None:
        self.omega, self.codes = omega, {name: np.asarray(code, np.int64) for name, code in codes.items()}
        self.epsilon, self.rho, self.exact = epsilon, rho, exact
        self.rng = np.random.default_rng(seed)
        self.asked: list[Question] = []
        self.answers: list[Answer] = []
        self.rounds = 0

    @property
    def rows(self) -> int:
        return len(next(iter(self.codes.values()), []))

    @property
    def spent(self) -> Fraction:
        return sum((question.share for question in self.asked), Fraction(0))

    def __call__(self, questions: Sequence[Question]) -> list[Answer]:
        self.rounds += 1
        answers = [self._answer(question) for question in questions]
        self.asked += questions
        self.answers += answers
        assert self.spent <= 1, f"overspent: {self.spent}"
        return answers

    def _free(self, question: Question) -> bool:
        whole = isinstance(question.statistic, Total) and question.by is None
        return whole and self.omega.neighbours == "replace_one"

    def sd(self, question: Question) -> float:
        if self._free(question):
            return 0.0
        assert 0 < question.share <= 1, "a question that is not free needs a share"
        l1, l2_squared = self._moved(question)
        if self.rho is not None:
            return math.sqrt(l2_squared / (2 * self.rho * float(question.share)) + 1 / 12)  # and of rounding
        step = self.epsilon * float(question.share) / l1
        return math.sqrt(2) * math.exp(-step / 2) / -math.expm1(-step)

    def _moved(self, question: Question) -> tuple[int, int]:
        """What one row can change: L1, and L2 squared."""
        rows = 1 if self.omega.neighbours == "add_remove" else 2
        if isinstance(question.statistic, Misfit):  # every distance by 1 for each row that comes or goes
            tables = len(question.statistic.tables)
            return tables * rows, tables * rows**2
        return rows, rows  # so many cells by 1

    def _answer(self, question: Question) -> Answer:
        blocks = self._count(question)
        values = np.concatenate(blocks)
        noise, sd = "none", 0.0
        if not self._free(question):
            sd = self.sd(question)
            noise = "discrete_laplace" if self.rho is None else "rounded_gaussian"
            if not self.exact:
                values = values + self._noise(question, sd, len(values))
        return Answer(values, tuple(len(block) for block in blocks), noise, sd)

    def _noise(self, question: Question, sd: float, size: int) -> Ints:
        if self.rho is not None:
            return np.rint(self.rng.normal(0, math.sqrt(max(sd**2 - 1 / 12, 0)), size)).astype(np.int64)
        l1, _ = self._moved(question)
        p = -math.expm1(-self.epsilon * float(question.share) / l1)
        return self.rng.geometric(p, size) - self.rng.geometric(p, size)

    def _count(self, question: Question) -> list[Ints]:
        everyone = np.ones(self.rows, bool)
        members = [everyone]
        if question.by is not None:
            label = self.codes[question.by]
            members = [label == c for c in range(self.omega[question.by].codes)]
        if isinstance(question.statistic, Total):
            return [np.array([member.sum()]) for member in members]
        if isinstance(question.statistic, Misfit):
            assert len(question.statistic.expected) == len(members)
            return [
                self._distances(question.statistic.tables, own, member)
                for own, member in zip(question.statistic.expected, members, strict=True)
            ]
        assert isinstance(question.statistic, CellCounts), "plain_ask only counts"
        cells = question.statistic.cells
        each = cells if isinstance(cells, tuple) else (cells,) * len(members)
        assert len(each) == len(members)
        return [self._cell_counts(part, member) for part, member in zip(each, members, strict=True)]

    def _distances(
        self, tables: Sequence[Cells], expected: Sequence[Sequence[int]], member: np.ndarray
    ) -> Ints:
        far = []
        for table, own in zip(tables, expected, strict=True):
            assert table.order is None
            assert all(type(e) is int for e in own)
            counts = self._cell_counts(table, member).tolist()
            far.append(sum(abs(count - e) for count, e in zip(counts, own, strict=True)))
        return np.array(far, np.int64)

    def _cell_counts(self, cells: Cells, member: np.ndarray) -> Ints:
        where = [self._place(axis)[member] for axis in cells.axes]
        lengths = [self._cells_of(axis) for axis in cells.axes]
        cell = np.zeros(int(member.sum()), np.int64)
        if cells.order is None:
            for place, length in zip(where, lengths, strict=True):
                cell = cell * length + place
        else:
            left = [cells.order.count(i) for i in range(len(lengths))]
            assert lengths == [2**bits for bits in left]
            for axis in cells.order:  # the first split is the highest bit
                left[axis] -= 1
                cell = 2 * cell + (where[axis] >> left[axis] & 1)
        return np.bincount(cell, minlength=math.prod(lengths)).astype(np.int64)

    def _cells_of(self, axis: Axis) -> int:
        return 2**axis.bits if isinstance(axis, Halves) else len(axis.edges) - 1

    def _place(self, axis: Axis) -> Ints:
        """The cell of every row on one axis."""
        assert isinstance(axis, (Halves, Bins))
        column, u = self.omega[axis.column], self.codes[axis.column]
        if isinstance(axis, Bins):
            edges = np.asarray(axis.edges)
            assert edges[0] == 0
            assert edges[-1] == column.codes
            assert (np.diff(edges) >= 0).all()
            return np.searchsorted(edges, u, side="right") - 1
        if column.nullable and axis.bits:
            values = u * 2 ** (axis.bits - 1) // column.size
            return np.where(u == column.size, 2 ** (axis.bits - 1), values)
        return u * 2**axis.bits // column.codes
