"""Covariances from pair tables, weights from sums, tables with given margins."""

import numpy as np
import pytest

from dpsynth_cli.numeric.pairs import pair_tables
from dpsynth_cli.numeric.products import covariance, fitted, weights


def one_hot(n: int, sizes: list[int], seed: int = 0) -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)
    cells = [np.clip(np.floor(hidden + rng.normal(size=n) + k / 2), 0, k - 1).astype(int) for k in sizes]
    return np.hstack([np.eye(k)[cell] for cell, k in zip(cells, sizes, strict=True)]), cells


def test_without_noise_the_covariance_is_that_of_the_one_hot_rows():
    sizes = [3, 2, 4]
    x, cells = one_hot(500, sizes)
    values = np.concatenate([
        np.bincount(cells[i] * sizes[j] + cells[j], minlength=sizes[i] * sizes[j])
        for i, j in ((0, 1), (0, 2), (1, 2))
    ])  # fmt: skip
    means = [np.bincount(cell, minlength=k) / 500 for cell, k in zip(cells, sizes, strict=True)]
    found = covariance(pair_tables(values, sizes), means, 500, 0.0)
    assert np.abs(found - np.cov(x.T, bias=True)).max() < 1e-12


def test_noise_in_rare_cells_does_not_turn_the_axes():
    rng = np.random.default_rng(0)
    means = [np.append([0.5, 0.4], np.full(100, 0.001))] * 3
    exact = np.zeros((102, 102))
    exact[:2, :2] = [[0.1, -0.1], [-0.1, 0.1]]
    tables = {}
    for pair in ((0, 1), (0, 2), (1, 2)):
        tables[pair] = 1000 * (np.outer(means[0], means[0]) + exact) + rng.laplace(0, 20, (102, 102))
    first = np.linalg.eigh(covariance(tables, means, 1000, 20 * 2**0.5))[1][:, -1]
    common = np.concatenate([np.arange(2) + 102 * i for i in range(3)])
    assert (first[common] ** 2).sum() > 0.9


def test_weights_are_nearer_than_any_one_table_says():
    rng = np.random.default_rng(0)
    exact = np.array([100.0, 300, 0, 600])
    ours, single = [], []
    for _ in range(200):
        tables = [np.outer(exact, np.full(k, 1 / k)) + rng.laplace(0, 10, (4, k)) for k in (2, 3, 20)]
        ours.append(((weights(tables, 1000.0) - exact) ** 2).sum())
        single.append(((weights(tables[:1], 1000.0) - exact) ** 2).sum())
    assert np.mean(ours) < 0.75 * np.mean(single)
    assert weights(tables, 1000.0).sum() == pytest.approx(1000)


def test_fitted_tables_have_their_margins_and_are_never_negative():
    rng = np.random.default_rng(1)
    rows, columns = np.array([10.0, 0.0, 90.0]), np.array([50.0, 0.0, 30.0, 20.0])
    made = fitted(rng.normal(8, 20, (3, 4)), rows, columns)
    assert (made >= 0).all()
    assert made.sum(axis=1) == pytest.approx(rows)
    assert made.sum(axis=0) == pytest.approx(columns, abs=0.5)
    assert (fitted(np.zeros((2, 3)), np.zeros(2), np.zeros(3)) == 0).all()
