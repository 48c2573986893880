"""Mistakes of kinds that other libraries have made are all found; without one, nothing is.

A mistake that shows for certain is found for certain. For the others the number of runs is so large that
the audit would miss them less than once in a million times: the bound is many standard deviations above the
claim.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsynth_cli.evidence import empirical, runs
from dpsynth_cli.evidence.empirical import Finding, audit
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.trusted.core import prices
from tests.evidence import broken

MARGINALS = mechanisms()["marginals"]
IN_AN_EMPTY_CELL, N_AND_ONE_MORE, END_OF_A_BYTE, MISSING = 0, 1, 3, 5  # of the pairs of add_remove
MOVED = 0  # of those of replace_one


@pytest.fixture(autouse=True)
def _prices_forgotten():
    yield
    prices._priced_before.cache_clear()


def found(relation: str, count: int, mechanism=MARGINALS, confidence: float = 0.999) -> Finding:
    return audit(mechanism, relation, Fraction(1), None, count, confidence, count=1000)


@pytest.mark.parametrize(
    ("change", "number", "count"),
    [
        (broken.halved, IN_AN_EMPTY_CELL, 1200),
        (broken.on_a_coarser_grid, IN_AN_EMPTY_CELL, 300),
        (broken.empty_cells_left, IN_AN_EMPTY_CELL, 300),
        (broken.exact_total, N_AND_ONE_MORE, 300),
        (broken.seeded, IN_AN_EMPTY_CELL, 300),
        (broken.one_draw_for_all, IN_AN_EMPTY_CELL, 300),
        (broken.wrapped_around, END_OF_A_BYTE, 300),
        (broken.missing_poisons, MISSING, 800),
        (broken.in_order, IN_AN_EMPTY_CELL, 1000),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_mistake_in_the_noise_or_the_sums_is_found(one_pair, monkeypatch, change, number, count):
    one_pair(number)
    monkeypatch.setattr(empirical, "LEAST_PILOT", count // 4)
    monkeypatch.setattr(runs, "open_curator", broken.curator_with(change))
    assert not found("add_remove", count).holds


@pytest.mark.parametrize(
    ("choose", "relation", "number", "count"),
    [
        (broken.bounds_from_the_data, "add_remove", IN_AN_EMPTY_CELL, 300),
        (broken.depth_by_the_true_number_of_rows, "add_remove", N_AND_ONE_MORE, 300),
        (broken.sparse_vector_without_noise, "replace_one", MOVED, 1000),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_choice_by_exact_sums_is_found(one_pair, monkeypatch, choose, relation, number, count):
    one_pair(number)
    monkeypatch.setattr(empirical, "LEAST_PILOT", 2 * count // 5)  # enough to know a choice again
    ran = found(relation, count, broken.peeking(monkeypatch, MARGINALS, choose))
    assert (ran.holds, ran.statistic) == (False, "questions and choices")


@pytest.mark.parametrize(("epsilon", "delta"), [(2, None), (4, Fraction(1, 10**5))])
@pytest.mark.parametrize("mistake", [broken.priced_as_add_remove, broken.spent_twice])
def test_a_mistake_in_the_prices_is_found_exactly_and_by_transcripts(
    one_pair, monkeypatch, mistake, epsilon, delta
):
    """By the exact loss of one run, and by what 50,000 transcripts prove without it."""
    one_pair(MOVED)
    mistake(monkeypatch, prices)
    ran = audit(MARGINALS, "replace_one", Fraction(epsilon), delta, 100, 0.999, count=50_000)
    assert not ran.holds
    assert ran.worst.part > 1.4  # of epsilon twice, of mu sqrt 2 times or more
    assert ran.of_claim > 1


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_unit_priced_as_a_row_is_found(quick, monkeypatch, relation):
    broken.priced_for_one_row(monkeypatch, prices)
    ran = audit(MARGINALS, relation, Fraction(2), None, 100, 0.999, count=50_000, units=True)
    assert not ran.holds
    assert ran.worst.part > 2.9  # three rows
    assert ran.of_claim > 1


def test_a_curator_that_changes_nothing_is_not_refuted(one_pair, monkeypatch):
    one_pair(IN_AN_EMPTY_CELL)
    monkeypatch.setattr(runs, "open_curator", broken.curator_with(lambda question, exact, noise: noise))
    assert found("add_remove", 300, confidence=1 - 1e-7).holds


def test_a_mechanism_that_chooses_nothing_by_sums_is_not_refuted(one_pair, monkeypatch):
    one_pair(IN_AN_EMPTY_CELL)
    same = broken.peeking(monkeypatch, MARGINALS, lambda exact: 1)
    assert found("add_remove", 300, replace(same), confidence=1 - 1e-7).holds
