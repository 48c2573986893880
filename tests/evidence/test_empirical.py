"""The audit refutes no mechanism, comes near every claim, and finds the mistakes that others have made."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from dpsynth_cli.evidence import empirical, neighbours, runs
from dpsynth_cli.evidence.bounds import at_least, at_most, best_event, epsilon_bound, epsilon_of_mu
from dpsynth_cli.evidence.empirical import audit
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.questions import Question, Total
from dpsynth_cli.trusted.core import prices
from tests.evidence import broken

EVERY = list(mechanisms())
SURE = 1 - 1e-7  # so that a false alarm is rarer than one in a million runs of the whole suite
DELTA = Fraction(1, 10**5)


@pytest.fixture
def quick(monkeypatch):
    """Few runs choose the pair of tables."""
    monkeypatch.setattr(empirical, "LEAST_PILOT", 30)


@pytest.fixture
def one_pair(quick, monkeypatch):
    """Only the pair of this number is tried."""

    def take(number):
        every = neighbours.pairs
        monkeypatch.setattr(empirical, "pairs", lambda *which: [every(*which)[number]])

    return take


@pytest.mark.parametrize("name", EVERY)
def test_a_small_claim_is_not_refuted_and_a_large_one_is_seen(one_pair, name):
    """Few runs can prove that tables differ by 2 or so: more than a claim of 1, less than one of 8."""
    one_pair(0)
    assert audit(mechanisms()[name], "add_remove", Fraction(1), None, 220, SURE).holds
    assert audit(mechanisms()[name], "add_remove", Fraction(8), None, 100, 0.99).audited > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_no_claim_is_refuted_and_half_of_one_is_seen(name):
    found = [
        audit(mechanisms()[name], relation, Fraction(4), delta, 2500, SURE)
        for relation in empirical.RELATIONS
        for delta in (None, DELTA)
    ]
    assert all(each.holds for each in found), found
    assert max(each.audited for each in found) >= 2, found


@pytest.mark.parametrize("relation", empirical.RELATIONS)
def test_a_small_claim_about_units_is_not_refuted_and_a_large_one_is_seen(one_pair, relation):
    one_pair(0)
    assert audit(mechanisms()["marginals"], relation, Fraction(1), None, 220, SURE, unit_rows=3).holds
    found = audit(mechanisms()["marginals"], relation, Fraction(8), None, 100, 0.99, unit_rows=3)
    assert found.audited > 1
    assert "3 rows of a unit" in found.pair


@pytest.mark.parametrize("relation", empirical.RELATIONS)
def test_noise_for_one_row_of_a_unit_is_found(one_pair, monkeypatch, relation):
    """The broken twin: units of 16 rows, priced as rows. The true epsilon is 16: nearly every run tells."""
    one_pair(0)
    right = prices.sensitivity
    monkeypatch.setattr(
        prices, "sensitivity", lambda question, omega: right(question, replace(omega, unit_rows=1))
    )
    assert not audit(mechanisms()["marginals"], relation, Fraction(1), None, 200, 0.999, unit_rows=16).holds


def test_a_unit_that_is_not_truncated_is_found(quick, monkeypatch):
    """The broken twin: 16 rows of a unit, and noise for two, as if two had been kept."""
    every = neighbours.pairs

    def untruncated(mechanism, params, relation, unit_rows):
        pair = every(mechanism, params, relation, 8 * unit_rows)[0]
        return [replace(pair, omega=replace(pair.omega, unit_rows=unit_rows))]

    monkeypatch.setattr(empirical, "pairs", untruncated)
    assert not audit(
        mechanisms()["marginals"], "add_remove", Fraction(1), None, 200, 0.999, unit_rows=2
    ).holds


def test_a_free_number_of_rows_is_found_where_units_are_replaced(one_pair, monkeypatch):
    """The broken twin: n taken for public under replace_one, although a unit may have fewer rows."""
    one_pair(-1)
    monkeypatch.setattr(runs, "open_curator", broken.curator_with(broken.exact_total))
    found = audit(mechanisms()["marginals"], "replace_one", Fraction(1), None, 300, 0.999, unit_rows=2)
    assert "all are gone" in found.pair
    assert not found.holds


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EVERY if not mechanisms()[name].stream])
def test_no_claim_about_units_is_refuted_and_half_of_one_is_seen(name):
    found = [
        audit(mechanisms()[name], relation, Fraction(4), delta, 2500, SURE, unit_rows=3)
        for relation in empirical.RELATIONS
        for delta in (None, DELTA)
    ]
    assert all(each.holds for each in found), found
    assert max(each.audited for each in found) >= 2, found


# --- mistakes ----------------------------------------------------------------------------------------


def refuted(relation: str, delta: Fraction | None, count: int) -> bool:
    found = audit(mechanisms()["marginals"], relation, Fraction(1), delta, count, 0.999)
    return not found.holds


@pytest.mark.parametrize(
    ("change", "number", "count"),
    [
        (broken.halved, 0, 1200),
        (broken.in_order, 0, 1000),
        (broken.exact_total, 1, 300),
        (broken.empty_cells_left, 0, 300),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_mistake_in_the_noise_is_found(one_pair, monkeypatch, change, number, count):
    one_pair(number)
    monkeypatch.setattr(runs, "open_curator", broken.curator_with(change))
    assert refuted("add_remove", None, count)


def test_replace_one_priced_as_add_remove_is_found(one_pair, monkeypatch):
    """Without a delta. With one, the true epsilon is then about 1.4 times the claim, and the bounds of the
    audit are some 0.6 of the truth: 12,000 runs were not enough to tell."""
    one_pair(0)
    right = prices.sensitivity
    monkeypatch.setattr(
        prices,
        "sensitivity",
        lambda question, omega: right(question, replace(omega, neighbours="add_remove")),
    )
    assert refuted("replace_one", None, 1200)


def test_a_curator_that_changes_nothing_is_not_refuted(one_pair, monkeypatch):
    one_pair(0)
    monkeypatch.setattr(runs, "open_curator", broken.curator_with(lambda question, exact, noise: noise))
    found = audit(mechanisms()["marginals"], "add_remove", Fraction(1), None, 300, SURE)
    assert found.holds


def test_a_choice_by_the_true_number_of_rows_is_found(one_pair, monkeypatch):
    """A depth that follows the exact n tells it, although every answer is noisy."""
    one_pair(1)  # n and n + 1
    running: list = []  # what a mechanism never gets: the bench, and which table it runs
    once = runs.Bench._once

    def watched(bench, table, rng):
        running[:] = bench, table
        return once(bench, table, rng)

    def run(ask, omega, params, split):
        bench, table = running
        n = int(bench.exact(Question("n", Total(), Fraction(1)))[table][0])
        return replace(right.run(ask, omega, params, split), facts={"depth": n % 2})

    monkeypatch.setattr(runs.Bench, "_once", watched)
    right = mechanisms()["marginals"]
    found = audit(replace(right, run=run), "add_remove", Fraction(1), None, 300, 0.999)
    assert (found.holds, found.statistic) == (False, "questions and choices")


# --- the bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (1, 10), (10, 10), (37, 1000)])
def test_clopper_pearson_is_where_the_binomial_tail_has_alpha(hits, count):
    alpha = 0.01
    some = np.array([float(hits)])
    low, high = float(at_least(some, count, alpha)[0]), float(at_most(some, count, alpha)[0])

    def tail(p, above):
        ks = range(hits, count + 1) if above else range(hits + 1)
        return sum(math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in ks)

    assert tail(low, True) == pytest.approx(alpha) if hits else low == 0
    assert tail(high, False) == pytest.approx(alpha) if hits < count else high == 1


def test_bounds_are_wrong_no_more_often_than_they_say():
    """A mechanism of exactly epsilon 1: a coin of e/(1+e) or 1/(1+e). Alpha is 10 %, of 4,000 bounds."""
    rng = np.random.default_rng(1)
    p = math.e / (1 + math.e)
    hits, others = (rng.binomial(500, each, 4000).astype(float) for each in (p, 1 - p))
    wrong = (epsilon_bound(hits, others, 500, 0.0, 0.1) > 1).mean()
    assert wrong < 0.1


def test_the_gaussian_epsilon_solves_its_equation():
    for mu in (0.1, 1.0, 5.0):
        epsilon = epsilon_of_mu(mu, 1e-6)
        delta = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        assert delta == pytest.approx(1e-6, rel=1e-6)
    assert epsilon_of_mu(0.0, 1e-6) == 0


def test_the_best_event_separates_what_can_be_separated():
    first, second = np.arange(100.0), np.arange(100.0) + 1000
    proved, event = best_event("x", first, second, 0.0, 0.01)
    assert event.counts(first, second) == (100, 0)
    assert proved > 2


# --- the command -------------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_writes_json_and_a_plot(dpsynth, quick, tmp_path):
    words = ("audit-mechanism", "marginals", "--runs", 100, "--neighbours", "add_remove")
    ran = dpsynth(*words, "--plot", "plot.svg")
    assert (ran.code, ran.err) == (0, "")
    assert "No claim is refuted" in ran.out
    assert (tmp_path / "plot.svg").read_text().count("<polyline") == 2
    ran = dpsynth(*words, "--currency", "pure", "--json")
    (line,) = ran.json["audits"]
    assert line["claimed"] == {"epsilon": 4.0, "delta": 0.0}
    assert line["holds"] is True
    assert line["runs"] == 100


def test_a_refuted_claim_is_exit_code_4(dpsynth, quick, monkeypatch):
    monkeypatch.setattr(runs, "open_curator", broken.curator_with(broken.empty_cells_left))
    ran = dpsynth(
        "audit-mechanism", "marginals", "--epsilon", 1, "--runs", 200, "--neighbours", "add_remove",
        "--currency", "pure",
    )  # fmt: skip
    assert ran.code == 4
    assert ran.err == (
        "Error: marginals tells neighbouring tables apart better than its claim allows.\n"
        "That is a privacy bug: report it, and release nothing with it.\n"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["marginal"], "There is no mechanism marginal"),
        (["marginals", "--epsilon", "0"], "epsilon must be a decimal number above 0"),
        (["marginals", "--epsilon", "21"], "epsilon is above 20"),
        (["marginals", "--delta", "1"], "delta must be a decimal number between 0 and 1"),
        (["marginals", "--runs", "1"], "--runs"),
    ],
)
def test_bad_usage_is_told_before_anything_runs(dpsynth, words, says):
    ran = dpsynth("audit-mechanism", *words)
    assert ran.code == 2
    assert says in ran.err
