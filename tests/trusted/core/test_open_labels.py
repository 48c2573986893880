"""Labels above a threshold: prices, the part of delta, what is answered."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.errors import BudgetError
from dpsynth_cli.labels import KIND, packed, unpacked
from dpsynth_cli.question_json import as_json
from dpsynth_cli.questions import Answer, OpenLabels, Question, Total
from dpsynth_cli.trusted.core import curator
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill, TranscriptMismatch, recorded_ask
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.core.gaussian import rho_of_epsilon
from dpsynth_cli.trusted.core.prices import charge_for
from dpsynth_cli.trusted.noise.words import system_source

APART = F(1, 10**6)
OPEN = Column("city", "nominal", categories=("rest",), other="rest", private=True, open=True)
OMEGA = Domain((OPEN, Column("age", "integer", lower=0, upper=9)))
ASKED = Question("domain", OpenLabels("city", APART), F(1, 4))


def budget() -> Accountant:
    return Accountant.gaussian(F(1), 2 * APART, APART)


def labels(*texts: str) -> np.ndarray:
    return np.array([text.encode() for text in texts], KIND)


class Rows:
    """Labels of a table; nothing else may be asked."""

    def __init__(self, *groups):
        self.groups = groups

    def sums(self, questions):
        raise AssertionError

    def labels(self, names):
        assert names == ["city"]
        yield from self.groups


def asked(rows: Rows, bill: Bill | None = None):
    ask = open_curator(rows, bill or Bill(OMEGA, budget()), system_source(), InMemory(), rows.labels)
    return ask([ASKED])[0]


def test_rho_is_converted_at_the_delta_that_is_left_and_the_rest_is_a_hard_stop():
    both = budget()
    assert both.total == rho_of_epsilon(F(1), APART)
    charge = charge_for(ASKED, OMEGA, both)
    assert (charge.price.delta, charge.price.cost) == (APART, both.total / 4)
    both.charge([charge.price])
    with pytest.raises(
        BudgetError, match=r"The next questions need a delta of 1/1000000, but 0 of it is left"
    ):
        both.charge([charge.price])
    assert both.spent == both.total / 4
    with pytest.raises(ValueError, match="Fraction"):
        Accountant.gaussian(F(1), F(1, 10**6), 1e-9)


def test_labels_that_reach_the_threshold_are_answered_in_order_and_no_others(monkeypatch):
    monkeypatch.setattr(curator, "rounded_gaussian", lambda sigma2, size, source: np.zeros(size, np.int64))
    reached = charge_for(ASKED, OMEGA, budget()).price.threshold
    rows = Rows(
        (0, labels("b", "few"), np.array([reached, reached - 1])),
        (0, labels("ä", "a"), np.array([reached + 5, 10**9])),
    )
    answer = asked(rows)
    assert unpacked(answer.values) == (["a", "b", "ä"], [10**9, reached, reached + 5])
    assert (answer.lengths, answer.noise) == ((3 * 9,), "rounded_gaussian")
    assert unpacked(asked(Rows()).values) == ([], [])


def test_every_label_has_noise_of_its_own():
    price = charge_for(ASKED, OMEGA, budget()).price
    names = [f"{i:04}" for i in range(2000)]
    answer = asked(Rows((0, labels(*names), np.full(2000, 10**7))))
    noise = np.array(unpacked(answer.values)[1]) - 10**7
    assert unpacked(answer.values)[0] == names
    assert 0.8 < noise.std() / price.sd < 1.2  # 12 standard errors
    assert len(np.unique(noise)) > 20


def test_labels_are_asked_for_by_themselves_with_a_delta_and_of_an_open_column():
    ask = open_curator(Rows(), Bill(OMEGA, budget()), system_source(), InMemory(), Rows().labels)
    with pytest.raises(ValueError, match="by themselves"):
        ask([ASKED, Question("n", Total(), F(1, 9))])
    with pytest.raises(ValueError, match="of a table"):
        open_curator(Rows(), Bill(OMEGA, budget()), system_source(), InMemory())([ASKED])
    with pytest.raises(ValueError, match="need a delta"):
        charge_for(ASKED, OMEGA, Accountant.pure(F(1)))
    for wrong in (OpenLabels("age", APART), OpenLabels("city", F(1, 2)), OpenLabels("city", 1e-6)):
        with pytest.raises(ValueError, match="labels"):
            charge_for(Question("domain", wrong, F(1, 4)), OMEGA, budget())
    with pytest.raises(ValueError, match="by class"):
        charge_for(Question("domain", OpenLabels("city", APART), F(1, 4), "city"), OMEGA, budget())


@pytest.mark.parametrize(
    "values",
    [
        packed(labels("a"), np.array([2])),  # below the threshold
        packed(labels("b", "a"), np.array([10**6] * 2)),
        packed(labels("a", "a"), np.array([10**6] * 2)),
        packed(labels(""), np.array([10**6])),
        packed(labels("a\tb"), np.array([10**6])),
        packed(np.array([b"\xff"], KIND), np.array([10**6])),
        packed(np.array([b"a\0b"], KIND), np.array([10**6])),
        packed(labels("a"), np.array([10**6]))[:-1],
    ],
)
def test_a_recorded_answer_that_no_curator_gave_is_refused(values):
    right = packed(labels("a", "b"), np.array([10**6] * 2))
    for recorded, fits in ((right, True), (values, False)):
        bill = Bill(
            OMEGA, budget(), [(as_json(ASKED), Answer(recorded, (len(recorded),), "rounded_gaussian", 1.0))]
        )
        if fits:
            assert unpacked(recorded_ask(bill)([ASKED])[0].values)[0] == ["a", "b"]
        else:
            with pytest.raises(TranscriptMismatch):
                recorded_ask(bill)([ASKED])
