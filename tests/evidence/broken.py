"""Curators with one mistake each, of kinds that real libraries have made: audits must find them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpsynth_cli.questions import Answer, Asking, Question, Total
from dpsynth_cli.trusted.core.curator import open_curator

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

    def opened(sum_over, omega, accountant, source, record, *rest):
        kept: list = []
        right = open_curator(
            sum_over,
            omega,
            accountant,
            source,
            lambda charges, answers: kept.extend(zip(charges, answers, strict=True)),
            *rest,
        )

        def answer(questions):
            kept.clear()
            right(questions)
            exact, _ = sum_over(questions)
            wrong = [
                Answer(true + change(charge.question, true, given.values - true), *_rest(given))
                for (charge, given), true in zip(kept, exact, strict=True)
            ]
            record([charge for charge, _ in kept], wrong)
            return wrong

        return Asking(answer, right.sd)

    return opened


def _rest(answer: Answer) -> tuple:
    return answer.lengths, answer.noise, answer.sd
