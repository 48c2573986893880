"""Few rows moved until tables are near what they are due: never further off, never where none may be."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.numeric.conditional import Target
from dpsynth_cli.numeric.settled import settled


def two_tables(seed: int, rows: int = 300) -> tuple[np.ndarray, list[Target], np.ndarray]:
    """Rows with two columns, the tables of a third with each of them, and rows that are drawn by chance."""
    rng = np.random.default_rng(seed)
    a, b, v = (rng.integers(0, size, rows) for size in (20, 7, 12))
    tables = [np.zeros((20, 12)), np.zeros((7, 6))]
    np.add.at(tables[0], (a, v), 1)
    np.add.at(tables[1], (b, v // 2), 1)
    law = tables[0][a] / tables[0][a].sum(axis=1, keepdims=True)
    start = (np.cumsum(law, axis=1) < rng.random((rows, 1))).sum(axis=1).clip(max=11)
    return start, [Target(a, np.arange(12), tables[0]), Target(b, np.arange(12) // 2, tables[1])], law > 0


def off(v: np.ndarray, targets: list[Target], power: int = 1) -> float:
    """How far all tables are from what they are due."""
    total = 0.0
    for target in targets:
        there = np.zeros(target.counts.shape)
        np.add.at(there, (target.index, target.group[v]), 1)
        total += float((np.abs(there - target.given()) ** power).sum())
    return total


@pytest.mark.parametrize("seed", range(3))
def test_tables_of_a_row_a_cell_come_near_what_they_are_due(seed):
    start, targets, allowed = two_tables(seed)
    v = settled(start, targets, allowed, np.random.default_rng(seed))
    assert off(v, targets) < off(start, targets) / 3
    assert allowed[np.arange(len(v)), v].all()


def test_squares_never_grow_whatever_is_due():
    rng = np.random.default_rng(0)
    for seed in range(30):
        start, targets, allowed = two_tables(seed, rows=40)
        due = [Target(one.index, one.group, rng.gamma(0.3, size=one.counts.shape)) for one in targets]
        v = settled(start, due, allowed, np.random.default_rng(seed))
        assert off(v, due, 2) <= off(start, due, 2) + 0.5  # tables are compared to 1/64 of a row


def test_many_rows_do_not_all_go_where_there_is_room_for_a_few():
    """A thousand rows in the first cell, two hundred due in each of five."""
    even = Target(np.zeros(1000, np.int64), np.arange(5), np.ones((1, 5)))
    v = settled(np.zeros(1000, np.int64), [even], np.ones((1000, 5), bool), np.random.default_rng(0))
    assert np.bincount(v).tolist() == [200] * 5


def test_what_a_table_knows_nothing_of_is_not_pulled():
    known = Target(np.array([0, 0, 1, 1]), np.arange(2), np.array([[1.0, 1.0], [0.0, 0.0]]))
    start = np.array([0, 0, 1, 1])
    v = settled(start, [known], np.ones((4, 2), bool), np.random.default_rng(0))
    assert sorted(v[:2].tolist()) == [0, 1]
    assert v[2:].tolist() == [1, 1]


def test_the_same_generator_gives_the_same_rows_and_the_given_ones_stay():
    start, targets, allowed = two_tables(5)
    before = start.copy()
    one, other = (settled(start, targets, allowed, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(one, other)
    assert np.array_equal(start, before)
