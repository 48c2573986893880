"""Questions that are sums over rows, counted on from release to release.

Claim. All answers of a group of counters together cost a row of the stream at most the sum of its questions'
shares. What arrived for step i is in the rows of C with an entry in column i; a question's noise in each row
is that of its share for a whole column (`factorisation.norm`), and a row moves one column of C by what
`sensitivity` says of one row. Noise is drawn once for each row of C and question. Which questions there are
is fixed at the first step, for which everything arrives that was kept until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.numeric.running import Running, nothing
from dpsynth_cli.questions import Answer, Ints, Question
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.noise.words import SystemSource
from dpsynth_cli.trusted.stream.factorisation import factorisation
from dpsynth_cli.trusted.stream.release_prices import NOISE
from dpsynth_cli.trusted.stream.table_prices import tables_bill


@dataclass(frozen=True, eq=False)
class _Row:
    """A row of C, for all questions of a group."""

    raw: Sequence[Sequence[Ints]]
    entries: Sequence[int]

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        blocks = list(zip(self.raw, self.entries, strict=True))
        return [
            np.sum([entry * own[at] for own, entry in blocks], axis=0, dtype=np.int64)
            for at in range(len(questions))
        ]


@dataclass
class Counters:
    """A group of questions, the blocks of its steps, and of each block the raw sums, as far as they are
    measured again, and what is known of them, by question."""

    questions: list[Question]
    starts: list[int] = field(default_factory=list)
    raw: list[list[Ints]] = field(default_factory=list)
    known: list[Running] = field(default_factory=list)

    @property
    def step(self) -> int:
        return self.starts[-1] + 1 if self.starts else 0

    @property
    def share(self) -> Fraction:
        return sum((question.share for question in self.questions), Fraction(0))

    def count(
        self,
        sums: list[Ints],
        omega: Domain,
        budget: Callable[[], Accountant],
        length: int,
        source: SystemSource,
    ) -> list[Answer]:
        """The next step: `sums` are what arrived for it. The counts of everything so far."""
        currency = budget().currency
        if self.step >= length or self.share > 1:
            raise ValueError("the counters are for fewer steps, or cost more than the whole")
        method = factorisation(currency)
        self._open(sums, length, currency)
        answers = []
        for entries in method.rows(self.starts, self.step, length):
            bill = tables_bill(omega, budget(), length)
            ask = open_curator(_Row(self.raw, entries), bill, source, InMemory())
            answers = ask(self.questions)
            for running, answer in zip(self.known, answers, strict=True):
                running.take(entries, answer.values, answer.sd**2)
        first = method.forgets(self.step, length)
        for start, block in zip(self.starts, self.raw, strict=True):
            if start < first:
                block[:] = [np.zeros_like(own) for own in block]
        return [
            so_far(running, answer, currency) for running, answer in zip(self.known, answers, strict=True)
        ]

    def begin(self, question: Question, sums: Ints, first: Answer, currency: str) -> Answer:
        """A question more of a group at its first step; `first` is its first row of C."""
        unit = factorisation(currency).unit
        running = nothing(len(sums)).opened()
        running.take([unit], first.values, first.sd**2)
        if not self.starts:
            self.starts, self.raw = [0], [[]]
        self.questions.append(question)
        self.raw[0].append(sums)
        self.known.append(running)
        return so_far(running, first, currency)

    def _open(self, sums: list[Ints], length: int, currency: str) -> None:
        method, step = factorisation(currency), self.step + 1
        if not self.starts:
            self.known = [nothing(len(own)) for own in sums]
        kept = [s for s in self.starts if s == 0 or method.keeps(s, step, length)] + [step - 1]
        groups = [sum(start <= old for start in kept) - 1 for old in self.starts]
        raw = [[np.zeros_like(own) for own in sums] for _ in kept[:-1]] + [sums]
        for group, block in zip(groups, self.raw, strict=True):
            raw[group] = [a + b for a, b in zip(raw[group], block, strict=True)]
        self.starts, self.raw = kept, raw
        self.known = [running.merged(groups).opened() for running in self.known]


def so_far(running: Running, row: Answer, currency: str) -> Answer:
    """The counts of everything so far, by what is known of the blocks."""
    return Answer(running.total, row.lengths, NOISE[currency], running.variance**0.5)
