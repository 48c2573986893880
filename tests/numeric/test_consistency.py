"""Consistency on trees: least squares against dense linear algebra, Algorithm 3 against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from dpsynth_cli.numeric import consistency
from dpsynth_cli.numeric.consistency import (
    Siblings,
    as_counted,
    clipped,
    combined,
    descend,
    posterior,
    proportional,
    pyramid,
    uniform,
)

RULES = [clipped, uniform, proportional, posterior]


@st.composite
def trees(draw, most=4):
    """Noisy counts of some levels (always the leaves), their variances, and the room of the leaves."""
    depth = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    measured = [draw(st.booleans()) for _ in range(depth)] + [True]
    counts = [rng.integers(-9, 30, 1 << j).astype(float) if m else None for j, m in enumerate(measured)]
    variances = [float(rng.uniform(0.5, 20)) for _ in measured]
    room = rng.integers(0, 3, 1 << depth).astype(float)
    if not room.any():
        room[0] = 1.0
    return counts, variances, room


def dense(counts, variances, room):
    """The leaves by weighted least squares on all measured counts, empty leaves left out."""
    there = np.flatnonzero(room)
    rows, values = [], []
    for level, variance in zip(counts, variances, strict=True):
        if level is None:
            continue
        width = len(room) // len(level)
        for node, count in enumerate(level):
            inside = (there // width == node).astype(float)
            if inside.any():
                rows.append(inside / np.sqrt(variance))
                values.append(count / np.sqrt(variance))
    leaves = np.zeros(len(room))
    leaves[there] = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    spread = np.linalg.inv(np.array(rows).T @ np.array(rows))
    return leaves, float(spread.sum())


@settings(deadline=None)
@given(trees())
def test_two_passes_are_dense_least_squares(tree):
    counts, variances, room = tree
    estimates, spread = combined(counts, variances, room)
    leaves, variance = dense(counts, variances, room)
    assert estimates[0][0] == pytest.approx(leaves.sum(), abs=1e-6)
    assert spread[0][0] == pytest.approx(variance, rel=1e-6)
    # Without the clipping of negative counts the way down gives every leaf of the dense solution.
    parent = estimates[0]
    for j in range(1, len(counts)):
        left, right = estimates[j][::2], estimates[j][1::2]
        pair = Siblings(left, right, spread[j][::2], spread[j][1::2], parent, np.full(len(left), 0.5))
        first = np.where(spread[j][::2] + spread[j][1::2] > 0, clipped(pair), 0.0)
        parent = np.stack([first, parent - first], axis=1).ravel()
    assert np.allclose(parent, leaves, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
@given(tree=trees(6), root=st.integers(0, 300))
@settings(max_examples=60, deadline=None)
def test_leaves_are_never_negative_add_up_to_the_root_and_stay_where_rows_can_be(rule, tree, root):
    counts, variances, room = tree
    if rule in (uniform, proportional):
        estimates, spread = as_counted(counts, room), None
    else:
        estimates, spread = combined(counts, variances, room)
    leaves = descend(root, estimates, spread, room, rule)
    assert leaves.min() >= 0
    assert leaves.sum() == pytest.approx(root, abs=1e-6)
    assert not leaves[room == 0].any()
    if rule in (uniform, proportional):
        assert (leaves == np.round(leaves)).all()


def one_split(rule, parent, left, right):
    pair = Siblings(*(np.array([x], float) for x in (left, right, 1, 1, parent, 0.5)))
    return float(np.clip(rule(pair), 0, parent)[0])


@pytest.mark.parametrize("rule", [uniform, proportional])
def test_algorithm_3_gives_the_nearest_comparable_whole_point(rule):
    for parent, left, right in itertools.product(range(8), repeat=3):
        x = one_split(rule, parent, left, right)
        assert x == int(x)
        m = (x, parent - x)
        up = m[0] >= left and m[1] >= right
        down = m[0] <= left and m[1] <= right
        if rule is uniform:
            assert up or down, (parent, left, right)  # comparable, as Theorem 3.9 needs
            best = min((i - left) ** 2 + (parent - i - right) ** 2 for i in range(parent + 1))
            assert (m[0] - left) ** 2 + (m[1] - right) ** 2 == best
        elif left + right:
            assert abs(m[0] - parent * left / (left + right)) <= 0.5


def test_the_odd_row_goes_to_both_sides_in_turn():
    pairs = 1000
    ones, zeros = np.ones(pairs), np.zeros(pairs)
    left = uniform(Siblings(zeros, zeros, zeros, zeros, ones, ones / 2))
    assert left.sum() == pairs / 2


def test_measured_counts_are_kept_as_they_are_and_the_others_are_sums():
    room = np.array([1.0, 1.0, 0.0, 1.0])
    levels = as_counted([np.array([9.0]), None, np.array([4.0, -2.0, 7.0, 3.0])], room)
    assert [level.tolist() for level in levels] == [[9.0], [4.0, 3.0], [4.0, 0.0, 0.0, 3.0]]


# --- the posterior rule -------------------------------------------------------------------------------


def integrated(seen, p, tau, f, weights):
    """The posterior mean by numerical integration of the three components."""
    natural = f * (1 - f) * p

    def normal(x, sd):
        return np.exp(-0.5 * (x / sd) ** 2) / (np.sqrt(2 * np.pi) * sd)

    any_ = quad(lambda x: normal(seen - x, tau) / p, 0, p, points=[min(max(seen, 0), p)], limit=200)[0]
    any_x = quad(lambda x: x * normal(seen - x, tau) / p, 0, p, points=[min(max(seen, 0), p)], limit=200)[0]
    far = 12 * np.sqrt(natural)
    even = normal(seen - f * p, np.sqrt(tau**2 + natural))
    even_x = quad(
        lambda x: x * normal(seen - x, tau) * normal(x - f * p, np.sqrt(natural)), f * p - far, f * p + far
    )[0]
    none, everything = normal(seen, tau), normal(seen - p, tau)
    told = weights[0] * (none + everything) / 2 + weights[1] * even + weights[2] * any_
    return (weights[0] * everything / 2 * p + weights[1] * even_x + weights[2] * any_x) / told


@pytest.mark.parametrize(
    ("seen", "p", "tau", "f"),
    [(3, 10, 4, 0.5), (-2, 40, 6, 0.5), (25, 40, 6, 0.25), (39, 40, 3, 0.5), (200, 400, 30, 0.7)],
)
def test_the_posterior_mean_is_the_integral_over_its_components(seen, p, tau, f, monkeypatch):
    weights = np.array([0.5, 0.3, 0.2])
    monkeypatch.setattr(consistency, "_em_weights", lambda *_: weights)
    variance = 2.0 * tau**2  # of each child: half of it is left when their sum is known
    pair = Siblings(*(np.array([x], float) for x in (seen, p - seen, variance, variance, p, f)))
    assert posterior(pair)[0] == pytest.approx(integrated(seen, p, tau, f, weights), rel=1e-6, abs=1e-6)


def split_all(truth, sd, rng, rule=posterior):
    noisy = truth + rng.normal(0, sd, truth.shape)
    pair = Siblings(
        noisy[:, 0],
        noisy[:, 1],
        *(np.full(len(truth), sd**2),) * 2,
        truth.sum(axis=1),
        np.full(len(truth), 0.5),
    )
    return np.clip(rule(pair), 0, truth.sum(axis=1))


@pytest.mark.parametrize(("kind", "better"), [("one side", 0.7), ("even", 0.5), ("anything", 1.0)])
def test_the_posterior_learns_which_component_a_level_is_of(kind, better, monkeypatch):
    rng = np.random.default_rng(0)
    p = np.full(4000, 60)
    left = {
        "one side": p * rng.integers(0, 2, 4000),
        "even": rng.binomial(p, 0.5),
        "anything": rng.integers(0, 61, 4000),
    }[kind]
    truth = np.stack([left, p - left], axis=1).astype(float)

    def error(rule):
        return np.abs(split_all(truth, 20.0, np.random.default_rng(1), rule) - left).mean()

    learnt = error(posterior)
    assert learnt < better * error(clipped)
    monkeypatch.setattr(consistency, "_em_weights", lambda *_: consistency.PRIOR)
    assert learnt < 0.99 * error(posterior)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.floats(0, 1e12), st.floats(0, 1e9)),
        min_size=1,
        max_size=5,
    )
)
def test_the_posterior_is_finite_whatever_was_seen(rows):
    left, right, variance, parent = np.array(rows).T
    result = posterior(Siblings(left, right, variance, variance, parent, np.full(len(rows), 0.5)))
    assert np.isfinite(result).all()


@settings(deadline=None)
@given(
    st.floats(-500, 600), st.floats(0.1, 500), st.floats(0.5, 50), st.floats(0.05, 0.95), st.floats(0.1, 0.9)
)
def test_the_posterior_is_the_same_from_left_and_from_right(seen, p, tau, f, part):
    left, right = 2 * tau**2 * part / 0.5, 2 * tau**2 * (1 - part) / 0.5
    one = Siblings(*(np.array([x], float) for x in (seen, p - seen, left, right, p, f)))
    other = Siblings(*(np.array([x], float) for x in (p - seen, seen, right, left, p, 1 - f)))
    found = [np.clip(posterior(pair), 0, p)[0] for pair in (one, other)]
    assert sum(found) == pytest.approx(p, rel=1e-6)
    if seen < -3 * tau and p > 3 * tau:
        assert found[0] < p / 4


def test_a_level_is_treated_the_same_in_one_piece_and_in_many(monkeypatch):
    rng = np.random.default_rng(3)
    truth = rng.poisson(5, (5000, 2)).astype(float)
    monkeypatch.setattr(consistency, "_em_weights", lambda *_: np.array([0.3, 0.3, 0.4]))
    one = split_all(truth, 3.0, np.random.default_rng(1))
    monkeypatch.setattr(consistency, "SAMPLE", 7)
    assert np.array_equal(one, split_all(truth, 3.0, np.random.default_rng(1)))


def test_with_hardly_any_noise_every_leaf_is_its_count():
    rng = np.random.default_rng(2)
    leaves = rng.poisson(3, 64).astype(float)
    counts = [level if j in (0, 3, 6) else None for j, level in enumerate(pyramid(leaves))]
    estimates, spread = combined(counts, [1e-9] * 7, np.ones(64))
    for rule in (clipped, posterior):
        assert np.allclose(descend(leaves.sum(), estimates, spread, np.ones(64), rule), leaves, atol=1e-3)
