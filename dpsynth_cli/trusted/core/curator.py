"""`open_curator`: charge, sum, add noise, make durable, answer. The border between rows and the rest.

Claim. Let one run answer questions q_1 .. q_k, each chosen from the public spec and the earlier
answers. Then the sequence of answers is differentially private with the accountant's total, under
the domain's neighbour relation: the exact integers of each answer have a known sensitivity,
and get exact discrete noise at the scale that its share pays for, and the shares never add up to more
than the whole. What the mechanism does with the answers is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import FileError
from dpsynth_cli.questions import Answer, Asking, Ints, Question, RowScores
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.prices import Charge, charge_for
from dpsynth_cli.trusted.noise.samplers import (
    discrete_cube,
    discrete_gaussian,
    discrete_laplace,
    representable_sigma2,
)
from dpsynth_cli.trusted.noise.words import SystemSource, Words


class TranscriptMismatch(ValueError):
    """The recorded answers do not fit what the mechanism asks."""


SumOver = Callable[[Sequence[Question]], tuple[list[Ints], int]]
Record = Callable[[Sequence[Charge], Sequence[Answer]], None]


def open_curator(
    sum_over: SumOver,
    omega: Domain,
    accountant: Accountant,
    source: SystemSource,
    record: Record,
    before_rows: Callable[[], None],
    recorded: Sequence[tuple[object, Answer]],
    bill: list[Charge],
) -> Asking:
    """The `ask` of one release.

    `before_rows` is called before rows are read, each time. `record` makes answers durable and
    returns only then; the mechanism sees no answer that is not recorded. `recorded` are the answers
    of an interrupted run, (question as JSON, answer) in order: they are charged and given again,
    and nothing that they answer is asked a second time. `bill` receives every charge, in order.
    """
    if type(source) is not SystemSource:
        raise TypeError("privacy noise comes from the operating system's generator only")
    earlier = list(recorded)

    def answer(questions: Sequence[Question]) -> list[Answer]:
        charges = [charge_for(question, omega, accountant) for question in questions]
        accountant.charge([charge.price for charge in charges])
        bill.extend(charges)
        answers: list[Answer] = []
        for charge in charges[: len(earlier)]:
            question, again = earlier.pop(0)
            if question != charge.asked or again.lengths != charge.lengths:
                raise TranscriptMismatch("the recorded answers are to other questions")
            answers.append(again)
        fresh = charges[len(answers) :]
        if fresh:
            before_rows()
            sums, _ = sum_over([charge.question for charge in fresh])
            given = []
            for charge, exact in zip(fresh, sums, strict=True):
                if len(exact) != sum(charge.lengths):
                    raise FileError("the number of rows changed while they were read.", "")
                if isinstance(charge.question.statistic, RowScores):
                    exact = mixed(exact, len(charge.question.statistic.weights), source)
                noisy = exact + noise_for(charge, omega, source)
                given.append(Answer(noisy, charge.lengths, charge.price.noise, charge.price.sd))
            record(fresh, given)
            answers += given
        return answers

    def sd(question: Question) -> float:
        return charge_for(question, omega, accountant).price.sd

    return Asking(answer, sd)


def mixed(scores: Ints, r: int, source: Words) -> Ints:
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
        return discrete_gaussian(price.parameter, size, source)
    # Recipe F: the diagonal of each block's upper triangle has the full variance, the rest half of it.
    noise = discrete_gaussian(representable_sigma2(price.parameter / 2), size, source)
    start = 0
    for length in charge.lengths:
        d = (int((8 * length + 1) ** 0.5) - 1) // 2
        rows, columns = np.triu_indices(d)
        diagonal = start + np.flatnonzero(rows == columns)
        noise[diagonal] = discrete_gaussian(price.parameter, d, source)
        start += length
    return noise
