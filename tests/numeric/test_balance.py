"""Exchanges of one column: nearer to its tables, counts kept, never where no row may be."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.numeric.balance import Aim, balanced

RNG = np.random.default_rng(0)
INDEX = RNG.integers(0, 4, 8000)
V = RNG.integers(0, 3, 8000)
CLASSES = RNG.integers(0, 2, 8000)
WANTED = np.array([[0.2, 0.03, 0.02], [0.02, 0.2, 0.03], [0.1, 0.1, 0.05], [0.01, 0.0, 0.24]]) * 8000


def apart(v: np.ndarray) -> float:
    counts = np.bincount(INDEX * 3 + v, minlength=12).reshape(4, 3)
    return float(np.abs(counts - WANTED).sum())


def test_tables_come_nearer_and_counts_stay():
    aim = Aim(INDEX, np.arange(3), WANTED)
    found = balanced(V, CLASSES, [aim], 10, np.random.default_rng(1))
    assert apart(found) < 0.35 * apart(V)
    for k in (0, 1):
        assert np.array_equal(np.bincount(found[k == CLASSES]), np.bincount(V[k == CLASSES]))
    again = balanced(V, CLASSES, [aim], 10, np.random.default_rng(1))
    assert np.array_equal(found, again)


def test_what_must_stay_empty_empties():
    never = WANTED == 0
    found = balanced(V, CLASSES, [Aim(INDEX, np.arange(3), WANTED, never)], 20, np.random.default_rng(1))
    assert ((INDEX == 3) & (V == 1)).sum() > 500
    assert ((INDEX == 3) & (found == 1)).sum() == 0


def test_rows_exchange_within_their_class_only():
    every = np.arange(8000)
    found = balanced(V, every, [Aim(INDEX, np.arange(3), WANTED)], 3, np.random.default_rng(1))
    assert np.array_equal(found, V)


def test_cells_of_one_group_are_alike():
    group = np.array([0, 0, 1])
    coarse = np.stack([WANTED[:, :2].sum(axis=1), WANTED[:, 2]], axis=1)
    found = balanced(V, CLASSES, [Aim(INDEX, group, coarse)], 10, np.random.default_rng(1))
    counts = np.bincount(INDEX * 2 + group[found], minlength=8).reshape(4, 2)
    before = np.bincount(INDEX * 2 + group[V], minlength=8).reshape(4, 2)
    assert np.abs(counts - coarse).sum() < 0.6 * np.abs(before - coarse).sum()
