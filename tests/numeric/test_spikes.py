"""Spikes: pieces cover their runs, masses are kept, noise alone makes no spike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.numeric.spikes import cut, divided, threshold


@st.composite
def runs(draw):
    width = np.array(draw(st.lists(st.integers(1, 30), min_size=1, max_size=8)))
    pieces = np.array([draw(st.integers(1, int(w))) for w in width])
    return np.cumsum(width) - width, width, pieces


@settings(deadline=None)
@given(runs())
def test_pieces_cover_their_run_in_order_without_gaps_or_empty_ones(given_runs):
    first, width, pieces = given_runs
    starts, run = cut(first, width, pieces)
    sizes = np.diff(np.append(starts, width.sum()))
    assert sizes.min() >= 1
    assert np.bincount(run, sizes).tolist() == width.tolist()
    assert np.bincount(run).tolist() == pieces.tolist()
    for k in range(len(width)):
        assert np.ptp(sizes[run == k]) <= 1  # as equal as codes allow


@settings(deadline=None)
@given(runs(), st.data())
def test_every_run_keeps_its_mass_and_nothing_is_negative(given_runs, data):
    first, width, pieces = given_runs
    starts, run = cut(first, width, pieces)
    sizes = np.diff(np.append(starts, width.sum()))
    masses = np.array([data.draw(st.just(0.0) | st.floats(1e-3, 1e4)) for _ in width])
    spike = np.array([data.draw(st.booleans()) for _ in run])
    counts = np.array([data.draw(st.integers(-1000, 100_000)) for _ in run], float)
    found = divided(masses, run, sizes, spike, counts)
    assert found.min() >= 0
    assert np.allclose(np.bincount(run, found, len(masses)), masses)
    for k in range(len(width)):  # what is not a spike is even over its codes
        rest = (run == k) & ~spike
        if rest.any():
            assert np.ptp(found[rest] / sizes[rest]) < 1e-6


def test_spikes_keep_their_counts_while_there_is_room():
    run, width = np.zeros(4, int), np.array([1, 1, 1, 5])
    spike = np.array([True, True, False, False])
    assert divided(np.array([20.0]), run, width, spike, np.array([9, 5, 99, 99.0])).tolist() == [9, 5, 1, 5]
    assert divided(np.array([7.0]), run, width, spike, np.array([9, 5, 99, 99.0])).tolist() == [
        4.5,
        2.5,
        0,
        0,
    ]


@pytest.mark.parametrize("pieces", [6, 1000])
def test_noise_alone_seldom_reaches_the_threshold_and_one_half_of_it_often(pieces):
    rng = np.random.default_rng(0)
    highest = rng.laplace(0, 1, (12_000, pieces)).max(axis=1)
    sd = np.sqrt(2)
    assert 0.00005 < (highest > threshold(np.array([pieces]), sd)).mean() < 0.0012
    assert (highest > threshold(np.array([pieces]), sd / 2)).mean() > 0.02
    gaussian = rng.normal(0, sd, (4000, pieces)).max(axis=1)
    assert (gaussian > threshold(np.array([pieces]), sd)).mean() < 0.025


def test_a_rest_within_the_noise_of_the_counts_is_the_spikes_own():
    run, width = np.zeros(3, np.int64), np.array([1, 1, 8])
    spike = np.array([True, False, False])
    assert divided(np.array([100.0]), run, width, spike, np.array([95.0, 0, 0]), 3.0).tolist() == [100, 0, 0]
    assert divided(np.array([100.0]), run, width, spike, np.array([91.0, 0, 0]), 3.0).tolist() == [91, 1, 8]
