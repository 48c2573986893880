"""The border: charge, then read, then noise, then durable, then answer."""

from __future__ import annotations

import gc
import weakref
from fractions import Fraction
from math import erf, exp, sqrt

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.errors import BudgetError, FileError, UsageError
from dpsynth_cli.question_json import as_json
from dpsynth_cli.questions import (
    Answer,
    CellCounts,
    Cells,
    Halves,
    Misfit,
    Moments,
    Question,
    RowScores,
    Total,
)
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill, TranscriptMismatch
from dpsynth_cli.trusted.core.curator import noise_for, open_curator, shuffled
from dpsynth_cli.trusted.core.prices import charge_for
from dpsynth_cli.trusted.noise.words import SystemSource, system_source
from dpsynth_cli.trusted.sums.tally import Tally
from tests.trusted.seeded import SeededSource

OMEGA = Domain(
    (Column("x", "continuous", lower=0.0, upper=1.0), Column("k", "boolean", categories=("false", "true")))
)
PUBLIC_N = Domain(OMEGA.columns, "replace_one")
ROWS = {"x": np.arange(1000) * 1000, "k": np.arange(1000) % 2}


def level(bits: int, share: Fraction, by: str | None = None) -> Question:
    return Question("counts", CellCounts(Cells((Halves("x", bits),), (0,) * bits)), share, by)


class Steps:
    """What happened, in order."""

    def __init__(self, omega=OMEGA, recorded=(), accountant=None):
        self.seen: list[str] = []
        self.kept: list[tuple[object, Answer]] = []
        self.omega, self.accountant = omega, accountant or Accountant.pure(Fraction(1))
        bill = Bill(omega, self.accountant, recorded)
        self.bill = bill.charges
        self.ask = open_curator(self, bill, system_source(), self)

    def before_rows(self):
        self.seen.append("charged")

    def sums(self, questions):
        self.seen.append(f"read for {len(questions)}")
        tally = Tally(questions, self.omega)
        tally.add(ROWS, 1000)
        return tally.sums()

    def record(self, charges, answers):
        self.seen.append("durable")
        self.kept += [(as_json(c.question), answer) for c, answer in zip(charges, answers, strict=True)]


def test_the_charge_comes_before_the_rows_and_durability_before_the_answer():
    steps = Steps()
    steps.ask([level(2, Fraction(1, 2)), level(1, Fraction(1, 4))])
    steps.ask([level(1, Fraction(1, 4))])
    assert steps.seen == ["charged", "read for 2", "durable", "charged", "read for 1", "durable"]
    assert steps.accountant.spent == 1
    assert [charge.price.cost for charge in steps.bill] == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]


def test_overspending_is_refused_before_any_row_is_read():
    steps = Steps()
    with pytest.raises(BudgetError):
        steps.ask([level(1, Fraction(1, 2)), level(1, Fraction(501, 1000))])
    assert steps.seen == []
    assert steps.accountant.spent == 0


def test_nothing_is_answered_after_the_budget_is_gone():
    steps = Steps()
    steps.ask([level(1, Fraction(1))])
    with pytest.raises(BudgetError):
        steps.ask([level(1, Fraction(1, 10**9))])
    assert steps.seen == ["charged", "read for 1", "durable"]


def test_a_share_of_nothing_is_refused_unless_the_answer_is_public():
    with pytest.raises(ValueError, match="positive share"):
        Steps().ask([Question("n", Total(), Fraction(0))])
    answer = Steps(PUBLIC_N).ask([Question("n", Total(), Fraction(0))])[0]
    assert (answer.values.tolist(), answer.noise) == ([1000], "none")


def test_a_price_that_is_known_is_charged_again_and_for_this_budget():
    half = level(1, Fraction(1, 2))
    steps = Steps()
    for _ in range(2):
        steps.ask([half])
    with pytest.raises(BudgetError):
        steps.ask([half])
    for epsilon in (Fraction(1), Fraction(2), Fraction(1)):
        accountant = Accountant.pure(epsilon)
        price = charge_for(half, OMEGA, accountant).price
        assert price == accountant.price(half.share, 1, 1)
        assert charge_for(half, PUBLIC_N, accountant).price == accountant.price(half.share, 2, 2)
    rho = Accountant.gaussian(Fraction(1), Fraction(1, 10**6))
    assert charge_for(half, OMEGA, rho).price == rho.price(half.share, 1, 1)


def test_a_float_share_is_refused_though_the_price_of_its_equal_is_known():
    charge_for(level(1, Fraction(1, 2)), OMEGA, Accountant.pure(Fraction(1)))
    for share in (0.5, np.float32(0.5)):
        with pytest.raises(TypeError, match="must be a Fraction"):
            charge_for(level(1, share), OMEGA, Accountant.pure(Fraction(1)))


