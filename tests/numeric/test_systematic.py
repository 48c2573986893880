"""Even draws: by their distributions, with far less noise than independent ones."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.numeric.systematic import chosen, even, joined, mixed_by, within


def test_cells_are_drawn_by_their_distributions_with_little_noise():
    rng = np.random.default_rng(0)
    index = rng.integers(0, 5, 10_000)
    law = rng.dirichlet(np.ones(4), 5)
    v = chosen(law[index], even([index], rng))
    counts = np.bincount(index * 4 + v, minlength=20).reshape(5, 4)
    due = law * np.bincount(index)[:, None]
    assert np.abs(counts - due).max() < 6  # independent draws: 20 and more


def test_a_cell_of_no_mass_is_never_drawn():
    few = np.array([[0.0, 1.0], [0.3, 0.7], [1.0, 0.0]])
    many = np.random.default_rng(0).dirichlet(np.full(45, 0.05), 500) + 1e-300
    many[many < 1e-3] = 0.0
    many /= many.sum(axis=1, keepdims=True)
    for p in (few, many):
        for u in (0.0, 0.5, 1 - 1e-16):
            for kind in (np.float64, np.float32):
                v = chosen(p.astype(kind), np.full(len(p), u))
                assert (p[np.arange(len(p)), v] > 0).all()


def test_the_cell_is_where_the_sum_of_the_distribution_passes_the_number():
    rng = np.random.default_rng(1)
    for cells in (1, 2, 8, 16, 17, 130):
        p = rng.dirichlet(np.ones(cells), 3000)
        u = rng.random(3000)
        due = (np.cumsum(p, axis=1) <= u[:, None]).sum(axis=1).clip(max=cells - 1)
        assert (chosen(p, u) != due).sum() <= 1  # where a sum is the number but for rounding
        assert (chosen(7 * p, u) != due).sum() <= 1


def test_rows_are_sorted_by_keys_of_any_size_and_mixed_where_they_tie():
    rng = np.random.default_rng(0)
    for most in (3, 70_000, 2**40):
        key = rng.integers(0, most, 5000)
        order = mixed_by(key, rng)
        assert np.array_equal(np.sort(order), np.arange(5000))
        assert (np.diff(key[order]) >= 0).all()
    first = [mixed_by(np.zeros(50, int), rng)[0] for _ in range(400)]
    assert len(set(first)) > 40


def test_numbers_are_even_over_the_second_key_inside_the_first():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 6000), rng.integers(0, 4, 6000)
    u = even([a, b], rng)
    for i in range(3):
        for j in range(4):
            own = np.sort(u[(a == i) & (b == j)])
            assert np.abs(own - (np.arange(len(own)) + 0.5) / len(own)).max() < 6 / len(own)


def test_finer_cells_are_inside_and_by_their_weights():
    rng = np.random.default_rng(0)
    weights = np.array([[1.0, 3.0, 0.0, 6.0], [0.0, 0.0, 2.0, 1.0]])
    group = np.array([0, 1, 0, 1])
    index, v = rng.integers(0, 2, (2, 8000))
    found = within(weights, index, group, v, rng)
    assert (group[found] == v).all()
    one = found[(index == 0) & (v == 1)]
    assert abs((one == 3).mean() - 2 / 3) < 0.01
    assert (found[(index == 1) & (v == 0)] == 2).all()


def test_any_axis_is_joined():
    table = np.arange(12.0).reshape(3, 4)
    assert joined(table, np.array([0, 1, 0]), 2, 0).tolist() == [[8, 10, 12, 14], [4, 5, 6, 7]]
    assert joined(table, np.array([1, 1, 0, 0]), 2).sum() == table.sum()
