"""Exchanges: nearer to all pair tables, nothing else changed, impossible pairs dissolved."""

from itertools import combinations

import numpy as np
import pytest

from dpsynth_cli.numeric.exchange import exchanged

SIZES = [4, 3, 6, 2]


def tables(cells):
    found = {}
    for i, j in combinations(range(len(SIZES)), 2):
        found[i, j] = np.zeros((SIZES[i], SIZES[j]))
        np.add.at(found[i, j], (cells[:, i], cells[:, j]), 1)
    return found


def linked(rows, seed):
    """Rows whose attributes all depend on a hidden one."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(rows)
    return np.stack(
        [np.minimum((hidden + 0.3 * rng.random(rows)) / 1.3 * size, size - 1).astype(int) for size in SIZES],
        axis=1,
    )


def shuffled(cells, seed):
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(column) for column in cells.T], axis=1)


def off(cells, targets):
    found = tables(cells)
    return sum(np.abs(found[pair] - targets[pair]).sum() for pair in targets) / (
        2 * len(cells) * len(targets)
    )


def test_independent_rows_become_those_that_the_tables_ask_for():
    real = linked(4000, 0)
    start = shuffled(real, 1)
    made = exchanged(start.copy(), SIZES, tables(real), {}, 12, np.random.default_rng(2))
    assert off(start, tables(real)) > 0.2
    assert off(made, tables(real)) < 0.02


def test_columns_keep_their_counts_and_targets_are_scaled_to_the_rows():
    real = linked(3001, 0)
    start = shuffled(real, 1)
    targets = {pair: table * 7.5 for pair, table in tables(real).items()}
    made = exchanged(start.copy(), SIZES, targets, {}, 12, np.random.default_rng(2))
    for i in range(len(SIZES)):
        assert (np.bincount(made[:, i]) == np.bincount(start[:, i])).all()
    assert off(made, tables(real)) < 0.02


def test_impossible_pairs_dissolve_whatever_the_targets_say():
    start = shuffled(linked(4000, 3), 1)
    impossible = {(0, 1): np.zeros((4, 3), bool), (1, 2): np.zeros((3, 6), bool)}
    impossible[0, 1][0, 2] = impossible[1, 2][0, 5] = True

    def broken(cells):
        return sum(tables(cells)[pair][never].sum() for pair, never in impossible.items())

    made = exchanged(start.copy(), SIZES, tables(start), impossible, 8, np.random.default_rng(2))
    assert broken(start) > 200
    assert broken(made) <= 0.02 * broken(start)


@pytest.mark.parametrize("moved", [37, 150, 300, 611])
def test_many_exchanges_at_once_do_not_go_too_far(moved):
    rows = 8000
    start = np.random.default_rng(0).integers(0, 2, (rows, 2))
    one, other = (np.bincount(column, minlength=2) for column in start.T)
    target = np.outer(one, other) / rows + moved * np.array([[1, -1], [-1, 1]])
    made = exchanged(start, [2, 2], {(0, 1): target}, {}, 3, np.random.default_rng(1))
    found = np.bincount(2 * made[:, 0] + made[:, 1], minlength=4).reshape(2, 2)
    assert np.abs(found - target).max() < 2


def test_rows_that_cannot_be_nearer_stay_as_they_are():
    real = linked(2000, 0)
    rng = np.random.default_rng(3)
    targets = {pair: table + rng.uniform(-0.3, 0.3, table.shape) for pair, table in tables(real).items()}
    made = exchanged(real.copy(), SIZES, targets, {}, 4, np.random.default_rng(2))
    assert (made == real).all()


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_few_rows(rows):
    cells = linked(rows, 0)
    targets = tables(linked(100, 1))
    made = exchanged(cells.copy(), SIZES, targets, {}, 3, np.random.default_rng(0))
    assert made.shape == cells.shape
    assert (np.sort(made, axis=0) == np.sort(cells, axis=0)).all()


def test_the_same_seed_gives_the_same_rows():
    real = linked(500, 0)
    one, other = (
        exchanged(shuffled(real, 1), SIZES, tables(real), {}, 2, np.random.default_rng(5)) for _ in range(2)
    )
    assert (one == other).all()
