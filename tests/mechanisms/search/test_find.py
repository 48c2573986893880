"""Private bounds and categories: found from noisy counts, at the price that is stated."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dpsynth_cli.mechanisms.search.find as finding
from dpsynth_cli.domain import SECOND, Column, Domain
from dpsynth_cli.mechanisms.search.find import STEP, find, first_looks
from dpsynth_cli.mechanisms.search.noise import reach
from dpsynth_cli.mechanisms.search.outer import DAY, STAND_INS, outer
from dpsynth_cli.questions import Answer, Asking
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.rows.encode import codes
from dpsynth_cli.trusted.sums.tally import Tally

ROWS = 20_000
SHARE = Fraction(1, 5)


@pytest.fixture(autouse=True)
def surely(monkeypatch):
    """Searches that do not fail once in twenty times."""
    monkeypatch.setattr(finding, "FAILURE", Fraction(1, 10**9))


def private(name: str, type: str, **more) -> Column:
    lower, upper = STAND_INS.get(type, (0, 0))
    return Column(name, type, lower=lower, upper=upper, private=True, **more)


class Values:
    """Rows as numbers, which are encoded by whatever is declared."""

    def __init__(self, values: dict[str, np.ndarray]) -> None:
        self.values = values

    def declare(self, omega: Domain) -> None:
        self.omega = omega

    def sums(self, questions):
        tally = Tally(questions, self.omega)
        rows = {name: codes(np.array(x, float), self.omega[name]) for name, x in self.values.items()}
        tally.add(rows, len(next(iter(rows.values()))))
        return tally.sums()


def found(values, omega, epsilon=1.0, delta=None, share=SHARE):
    accountant = (
        Accountant.pure(Fraction(str(epsilon)))
        if delta is None
        else Accountant.gaussian(Fraction(str(epsilon)), Fraction(str(delta)))
    )
    rows, bill = Values(values), Bill(omega, accountant)

    def declare(domain):
        rows.declare(domain)
        bill.declare(domain)

    ask = open_curator(rows, bill, system_source(), InMemory())
    return find(ask, declare, omega, share), bill


RNG = np.random.default_rng(1)
TABLES = {
    "income": np.exp(RNG.normal(10, 0.8, ROWS)),
    "change": RNG.normal(0, 3, ROWS),
    "debt": -RNG.exponential(500, ROWS),
    "tiny": RNG.uniform(1e-9, 4e-9, ROWS),
    "time": 1.6e9 + RNG.uniform(0, 86_400, ROWS),
}


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("name", TABLES)
def test_bounds_hold_nearly_all_rows_and_are_not_a_thousand_times_too_wide(neighbours, delta, name):
    omega, x, widths = Domain((private(name, "continuous"),), neighbours), TABLES[name], []
    for _ in range(3):
        result, bill = found({name: x}, omega, 3.0, delta)
        column = result.domain[name]
        assert not column.private
        assert np.mean((x >= column.lower) & (x <= column.upper)) > 0.995
        widths.append(column.upper - column.lower)
        assert result.facts["sure"] == {name: True}
        assert all(charge.question.step == STEP for charge in bill.charges)
        assert sum(charge.price.cost for charge in bill.charges) == result.spent * bill.accountant.total
        assert result.spent <= SHARE
    low, high = np.quantile(x, [0.02, 0.98])
    assert np.median(widths) < 1000 * (high - low)  # noise stands out in one search of some 200


def test_integers_dates_times_and_the_nullable_keep_their_types_and_units():
    rng = np.random.default_rng(2)
    values = {
        "year": rng.integers(1985, 2024, ROWS),
        "kids": np.where(rng.random(ROWS) < 0.5, np.nan, rng.poisson(1.3, ROWS)),
        "seen": rng.integers(17000, 17900, ROWS),
        "at": 17000 * DAY + rng.integers(0, 86400 * 3, ROWS) * SECOND,
        "none": np.zeros(ROWS),
    }
    types = {"year": "integer", "kids": "integer", "seen": "date", "at": "datetime", "none": "integer"}
    omega = Domain(tuple(private(name, types[name], nullable=name == "kids") for name in values))
    result, _ = found(values, omega, 50.0)
    for column in result.domain:
        x = values[column.name]
        assert column.nullable == (column.name == "kids")
        assert isinstance(column.lower, int)
        assert isinstance(column.upper, int)
        assert column.lower <= np.nanmin(x)
        assert np.nanmax(x) <= column.upper
    assert result.domain["year"].size < 400  # the second look
    assert result.domain["kids"].size <= 64
    assert result.domain["at"].upper - result.domain["at"].lower < 2000 * DAY
    assert result.domain["at"].lower % SECOND == result.domain["at"].upper % SECOND == 0


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_candidates_that_have_rows_are_kept_in_their_order_and_the_other_one_always(neighbours):
    labels = ("A", "B", "C", "D", "rest")
    column = replace(private("city", "nominal"), categories=labels, other="rest")
    values = {"city": np.repeat([3, 0, 1], [9000, 10000, 3])}
    result, bill = found(values, Domain((column,), neighbours))
    assert result.domain["city"].categories == ("A", "D", "rest")
    assert result.domain["city"].other == "rest"
    assert result.spent == SHARE == bill.accountant.spent


def test_nothing_above_the_noise_is_said_and_the_release_goes_on():
    omega = Domain((private("x", "continuous"),))
    result, _ = found({"x": np.zeros(1)}, omega, 0.01)
    assert result.facts["sure"] == {"x": False}
    assert result.notes[0].startswith("nothing of x stood above the noise: what was found there is a guess.")
    assert result.domain["x"].lower < result.domain["x"].upper


def test_what_is_known_is_asked_nothing():
    omega = Domain((Column("x", "continuous", lower=0, upper=1),))
    result, bill = found({"x": np.zeros(3)}, omega)
    assert (result.domain, result.spent, bill.charges) == (omega, 0, [])


@pytest.mark.parametrize("sign", [-1, 1])
def test_while_no_noise_reaches_its_bound_no_empty_cell_is_kept_and_no_heavy_one_is_lost(sign):
    """The theorem of docs/privacy.md, on its own event, with the worst noise that this allows."""
    omega = Domain((replace(private("city", "nominal"), categories=tuple("ABCDEFGH"), nullable=True),))
    question, failure = first_looks(omega, SHARE)
    bill = Bill(outer(omega), Accountant.pure(Fraction(1)))
    charge_sd = bill.sd(question["city"])
    limit = reach("discrete_laplace", charge_sd, 9, failure)
    worst = int(np.ceil(limit)) - 1  # the largest noise of the event
    true = np.array([0, int(np.ceil(2 * limit)), 0, 0, 5 * int(limit), 0, 0, 0, 0])
    noise = np.where(true > 0, -worst, worst) if sign > 0 else np.where(true > 0, worst, -worst)
    answers = Answer(true + noise, (9,), "discrete_laplace", charge_sd)
    ask = Asking(lambda questions: [answers], bill.sd)
    result = find(ask, lambda domain: None, omega, SHARE)
    assert result.domain["city"].categories == ("B", "E")
    assert result.facts["rows_seen"]["city"] == np.ceil(2 * limit)
    assert failure == float(finding.FAILURE)


@pytest.mark.parametrize("scattered", [0, 400, 800])
def test_rows_that_a_second_look_may_have_left_out_are_said(scattered):
    """Rows scattered over many cells are below the noise of each: more are lost than the first look sees."""
    rng = np.random.default_rng(scattered)
    near, far = rng.integers(200_000, 200_300, ROWS), rng.integers(131_072, 190_000, scattered)
    x = np.concatenate([near, far]).astype(float)
    lost, said, seen = [], [], []
    for _ in range(5):
        result, _ = found({"x": x}, Domain((private("x", "continuous"),)), share=Fraction(1, 10))
        column = result.domain["x"]
        lost.append(int(((x < column.lower) | (x > column.upper)).sum()))
        seen.append(result.facts["rows_seen"]["x"])
        said.append(result.facts["may_be_outside"].get("x", seen[-1]))
    assert np.sum(np.array(lost) > np.array(said)) <= 1  # three standard deviations
    assert scattered or max(lost) == 0
