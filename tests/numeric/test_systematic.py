"""Even draws: by their distributions, with far less noise than independent ones."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.numeric.systematic import chosen, even, joined, within


def test_cells_are_drawn_by_their_distributions_with_little_noise():
    rng = np.random.default_rng(0)
    index = rng.integers(0, 5, 10_000)
    law = rng.dirichlet(np.ones(4), 5)
    v = chosen(law[index].T, even([index], rng))
    counts = np.bincount(index * 4 + v, minlength=20).reshape(5, 4)
    due = law * np.bincount(index)[:, None]
    assert np.abs(counts - due).max() < 6  # independent draws: 20 and more


def test_a_cell_of_no_mass_is_never_drawn():
    p = np.array([[0.0, 0.3, 1.0], [1.0, 0.7, 0.0]])
    for u in (0.0, 0.5, 1 - 1e-16):
        v = chosen(p, np.full(3, u))
        assert (p[v, np.arange(3)] > 0).all()


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
