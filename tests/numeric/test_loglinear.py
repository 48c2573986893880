"""Penalised maximum entropy: its one minimum, by whatever way it is found."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dpsynth_cli.numeric import loglinear
from dpsynth_cli.numeric.loglinear import fitted
from dpsynth_cli.numeric.residual import Basis

RNG = np.random.default_rng(0)


def up_to(basis, order):
    axes = range(len(basis.sizes))
    sets = [some for k in range(1, order + 1) for some in combinations(axes, k)]
    return np.concatenate([basis.residual(some) for some in sets])


def table(sizes):
    p = np.random.default_rng(3).random(sizes) ** 3 + 1e-3
    return (p / p.sum()).ravel()


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2, 2), (3, 2, 4)])
def test_it_has_the_means_and_no_more_than_they_say(sizes):
    basis, p = Basis(sizes), table(sizes)
    index = up_to(basis, 2)
    found, _, _ = fitted(basis, index, basis.means(p)[index], np.full(len(index), 1e-9))
    assert found.sum() == pytest.approx(1)
    assert np.allclose(basis.means(found)[index], basis.means(p)[index], atol=1e-5)
    others = np.setdiff1d(np.arange(1, basis.cells), index)
    assert np.allclose(basis.means(np.log(found))[others], 0, atol=1e-6)  # a log-linear model of pairs


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2, 2), (3, 2, 4)])
def test_the_penalty_says_how_far_means_are_missed(sizes):
    basis = Basis(sizes)
    index = up_to(basis, 2)
    means = RNG.normal(0, 0.8, len(index))  # of no distribution at all
    penalty = RNG.uniform(0.01, 0.5, len(index))
    found, theta, _ = fitted(basis, index, means, penalty)
    assert np.allclose(means - basis.means(found)[index], penalty * theta, atol=1e-4)


def test_covariances_written_down_late_or_seldom_lead_to_the_same(monkeypatch):
    basis, p = Basis((3, 4, 2, 5)), table((3, 4, 2, 5))
    index = up_to(basis, 3)
    means = basis.means(p)[index] + RNG.normal(0, 0.02, len(index))
    penalty = np.full(len(index), 0.002)
    at_once, _, _ = fitted(basis, index, means, penalty)
    monkeypatch.setattr(loglinear, "AT_ONCE", 0)
    monkeypatch.setattr(loglinear, "WORK", 0)
    monkeypatch.setattr(loglinear, "INNER", 4)
    solve, undone = loglinear._solve, []
    monkeypatch.setattr(loglinear, "_solve", lambda *words: undone.append(words) or solve(*words))
    for hard, stale, times in ((1, 12, 1), (2, 0, 2), (10**6, 0, 0)):
        monkeypatch.setattr(loglinear, "HARD", hard)
        monkeypatch.setattr(loglinear, "STALE", stale)
        undone.clear()
        found, _, _ = fitted(basis, index, means, penalty)
        assert len(undone) == times or len(undone) > times > 1
        assert np.allclose(found, at_once, atol=1e-5) == (times > 0)  # too few steps for it without


def test_no_row_is_where_none_can_be_and_a_start_changes_nothing():
    basis, p = Basis((3, 2, 4)), table((3, 2, 4))
    never = np.arange(24) % 5 == 0
    index = up_to(basis, 2)
    means, penalty = basis.means(p)[index], np.full(len(index), 0.01)
    found, theta, _ = fitted(basis, index, means, penalty, never)
    assert (found[never] == 0).all()
    again, _, _ = fitted(basis, index, means, penalty, never, theta + RNG.normal(size=len(theta)))
    assert np.allclose(found, again, atol=1e-5)


def test_it_is_found_where_one_column_decides_another(monkeypatch):
    """Many sums of functions are then the same in all cells, and noise says something else of them."""
    rng, sizes = np.random.default_rng(4), (7, 12, 12, 9)
    decides = rng.permutation(12)
    possible = np.zeros(sizes, bool)
    possible[:, np.arange(12), decides] = True
    p = np.where(possible, rng.random(sizes) ** 6 + 1e-4, 0.0).ravel()
    p, basis, never = p / p.sum(), Basis(sizes), ~possible.ravel()
    index = up_to(basis, 2)
    means = basis.means(p)[index] + rng.normal(0, 1e-3, len(index))
    penalty = np.geomspace(3e-6, 3e-3, len(index))
    at_once, theta, _ = fitted(basis, index, means, penalty, never)
    assert np.abs(means - basis.means(at_once)[index] - penalty * theta).max() < 1e-5
    monkeypatch.setattr(loglinear, "PRODUCTS", 0)
    applied, _, _ = fitted(basis, index, means, penalty, never)
    assert np.abs(applied - at_once).sum() < 1e-3


def test_covariances_written_down_or_applied_are_the_same(monkeypatch):
    basis, p = Basis((3, 2, 4)), table((3, 2, 4))
    index = up_to(basis, 2)
    means = basis.means(p)[index] + RNG.normal(0, 0.02, len(index))
    penalty = np.full(len(index), 0.02)
    written, _, _ = fitted(basis, index, means, penalty)
    monkeypatch.setattr(loglinear, "PRODUCTS", 0)
    assert np.allclose(fitted(basis, index, means, penalty)[0], written, atol=1e-5)


def test_means_of_a_table_with_all_but_empty_cells_are_reached():
    basis = Basis((12, 12))
    p = np.full((12, 12), 1e-7)
    p[np.arange(12), np.arange(12)[::-1]] = np.random.default_rng(4).random(12) ** 3
    p /= p.sum()
    index = up_to(basis, 2)
    found, _, _ = fitted(basis, index, basis.means(p.ravel())[index], np.full(len(index), 1e-9))
    assert np.abs(found - p.ravel()).sum() < 1e-3
