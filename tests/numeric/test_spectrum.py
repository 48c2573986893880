"""Axes above the noise, covariances of classes, and the way back to the grid."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dpsynth_cli.mechanisms.lowdim.classes import Sums, centred, fitted, fitted_alone, pooled_covariance
from dpsynth_cli.numeric.projection import cubes, finely, halvings, normals, reach, room, rounded, to_codes
from dpsynth_cli.numeric.spectrum import axes, beyond_noise, mirrored, noise_edge, root


def symmetric_noise(d: int, tau: float, rng: np.random.Generator) -> np.ndarray:
    return mirrored(rng.normal(0, tau, d * (d + 1) // 2), d)


def spiked(d: int, values: list[float], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    vectors = np.linalg.qr(rng.normal(size=(d, len(values))))[0]
    return (vectors * values) @ vectors.T, vectors


def test_a_last_bit_does_not_decide_which_way_an_axis_points():
    """A column of two categories has entries that differ in their signs alone."""
    vector = np.array([0.1, -0.7, 0.7, 0.1])
    for other in (np.nextafter(0.7, 0), np.nextafter(0.7, 1)):
        for k in (1, 2):
            moved = vector.copy()
            moved[k] = np.copysign(other, moved[k])
            found = axes(np.outer(moved, moved), 0.0, 1).vectors[:, 0]
            assert np.allclose(found, [-0.1, 0.7, -0.7, -0.1])


# --- the noise edge (E15) ------------------------------------------------------------------------------


def test_noise_alone_reaches_the_edge_and_seldom_passes_it():
    rng = np.random.default_rng(0)
    tops = [np.linalg.eigvalsh(symmetric_noise(100, 0.3, rng))[-1] for _ in range(40)]
    assert 0.9 * noise_edge(0.3, 100) < np.mean(tops) < noise_edge(0.3, 100)
    assert np.mean([len(axes(symmetric_noise(100, 0.3, rng), 0.3)) for _ in range(40)]) < 0.3


def test_an_eigenvalue_above_the_edge_is_found_and_freed_of_what_noise_added():
    rng = np.random.default_rng(1)
    d, tau = 200, 0.02
    r = tau * math.sqrt(d)
    matrix, vectors = spiked(d, [2.0, 1.0, 0.5], rng)
    found = axes(matrix + symmetric_noise(d, tau, rng), tau)
    assert len(found) == 3
    assert found.values == pytest.approx([2.0, 1.0, 0.5], rel=0.05)
    assert found.seen[2] == pytest.approx(0.5 + r**2 / 0.5, rel=0.04)  # what is seen is not what is there
    assert found.seen[2] > 0.62
    overlap = (found.vectors * vectors).sum(axis=0) ** 2
    assert overlap == pytest.approx([1 - r**2 / v**2 for v in (2.0, 1.0, 0.5)], abs=0.07)


def test_the_printed_rule_takes_every_axis_of_the_printed_matrix_and_the_edge_takes_the_true_ones():
    """Algorithm 2 and (E.1) of the paper: the least of the tail of singular values and two other terms."""
    rng = np.random.default_rng(2)
    d, n, epsilon = 64, 3823, 4.0
    sigma = 3 * d**2 / (epsilon / 3 * n)
    matrix, _ = spiked(d, [200.0, 150.0], rng)
    noisy = matrix + mirrored(rng.laplace(0, sigma, d * (d + 1) // 2), d)
    singular = np.sort(np.abs(np.linalg.eigvalsh(noisy)))[::-1]

    def bound(k: int) -> float:
        tail = math.sqrt(singular[k:].sum())
        return tail + math.sqrt(d / k) * (epsilon * n) ** (-1 / k) + math.sqrt(k * d**2.5 / (epsilon * n))

    assert min(range(2, d + 1), key=bound) == d
    assert len(axes(noisy, math.sqrt(2) * sigma)) == 2


def test_axes_that_are_asked_for_but_below_the_edge_have_no_variance():
    found = axes(np.diag([1.0, 0.5, 0.01, 0.001]), 0.1, keep=3)
    assert len(found) == 3
    assert found.values[:2].min() > 0.35
    assert found.values[2] == 0
    assert len(axes(np.diag([1.0, 0.5]), 0.1, keep=0)) == 0
    assert len(axes(np.eye(2), 0.1, keep=7)) == 2


def test_signs_of_axes_do_not_depend_on_the_solver():
    matrix, _ = spiked(6, [3.0, 1.0], np.random.default_rng(3))
    found = axes(matrix, 0.01).vectors
    assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()


def test_beyond_noise_forgets_noise_and_keeps_what_is_large_of_either_sign():
    rng = np.random.default_rng(4)
    noise = symmetric_noise(12, 0.05, rng)
    assert np.linalg.norm(beyond_noise(noise, 0.05, 9.0)) < 0.75 * np.linalg.norm(noise)
    matrix, _ = spiked(12, [3.0, -2.0], rng)
    assert np.linalg.norm(beyond_noise(matrix + noise, 0.05, 9.0) - matrix) < np.linalg.norm(noise)
    assert not beyond_noise(np.zeros((3, 3)), 0.1, 1.0).any()
    assert np.abs(beyond_noise(noise, 0.05, 0.01)).max() < 0.01  # noise far above all that could be there


def test_a_root_squared_is_the_positive_part():
    matrix, vectors = spiked(5, [2.0, 1.0, -1.0], np.random.default_rng(5))
    factor = root(matrix)
    assert factor.shape == (5, 2)
    assert factor @ factor.T == pytest.approx((vectors[:, :2] * [2.0, 1.0]) @ vectors[:, :2].T)
    assert root(np.zeros((3, 3))).shape == (3, 0)


# --- classes -------------------------------------------------------------------------------------------


def exact_sums(rows: list[np.ndarray]) -> Sums:
    """Sums of y and y y^T over classes, without noise."""
    return Sums(
        np.array([float(len(part)) for part in rows]),
        0.0,
        np.stack([part.sum(axis=0) for part in rows]),
        0.0,
        sum(part.T @ part for part in rows),
        0.0,
        np.stack([part.T @ part for part in rows]),
        0.0,
    )


def noisy_sums(exact: Sums, size: float, first: float, second: float, by_class: float, seed: int) -> Sums:
    rng = np.random.default_rng(seed)
    d = exact.first.shape[1]
    assert exact.by_class is not None
    return Sums(
        exact.sizes + rng.normal(0, size, len(exact.sizes)),
        size**2,
        exact.first + rng.normal(0, first, exact.first.shape),
        first**2,
        exact.second + symmetric_noise(d, second, rng),
        second**2,
        exact.by_class + np.stack([symmetric_noise(d, by_class, rng) for _ in exact.sizes]),
        by_class**2,
    )


def digits_like(seed: int = 0, classes: int = 4, d: int = 16, n: int = 400) -> list[np.ndarray]:
    """Classes with means far from the centre and a few common directions."""
    rng = np.random.default_rng(seed)
    common = np.linalg.qr(rng.normal(size=(d, 3)))[0] * [0.5, 0.4, 0.3]
    means = np.clip(rng.normal(-0.35, 0.15, (classes, d)), -0.5, 0.5)
    return [np.clip(m + rng.normal(size=(n, 3)) @ common.T * 0.4, -0.5, 0.5) for m in means]


def test_exact_sums_give_the_pooled_covariance():
    rows = digits_like()
    centred_rows = np.concatenate([part - part.mean(axis=0) for part in rows])
    inside, tau = pooled_covariance(exact_sums(rows))
    assert inside == pytest.approx(centred_rows.T @ centred_rows / len(centred_rows))
    assert tau == 0


def test_the_covariance_is_unbiased_and_knows_its_noise():
    exact = exact_sums(digits_like())
    truth, _ = pooled_covariance(exact)
    seen = [pooled_covariance(noisy_sums(exact, 2.0, 25.0, 8.0, 0.0, s)) for s in range(300)]
    errors = np.stack([matrix - truth for matrix, _ in seen])
    assert np.trace(errors.mean(axis=0)) == pytest.approx(
        0, abs=4 * np.trace(errors, axis1=1, axis2=2).std() / 17
    )
    assert np.mean([tau for _, tau in seen]) == pytest.approx(math.sqrt((errors**2).mean()), rel=0.15)
    assert np.mean([tau for _, tau in seen]) > 1.3 * 8.0 / 1600  # the means' noise is in it, not only tau


def test_noisy_means_come_nearer_to_the_truth_and_exact_ones_stay():
    rows = digits_like()
    exact = exact_sums(rows)
    assert centred(exact) == pytest.approx(exact.mean)
    ratios = []
    for seed in range(10):
        noisy = noisy_sums(exact, 0.0, 80.0, 0.0, 0.0, seed)
        raw = np.clip(noisy.mean, -0.5, 0.5)
        ratios.append(((centred(noisy) - exact.mean) ** 2).sum() / ((raw - exact.mean) ** 2).sum())
        assert np.abs(centred(noisy)).max() <= 0.5
    assert np.mean(ratios) < 0.75


def test_second_moments_sharpen_means_that_are_far_from_the_centre():
    exact = exact_sums(digits_like())
    ratios = []
    for seed in range(10):
        noisy = noisy_sums(exact, 0.0, 12.0, 4.0, 4.0, seed)
        before = ((centred(noisy) - exact.mean) ** 2).sum()
        ratios.append(((fitted(noisy)[0] - exact.mean) ** 2).sum() / before)
    assert np.mean(ratios) < 0.7


def test_classes_get_back_their_own_covariances_where_noise_allows():
    rng = np.random.default_rng(6)
    wide = rng.normal(size=(4000, 1)) @ rng.normal(size=(1, 8)) * 0.06
    rows = [np.clip(wide, -0.5, 0.5), np.clip(0.3 * wide + 0.1, -0.5, 0.5)]
    exact = exact_sums(rows)
    _, spreads = fitted(noisy_sums(exact, 0.0, 0.5, 0.5, 0.5, 1))
    for part, spread in zip(rows, spreads, strict=True):
        own = np.cov(part.T, bias=True)
        assert spread.factor @ spread.factor.T == pytest.approx(own, abs=0.1 * np.trace(own))
    _, alone = fitted_alone(noisy_sums(exact, 0.0, 0.5, 0.5, 0.5, 1))
    assert [len(spread.found) for spread in alone] == [1, 1]
    loud = noisy_sums(exact, 0.0, 0.5, 0.5, 2000.0, 1)  # here classes can only be as all are together
    first, second = (s.factor @ s.factor.T for s in fitted(loud)[1])
    assert np.trace(first) == pytest.approx(np.trace(second), rel=0.3)


def test_a_class_whose_mean_is_at_a_bound_has_no_spread_there():
    rng = np.random.default_rng(6)
    common = rng.normal(size=(2000, 1)) @ np.full((1, 6), 0.1)
    rows = [np.clip(common, -0.5, 0.5), np.clip(common, -0.5, 0.5)]
    rows[1][:, 3] = -0.5
    noisy = replace(noisy_sums(exact_sums(rows), 1.0, 1.0, 1.0, 0.0, 0), by_class=None)
    free, bound = (np.sqrt((s.factor[3] ** 2).sum() + s.left[3]) for s in fitted(noisy)[1])
    assert bound < 0.03
    assert free > 0.08


def test_nothing_is_left_over_beside_a_subspace_and_something_beside_independent_columns():
    rng = np.random.default_rng(7)
    line = rng.uniform(-1, 1, (5000, 1)) @ rng.uniform(-0.4, 0.4, (1, 10))
    noisy = noisy_sums(exact_sums([line]), 0.0, 5.0, 5.0, 0.0, 1)
    (on_line,) = fitted(replace(noisy, by_class=None))[1]
    assert len(on_line.found) == 1
    assert not on_line.left.any()
    assert on_line.explained > 0.9
    cube = rng.uniform(-0.5, 0.5, (5000, 40))
    noisy = noisy_sums(exact_sums([cube]), 0.0, 20.0, 700.0, 0.0, 1)
    (in_cube,) = fitted(replace(noisy, by_class=None))[1]
    assert len(in_cube.found) == 0
    assert in_cube.left.mean() == pytest.approx(1 / 12, rel=0.5)


@pytest.mark.parametrize(("of_all", "of_each"), [(0.01, 30.0), (60.0, 0.01)])
def test_axes_come_from_whichever_second_moments_have_less_noise(of_all, of_each):
    exact = exact_sums(digits_like())
    found = fitted(noisy_sums(exact, 0.0, 0.0, of_all, of_each, 0))[1][0].found
    truth = np.linalg.eigvalsh(pooled_covariance(exact)[0])[::-1]
    assert found.seen[:3] == pytest.approx(truth[:3], rel=0.02)


# --- to and from the box -------------------------------------------------------------------------------


def test_reach_is_the_largest_value_over_all_corners():
    rng = np.random.default_rng(8)
    vectors = rng.normal(size=(5, 3))
    corners = np.array(list(product((-0.5, 0.5), repeat=5)))
    assert reach(vectors) == pytest.approx((corners @ vectors).max(axis=0))


def test_room_bounds_the_variance_of_whatever_lies_in_the_box():
    rng = np.random.default_rng(9)
    values = np.clip(rng.normal(rng.uniform(-1, 1, 50), rng.uniform(0, 1, 50), (1000, 50)), -0.5, 0.5)
    assert (values.var(axis=0) <= room(values.mean(axis=0)) + 1e-12).all()


@pytest.mark.parametrize("widths", [(1.0,), (3.0, 0.2), (2.0, 1.9, 0.5)])
def test_halving_the_longest_side_makes_cubes(widths):
    order = halvings(np.array(widths), 12)
    sides = np.array(widths) / 2.0 ** np.array([order.count(a) for a in range(len(widths))])
    assert len(order) == 12
    assert sides.max() <= 2 * sides.min() + 1e-12


@pytest.mark.parametrize("cells", [1, 10, 500])
@pytest.mark.parametrize("widths", [(1.0,), (3.0, 0.2), (2.0, 1.9, 0.5)])
def test_cubes_are_about_as_many_as_asked_for(widths, cells):
    shape = cubes(np.array(widths), cells)
    assert min(shape) >= 1
    assert math.prod(shape) <= cells
    assert math.prod(shape) >= cells / 4


def test_sums_of_rounded_numbers_are_exact_in_any_order():
    rng = np.random.default_rng(10)
    factor = rounded(rng.normal(size=(3, 40)))
    g = normals((40, 1000), rng)
    order = rng.permutation(40)
    assert (factor @ g == factor[:, order] @ g[order]).all()
    assert (factor @ g == np.add.reduce([np.outer(factor[:, k], g[k]) for k in order])).all()
    x = finely(rng.uniform(-8, 8, (40, 1000)))
    assert (factor @ x == factor[:, order] @ x[order]).all()


def test_normals_are_standard_and_scaled_by_row():
    sample = normals((2, 200_000), np.random.default_rng(11), np.array([1.0, 0.25]))
    assert sample.mean(axis=1) == pytest.approx([0, 0], abs=0.015)
    assert sample.std(axis=1) == pytest.approx([1.0, 0.25], rel=0.01)


def test_codes_are_projected_on_the_box_and_keep_their_mean():
    rng = np.random.default_rng(12)
    y = np.tile(np.array([[-9.0], [0.5], [7.0], [-0.1], [0.2]]), 100_000)
    low, top, beyond, flag, step = to_codes(y, [5, 2**30, 17, 2, 4], rng)
    assert set(low.tolist()) == {0}
    assert set(top.tolist()) == {2**30 - 1}
    assert set(beyond.tolist()) == {16}
    assert flag.mean() == pytest.approx(0.4, abs=0.01)  # a boolean: at random, not all false
    assert step.mean() == pytest.approx(0.7 * 3, abs=0.01)
    assert set(step.tolist()) == {2, 3}
