"""Curators with one mistake each, of kinds that real libraries have made: audits must find them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpsynth_cli.questions import Answer, Asking, Question, Total
from dpsynth_cli.trusted.core.curator import InMemory, open_curator

Change = Callable[[Question, np.ndarray, np.ndarray], np.ndarray]  # question, exact sum, noise -> noise


def halved(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The scale forgot a factor of two."""
    return np.trunc(noise / 2).astype(np.int64)


def in_order(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Noise sorted, so that cumulated counts look natural (a printed algorithm does so)."""
    return np.sort(noise)


def exact_total(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """n taken for public although the relation adds or removes a row."""
    return np.zeros_like(noise) if isinstance(question.statistic, Total) else noise


def empty_cells_left(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Only the cells that have rows are noised."""
    return np.where(exact == 0, 0, noise)


def curator_with(change: Change) -> Callable[..., Asking]:
    """`open_curator`, but its noise goes through `change`."""

    def opened(rows, bill, source, journal):
        right = open_curator(rows, bill, source, InMemory())

        def answer(questions):
            before = len(bill.charges)
            given = right(questions)
            wrong = [
                Answer(exact + change(question, exact, answer.values - exact), *_rest(answer))
                for question, answer, exact in zip(questions, given, rows.sums(questions), strict=True)
            ]
            journal.record(bill.charges[before:], wrong)
            return wrong

        return Asking(answer, right.sd)

    return opened


def _rest(answer: Answer) -> tuple:
    return answer.lengths, answer.noise, answer.sd
