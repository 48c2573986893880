"""Links: masses come out, order is kept in one dimension, cells carry what they say, rows settle."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.mechanisms.factor.links import lattice, link, settled
from dpsynth_cli.numeric.projection import normals


def test_in_one_dimension_cells_are_quantiles_in_the_order_of_their_scores():
    made = link(np.array([[1.0], [-2.0], [0.5]]), np.array([30.0, 50.0, 20.0]))
    z = normals((1, 200_000), np.random.default_rng(0))
    cells = made.cells(z)
    assert np.allclose(np.bincount(cells) / 200_000, [0.3, 0.5, 0.2], atol=0.005)
    assert z[0][cells == 1].max() < z[0][cells == 2].min() < z[0][cells == 0].min()
    assert z[0][cells == 2].max() < z[0][cells == 0].min()


@pytest.mark.parametrize("dimensions", [2, 3])
def test_in_more_dimensions_masses_are_nearly_right_and_carried_is_what_rows_show(dimensions):
    rng = np.random.default_rng(dimensions)
    mass = rng.dirichlet(np.full(9, 2.0))
    scores = rng.standard_normal((9, dimensions))
    made = link(scores, mass)
    z = normals((dimensions, 200_000), rng)
    cells = made.cells(z)
    assert np.abs(np.bincount(cells, minlength=9) / 200_000 - mass).sum() / 2 < 0.05
    assert np.allclose(scores[cells].T @ z.T / 200_000, made.carried, atol=0.05)


def test_a_cell_without_mass_gets_hardly_a_row():
    made = link(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 1.0, 0.0]))
    cells = made.cells(normals((2, 50_000), np.random.default_rng(0)))
    assert (cells == 2).mean() < 1e-3


def test_the_lattice_stands_for_independent_standard_normals():
    points = lattice(3)
    assert np.allclose(points @ points.T / points.shape[1], np.eye(3), atol=0.05)


def test_settled_rows_are_as_due_and_as_few_as_can_be_moved():
    rng = np.random.default_rng(0)
    cells = rng.integers(6, size=5000)
    due = np.array([0, 2000, 500, 500, 1500, 500])
    made = settled(cells, due, rng)
    assert (np.bincount(made, minlength=6) == due).all()
    assert (made != cells).sum() == np.maximum(np.bincount(cells, minlength=6) - due, 0).sum()
