"""Rows in a cell are nearer to its fuller neighbour, and stay in the cell."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.mechanisms.psmm.slopes import along_slope, slopes_of
from dpsynth_cli.numeric.lattice import Axis, Lattice


def test_a_lean_needs_more_than_noise_and_never_leaves_its_range():
    lattice = Lattice((Axis(5), Axis(7)), side=7)
    counts = np.random.default_rng(0).poisson(30, 35)
    assert np.mean(slopes_of(counts, lattice, sd=0.0) != 0) < 0.1  # chance of counting
    assert not slopes_of(counts, lattice, sd=50.0).any()
    steep = slopes_of(counts**5, lattice, sd=1.0)
    assert np.abs(steep).max() > 0.9
    assert np.abs(steep).max() <= 1


def test_each_axis_has_its_own_lean():
    across = np.arange(12).reshape(3, 4) // 4 * 1000  # rises along the first axis only
    first, second = slopes_of(across.ravel(), Lattice((Axis(3), Axis(4)), side=4), sd=1.0)
    assert (first > 0.3).all()
    assert not second.any()


def test_categories_and_missing_values_have_no_neighbours():
    """The last row cell is at an end; what is apart neither slopes_of nor is leaned to."""
    row_and_missing = Lattice((Axis(3, apart=1),), side=4)
    (lean,) = slopes_of(np.array([10**5, 2 * 10**5, 10**5, 10**8]), row_and_missing, sd=0.0)
    assert lean.round(3).tolist() == [0.333, 0.0, -0.333, 0.0]
    categories = Lattice((Axis(1, apart=3),), side=4)
    assert not slopes_of(np.array([5, 0, 10_000, 7]), categories, sd=0.0).any()


@pytest.mark.parametrize("lean", [-1.0, -0.4, 0.0, 0.4, 1.0])
def test_places_follow_the_density(lean):
    """Shares below each tenth are those of 1 + lean (2x - 1); and the last place is inside."""
    u = (np.arange(100_000) + 0.5) / 100_000
    x = along_slope(u, np.full(len(u), lean))
    for end in np.linspace(0.1, 0.9, 9):
        assert np.mean(x < end) == pytest.approx(lean * end**2 + (1 - lean) * end, abs=1e-4)
    edge = along_slope(np.array([0.0, 1 - 2**-53]), np.full(2, lean))
    assert edge[0] == 0
    assert edge[1] < 1