def test_noise_that_would_not_fit_is_refused_before_any_row_is_read():
    steps = Steps(accountant=Accountant.pure(Fraction(1, 10**20)))
    with pytest.raises(UsageError, match="would not fit in 64 bits"):
        steps.ask([level(1, Fraction(1))])
    assert steps.seen == []


def test_every_answer_is_noisy_and_two_runs_differ():
    one, other = (Steps().ask([level(10, Fraction(1))])[0].values for _ in range(2))
    exact = np.bincount(ROWS["x"] >> 20, minlength=1024)
    assert (one != other).mean() > 0.3
    assert (one[exact == 0] != 0).mean() > 0.3  # empty cells are noised too
    assert abs((one - exact).sum()) < 2000


def test_recorded_answers_are_given_again_and_not_asked_again():
    first = Steps()
    questions = [level(3, Fraction(1, 2)), level(2, Fraction(1, 4))]
    given = first.ask(questions)
    again = Steps(recorded=first.kept[:1])
    resumed = again.ask(questions)
    assert again.seen == ["charged", "read for 1", "durable"]
    assert (resumed[0].values == given[0].values).all()
    assert again.accountant.spent == Fraction(3, 4)
    whole = Steps(recorded=first.kept)
    whole.ask(questions)
    assert whole.seen == []


def test_recorded_answers_to_other_questions_are_refused():
    first = Steps()
    first.ask([level(3, Fraction(1, 2))])
    with pytest.raises(TranscriptMismatch):
        Steps(recorded=first.kept).ask([level(3, Fraction(1, 4))])


def test_noise_comes_from_the_system_only():
    class Mine(SystemSource):
        pass

    for source in (SeededSource(1), Mine()):
        with pytest.raises(TypeError, match="operating system"):
            open_curator(None, Bill(OMEGA, Accountant.pure(Fraction(1))), source, None)


def test_recipe_f_halves_the_variance_above_the_diagonal():
    columns = tuple(Column(f"c{i}", "continuous", lower=0.0, upper=1.0) for i in range(4))
    omega = Domain((*columns, OMEGA["k"]))
    clipped = Moments(tuple(c.name for c in columns), 10, 2, Fraction(1))
    charge = charge_for(
        Question("m", clipped, Fraction(1), "k"), omega, Accountant.gaussian(Fraction(1), Fraction(1, 10**6))
    )
    source = SeededSource(3)
    draws = np.array([noise_for(charge, omega, source) for _ in range(4000)], dtype=float)
    i, j = np.triu_indices(4)
    relative = draws.var(axis=0) / float(charge.price.parameter)
    diagonal = np.tile(i == j, 2)
    assert np.abs(relative[diagonal] - 1).max() < 0.15
    assert np.abs(relative[~diagonal] - 0.5).max() < 0.075


def test_answers_get_rounded_gaussian_noise_and_not_the_discrete_one():
    """Where there is little noise the two are far apart: of variance 0.15 the rounded one is 0 in 80 % of the
    cases, the discrete one in 93 %. Only the rounded one has the Gaussian profile."""
    accountant = Accountant.gaussian(Fraction(15), Fraction(1, 10**6))
    charge = charge_for(level(10, Fraction(1)), OMEGA, accountant)
    sigma2 = float(charge.price.parameter)
    assert charge.price.noise == "rounded_gaussian"
    assert 0.05 < sigma2 < 0.3
    source = SeededSource(4)
    drawn = np.concatenate([noise_for(charge, OMEGA, source) for _ in range(20)])
    rounded = erf(0.5 / sqrt(2 * sigma2))
    discrete = 1 / (1 + 2 * exp(-1 / (2 * sigma2)) + 2 * exp(-4 / (2 * sigma2)))
    assert np.mean(drawn == 0) == pytest.approx(rounded, abs=0.015)
    assert abs(rounded - discrete) > 0.05


def test_the_price_of_a_histogram_doubles_under_replace_one():
    for accountant, factor in (
        (Accountant.pure(Fraction(1)), 2),
        (Accountant.gaussian(Fraction(1), Fraction(1, 10**6)), 2),
    ):
        plain = charge_for(level(3, Fraction(1, 2)), OMEGA, accountant).price
        replaced = charge_for(level(3, Fraction(1, 2)), PUBLIC_N, accountant).price
        assert float(replaced.parameter / plain.parameter) == pytest.approx(factor, rel=1e-6)
        assert plain.cost == replaced.cost


