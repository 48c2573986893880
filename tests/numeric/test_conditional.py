"""Proportional fitting of a conditional: it has its tables, keeps zeros, and gives new rows the same."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.numeric import conditional
from dpsynth_cli.numeric.conditional import Alike, Target, added, fitted, picked


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


def alone(target: Target) -> Alike:
    """One table: rows of a cell of its other columns are alike."""
    kinds = len(target.counts)
    return Alike(target.index, kinds, [Target(np.arange(kinds), target.group, target.counts)])


def together(a: np.ndarray, b: np.ndarray, several: list[Target]) -> Alike:
    """Both tables of rows of the same two cells."""
    kinds = np.arange(3).repeat(3), np.tile(np.arange(3), 3)
    own = [Target(row, one.group, one.counts) for row, one in zip(kinds, several, strict=True)]
    return Alike(a * 3 + b, 9, own)


@pytest.mark.parametrize("at_once", [False, True])
def test_the_law_behind_the_tables_is_found(at_once):
    a, b = rows(0)
    (first, second), p = targets(a, b)
    several = [together(a, b, [first, second])] if at_once else [alone(first), alone(second)]
    found, fits = fitted(np.full_like(p, 1 / 3), several, 30)
    factors = [factor for own in fits for factor in own]
    assert np.abs(found - p).max() < 0.01
    there = added(found, second.index, 3, second.group, 3)
    assert np.abs(there - second.counts).max() < 0.01 * len(second.index)
    a, b = rows(1)
    _, same = targets(a, b)
    tables = [factor / factor.max(axis=1, keepdims=True) for factor in factors]
    v = picked(tables, [a, b], np.random.default_rng(0).random(len(a)))
    for value in range(3):
        assert abs((v == value).mean() - same[:, value].mean()) < 0.02


def test_the_last_table_is_exact_and_what_it_leaves_empty_stays_empty():
    a, b = rows(2)
    (first, _), _ = targets(a, b)
    link = Target(b, np.arange(3), np.diag([50.0, 30.0, 20.0]))
    start = link.counts[b] / link.counts[b].sum(axis=1, keepdims=True)
    found, _ = fitted(start, [alone(first), alone(link)], 6)
    assert np.array_equal(found.argmax(axis=1), b)
    assert np.allclose(found.max(axis=1), 1.0)


def test_a_coarser_table_leaves_what_is_inside_its_cells_as_it_was():
    index = np.zeros(1000, int)
    start = np.tile(np.array([0.1, 0.3, 0.6]), (1000, 1))
    table = Target(index, np.array([0, 0, 1]), np.array([[800.0, 200.0]]))
    found, _ = fitted(start, [alone(table)], 5)
    assert np.allclose(found[0], [0.2, 0.6, 0.2])


def test_a_table_that_leaves_a_row_nothing_is_left_out_and_those_after_it_count():
    first = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.5]])
    never, last = np.array([[0.0, 1.0, 1.0]]), np.array([[1.0, 1.0, 0.0]])
    row, same = np.array([0, 1]), np.zeros(2, int)
    for u in (0.0, 0.5, 0.999):
        assert picked([first, never, last], [row, same, same], np.full(2, u)).tolist() == [0, 1]


def test_rows_are_the_same_in_any_batch_and_by_their_products():
    rng = np.random.default_rng(3)
    tables = [rng.random((40, 50)).astype(np.float32) for _ in range(4)]
    indices = [rng.integers(0, 40, 9000) for _ in tables]
    u = rng.random(9000)
    whole = picked(tables, indices, u)
    some = slice(4000, 4100)
    assert np.array_equal(whole[some], picked(tables, [index[some] for index in indices], u[some]))
    p = np.prod([table[index] for table, index in zip(tables, indices, strict=True)], axis=0)
    due = (np.cumsum(p, axis=1) <= (u * p.sum(axis=1))[:, None]).sum(axis=1)
    assert (whole == due).mean() > 0.999


def test_products_of_many_tables_do_not_vanish():
    """60 tables that each say the same, far from even: a product of 1e-420."""
    tables = [np.array([[1.0, 1e-7], [1e-7, 1.0]], np.float32)] * 59 + [
        np.array([[1e-7, 1e-7]] * 2, np.float32)
    ]
    row = np.array([0, 1, 1])
    assert picked(tables, [row] * 60, np.full(3, 0.999)).tolist() == [0, 1, 1]


@pytest.mark.parametrize("at_once", [False, True])
def test_tables_that_rows_cannot_have_do_not_make_them_grow_without_end(at_once):
    """Each of 300 tables wants 20 times as many rows in a cell as may be there, in each of 6 passes."""
    start = np.repeat([[1.0, 0.0], [0.0, 1.0]], [200, 19_800], axis=0)
    index = np.zeros(len(start), int)
    table = Target(index, np.arange(2), np.array([[4_000.0, 16_000.0]]))
    several = [Alike(index, 1, alone(table).targets * 300)] if at_once else [alone(table)] * 300
    with np.errstate(all="raise", under="ignore"):
        found, factors = fitted(start, several, 6)
    assert np.allclose(found, start)
    assert all(np.isfinite(factor).all() for own in factors for factor in own)


def test_passes_end_where_tables_come_no_nearer(monkeypatch):
    a, b = rows(4)
    (first, second), p = targets(a, b)
    passes = []
    whole = conditional.batches
    monkeypatch.setattr(conditional, "batches", lambda *shape: passes.append(shape) or whole(*shape))
    fitted(np.full_like(p, 1 / 3), [alone(first), alone(second)], 100)
    assert 2 * 3 <= len(passes) < 2 * 20
