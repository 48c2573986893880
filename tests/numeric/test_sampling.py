"""Masses to whole rows: exact totals, every run of neighbours right to within one, empty stays empty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.numeric.histogram import best_total, on_simplex
from dpsynth_cli.numeric.sampling import portions, shuffled, whole

MASSES = st.lists(st.just(0.0) | st.floats(1e-6, 1e6), min_size=1, max_size=40).map(np.array)
SEEDS = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(MASSES, st.integers(0, 10**6), SEEDS)
def test_whole_adds_up_exactly_and_every_run_is_within_one_of_its_due(masses, rows, seed):
    counts = whole(masses, rows, np.random.default_rng(seed))
    assert counts.sum() == rows
    assert counts.min() >= 0
    if masses.any():
        assert not counts[masses == 0].any()
        gap = np.cumsum(counts) - np.cumsum(masses) * rows / masses.sum()
        assert np.ptp(np.append(gap, 0.0)) < 1 + 1e-6  # the difference of any two is a run's error


def test_whole_numbers_stay_as_they_are():
    masses = np.random.default_rng(0).integers(0, 50, 1000).astype(float)
    for seed in range(20):
        assert (whole(masses, int(masses.sum()), np.random.default_rng(seed)) == masses).all()


def test_whole_is_unbiased():
    masses = np.array([0.3, 1.2, 0.0, 0.1, 5.4])
    mean = np.mean([whole(masses, 3, np.random.default_rng(seed)) for seed in range(4000)], axis=0)
    assert np.abs(mean - masses / 7 * 3).max() < 0.04


class Zero:
    """A generator at the edge of its range."""

    def random(self):
        return 0.0


def test_whole_is_not_fooled_by_rounding_before_empty_cells():
    assert 49 * (1 / 49) < 1
    assert whole(np.array([49.0, 0.0]), 1, Zero()).tolist() == [1, 0]
    masses = np.append(np.full(10**5, 0.1), np.zeros(10))
    for rows in (1, 3, 99_999, 10**9 + 7):
        counts = whole(masses, rows, np.random.default_rng(rows))
        assert counts.sum() == rows
        assert not counts[-10:].any()


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=20).map(np.array), st.integers(1, 50), SEEDS)
def test_portions_add_up_and_spread_each_count_evenly(counts, block, seed):
    parts = list(portions(counts, np.random.default_rng(seed), block))
    assert (np.sum(parts, axis=0) == counts).all()
    assert np.min(parts) >= 0
    assert len(parts) == max(1, -(-int(counts.sum()) // block))
    assert (np.ptp(parts, axis=0) <= 2).all()


def test_portions_of_rows_that_are_alone_are_of_the_same_size():
    sizes = [part.sum() for part in portions(np.ones(10_000, int), np.random.default_rng(0), 1000)]
    assert len(sizes) == 10
    assert max(abs(size - 1000) for size in sizes) < 150


def test_shuffled_has_each_index_as_often_as_said_and_no_order():
    index = shuffled(np.array([500, 0, 500]), np.random.default_rng(0))
    assert np.bincount(index).tolist() == [500, 0, 500]
    assert 400 < (np.diff(index) != 0).sum() < 600


@settings(deadline=None)
@given(
    st.lists(st.integers(-50, 200), min_size=1, max_size=30).map(np.array),
    st.just(0.0) | st.floats(1e-3, 1e3),
)
def test_the_projection_on_the_simplex_is_the_nearest_point(noisy, total):
    found = on_simplex(noisy, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, abs=1e-6)
    # Optimality: all positive cells are moved alike, and those at 0 would be moved below it.
    shift = noisy - found
    if total > 0:
        level = shift[found > 0]
        assert np.ptp(level) < 1e-6
        assert (noisy[found == 0] <= level.mean() + 1e-6).all()


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0.1, 1e6)), min_size=1, max_size=8))
def test_the_best_total_is_the_least_squares_one(estimates):
    best = best_total(estimates)
    slope = sum((value - best) / variance for value, variance in estimates)
    assert slope == pytest.approx(0, abs=1e-3)
    assert best_total([*estimates, (7.0, 0.0)]) == 7.0
