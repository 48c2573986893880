"""The arithmetic of what running counts could have: against cases that are known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import online_attainable as attainable


def test_rows_by_themselves_have_the_noise_of_as_many_and_a_block_that_ended_takes_part():
    alone = np.eye(5)
    assert attainable._so_far(alone) == pytest.approx([1, 2, 3, 4, 5])
    assert attainable._before(alone) == pytest.approx([1, 2, 3, 4, 5])
    # Two releases, each at half of the price, have 8; their block has 4.
    assert attainable._so_far(attainable._tree(2, 2)) == pytest.approx([4, 8 / 3])
    # The first is also the block minus the second: 4 and 8 weigh 2 to 1.
    assert attainable._before(attainable._tree(2, 2)) == pytest.approx([8 / 3, 8 / 3])


def test_what_is_found_is_better_than_a_tree_and_not_below_the_bound():
    tree = np.sqrt(attainable._before(attainable._tree(16, 4))).mean()
    found = np.sqrt(attainable._best_found(16, 3, 0).mean())
    assert attainable._bound(16) < found < tree
    assert attainable._bound(1) == pytest.approx(
        1 / np.sqrt(2)
    )  # of one release: half of the variance of Laplace noise


def test_noise_that_is_drawn_together_in_blocks_of_one_is_that_of_one_release():
    spread = attainable._drawn_together(4, (1,), (0.5,))
    assert spread == pytest.approx([1, 2, 3, 4], rel=0.15)
    both = attainable._drawn_together(2, (2,), (0.5,))
    assert both[1] < 8 / 3  # what least squares make of rows with noise of their own


def test_a_projection_is_the_last_value_of_the_isotonic_regression():
    noisy = np.array([[5.0, 1.0, 3.0, 2.0], [-4.0, -2.0, -3.0, -1.0]])
    assert attainable._never_fall(noisy) == pytest.approx(
        np.array([[5.0, 3.0, 3.0, 2.75], [0.0, 0.0, 0.0, 0.0]])
    )


def test_one_over_a_series():
    assert attainable._reciprocal(np.ones(6)) == pytest.approx([1, -1, 0, 0, 0, 0], abs=1e-12)
    root = [1, 1 / 2, 3 / 8, 5 / 16, 35 / 128]  # of 1 / (1 - z)
    assert attainable._reciprocal(np.array(root)) == pytest.approx([1, -1 / 2, -1 / 8, -1 / 16, -5 / 128])
