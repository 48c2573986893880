"""What numbers are rounded to: found from noisy counts, and never where rows cannot be told from noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import STEPS, Column, Domain
from dpsynth_cli.mechanisms.search.find import find
from dpsynth_cli.mechanisms.search.steps import MORE, SHARE, roundable, rounded
from dpsynth_cli.questions import Answer
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.noise.words import system_source
from tests.mechanisms.search.test_find import Values, private

ROWS = 20_000
RNG = np.random.default_rng(4)
BASE = RNG.gamma(2, 20, ROWS)
ROUNDED = {
    "price": (np.round(BASE, 2), Fraction(1, 100)),
    "half": (np.round(2 * BASE) / 2, Fraction(1, 2)),
    "pay": (np.round(100 * BASE, -2), Fraction(100)),
    "exact": (BASE, None),
    "some": (np.where(RNG.random(ROWS) < 0.5, np.round(BASE), BASE), None),
}


def found(values, omega, epsilon, delta=None):
    exact = Fraction(str(epsilon))
    accountant = Accountant.pure(exact) if delta is None else Accountant.gaussian(exact, Fraction(str(delta)))
    rows, bill = Values(values), Bill(omega, accountant)

    def declare(domain):
        rows.declare(domain)
        bill.declare(domain)

    declare(omega)
    ask = open_curator(rows, bill, system_source(), InMemory())
    return find(ask, declare, omega, Fraction(1, 10), set(values)), rows, bill


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_steps_are_found_for_the_stated_share(neighbours, delta):
    columns = tuple(Column(name, "continuous", lower=0.0, upper=40_000.0) for name in ROUNDED)
    # The scale of noise is at most 2.5 rows here, and 100 rows of a step are there: exp(-40).
    made, rows, bill = found(
        {name: x for name, (x, _) in ROUNDED.items()}, Domain(columns, neighbours), 200, delta
    )
    assert {c.name: c.step for c in made.domain} == {name: step for name, (_, step) in ROUNDED.items()}
    assert rows.omega == made.domain
    assert made.spent == SHARE == sum(charge.question.share for charge in bill.charges)
    assert all(sum(charge.lengths) == len(STEPS) + 2 for charge in bill.charges)
    assert made.facts["steps"]["half"] == 0.5


def test_where_noise_could_be_all_rows_nothing_is_found():
    omega = Domain((Column("price", "continuous", lower=0.0, upper=400.0),))
    made, _, _ = found({"price": ROUNDED["price"][0]}, omega, 0.01)
    assert made.domain == omega
    assert made.spent == SHARE


def test_zeros_say_nothing():
    """Zero is a multiple of every step; where most rows have it, the others decide, or nobody."""
    cents = np.where(RNG.random(ROWS) < 0.93, 0.0, ROUNDED["price"][0])
    omega = Domain((Column("x", "continuous", lower=0.0, upper=1e5),))
    assert found({"x": cents}, omega, 200)[0].domain["x"].step == Fraction(1, 100)
    for few in (np.where(np.arange(ROWS) < 20, cents + 0.01, 0.0), np.zeros(ROWS)):
        assert found({"x": few}, omega, 5)[0].domain == omega


def test_whole_numbers_have_steps_above_one_only():
    columns = (Column("wind", "integer", lower=3, upper=363), Column("n", "integer", lower=0, upper=999))
    rng = np.random.default_rng(5)
    values = {"wind": 10 * rng.integers(1, 37, ROWS), "n": rng.integers(0, 1000, ROWS)}
    made, _, _ = found(values, Domain(columns), 200)
    assert made.domain["wind"] == Column("wind", "integer", lower=10, upper=360, step=Fraction(10))
    assert made.domain["n"] == columns[1]


def test_bounds_are_found_first_and_missing_values_say_nothing():
    values = np.where(RNG.random(ROWS) < 0.3, np.nan, ROUNDED["price"][0])
    made, _, _ = found({"x": values}, Domain((private("x", "continuous", nullable=True),)), 500)
    assert made.domain["x"].step == Fraction(1, 100)
    assert made.domain["x"].upper < 4000
    assert {"sure", "steps"} <= set(made.facts)


def test_what_is_not_worth_a_look():
    assert not roundable(Column("n", "integer", lower=0, upper=20))
    assert not roundable(Column("x", "continuous", lower=0.0, upper=1.0, decimals=2))
    assert not roundable(Column("x", "continuous", lower=1.0, upper=9.0, scale="log"))
    assert not roundable(Column("x", "continuous", lower=1.0, upper=1.0))
    assert not roundable(Column("c", "nominal", categories=("a",)))


def test_a_rare_finer_value_is_rounded_and_a_step_wider_than_the_bounds_is_none():
    counts = np.zeros(len(STEPS) + 1, np.int64)
    counts[[6, 8]] = 99_700, 300
    found = rounded(Column("x", "continuous", lower=0.0, upper=9.0), Answer(counts, (24,), "none", 1.0))
    assert found.step == 1
    counts[:] = 0
    counts[0] = 1000
    zeros = Column("x", "continuous", lower=-1.0, upper=9.0)
    assert rounded(zeros, Answer(counts, (24,), "none", 1.0)) == zeros


@pytest.mark.parametrize("epsilon", [1_500, 3_000, 30_000, 10**6])
def test_hardly_any_noise_hides_no_step(epsilon):
    values = np.round(RNG.gamma(2, 20, 500), 2)
    made, _, _ = found({"x": values}, Domain((Column("x", "continuous", lower=0.0, upper=400.0),)), epsilon)
    assert (made.spent, made.domain["x"].step) == (SHARE, Fraction(1, 100))


@pytest.mark.parametrize(("epsilon", "share"), [(3, None), (200, SHARE), (0.3, SHARE)])
def test_more_is_spent_where_that_shows_the_steps_of_three_thousand_rows(epsilon, share):
    names = [f"x{i}" for i in range(8)]
    columns = tuple(Column(name, "continuous", lower=0.0, upper=400.0) for name in names)
    values = {name: np.round(RNG.gamma(2, 20, 3_000), 2) for name in names}
    made, _, bill = found(values, Domain(columns), epsilon)
    assert made.spent == sum(charge.question.share for charge in bill.charges)
    if share is None:
        assert SHARE < made.spent <= MORE[-1]
    else:
        assert made.spent == share
    cents = sum(column.step == Fraction(1, 100) for column in made.domain)
    assert cents >= 7 if epsilon >= 3 else cents == 0
