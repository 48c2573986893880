"""Streams of mixed tables: what they tell of a row is nearly the claim and never more; mistakes are found."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import count

import pytest

from dpsynth_cli.evidence import transcripts, worst
from dpsynth_cli.mechanisms.online import tables
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.gaussian import mu_of_rho
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.stream import release_prices, table_prices
from dpsynth_cli.trusted.stream.factorisation import UNIT, Branches, SquareRoot

BUDGETS = {
    "pure": Accountant.pure(Fraction(4)),
    "delta": Accountant.gaussian(Fraction(4), Fraction(1, 10**5)),
}


@pytest.fixture(autouse=True)
def chosen_at_the_third_release(monkeypatch, one_pair):
    """By then the row in question is there; prices are worked out anew."""
    one_pair(4)  # of two columns
    monkeypatch.setattr(worst, "RUNS", 1)
    calls = count(1)
    monkeypatch.setattr(tables, "is_ready", lambda ask, plan, rows, epoch: next(calls) % 3 == 0)
    monkeypatch.setattr(tables, "tells_links", lambda ask, plan, pairs, rows: True)
    monkeypatch.setattr(tables, "is_over", lambda then, now: False)
    release_prices.charge_over.cache_clear()
    yield
    release_prices.charge_over.cache_clear()


def found(budget: str) -> worst.Worst:
    """The exact loss of a whole epoch."""
    mechanism = mechanisms()["online"]
    return worst.worst(mechanism, mechanism.params(algorithm="joint"), "add_remove", BUDGETS[budget])


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_row_pays_nearly_the_whole_in_its_epoch_and_never_more(budget):
    """All but the share of spikes, of which these tables have none."""
    told = found(budget)
    assert 0.97 < told.part <= 1
    kinds = {each.charge.question.step for each in told.told}
    assert {"total", "columns", "misfit", "links", "pairs"} == kinds


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_column_priced_as_one_row_is_found(monkeypatch, budget):
    monkeypatch.setattr(Branches, "norm", lambda self, length: 1)
    monkeypatch.setattr(SquareRoot, "norm", lambda self, length: UNIT**2)
    assert found(budget).part > 1.5


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_look_that_has_less_noise_than_it_pays_for_is_found(monkeypatch, budget):
    right = table_prices.charge_for

    def cheap(question, omega, accountant):
        return right(replace(question, share=Fraction(1, 2)), omega, accountant)

    monkeypatch.setattr(table_prices, "charge_for", cheap)
    monkeypatch.setattr(Accountant, "charge", lambda self, prices: None)
    assert found(budget).part > 1.1


def proved(told: worst.Worst, budget: str) -> float:
    """The part of the claim that 400,000 transcripts of each table prove; that it is above the truth has
    probability 1e-7."""
    delta = 0.0 if budget == "pure" else 1e-5
    epsilon, mu = transcripts.proved(
        told.told, told.bench.pair.omega, 400_000, delta, 1e-7, budget != "pure", system_source()
    )
    return epsilon / 4 if budget == "pure" else mu / float(mu_of_rho(BUDGETS[budget].total))


@pytest.mark.slow
@pytest.mark.parametrize("budget", BUDGETS)
def test_transcripts_prove_most_of_the_claim(budget):
    """Many answers share the loss, so that few transcripts are near the claim."""
    assert 0.7 <= proved(found(budget), budget) <= 1


@pytest.mark.slow
def test_transcripts_prove_90_percent_of_a_pure_claim_where_few_answers_share_the_loss(monkeypatch):
    """Nearly all of the budget is for sizes: a claim holds for every split that a steward may choose."""
    monkeypatch.setattr(worst, "_splits", lambda stages: [{"total": 0.97, "counts": 0.03}])
    assert 0.9 <= proved(found("pure"), "pure") <= 1
