"""The audit refutes no mechanism, comes near every claim, and finds the mistakes that others have made."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evidence import empirical, runs
from dpsynth_cli.evidence.bounds import at_least, at_most, best_event, epsilon_bound, epsilon_of_mu
from dpsynth_cli.evidence.empirical import audit
from dpsynth_cli.mechanisms.registry import mechanisms
from tests.evidence import broken

EVERY = list(mechanisms())
SURE = 1 - 1e-7  # so that a false alarm is rarer than one in a million runs of the whole suite
DELTA = Fraction(1, 10**5)


@pytest.mark.parametrize("name", EVERY)
def test_a_small_claim_is_not_refuted_and_a_large_one_is_seen(one_pair, name):
    """Few runs can prove that tables differ by 2 or so: more than a claim of 1, less than one of 8."""
    one_pair(0)
    assert audit(mechanisms()[name], "add_remove", Fraction(1), None, 100, SURE, count=20_000).holds
    assert audit(mechanisms()[name], "add_remove", Fraction(8), None, 100, 0.99, count=1000).lower > 1


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
    words = (
        "audit-mechanism", "marginals", "--runs", 100, "--neighbours", "add_remove", "--confidence", SURE,
        "--transcripts", 10_000,
    )  # fmt: skip
    ran = dpsynth(*words, "--plot", "plot.svg")
    assert (ran.code, ran.err) == (0, "")
    assert "A line has 200 releases and 20,000 transcripts of the worst one." in ran.out
    assert "No claim is refuted" in ran.out
    assert (tmp_path / "plot.svg").read_text().count("<polyline") == 2
    ran = dpsynth(*words, "--currency", "pure", "--json")
    (line,) = ran.json["audits"]
    assert line["claimed"] == {"epsilon": 4.0, "delta": 0.0}
    assert line["holds"] is True
    assert line["runs"] == 100
    assert line["transcripts"]["exactly"] == 1
    assert 0.7 < line["of_claim"] <= 1


def test_parameters_are_those_of_the_command_line(dpsynth, monkeypatch):
    audited = []

    def audit(mechanism, *words):
        audited.append((mechanism.name, words[-1]))
        raise UsageError("enough")

    monkeypatch.setattr(empirical, "audit", audit)
    assert dpsynth("audit-mechanism", "online", "--set", "algorithm=joint").code == 2
    assert audited == [("online", mechanisms()["online"].params(algorithm="joint"))]


def test_a_refuted_claim_is_exit_code_4(dpsynth, quick, monkeypatch):
    monkeypatch.setattr(runs, "open_curator", broken.curator_with(broken.empty_cells_left))
    ran = dpsynth(
        "audit-mechanism", "marginals", "--epsilon", 1, "--runs", 200, "--neighbours", "add_remove",
        "--currency", "pure", "--transcripts", 1000,
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
        (["online", "--set", "algorithm=joit"], "algorithm is joit; it must be one of blocks, joint"),
        (["online", "--set", "algoritm=joint"], "is not a known key (did you mean algorithm?)"),
    ],
)
def test_bad_usage_is_told_before_anything_runs(dpsynth, words, says):
    ran = dpsynth("audit-mechanism", *words)
    assert ran.code == 2
    assert says in ran.err
