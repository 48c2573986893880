"""Covariances from pair tables, weights from sums, tables with given margins."""

import numpy as np
import pytest

from dpsynth_cli.mechanisms.microaggregation.products import attenuated, between, fitted, weights, within
from dpsynth_cli.numeric.pairs import pair_tables


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
    found = between(pair_tables(values, sizes), means, 500) + within(means)
    assert np.abs(found - np.cov(x.T, bias=True)).max() < 1e-12


def test_noise_in_rare_cells_does_not_turn_the_axes():
    rng = np.random.default_rng(0)
    means = [np.append([0.5, 0.4], np.full(100, 0.001))] * 3
    exact = np.zeros((102, 102))
    exact[:2, :2] = [[0.1, -0.1], [-0.1, 0.1]]
    tables = {}
    for pair in ((0, 1), (0, 2), (1, 2)):
        tables[pair] = 1000 * (np.outer(means[0], means[0]) + exact) + rng.laplace(0, 20, (102, 102))
    first = np.linalg.eigh(between(tables, means, 1000, 20 * 2**0.5))[1][:, -1]
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


def test_parts_cut_by_a_sum_of_independent_attributes_are_made_alike_again():
    rng = np.random.default_rng(0)
    for strength in (0.0, 1.5):
        hidden = strength * rng.normal(size=20_000)
        cells = [(hidden + rng.normal(size=20_000) > 0).astype(int) for _ in range(4)]
        part = np.sum(cells, axis=0) // 2
        tables = [np.histogram2d(part, cell, bins=(3, 2))[0] for cell in cells]
        means = [np.bincount(cell) / 20_000 for cell in cells]
        pairs = {
            (i, j): np.histogram2d(cells[i], cells[j], bins=2)[0] for i in range(4) for j in range(i + 1, 4)
        }
        known = between(pairs, means, 20_000)
        made = attenuated(tables, known)
        for table, before in zip(made, tables, strict=True):
            assert table.sum(axis=0) == pytest.approx(before.sum(axis=0))
            assert table.sum(axis=1) == pytest.approx(before.sum(axis=1))
        ours, theirs = (
            (parts[0][:, 1] * parts[1][:, 1] / parts[0].sum(axis=1)).sum() / 20_000
            - means[0][1] * means[1][1]
            for parts in (made, tables)
        )
        assert ours == pytest.approx(known[1, 3], abs=0.005)
        assert theirs > known[1, 3] + 0.01
