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


def test_impossible_pairs_dissolve():
    real = linked(4000, 3)
    impossible = {pair: table == 0 for pair, table in tables(real).items()}
    broken = exchanged(shuffled(real, 1), SIZES, tables(real), {}, 1, np.random.default_rng(2))
    made = exchanged(shuffled(real, 1), SIZES, tables(real), impossible, 12, np.random.default_rng(2))

    def count(cells):
        return sum(tables(cells)[pair][never].sum() for pair, never in impossible.items())

    assert count(broken) > 100
    assert count(made) < 0.1 * count(broken)


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
