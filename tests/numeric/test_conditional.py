"""Proportional fitting of a conditional: it has its tables, keeps zeros, and gives new rows the same."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.numeric.conditional import Target, added, fitted, multiplied


def rows(seed: int, count: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, count)
    return a, np.where(rng.random(count) < 0.5, a, rng.integers(0, 3, count))


def targets(a: np.ndarray, b: np.ndarray) -> tuple[list[Target], np.ndarray]:
    """v depends on both, by a known log-linear law."""
    law = np.exp(
        np.array([[0, 1, 2], [1, 0, -1], [0, 0, 1]])[a] + np.array([[1, 0, 0], [0, 2, 0], [0, 1, 1]])[b]
    )
    p = law / law.sum(axis=1, keepdims=True)
    group = np.arange(3)
    return [Target(index, group, added(p, index, 3, group, 3)) for index in (a, b)], p


def test_the_law_behind_the_tables_is_found():
    (first, second), p = targets(*rows(0))
    found, factors = fitted(np.full_like(p, 1 / 3), [first, second], 30)
    assert np.abs(found - p).max() < 0.01
    there = added(found, second.index, 3, second.group, 3)
    assert np.abs(there - second.counts).max() < 0.01 * len(second.index)
    a, b = rows(1)
    _, same = targets(a, b)
    new = multiplied(np.full_like(same, 1 / 3), [(a, first.group), (b, second.group)], factors)
    assert np.abs(new - same).max() < 0.01


def test_the_last_table_is_exact_and_what_it_leaves_empty_stays_empty():
    a, b = rows(2)
    (first, _), _ = targets(a, b)
    link = Target(b, np.arange(3), np.diag([50.0, 30.0, 20.0]))
    start = link.counts[b] / link.counts[b].sum(axis=1, keepdims=True)
    found, _ = fitted(start, [first, link], 6)
    assert np.array_equal(found.argmax(axis=1), b)
    assert np.allclose(found.max(axis=1), 1.0)


def test_a_coarser_table_leaves_what_is_inside_its_cells_as_it_was():
    index = np.zeros(1000, int)
    start = np.tile(np.array([0.1, 0.3, 0.6]), (1000, 1))
    found, _ = fitted(start, [Target(index, np.array([0, 0, 1]), np.array([[800.0, 200.0]]))], 5)
    assert np.allclose(found[0], [0.2, 0.6, 0.2])


def test_a_row_that_nothing_is_left_for_falls_back_to_its_start():
    start = np.array([[1.0, 0.0], [0.5, 0.5]])
    p = multiplied(start, [(np.zeros(2, int), np.arange(2))], [np.array([[0.0, 5.0]])])
    assert p.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    # A factor that leaves a row nothing is left out; those after it count.
    more = [(np.zeros(2, int), np.arange(2))] * 2
    p = multiplied(np.array([[1.0, 0.0], [0.5, 0.5]]), more, [np.array([[0.0, 5.0]]), np.array([[3.0, 1.0]])])
    assert p.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_rows_are_the_same_in_any_batch():
    rng = np.random.default_rng(3)
    index, law = rng.integers(0, 40, 9000), rng.random((40, 50))
    factors = [rng.random((40, 50)) for _ in range(3)]
    cells = [(rng.integers(0, 40, 9000), np.arange(50)) for _ in factors]
    whole = multiplied(law[index], cells, factors)
    some = slice(4000, 4100)
    part = multiplied(law[index[some]], [(own[some], group) for own, group in cells], factors)
    assert np.array_equal(whole[some], part)
    due = law[index] * factors[0][cells[0][0]] * factors[1][cells[1][0]] * factors[2][cells[2][0]]
    assert np.allclose(whole, due / due.sum(axis=1, keepdims=True))


def test_factors_of_many_tables_neither_overflow_nor_vanish():
    """60 tables that each say the same, in all but one row far from even: a product of 1e420."""
    index, cells = np.array([0, 0, 1]), 60
    start = np.full((3, 2), 0.5)
    factor = np.array([[1e7, 1e-7], [2.0, 1.0]])
    with np.errstate(all="raise", under="ignore"):
        found = multiplied(start, [(index, np.arange(2))] * cells, [factor] * cells)
    assert np.allclose(found[:2], [1.0, 0.0])
    assert np.allclose(found.sum(axis=1), 1.0)
    assert found[2, 0] > 0.999


def test_tables_that_rows_cannot_have_do_not_make_them_grow_without_end():
    """Each of 50 tables wants 20 times as many rows in a cell as may be there, in each of 6 passes."""
    start = np.repeat([[1.0, 0.0], [0.0, 1.0]], [200, 19_800], axis=0)
    table = Target(np.zeros(20_000, int), np.arange(2), np.array([[4_000.0, 16_000.0]]))
    with np.errstate(all="raise", under="ignore"):
        found, factors = fitted(start, [table] * 50, 6)
    assert np.allclose(found, start)
    assert np.isfinite(factors).all()
