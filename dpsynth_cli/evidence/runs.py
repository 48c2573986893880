"""Many small releases of one table through the real border, and a few numbers about each.

Sums, prices, noise, mechanism and drawing are those of a release; only the table is in memory, and the
exact sums of a question, which never change, are computed once. Each run becomes statistics: numbers that
may tell two tables apart. Any function of what is published will do, so no choice here can make an
audit unsound; a good choice makes it sharp.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpsynth_cli.evidence.likelihood import Told, log_ratio
from dpsynth_cli.evidence.neighbours import Pair
from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.questions import Floats, Ints, Model, Question
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.core.shapes import tables_only
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.sums.tally import Tally

MOST_ROWS = 50  # drawn of each release
NUMBERS = ("likelihood", "order of the noise", "rows", "rows like that one")
LEARNT = ("questions and choices", "last digits")  # no numbers: scored by how often they came
STATISTICS = NUMBERS + LEARNT


# The answers, the questions, the model.
Released = tuple[list[Told], tuple[Any, ...], Model]


@dataclass(frozen=True, eq=False)
class Runs:
    """Statistics of many runs of one table: a number a run, or something that can only be recognised."""

    numbers: dict[str, Floats]
    marks: dict[str, list[int]]


@dataclass
class Bench:
    """One mechanism on one pair of tables: runs as often as it is told."""

    mechanism: Mechanism
    params: Any
    pair: Pair
    budget: Accountant
    split: dict[str, float]
    known: dict[Question, tuple[Ints, Ints]] = field(default_factory=dict)

    def runs(self, table: int, count: int, progress: Callable[[int], None] = lambda done: None) -> Runs:
        """`count` releases of table 0 (with the row) or 1 (without)."""
        rng = np.random.default_rng()  # draws points; the noise has its own source
        kept = []
        for _ in range(count):
            kept.append(self._once(table, rng))
            progress(1)
        numbers = np.array([each[0] for each in kept], np.float64).reshape(count, len(NUMBERS))
        marks = {name: [each[1][i] for each in kept] for i, name in enumerate(LEARNT)}
        return Runs(dict(zip(NUMBERS, numbers.T, strict=True)), marks)

    def _once(self, table: int, rng: np.random.Generator) -> tuple[tuple[float, ...], tuple[int, ...]]:
        seen, asked, model = self.release(table)
        likelihood = sum(log_ratio(each) for each in seen)
        order = sum(int((np.diff(each.answer.values - each.first) < 0).sum()) for each in seen)
        numbers = (likelihood, float(order), float(model.total), float(self._alike(model, rng)))
        return numbers, (hash((asked, _chosen(model.facts))), hash(_last_digits(seen)))

    def release(self, table: int) -> Released:
        """One release of a table."""
        journal = InMemory()
        bill = Bill(self.pair.omega, replace(self.budget))
        ask = open_curator(_OneTable(self, table), bill, system_source(), journal)
        model = self.mechanism.run(ask, self.pair.omega, self.params, self.split)
        seen = [
            Told(charge, answer, *self.exact(question))
            for charge, (question, answer) in zip(bill.charges, journal.answers, strict=True)
        ]
        # What was expected follows from the answers: with it no two runs would be alike.
        return seen, tuple(tables_only(question) for question, _ in journal.answers), model

    def transcript(self) -> list[Told]:
        """All that one run of the first table tells."""
        return self.release(0)[0]

    def rows(self, table: int) -> int:
        return len(next(iter(self.pair.tables[table].values())))

    def exact(self, question: Question) -> tuple[Ints, Ints]:
        """The question's sums in both tables."""
        if question not in self.known:
            self.known[question] = self._tally(question, 0), self._tally(question, 1)
        return self.known[question]

    def _tally(self, question: Question, table: int) -> Ints:
        tally = Tally([question], self.pair.omega)
        tally.add(self.pair.tables[table], self.rows(table))
        return tally.sums()[0]

    def _alike(self, model: Model, rng: np.random.Generator) -> int:
        """How many of the synthetic rows are the row in question."""
        rows = min(max(0, model.total), MOST_ROWS)
        alike = 0
        for block in model.draw(rows, rng) if rows else ():
            same = [block[c.name] == code for c, code in zip(self.pair.omega, self.pair.row, strict=True)]
            alike += int(np.logical_and.reduce(same).sum())
        return alike


@dataclass(frozen=True)
class _OneTable:
    """The rows of one of the two tables."""

    bench: Bench
    table: int

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        return [self.bench.exact(question)[self.table] for question in questions]


def scored(marks: Sequence[int], first: Sequence[int], second: Sequence[int]) -> Floats:
    """Marks as numbers: how much more often the first table's earlier runs had them."""
    one, other = Counter(first), Counter(second)
    return np.array([np.log((one[mark] + 1) / (other[mark] + 1)) for mark in marks], np.float64)


def _last_digits(seen: Sequence[Told]) -> tuple[int, ...]:
    """Of each answer, whether the first integer that the row moves is odd."""
    return tuple(int(each.answer.values[at] & 1) for each in seen for at in np.flatnonzero(each.moved)[:1])


def _chosen(facts: Any) -> Any:
    """What was chosen, without the numbers that are noise anyway."""
    if isinstance(facts, dict):
        return tuple((name, _chosen(value)) for name, value in sorted(facts.items()))
    if isinstance(facts, (list, tuple)):
        return tuple(_chosen(value) for value in facts)
    return None if isinstance(facts, float) else facts
