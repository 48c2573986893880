"""Audits with whole units: no claim is refuted, and mistakes about units are found.

As in test_broken.py, twins are so wrong that the audit would miss them less than once in a million times.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsynth_cli.evidence import empirical, neighbours, runs, worst
from dpsynth_cli.evidence.empirical import audit
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.trusted.core import prices
from tests.evidence import broken
from tests.evidence.test_empirical import DELTA, EVERY, SURE

MARGINALS = mechanisms()["marginals"]


@pytest.fixture(autouse=True)
def _prices_forgotten():
    prices._priced_before.cache_clear()
    yield
    prices._priced_before.cache_clear()


def found(relation: str, runs: int, unit_rows: int) -> empirical.Finding:
    return audit(MARGINALS, relation, Fraction(1), None, runs, 0.999, count=1000, unit_rows=unit_rows)


@pytest.mark.parametrize("relation", empirical.RELATIONS)
def test_a_small_claim_about_units_is_not_refuted_and_a_large_one_is_seen(one_pair, relation):
    one_pair(0)
    assert audit(MARGINALS, relation, Fraction(1), None, 220, SURE, count=20_000, unit_rows=3).holds
    seen = audit(MARGINALS, relation, Fraction(8), None, 100, 0.99, count=1000, unit_rows=3)
    assert seen.lower > 1
    assert seen.pair.startswith("3 times a row")


@pytest.mark.parametrize("relation", empirical.RELATIONS)
def test_noise_for_one_row_of_a_unit_is_found(one_pair, monkeypatch, relation):
    """The broken twin: units of 16 rows, priced as rows. The true epsilon is 16: nearly every run tells."""
    one_pair(0)
    right = prices.sensitivity
    monkeypatch.setattr(
        prices, "sensitivity", lambda question, omega: right(question, replace(omega, unit_rows=1))
    )
    assert not found(relation, 200, 16).holds


def test_a_unit_that_is_not_truncated_is_found(quick, monkeypatch):
    """The broken twin: 16 rows of a unit, and noise for two, as if two had been kept."""
    every = neighbours.pairs

    def untruncated(mechanism, params, relation, unit_rows):
        pair = every(mechanism, params, relation, 8 * unit_rows)[0]
        return [replace(pair, omega=replace(pair.omega, unit_rows=unit_rows))]

    for module in (empirical, worst):
        monkeypatch.setattr(module, "pairs", untruncated)
    assert not found("add_remove", 200, 2).holds


def test_a_free_number_of_rows_is_found_where_units_are_replaced(one_pair, monkeypatch):
    """The broken twin: n taken for public under replace_one, although a unit may have fewer rows."""
    one_pair(6)
    monkeypatch.setattr(runs, "open_curator", broken.curator_with(broken.exact_total))
    seen = found("replace_one", 1200, 2)
    assert "replaced by none" in seen.pair
    assert not seen.holds


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EVERY if not mechanisms()[name].stream])
def test_no_claim_about_units_is_refuted_and_half_of_one_is_seen(name):
    seen = [
        audit(mechanisms()[name], relation, Fraction(4), delta, 2500, SURE, unit_rows=3)
        for relation in empirical.RELATIONS
        for delta in (None, DELTA)
    ]
    assert all(each.holds for each in seen), seen
    assert max(each.audited for each in seen) >= 2, seen
