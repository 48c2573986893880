"""Likelihood ratios are exact, the worst run nearly reaches the claim, and its transcripts prove nearly as
much."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evidence import transcripts, worst
from dpsynth_cli.evidence.bounds import epsilon_of_mu
from dpsynth_cli.evidence.likelihood import Told, loss
from dpsynth_cli.evidence.worst import part_of_claim, within_claim
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.questions import Answer, Bins, CellCounts, Cells, Moments, Question, Total
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.gaussian import mu_of_rho
from dpsynth_cli.trusted.core.prices import charge_for
from dpsynth_cli.trusted.noise.words import system_source
from tests.enumeration.gaussian_profile import rounded_pmf

DELTA = Fraction(1, 10**5)
SURE = 1e-7
EVERY = [
    (name, relation, delta)
    for name in mechanisms()
    for relation in ("add_remove", "replace_one")
    for delta in (None, DELTA)
]
OMEGA = Domain(tuple(Column(name, "integer", lower=0, upper=3) for name in "xy"))


def budget(delta: Fraction | None) -> Accountant:
    return Accountant.pure(Fraction(4)) if delta is None else Accountant.gaussian(Fraction(4), delta)


def told(question: Question, accountant: Accountant, moved: list[int]) -> Told:
    charge = charge_for(question, OMEGA, accountant)
    second = np.arange(len(moved))
    answer = Answer(second, charge.lengths, charge.price.noise, charge.price.sd)
    return Told(charge, answer, second + moved, second)


COUNTS = Question("s", CellCounts(Cells((Bins("x", (0, 1, 2, 4)),))), Fraction(1))
MEAN = Question("s", Moments(("x", "y"), 4, 1), Fraction(1))
SQUARES = Question("s", Moments(("x", "y"), 2, 2, Fraction(1)), Fraction(1))


# --- one answer -----------------------------------------------------------------------------------------


def test_the_ratio_of_laplace_noise_is_the_formula_and_never_above_the_loss():
    each = told(COUNTS, Accountant.pure(Fraction(3, 2)), [1, 0, -1])
    assert each.charge.price.noise == "discrete_laplace"
    assert each.loss() == 2 * Fraction(3, 2)  # these two tables are no neighbours under add_remove
    noise = np.array([[0, 7, 0], [-5, 7, 5], [5, -3, -5], [0, 0, 1]])
    assert each.log_ratios(noise, True) == pytest.approx([3, -3, 3, 0])
    assert each.log_ratios(noise, False) == pytest.approx([-3, -3, 3, -3])


def test_the_ratio_of_cube_noise_is_the_formula_and_never_above_the_loss():
    each = told(MEAN, Accountant.pure(Fraction(1, 4)), [15, -15])
    assert each.charge.price.noise == "discrete_cube"
    assert each.loss() == Fraction(1, 4)
    noise = np.array([[0, 0], [15, 40], [100, 3]])
    scale = float(each.charge.price.parameter)
    assert each.log_ratios(noise, True) * scale == pytest.approx([15, -10, 15])


def test_the_ratio_of_rounded_gaussian_noise_is_that_of_exact_probabilities():
    each = told(COUNTS, Accountant.gaussian(Fraction(4), DELTA), [2, 0, -1])
    sigma2 = each.charge.price.parameter
    assert each.loss() == 5 / sigma2
    pmf, _ = rounded_pmf(sigma2)
    logs = {x: float(np.log(float(low))) for x, (low, _) in pmf.items()}
    noise = np.array([[0, 0, 0], [3, 1, -3], [-4, 0, 5]])
    expected = [logs[a] + logs[c] - logs[a + 2] - logs[c - 1] for a, _, c in noise.tolist()]
    # The exact ones are of a grid of step 2^-12, which is hardly to be seen.
    assert each.log_ratios(noise, True) == pytest.approx(expected, abs=2e-3)


def test_above_the_diagonal_of_clipped_squares_the_variance_is_half():
    each = told(SQUARES, Accountant.gaussian(Fraction(4), DELTA), [1, 1, 1])
    assert each.charge.sensitivity.half_above
    sigma2 = each.charge.price.parameter
    assert each.loss() == 4 / sigma2


def test_an_exact_answer_that_differs_tells_everything():
    free = Question("n", Total(), Fraction(0))
    charge = charge_for(free, replace(OMEGA, neighbours="replace_one"), Accountant.pure(Fraction(1)))
    each = Told(charge, Answer(np.array([1]), (1,), "none", 0.0), np.array([1]), np.array([0]))
    assert each.log_ratios(np.zeros((3, 1), np.int64), True).tolist() == [1e6] * 3
    assert not within_claim(each.loss(), Accountant.pure(Fraction(20)))


# --- whole runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "relation", "delta"), EVERY)
def test_the_worst_run_tells_97_percent_of_the_claim_and_never_more(monkeypatch, name, relation, delta):
    """Exactly, and whatever the noise was."""
    monkeypatch.setattr(worst, "RUNS", 1)
    mechanism = mechanisms()[name]
    found = worst.worst(mechanism, mechanism.params(), relation, budget(delta))
    assert found.part >= 0.97
    assert within_claim(found.loss, budget(delta))


UNITS = [case for case in EVERY if case[0] != "online" or case[1:] == ("add_remove", None)]  # 128 pushes each


@pytest.mark.parametrize(("name", "relation", "delta"), UNITS)
def test_the_worst_run_tells_90_percent_of_the_claim_for_a_unit_of_three_rows(
    monkeypatch, name, relation, delta
):
    """No less than 0.9: under replace_one the noisy number of rows does not move, and has a share."""
    monkeypatch.setattr(worst, "RUNS", 1)
    mechanism = mechanisms()[name]
    found = worst.worst(mechanism, mechanism.params(), relation, budget(delta), unit_rows=3)
    assert found.part >= 0.9
    assert within_claim(found.loss, budget(delta))
    assert max(int(np.abs(each.moved).max()) for each in found.told) >= 3


def proved(
    name: str, relation: str, delta: Fraction | None, count: int, unit_rows: int | None = None
) -> float:
    """The part of the claimed epsilon, or mu, that transcripts prove."""
    mechanism, accountant = mechanisms()[name], budget(delta)
    found = worst.worst(mechanism, mechanism.params(), relation, accountant, unit_rows)
    epsilon, mu = transcripts.proved(
        found.told, found.bench.pair.omega, count, float(delta or 0), SURE, delta is not None, system_source()
    )
    return epsilon / 4 if delta is None else mu / float(mu_of_rho(accountant.total))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "relation", "delta"), EVERY)
def test_transcripts_prove_90_percent_of_every_claim_and_never_more_than_it(name, relation, delta):
    """With 400,000 of each table; that a bound is above the truth has probability 1e-7."""
    assert 0.9 <= proved(name, relation, delta, 400_000) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "relation", "delta"), EVERY)
def test_transcripts_prove_90_percent_of_every_claim_for_units(name, relation, delta):
    assert 0.9 <= proved(name, relation, delta, 400_000, unit_rows=3) <= 1


@pytest.mark.parametrize("delta", [None, DELTA])
def test_fewer_transcripts_prove_less_but_most_of_it(delta):
    """0.9 of the claim is 20 times as far from the truth as the bound's standard deviation."""
    assert 0.8 < proved("marginals", "add_remove", delta, 60_000) <= 1


def test_halved_noise_is_refuted_by_transcripts(monkeypatch):
    right = transcripts.noise_for
    monkeypatch.setattr(transcripts, "noise_for", lambda *words: np.trunc(right(*words) / 2).astype(np.int64))
    assert proved("marginals", "add_remove", None, 60_000) > 1.2


def test_more_runs_that_say_nothing_prove_nothing():
    """Two tables that are the same."""
    mechanism = mechanisms()["marginals"]
    found = worst.worst(mechanism, mechanism.params(), "add_remove", budget(None))
    same = [replace(each, second=each.first) for each in found.told]
    assert loss(same) == 0
    assert part_of_claim(loss(same), budget(DELTA)) == 0
    words = found.bench.pair.omega, 5000, 0.0, SURE, True, system_source()
    assert transcripts.proved(same, *words) == (0.0, 0.0)
    assert epsilon_of_mu(0.0, 1e-5) == 0
