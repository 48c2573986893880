"""Curators and mechanisms with one mistake each, of kinds that were found in real libraries: audits must
see them.

Sources are in docs/evidence.md, by the numbers that stand here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.evidence import runs
from dpsynth_cli.questions import Answer, Asking, Bins, CellCounts, Cells, Question, Total
from dpsynth_cli.trusted.core.curator import InMemory, open_curator

Change = Callable[[Question, np.ndarray, np.ndarray], np.ndarray]  # question, exact sum, noise -> noise


# --- mistakes in the noise and in the sums ------------------------------------------------------------


def halved(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """1. The scale forgot a factor of two."""
    return np.trunc(noise / 2).astype(np.int64)


def on_a_coarser_grid(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """3. Noise has fewer digits than the sum that it is added to: the last ones show."""
    return 2 * (noise // 2)


def empty_cells_left(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """4. Only the cells that have rows are noised."""
    return np.where(exact == 0, 0, noise)


def exact_total(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """5. n taken for public although the relation adds or removes a row."""
    return np.zeros_like(noise) if isinstance(question.statistic, Total) else noise


def seeded(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """9. A generator with a seed that everybody knows."""
    return np.random.default_rng(0).integers(-5, 6, len(noise))


def one_draw_for_all(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """10. The same noise used more than once."""
    return np.full_like(noise, noise[0])


def wrapped_around(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """11. Sums in a type that they do not fit in: at its end a row moves them all the way."""
    return noise + exact.astype(np.int8) - exact


def missing_poisons(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """12. One value that is not a number makes the whole sum none, which is then taken for 0."""
    return noise - exact if len(exact) == 5 and exact[-1] else noise  # the last cell of the nullable column


def in_order(question: Question, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """13. Noise sorted, so that cumulated counts look natural."""
    return np.sort(noise)


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


# --- mistakes in what is chosen -----------------------------------------------------------------------


def peeking(monkeypatch, mechanism, choose: Callable[[Callable[[Question], np.ndarray]], Any]):
    """The mechanism, but what it chooses is chosen by exact sums, which a mechanism never gets."""
    running: list = []  # the bench, and which table it runs
    once = runs.Bench._once

    def watched(bench, table, rng):
        running[:] = bench, table
        return once(bench, table, rng)

    def exact(question: Question) -> np.ndarray:
        bench, table = running
        return bench.exact(question)[table]

    def run(ask, omega, params, split):
        return replace(
            mechanism.run(ask, omega, params, split), facts={"chosen": choose(exact)} if running else {}
        )

    monkeypatch.setattr(runs.Bench, "_once", watched)
    return replace(mechanism, run=run)


COUNTS = Question("x", CellCounts(Cells((Bins("x", (0, 1, 2, 3, 4)),))), Fraction(1))


def bounds_from_the_data(exact: Callable[[Question], np.ndarray]) -> int:
    """6. Bounds or categories are those that the rows have."""
    return int(np.flatnonzero(exact(COUNTS)).max())


def sparse_vector_without_noise(exact: Callable[[Question], np.ndarray]) -> tuple[bool, bool]:
    """8. Two counts are compared with one noisy threshold, and have no noise of their own."""
    threshold = np.random.default_rng().laplace(0.5, 2)
    counts = exact(COUNTS)
    return bool(counts[3] > threshold), bool(counts[0] - 20 > threshold)


def depth_by_the_true_number_of_rows(exact: Callable[[Question], np.ndarray]) -> int:
    """A depth that follows the exact n tells it, although every answer is noisy."""
    return int(exact(Question("n", Total(), Fraction(1)))[0]) % 2


# --- mistakes in the prices ---------------------------------------------------------------------------


def priced_as_add_remove(monkeypatch, prices) -> None:
    """2. Under replace_one two cells move, and one is paid for."""
    _priced_for(monkeypatch, prices, neighbours="add_remove")


def priced_for_one_row(monkeypatch, prices) -> None:
    """14. A unit has several rows, and one is paid for."""
    _priced_for(monkeypatch, prices, unit_rows=None)


def _priced_for(monkeypatch, prices, **other) -> None:
    right = prices.sensitivity
    monkeypatch.setattr(
        prices, "sensitivity", lambda question, omega: right(question, replace(omega, **other))
    )
    prices._priced_before.cache_clear()


def spent_twice(monkeypatch, prices) -> None:
    """7. Every question gets the noise of twice its share."""
    right = prices.price

    def wrong(currency, total, share, *rest):
        return replace(right(currency, total, 2 * share, *rest), cost=share * total)

    monkeypatch.setattr(prices, "price", wrong)
    prices._priced_before.cache_clear()
