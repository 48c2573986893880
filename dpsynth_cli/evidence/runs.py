"""Many small releases of one table through the real border, and a few numbers about each.

Sums, prices, noise, mechanism and drawing are those of a release; only the table is in memory, and the
exact sums of a question, which never change, are computed once. Each run becomes statistics: numbers that
may tell two tables apart. Any function of what is published will do, so no choice here can make an
audit unsound; a good choice makes it sharp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpsynth_cli.evidence.neighbours import Pair
from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.questions import Answer, Floats, Ints, Model, Question
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.core.shapes import tables_only
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.sums.tally import Tally

MOST_ROWS = 50  # drawn of each release
STATISTICS = ("likelihood", "order of the noise", "rows", "rows like that one", "questions and choices")


# An answer with the exact sums of both tables, for each; the questions; the model.
Released = tuple[list[tuple[Answer, Ints, Ints]], tuple[Any, ...], Model]


@dataclass(frozen=True, eq=False)
class Runs:
    """Statistics of many runs of one table, a number a run; and what each run asked and chose."""

    numbers: dict[str, Floats]
    choices: list[int]


@dataclass
class Bench:
    """One mechanism on one pair of tables: runs as often as it is told."""

    mechanism: Mechanism
    params: Any
    pair: Pair
    budget: Accountant
    known: dict[Question, tuple[Ints, Ints]] = field(default_factory=dict)

    def runs(self, table: int, count: int, progress: Callable[[int], None] = lambda done: None) -> Runs:
        """`count` releases of table 0 (with the row) or 1 (without)."""
        rng = np.random.default_rng()  # draws points; the noise has its own source
        kept = []
        for _ in range(count):
            kept.append(self._once(table, rng))
            progress(1)
        numbers = np.array([each[0] for each in kept], np.float64).reshape(count, len(STATISTICS) - 1)
        return Runs(dict(zip(STATISTICS, numbers.T, strict=False)), [each[1] for each in kept])

    def _once(self, table: int, rng: np.random.Generator) -> tuple[tuple[float, ...], int]:
        seen, asked, model = self.release(table)
        likelihood = sum(log_ratio(*each) for each in seen)
        order = sum(int((np.diff(answer.values - first) < 0).sum()) for answer, first, _ in seen)
        numbers = (likelihood, float(order), float(model.total), float(self._alike(model, rng)))
        return numbers, hash((asked, _chosen(model.facts)))

    def release(self, table: int) -> Released:
        """One release of a table."""
        journal = InMemory()
        bill = Bill(self.pair.omega, replace(self.budget))
        ask = open_curator(_OneTable(self, table), bill, system_source(), journal)
        model = self.mechanism.run(ask, self.pair.omega, self.params, self.mechanism.stages)
        seen = [(answer, *self.exact(question)) for question, answer in journal.answers]
        # What was expected follows from the answers: with it no two runs would be alike.
        return seen, tuple(tables_only(question) for question, _ in journal.answers), model

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


def log_ratio(answer: Answer, first: Ints, second: Ints) -> float:
    """How much likelier the answer is with the first table's sums than with the second's, by the noise that
    it claims to have: the best test there is, if the claim is true."""
    one, other = (answer.values - exact.astype(np.float64) for exact in (first, second))
    if answer.noise == "none":
        return 1e6 * float(np.sign(np.abs(other).sum() - np.abs(one).sum()))
    if answer.noise == "discrete_laplace":
        return float((np.abs(other) - np.abs(one)).sum()) / (answer.sd / 2**0.5)
    if answer.noise == "discrete_cube":
        moved, ends = 0.0, np.cumsum(answer.lengths)[:-1]
        for near, far in zip(np.split(one, ends), np.split(other, ends), strict=True):
            scale = answer.sd / ((len(near) + 1) * (len(near) + 2) / 3) ** 0.5
            moved += float(np.abs(far).max() - np.abs(near).max()) / scale
        return moved
    # Gaussian: a fair test also where the variance is not the same for all integers.
    return float((other**2 - one**2).sum()) / (2 * answer.sd**2)


def scored(choices: Iterable[int], first: Sequence[int], second: Sequence[int]) -> Floats:
    """Choices as numbers: how much more often the first table's earlier runs made them."""
    known = {choice: np.log((first.count(choice) + 1) / (second.count(choice) + 1)) for choice in set(first)}
    known |= {choice: np.log(1 / (second.count(choice) + 1)) for choice in set(second) - set(first)}
    return np.array([known.get(choice, 0.0) for choice in choices], np.float64)


def _chosen(facts: Any) -> Any:
    """What was chosen, without the numbers that are noise anyway."""
    if isinstance(facts, dict):
        return tuple((name, _chosen(value)) for name, value in sorted(facts.items()))
    if isinstance(facts, (list, tuple)):
        return tuple(_chosen(value) for value in facts)
    return None if isinstance(facts, float) else facts
