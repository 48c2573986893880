"""Weights from sums, tables with given margins."""

import numpy as np
import pytest

from dpsynth_cli.mechanisms.microaggregation.products import attenuated, fitted, weights


def test_weights_are_nearer_than_any_one_table_says():
    rng = np.random.default_rng(0)
    exact = np.array([100.0, 300, 0, 600])
    ours, single = [], []
    for _ in range(200):
        tables = [np.outer(exact, np.full(k, 1 / k)) + rng.laplace(0, 10, (4, k)) for k in (2, 3, 20)]
        ours.append(((weights(tables, 1000.0) - exact) ** 2).sum())
        single.append(((weights(tables[:1], 1000.0) - exact) ** 2).sum())
    assert np.mean(ours) < 0.75 * np.mean(single)
    assert weights(tables, 1000.0).sum() == pytest.approx(1000)


def test_fitted_tables_have_their_margins_and_are_never_negative():
    rng = np.random.default_rng(1)
    rows, columns = np.array([10.0, 0.0, 90.0]), np.array([50.0, 0.0, 30.0, 20.0])
    made = fitted(rng.normal(8, 20, (3, 4)), rows, columns)
    assert (made >= 0).all()
    assert made.sum(axis=1) == pytest.approx(rows)
    assert made.sum(axis=0) == pytest.approx(columns, abs=0.5)
    assert (fitted(np.zeros((2, 3)), np.zeros(2), np.zeros(3)) == 0).all()


def test_parts_cut_by_a_sum_of_independent_attributes_are_made_alike_again():
    rng = np.random.default_rng(0)
    for strength in (0.0, 1.5):
        hidden = strength * rng.normal(size=20_000)
        cells = [(hidden + rng.normal(size=20_000) > 0).astype(int) for _ in range(4)]
        part = np.sum(cells, axis=0) // 2
        tables = [np.histogram2d(part, cell, bins=(3, 2))[0] for cell in cells]
        means = [np.bincount(cell) / 20_000 for cell in cells]
        known = np.cov(np.hstack([np.eye(2)[cell] for cell in cells]).T, bias=True)
        for at in range(0, 8, 2):
            known[at : at + 2, at : at + 2] = 0.0
        made = attenuated(tables, known)
        for table, before in zip(made, tables, strict=True):
            assert table.sum(axis=0) == pytest.approx(before.sum(axis=0))
            assert table.sum(axis=1) == pytest.approx(before.sum(axis=1))
        ours, theirs = (
            (parts[0][:, 1] * parts[1][:, 1] / parts[0].sum(axis=1)).sum() / 20_000
            - means[0][1] * means[1][1]
            for parts in (made, tables)
        )
        assert ours == pytest.approx(known[1, 3], abs=0.005)
        assert theirs > known[1, 3] + 0.01
