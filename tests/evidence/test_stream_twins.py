"""Streams with one mistake each: the audit must find them. The exact tests of the same mistakes are in
`tests/trusted/stream/test_prefix_counts.py` and `test_factorisation.py`."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction

import pytest

from dpsynth_cli.evidence import empirical, neighbours, streams
from dpsynth_cli.evidence.empirical import audit
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.release.stream_snapshot import header_of, model_of
from dpsynth_cli.release.stream_step import advance
from dpsynth_cli.trusted.stream import release_prices
from dpsynth_cli.trusted.stream.factorisation import UNIT, Branches, SquareRoot
from dpsynth_cli.trusted.stream.state import StreamState

pytestmark = pytest.mark.slow
DELTA = Fraction(1, 10**5)


@pytest.fixture(autouse=True)
def one_pair(monkeypatch):
    """One pair of tables, and prices that are worked out anew."""
    every = neighbours.pairs
    monkeypatch.setattr(empirical, "pairs", lambda *which: every(*which)[:1])
    release_prices._priced.cache_clear()
    yield
    release_prices._priced.cache_clear()


def refuted(epsilon: int, delta: Fraction | None, runs: int) -> bool:
    return not audit(mechanisms()["online"], "add_remove", Fraction(epsilon), delta, runs, 0.999).holds


def test_a_column_priced_as_one_row_is_found(monkeypatch):
    """Without a delta an event pays twice what was claimed."""
    monkeypatch.setattr(Branches, "norm", lambda self, length: 1)
    assert refuted(1, None, 1500)


def test_a_column_of_gaussian_noise_priced_as_a_quarter_of_a_row_is_found(monkeypatch):
    """The audit sees some 0.6 of the truth where there is a delta: the price of one row would be too near."""
    monkeypatch.setattr(SquareRoot, "norm", lambda self, length: UNIT**2 // 4)
    assert refuted(1, DELTA, 1500)


def test_noise_drawn_anew_for_a_release_is_found(monkeypatch):
    """As if an older copy of the state had been gone on with, three times for each release."""

    def anew(bench, table):
        state, seen, asked = StreamState("", "", {}, 0), [], []
        for number, rows in enumerate(bench.pushes[table]):
            for one in (*(deepcopy(state) for _ in range(3)), state):
                advance(one, bench.spec, rows, str(number), streams.DAY)
                seen += bench._rows(one)
            asked += [(number, str(question)) for question, _ in state.answers]
        return seen, tuple(asked), model_of(bench.spec, header_of(state), state.answers)[0]

    monkeypatch.setattr(streams.StreamBench, "release", anew)
    assert refuted(1, None, 500)


@pytest.mark.parametrize("delta", [None, DELTA])
def test_a_stream_without_a_mistake_is_not_refuted(delta):
    assert audit(mechanisms()["online"], "add_remove", Fraction(1), delta, 600, 1 - 1e-7).holds
