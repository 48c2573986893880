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


def test_what_many_tables_forbid_empties_too():
    """Two hundred tables that say the same: what a row costs them does not overflow."""
    aims = [Aim(INDEX, np.arange(3), WANTED, WANTED == 0)] * 200
    found = balanced(V, CLASSES, aims, 20, np.random.default_rng(1))
    assert ((INDEX == 3) & (found == 1)).sum() == 0
    assert apart(found) < 0.35 * apart(V)


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


def test_what_one_block_of_rows_has_too_many_the_next_has_too_few():
    """Over many blocks the error of each cell stays that of one block."""
    errors = {}
    for carried in (False, True):
        rng, owed = np.random.default_rng(2), np.zeros(12, np.int64)
        away = np.zeros(12)
        for _ in range(25):
            index, v = rng.permutation(2400) % 4, rng.permutation(2400) % 3
            wanted = np.full((4, 3), 200.0)
            aim = Aim(index, np.arange(3), wanted, owed=owed if carried else None)
            found = balanced(v, np.zeros(2400, int), [aim], 1, rng)
            away += np.bincount(index * 3 + found, minlength=12) - wanted.ravel()
        errors[carried] = np.abs(away).sum()
    assert errors[True] < 0.5 * errors[False]


def test_what_cannot_be_reached_is_not_owed_for_ever():
    owed, rng = np.zeros(2, np.int64), np.random.default_rng(0)
    for _ in range(50):  # all rows are in the first cell, whatever is wanted
        aim = Aim(np.zeros(100, int), np.arange(2), np.array([[50.0, 50.0]]), owed=owed)
        balanced(np.zeros(100, int), np.zeros(100, int), [aim], 1, rng)
    assert 0 < owed[0] <= 64 * 4 * 50**0.5 + 1


def test_many_exchanges_at_once_do_not_go_too_far():
    """Almost every pair of rows would help a table that is a few rows off; only a few may exchange."""
    rng = np.random.default_rng(3)
    index, v = rng.permutation(20_000) % 2, rng.permutation(20_000) % 2
    there = np.bincount(index * 2 + v, minlength=4).reshape(2, 2)
    wanted = there + np.array([[12.0, -12.0], [-12.0, 12.0]])
    found = balanced(v, np.zeros(20_000, int), [Aim(index, np.arange(2), wanted)], 1, rng)
    left = np.bincount(index * 2 + found, minlength=4).reshape(2, 2) - wanted
    assert np.abs(left).max() <= 1


def test_no_exchange_makes_the_squares_larger():
    """Few rows, where the square of a row's own move decides: half-empty tables that are right already."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        index, v = rng.integers(0, 3, 12), rng.integers(0, 3, 12)
        wanted = np.bincount(index * 3 + v, minlength=9).reshape(3, 3) + rng.uniform(-0.4, 0.4, (3, 3)).clip(
            0
        )
        aim = Aim(index, np.arange(3), wanted)

        def squares(cells, index=index, wanted=wanted):
            counts = np.bincount(index * 3 + cells, minlength=9).reshape(3, 3)
            return float(((counts - wanted * 12 / wanted.sum()) ** 2).sum())

        found = balanced(v, np.zeros(12, int), [aim], 3, rng)
        assert squares(found) <= squares(v) + 0.1  # tables are compared to 1/64 of a row
