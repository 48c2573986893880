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
from dpsynth_cli.trusted.accountant import Accountant
from dpsynth_cli.trusted.curator import open_curator
from dpsynth_cli.trusted.prices import Charge
from dpsynth_cli.trusted.source import system_source
from dpsynth_cli.trusted.sums import Tally

MOST_ROWS = 50  # drawn of each release
STATISTICS = ("likelihood", "order of the noise", "rows", "rows like that one", "questions and choices")


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
        asked: list[tuple[Charge, Answer]] = []

        def sums(questions: Sequence[Question]) -> tuple[list[Ints], int]:
            return [self.exact(question)[table] for question in questions], 0

        ask = open_curator(
            sums,
            self.pair.omega,
            replace(self.budget),
            system_source(),
            lambda charges, answers: asked.extend(zip(charges, answers, strict=True)),
            lambda: None,
            (),
            [],
        )
        model = self.mechanism.run(ask, self.pair.omega, self.params, self.mechanism.stages)
        likelihood = order = 0.0
        for charge, answer in asked:
            first, second = self.exact(charge.question)
            likelihood += log_ratio(charge, answer, first, second)
            order += float((np.diff(answer.values - first) < 0).sum())
        questions = tuple(charge.question for charge, _ in asked)
        numbers = (likelihood, order, float(model.total), float(self._alike(model, rng)))
        return numbers, hash((questions, _chosen(model.facts)))

    def exact(self, question: Question) -> tuple[Ints, Ints]:
        """The question's sums in both tables."""
        if question not in self.known:
            first, second = (self._tally(question, codes) for codes in self.pair.tables)
            self.known[question] = first, second
        return self.known[question]

    def _tally(self, question: Question, codes: dict[str, Ints]) -> Ints:
        tally = Tally([question], self.pair.omega)
        tally.add(codes, len(next(iter(codes.values()))))
        return tally.sums()[0]

    def _alike(self, model: Model, rng: np.random.Generator) -> int:
        """How many of the synthetic rows are the row in question."""
        rows = min(max(0, model.total), MOST_ROWS)
        alike = 0
        for block in model.draw(rows, rng) if rows else ():
            same = [block[c.name] == code for c, code in zip(self.pair.omega, self.pair.row, strict=True)]
            alike += int(np.logical_and.reduce(same).sum())
        return alike


def log_ratio(charge: Charge, answer: Answer, first: Ints, second: Ints) -> float:
    """How much likelier the answer is with the first table's sums than with the second's, by the noise that
    the price claims: the best test there is, if the claim is true."""
    a, scale = answer.values, float(charge.price.parameter)
    one, other = (a - first).astype(np.float64), (a - second).astype(np.float64)
    if charge.price.noise == "none":
        return 0.0 if (one == other).all() else float(np.sign(np.abs(other).sum() - np.abs(one).sum())) * 1e6
    if charge.price.noise == "discrete_laplace":
        return float((np.abs(other) - np.abs(one)).sum() / scale)
    if charge.price.noise == "discrete_cube":
        ends = np.cumsum(charge.lengths)[:-1]
        farthest = [sum(np.abs(part).max() for part in np.split(each, ends)) for each in (one, other)]
        return float((farthest[1] - farthest[0]) / scale)
    # Gaussian: also a fair test where the variance is not the same for all integers.
    return float((other**2 - one**2).sum() / (2 * scale))


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
