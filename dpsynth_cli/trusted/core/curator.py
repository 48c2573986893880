"""`open_curator`: charge, sum, add noise, make durable, answer. The border between rows and the rest.

Claim. Let one run answer questions q_1 .. q_k, each chosen from the public spec and the earlier
answers. Then the sequence of answers is differentially private with the accountant's total, under
the domain's neighbour relation: the exact integers of each answer have a known sensitivity,
and get exact discrete noise at the scale that its share pays for, and the shares never add up to more
than the whole. What the mechanism does with the answers is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import FileError
from dpsynth_cli.questions import Answer, Asking, Ints, OpenLabels, Question, RowScores
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.open_labels import LabelCounts, labels_above
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.core.scales import representable_sigma2
from dpsynth_cli.trusted.core.shapes import columns_of
from dpsynth_cli.trusted.noise.rounded import rounded_gaussian
from dpsynth_cli.trusted.noise.samplers import discrete_cube, discrete_laplace
from dpsynth_cli.trusted.noise.words import SystemSource, Words


class Rows(Protocol):
    """The rows of a table, behind the border."""

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        """The exact integers of each question."""
        ...


CountLabels = Callable[[Sequence[str]], Iterator[LabelCounts]]  # of columns: all their labels, some at a time


class Journal(Protocol):
    """The durable record of a run."""

    def before_rows(self) -> None:
        """Called before rows are read, each time; raises where none may be."""
        ...

    def record(self, charges: Sequence[Charge], answers: Sequence[Answer]) -> None:
        """Make answers durable, and return only then."""
        ...


class InMemory:
    """A journal that keeps answers for its owner only: what a simulation needs, and no release may have."""

    def __init__(self) -> None:
        self.answers: list[tuple[Question, Answer]] = []

    def before_rows(self) -> None:
        """Nothing to mark."""

    def record(self, charges: Sequence[Charge], answers: Sequence[Answer]) -> None:
        self.answers.extend(zip((charge.question for charge in charges), answers, strict=True))


def open_curator(
    rows: Rows, bill: Bill, source: SystemSource, journal: Journal, labels: CountLabels | None = None
) -> Asking:
    """The `ask` of one release. The mechanism sees no answer that the journal has not made durable."""
    if type(source) is not SystemSource:
        raise TypeError("privacy noise comes from the operating system's generator only")

    def sums_of(fresh: Sequence[Charge]) -> list[Answer]:
        given = []
        for charge, exact in zip(fresh, rows.sums([one.question for one in fresh]), strict=True):
            if len(exact) != sum(charge.lengths):
                raise FileError("the number of rows changed while they were read.", "")
            if isinstance(charge.question.statistic, RowScores):
                exact = shuffled(exact, len(charge.question.statistic.weights), source)
            noisy = exact + noise_for(charge, bill.omega, source)
            given.append(Answer(noisy, charge.lengths, charge.price.noise, charge.price.sd))
        return given

    def labels_of(fresh: Sequence[Charge]) -> list[Answer]:
        assert labels is not None
        counted = labels([name for one in fresh for name in columns_of([one.question])])
        return labels_above(fresh, counted, lambda sigma2, size: rounded_gaussian(sigma2, size, source))

    def answer(questions: Sequence[Question]) -> list[Answer]:
        about_labels = {isinstance(question.statistic, OpenLabels) for question in questions}
        if len(about_labels) > 1 or (True in about_labels and labels is None):
            raise ValueError("labels are asked for by themselves, and of a table")
        charges, answers = bill.charge(questions)
        fresh = charges[len(answers) :]
        if fresh:
            journal.before_rows()
            given = (
                labels_of(fresh) if isinstance(fresh[0].question.statistic, OpenLabels) else sums_of(fresh)
            )
            journal.record(fresh, given)
            answers += given
        return answers

    return Asking(answer, bill.sd)


def shuffled(scores: Ints, r: int, source: Words) -> Ints:
    """Rows of r integers in a secret random order.

    Claim: the result's distribution is a function of the rows as a set. The order in which rows are read is
    not a function of each row alone (a broken record is put behind the others), so it must not matter: for
    two tables that differ in one row, pair their orders so that the others are at the same places.
    """
    rows = scores.reshape(-1, r)
    # Sorting 128 random bits a row; that two rows draw the same has probability below rows^2 / 2^129.
    return np.asarray(rows[np.lexsort((source.words64(len(rows)), source.words64(len(rows))))].ravel())


def noise_for(charge: Charge, omega: Domain, source: Words) -> Ints:
    """Noise for every integer of the answer, empty cells and empty classes too; independent blocks."""
    size, price = sum(charge.lengths), charge.price
    if price.noise == "none":
        return np.zeros(size, dtype=np.int64)
    if price.noise == "discrete_laplace":
        return discrete_laplace(price.parameter, size, source)
    if price.noise == "discrete_cube":
        return np.concatenate([discrete_cube(price.parameter, length, source) for length in charge.lengths])
    if not charge.sensitivity.half_above:
        return rounded_gaussian(price.parameter, size, source)
    # Recipe F: the diagonal of each block's upper triangle has the full variance, the rest half of it.
    noise = rounded_gaussian(representable_sigma2(price.parameter / 2), size, source)
    start = 0
    for length in charge.lengths:
        d = (int((8 * length + 1) ** 0.5) - 1) // 2
        rows, columns = np.triu_indices(d)
        diagonal = start + np.flatnonzero(rows == columns)
        noise[diagonal] = rounded_gaussian(price.parameter, d, source)
        start += length
    return noise
