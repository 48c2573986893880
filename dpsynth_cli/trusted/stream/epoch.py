"""An epoch of a stream of mixed tables: its columns are counted from its first release on, its tables from
the release on at which they are chosen; until then its rows are kept as codes.

Claim. A row of the stream arrives in one epoch. It pays the shares of the questions about columns, and those
of what the choice of tables asks, once each (`table_counters.py`): all of them are on one bill, and never
more than the whole. The choice may depend on any earlier answer. After it no row is kept, only sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.numeric.running import Running
from dpsynth_cli.question_json import as_json, of_json
from dpsynth_cli.questions import Answer, Ask, Asking, Ints, Misfit, Question
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.noise.words import SystemSource
from dpsynth_cli.trusted.stream.coded_rows import CodedRows, Summed, none_yet
from dpsynth_cli.trusted.stream.factorisation import factorisation
from dpsynth_cli.trusted.stream.packing import matrix, square
from dpsynth_cli.trusted.stream.table_counters import Counters
from dpsynth_cli.trusted.stream.table_prices import length_of, table_sd, tables_bill

Answers = list[tuple[Any, Answer]]  # questions as JSON, and their answers
Choose = Callable[[Ask, list[Answer]], float]  # the rows that tables were chosen for; 0: not yet


@dataclass
class Epoch:
    """`rows` are kept until the choice; `counted` of them are in the counters of columns. `open` are the sums
    of all questions since the last release. `looked` is the share of what was asked once. `chosen_for` are
    the rows that there were at the choice, by their noisy number; 0 before it."""

    number: int
    rows: CodedRows
    columns: Counters
    counted: int = 0
    tables: Counters = field(default_factory=lambda: Counters([]))
    open: list[Ints] = field(default_factory=list)
    looked: Fraction = Fraction(0)
    chosen_for: float = 0.0

    @property
    def questions(self) -> list[Question]:
        """What a batch is counted for; before the choice it is kept as it is."""
        return [*self.columns.questions, *self.tables.questions] if self.chosen_for else []

    @property
    def is_full(self) -> bool:
        """Whether its counters have no step left."""
        return self.columns.step >= length_of(self.number)

    def arrive(self, batch: CodedRows | Summed) -> None:
        """Take a batch in, until the next release."""
        if isinstance(batch, CodedRows):
            self.rows = self.rows + batch
        else:
            self.open = [a + b for a, b in zip(self.open, batch.sums, strict=True)]

    def measure(
        self, omega: Domain, budget: Callable[[], Accountant], source: SystemSource, choose: Choose
    ) -> tuple[Answers, Answers]:
        """A release: what tables were chosen by, if they were now, and the counts of everything so far."""
        length, first = length_of(self.number), len(self.columns.questions)
        if self.columns.share + self.tables.share + self.looked > 1:
            raise ValueError("the questions of an epoch cost more than the whole")
        if self.chosen_for:
            sums, self.open = self.open, [np.zeros_like(own) for own in self.open]
            answers = self.columns.count(sums[:first], omega, budget, length, source)
            answers += self.tables.count(sums[first:], omega, budget, length, source)
            return [], _told(self.questions, answers)
        new = self.rows.since(self.counted).sums(self.columns.questions, omega)
        self.counted = len(self.rows.signs)
        answers = self.columns.count(new, omega, budget, length, source)
        now = _told(self.columns.questions, answers)
        asked: Answers = []
        self.chosen_for = choose(self._asking(omega, budget(), source, asked), answers)
        if not self.chosen_for:
            return [], now
        choice = now + asked
        counts = [a.values for _, a in now]
        self.open = [
            np.zeros_like(own) for own in [*counts, *(self.tables.raw[0] if self.tables.raw else [])]
        ]
        self.rows, self.counted = none_yet(omega), 0
        misfit = Misfit.__name__
        return choice, now + [one for one in asked if one[0]["statistic"]["kind"] != misfit]

    def _asking(self, omega: Domain, accountant: Accountant, source: SystemSource, told: Answers) -> Asking:
        """An `ask` about all rows that are kept, which begins a counter for each sum that is asked for."""
        bill = tables_bill(omega, accountant, length_of(self.number))
        bill.charge(self.columns.questions)
        currency = accountant.currency
        kept = _Kept(self.rows, omega, factorisation(currency).unit)
        curator = open_curator(kept, bill, source, InMemory())

        def answer(questions: Sequence[Question]) -> list[Answer]:
            answers = []
            for question, row in zip(questions, curator(questions), strict=True):
                if isinstance(question.statistic, Misfit):
                    self.looked += question.share
                    answers.append(row)
                else:
                    answers.append(self.tables.begin(question, kept.exact.pop(0), row, currency))
            told.extend(_told(questions, answers))
            return answers

        return Asking(answer, partial(table_sd, bill))

    def as_parts(self) -> tuple[dict[str, Any], list[Ints]]:
        """Words and arrays, for the state's file."""
        arrays: list[Ints] = []

        def kept(array: Ints) -> int:
            arrays.append(array)
            return len(arrays) - 1

        def group(own: Counters) -> dict[str, Any]:
            return {
                "questions": [as_json(question) for question in own.questions],
                "starts": own.starts,
                "raw": [[kept(one) for one in block] for block in own.raw],
                "known": [
                    [[kept(block) for block in running.blocks], matrix(running.errors)]
                    for running in own.known
                ],
            }

        words = {
            "epoch": self.number,
            "codes": {name: kept(own) for name, own in self.rows.codes.items()},
            "signs": kept(self.rows.signs),
            "counted": self.counted,
            "columns": group(self.columns),
            "tables": group(self.tables),
            "open": [kept(own) for own in self.open],
            "looked": str(self.looked),
            "chosen_for": self.chosen_for,
        }
        return words, arrays

    @classmethod
    def of_parts(cls, said: dict[str, Any], arrays: list[Ints]) -> Epoch:
        def group(own: dict[str, Any]) -> Counters:
            return Counters(
                [of_json(question) for question in own["questions"]],
                own["starts"],
                [[arrays[at] for at in block] for block in own["raw"]],
                [
                    Running(np.array([arrays[at] for at in blocks]), square(errors))
                    for blocks, errors in own["known"]
                ],
            )

        return cls(
            said["epoch"],
            CodedRows({name: arrays[at] for name, at in said["codes"].items()}, arrays[said["signs"]]),
            group(said["columns"]),
            said["counted"],
            group(said["tables"]),
            [arrays[at] for at in said["open"]],
            Fraction(said["looked"]),
            said["chosen_for"],
        )


@dataclass
class _Kept:
    """Rows that are kept: sums as the first row of C has them, and what is no sum as it is. `exact` are the
    sums of the questions that were asked last."""

    rows: CodedRows
    omega: Domain
    unit: int
    exact: list[Ints] = field(default_factory=list)

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        found = self.rows.sums(questions, self.omega)
        once = [isinstance(question.statistic, Misfit) for question in questions]
        self.exact = [own for own, as_it_is in zip(found, once, strict=True) if not as_it_is]
        return [own if as_it_is else self.unit * own for own, as_it_is in zip(found, once, strict=True)]


def _told(questions: Sequence[Question], answers: Sequence[Answer]) -> Answers:
    return list(zip(map(as_json, questions), answers, strict=True))