def test_cube_noise_is_drawn_for_each_class_by_itself():
    columns = tuple(Column(f"c{j}", "continuous", lower=0.0, upper=1.0) for j in range(8))
    omega = Domain((*columns, OMEGA["k"]))
    question = Question("mean", Moments(tuple(c.name for c in columns), 14, 1), Fraction(1), "k")
    charge = charge_for(question, omega, Accountant.pure(Fraction(1)))
    assert charge.as_json()["sensitivity"] == {"norm": "Linf", "value": str(2**14 - 1)}
    assert (charge.price.noise, charge.price.parameter) == ("discrete_cube", 2**14 - 1)
    drawn = np.array([noise_for(charge, omega, SeededSource(seed)) for seed in range(600)])
    assert drawn.std() == pytest.approx(charge.price.sd, rel=0.08)
    first, second = (np.abs(drawn[:, part]).max(axis=1) for part in (slice(8), slice(8, 16)))
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / 600**0.5  # two radii; inside a block there is one
    inside = np.abs(drawn[:, :4]).max(axis=1), np.abs(drawn[:, 4:8]).max(axis=1)
    assert np.corrcoef(*inside)[0, 1] > 0.3


def row_scores(rows: int) -> Question:
    axis = Halves("x", 8)
    scores = tuple(range(-128, 128))
    return Question("w", RowScores((axis,), (scores,), ((1,), (2,)), 10**6, rows), Fraction(1))


def test_row_scores_come_in_another_order_each_time():
    exact = np.arange(2000)
    one, other = (shuffled(exact, 2, system_source()).reshape(-1, 2) for _ in range(2))
    assert (one[:, 1] == one[:, 0] + 1).all()  # rows stay whole
    assert (np.sort(one[:, 0]) == np.arange(0, 2000, 2)).all()
    assert (one != other).any()
    places = np.array([np.flatnonzero(shuffled(exact, 2, system_source()) == 0)[0] for _ in range(400)])
    assert abs(places.mean() - 999) < 6 * 577 / 20  # the first row is anywhere


def test_row_scores_of_another_number_of_rows_are_refused():
    assert len(Steps(PUBLIC_N).ask([row_scores(1000)])[0].values) == 2000
    with pytest.raises(FileError, match="number of rows changed"):
        Steps(PUBLIC_N).ask([row_scores(999)])


def misfit(share: Fraction, by: str | None = None, expected: int = 250) -> Question:
    tables = (Cells((Halves("x", 2),)), Cells((Halves("x", 1), Halves("k", 1))), Cells(()))
    each = ((expected,) * 4, (expected,) * 4, (4 * expected,))
    return Question("fit", Misfit(tables, (each,) * (2 if by else 1)), share, by)


def test_a_misfit_is_priced_by_its_tables_and_answered_with_noise():
    rho = Accountant.gaussian(Fraction(1), Fraction(1, 10**6))
    half = Fraction(1, 2)
    for omega, l1, l2_squared in ((OMEGA, 3, 3), (PUBLIC_N, 6, 12)):
        for by in (None, "k"):
            for accountant in (Accountant.pure(Fraction(1)), rho):
                charge = charge_for(misfit(half, by), omega, accountant)
                assert charge.price == accountant.price(half, l1, l2_squared)
                line = charge.as_json()
                assert line["question"] == "Misfit"
                assert line["cells"] == (6 if by else 3)
                assert line["columns"] == ["k", "x"]
                pure = accountant is not rho
                norm, value = ("L1", l1) if pure else ("L2 squared", l2_squared)
                assert line["sensitivity"] == {"norm": norm, "value": str(value)}
    answers = [Steps().ask([misfit(Fraction(1))])[0] for _ in range(200)]
    assert {(answer.lengths, answer.noise) for answer in answers} == {((3,), "discrete_laplace")}
    values = np.array([answer.values for answer in answers])
    exact = [1500, 1000, 0]  # all rows are in the lowest cell of x, half of them in each class
    assert np.abs(values.mean(axis=0) - exact).max() < 6 * answers[0].sd / 200**0.5
    assert values.std(axis=0) == pytest.approx(answers[0].sd, rel=0.4)


def test_a_misfit_is_given_again_only_if_the_same_was_expected():
    first = Steps()
    (given,) = first.ask([misfit(Fraction(1, 2), "k")])
    (again,) = Steps(recorded=first.kept).ask([misfit(Fraction(1, 2), "k")])
    assert (again.values == given.values).all()
    with pytest.raises(TranscriptMismatch):
        Steps(recorded=first.kept).ask([misfit(Fraction(1, 2), "k", 251)])


def test_what_was_expected_is_not_kept_with_prices():
    question = misfit(Fraction(1, 2), None, 777)  # as no other test has it
    charge_for(question, OMEGA, Accountant.pure(Fraction(1)))
    kept = weakref.ref(question.statistic)
    del question
    gc.collect()
    assert kept() is None


def test_a_misfit_whose_noise_would_not_fit_is_refused_before_any_row_is_read():
    def far(expected: int) -> Question:
        return Question("fit", Misfit((Cells((Halves("x", 8),)),), (((expected,) * 256,),)), Fraction(1))

    steps = Steps(accountant=Accountant.pure(Fraction(1, 35 * 10**15)))
    with pytest.raises(UsageError, match="would not fit in 64 bits"):
        steps.ask([far(2**53)])
    assert steps.seen == []
    assert steps.ask([far(0)])[0].sd > 10**16  # the same noise on shorter distances
