"""Shrinking noisy tables: towards what is expected where noise rules, to the counts where it does not."""

import numpy as np
import pytest

from dpsynth_cli.numeric.ratios import decided, raked, shrunk, shrunk_by_class, vacant


def tables(rng, rows=20_000, shape=(12, 10), strength=0.6):
    """A table with a dependence, what independence would say, and the most a cell can have."""
    real = rng.gamma(1.0, 1.0, shape) ** strength * np.outer(rng.gamma(1.0, size=12), rng.gamma(1.0, size=10))
    real *= rows / real.sum()
    one, other = real.sum(axis=1), real.sum(axis=0)
    return real, np.outer(one, other) / rows, np.minimum.outer(one, other)


def distance(one, other):
    return np.abs(one - other).sum() / 2


@pytest.mark.parametrize(("sd", "gain"), [(3.0, 1.0), (30.0, 0.9), (100.0, 0.7)])
def test_an_estimate_is_nearer_than_the_counts_and_never_much_worse_than_what_is_expected(sd, gain):
    rng = np.random.default_rng(1)
    real, expected, most = tables(rng)
    noisy = real + rng.normal(0, sd, real.shape)
    found = shrunk(noisy.ravel(), sd**2, expected.ravel(), most.ravel()).reshape(real.shape)
    assert distance(found, real) < gain * distance(np.maximum(noisy, 0), real)
    assert distance(found, real) < 1.05 * distance(expected, real)


def test_without_noise_the_counts_are_kept():
    real, expected, most = tables(np.random.default_rng(2))
    found = shrunk(real.ravel(), 1e-9, expected.ravel(), most.ravel()).reshape(real.shape)
    assert distance(found, real) < 1


def test_noise_alone_leaves_a_table_near_what_is_expected():
    rng = np.random.default_rng(3)
    _, expected, most = tables(rng)
    for seed in range(10):
        noisy = expected + np.random.default_rng(seed).normal(0, 60, expected.shape)
        found = shrunk(noisy.ravel(), 3600.0, expected.ravel(), most.ravel())
        assert distance(found, expected.ravel()) < 0.25 * distance(noisy, expected)


def test_a_function_of_the_other_column_is_found_under_noise():
    one = np.array([4000.0, 2500, 1200, 800, 500, 300, 200, 100])
    real = np.diag(one)[:, np.random.default_rng(0).permutation(8)]
    expected = np.outer(one, real.sum(axis=0)) / one.sum()
    most = np.minimum.outer(one, real.sum(axis=0))
    noisy = real + np.random.default_rng(4).normal(0, 40, real.shape)
    found = shrunk(noisy.ravel(), 1600.0, expected.ravel(), most.ravel()).reshape(real.shape)
    assert distance(found, real) < 0.6 * distance(np.maximum(noisy, 0), real)


def test_impossible_cells_stay_empty_and_no_cell_is_above_its_most():
    rng = np.random.default_rng(5)
    _, expected, most = tables(rng)
    never = rng.random(expected.shape) < 0.2
    expected, most = np.where(never, 0, expected), np.where(never, 0, most)
    noisy = expected + rng.normal(0, 200, expected.shape)
    found = shrunk(noisy.ravel(), 400.0, expected.ravel(), most.ravel()).reshape(expected.shape)
    assert (found[never] == 0).all()
    assert (found <= most + 1e-9).all()
    assert (found >= 0).all()


def test_classes_learn_from_each_other():
    rng = np.random.default_rng(6)
    real, expected, most = tables(rng)
    sd = 60.0
    alone, together = [], []
    for seed in range(5):
        noise = np.random.default_rng(seed).normal(0, sd, (4, *real.shape))
        noisy = [real / 4 + part for part in noise]
        classes = shrunk_by_class(noisy, sd**2, [expected / 4] * 4, [most / 4] * 4)
        together.append(distance(classes[0], real / 4))
        own = shrunk(noisy[0].ravel(), sd**2, (expected / 4).ravel(), (most / 4).ravel())
        alone.append(distance(own.reshape(real.shape), real / 4))
    assert np.mean(together) < 0.85 * np.mean(alone)


def test_raked_tables_have_their_sums_and_their_zeros():
    rng = np.random.default_rng(7)
    real, expected, _ = tables(rng)
    possible = (rng.random(real.shape) > 0.1).astype(float)
    wanted = real * possible
    found = raked(expected, wanted.sum(axis=1), wanted.sum(axis=0), possible)
    assert np.abs(found.sum(axis=0) - wanted.sum(axis=0)).max() < 0.01
    assert np.abs(found.sum(axis=1) - wanted.sum(axis=1)).max() < 0.01 * wanted.sum()
    assert (found[possible == 0] == 0).all()


def test_raking_what_cannot_be_reached_gives_no_nonsense():
    never = raked(np.ones((2, 2)), np.array([3.0, 0.0]), np.array([0.0, 3.0]), np.array([[0.0, 0], [1, 1]]))
    assert np.isfinite(never).all()
    assert (never[0] == 0).all()
    assert np.isfinite(raked(np.zeros((2, 3)), np.zeros(2), np.zeros(3), np.ones(()))).all()


def test_noise_far_from_a_law_is_seen_to_be_empty_and_the_law_is_not():
    rng = np.random.default_rng(5)
    at = np.arange(40)
    real = 400 * np.exp(-0.5 * (np.subtract.outer(at, at) / 1.5) ** 2)
    noisy, expected = real + rng.normal(0, 5, real.shape), np.full(real.shape, real.mean())
    empty = vacant(noisy, 25.0, expected, [0, 1], [])
    far = np.abs(np.subtract.outer(at, at)) > 12
    assert empty[far].mean() > 0.97
    assert not empty[real > 5].any()
    assert not vacant(noisy, 25.0, np.full(real.shape, 0.5), [0, 1], []).any()  # nothing much was expected


def test_missing_is_no_neighbour_of_the_last_value():
    noisy, expected = np.array([300.0, 0.0, 0.0, 0.0, 0.0, 0.0, 500.0]), np.full(7, 100.0)
    assert vacant(noisy, 9.0, expected, [0], [0]).tolist() == [False, False, True, True, True, True, False]
    assert not vacant(noisy, 9.0, expected, [0], [])[5]


def test_a_column_that_another_decides_is_told_from_one_with_exceptions():
    rng = np.random.default_rng(0)
    truth = np.zeros((16, 12))
    truth[np.arange(16), rng.integers(0, 12, 16)] = 2000.0
    found = [decided(truth + rng.normal(0, 10.0, truth.shape), 100.0) for _ in range(200)]
    assert np.mean([np.array_equal(one, truth == 0) for one in found]) > 0.97
    exceptions = truth.copy()
    exceptions[exceptions == 0] = 5.0  # in all cells a little: 2.6 % of the rows
    assert (
        np.mean([decided(exceptions + rng.normal(0, 10.0, truth.shape), 100.0).any() for _ in range(200)])
        < 0.05
    )
    exceptions = truth.copy()
    exceptions[3, np.argmin(truth[3])] = 150.0  # in one cell
    assert not any(decided(exceptions + rng.normal(0, 10.0, truth.shape), 100.0).any() for _ in range(200))
    loud = truth + rng.normal(0, 100.0, truth.shape)  # noise could hide a tenth of all rows
    assert not decided(loud, 10_000.0).any()
