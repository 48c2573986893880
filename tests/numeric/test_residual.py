"""The residual basis: orthonormal, fast, and each residual just what smaller tables do not tell."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from dpsynth_cli.numeric.residual import Basis, contrasts, parts


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_contrasts_are_orthonormal_where_cells_are_equally_likely(k):
    found = contrasts(k)
    assert np.allclose(found @ found.T / k, np.eye(k))
    assert np.allclose(found[0], 1)


@pytest.mark.parametrize("sizes", [(2,), (3, 1, 2), (2, 2, 2, 2, 2, 2, 2), (4, 9, 5, 2)])
def test_means_and_values_are_what_all_functions_written_down_give(sizes):
    functions = reduce(np.kron, map(contrasts, sizes))  # one a row
    x = np.random.default_rng(0).normal(size=len(functions))
    basis = Basis(sizes)
    assert np.allclose(basis.means(x), functions @ x)
    assert np.allclose(basis.values(x), functions.T @ x)


def test_orthonormal_functions_are_so_where_columns_are_independent():
    rng, sizes = np.random.default_rng(2), (3, 2, 4)
    p = reduce(np.multiply.outer, [rng.dirichlet(np.ones(k)) for k in sizes]).ravel()
    basis, some = Basis(sizes), rng.normal(size=(2, 24))
    turn = basis.orthonormal(p)
    assert np.allclose(turn.to(basis.means(p)), np.eye(24)[0], atol=1e-6)
    one, other = (basis.values(turn.back(weights)) for weights in some)
    assert np.isclose((p * one * other).sum(), some[0] @ some[1])
    sums = np.diag(some[0]) @ [turn.to(row) for row in np.eye(24)]
    assert np.allclose(turn.squares(some[0] ** 2), (sums**2).sum(axis=0))


def test_a_residual_is_all_that_a_table_has_beyond_its_parts():
    rng = np.random.default_rng(1)
    p = rng.random((3, 2, 4))
    p /= p.sum()
    basis = Basis(p.shape)
    means = basis.means(p.ravel())
    found = parts(p.sum(axis=1))  # the table of the first and the last column
    for axes, place in (((), ()), ((0,), (0,)), ((1,), (2,)), ((0, 1), (0, 2))):
        assert np.allclose(found[axes], means[basis.residual(place)])
    together = [basis.residual(axes) for axes in ((), (0,), (2,), (0, 2))]
    kept = np.zeros(24)
    kept[np.concatenate(together)] = means[np.concatenate(together)]
    assert np.allclose((basis.values(kept) / 24).reshape(3, 2, 4).sum(axis=1), p.sum(axis=1))
