"""Streams with one mistake each: the audit must find them."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction

import pytest

from dpsynth_cli.evidence import streams, worst
from dpsynth_cli.evidence.empirical import audit
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.release.stream.snapshot import header_of, model_of
from dpsynth_cli.release.stream.step import advance
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.stream import release_prices
from dpsynth_cli.trusted.stream.factorisation import UNIT, Branches, SquareRoot
from dpsynth_cli.trusted.stream.state import StreamState

BUDGETS = {
    "pure": Accountant.pure(Fraction(1)),
    "delta": Accountant.gaussian(Fraction(1), Fraction(1, 10**5)),
}


@pytest.fixture(autouse=True)
def priced_anew(one_pair):
    """One pair of tables, and prices that are worked out anew."""
    one_pair(0)
    release_prices.charge_over.cache_clear()
    yield
    release_prices.charge_over.cache_clear()


def part_of_claim(budget: str, relation: str = "add_remove", horizon: int | None = None) -> float:
    """The exact loss of the worst run of a whole phase, as a part of the claim."""
    mechanism = mechanisms()["online"]
    found = worst.worst(mechanism, mechanism.params(horizon=horizon), relation, BUDGETS[budget])
    assert worst.within_claim(found.loss, BUDGETS[budget]) == (found.part <= 1)
    return found.part


@pytest.mark.parametrize("budget", BUDGETS)
def test_an_event_pays_nearly_the_whole_in_its_phase_and_never_more(monkeypatch, budget):
    monkeypatch.setattr(worst, "RUNS", 1)
    assert 0.98 < part_of_claim(budget) <= 1


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("horizon", [20, 100])
def test_with_a_known_end_an_event_pays_nearly_the_whole_until_then_and_never_more(
    monkeypatch, budget, horizon
):
    monkeypatch.setattr(worst, "RUNS", 1)
    assert 0.97 < part_of_claim(budget, horizon=horizon) <= 1


def test_a_stream_that_goes_on_beyond_its_end_is_found(monkeypatch):
    """Priced for 5 releases, and released 100 times."""
    monkeypatch.setattr(worst, "RUNS", 1)
    right = release_prices.phase_of
    monkeypatch.setattr(release_prices, "phase_of", lambda release, most: right(1, most and 5))
    assert part_of_claim("pure", horizon=100) > 1.9
    assert part_of_claim("delta", horizon=100) > 1.1


def test_a_column_priced_as_one_row_is_found(monkeypatch):
    monkeypatch.setattr(worst, "RUNS", 1)
    monkeypatch.setattr(Branches, "norm", lambda self, length: 1)
    monkeypatch.setattr(SquareRoot, "norm", lambda self, length: UNIT**2)
    assert part_of_claim("pure") > 1.9
    assert part_of_claim("delta") > 1.5


def test_a_block_that_has_the_entry_of_its_newest_release_is_found(monkeypatch):
    """Then the entries of older releases are larger than those of their age, which the norm is made of."""
    right = SquareRoot.rows

    def newest(self, starts, step, length):
        ends = [*starts[1:], step]
        return right(
            self,
            [end - 1 if start >= 0 else start for start, end in zip(starts, ends, strict=True)],
            step,
            length,
        )

    monkeypatch.setattr(worst, "RUNS", 1)
    monkeypatch.setattr(SquareRoot, "rows", newest)
    assert part_of_claim("delta") > 1


def drawn_anew(bench, table):
    """As if an older copy of the state had been gone on with, three times for each release."""
    state, seen, asked = StreamState("", "", {}, 0), [], []
    for number, rows in enumerate(bench.pushes[table]):
        for one in (*(deepcopy(state) for _ in range(3)), state):
            advance(one, bench.spec, rows, str(number), streams.DAY)
            seen += bench.rows_told(one)
        asked += [(number, str(question)) for question, _ in state.answers]
    return seen, tuple(asked), model_of(bench.spec, header_of(state), state.answers)[0]


@pytest.mark.slow
@pytest.mark.parametrize("mistake", [True, False])
def test_noise_drawn_anew_for_a_release_is_found(monkeypatch, mistake):
    """By whole releases; the truth is four times the claim. Without the mistake nothing is refuted."""
    if mistake:
        monkeypatch.setattr(streams.StreamBench, "release", drawn_anew)
    confidence = 0.999 if mistake else 1 - 1e-7
    found = audit(mechanisms()["online"], "add_remove", Fraction(1), None, 500, confidence, count=1000)
    assert found.holds is not mistake
