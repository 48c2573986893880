"""Scores and correlations from pair tables: exact tables give back the latent normals they came from."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.mechanisms.factor.latent import column_scores, correlations, nearest_correlation, residual
from dpsynth_cli.mechanisms.factor.links import link

R = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, -0.4], [0.0, -0.4, 1.0]])
CUTS = [np.linspace(-1.5, 1.5, 7), np.array([-0.5, 0.5, 1.0]), np.linspace(-1, 1, 9)]


def tables(noise: float = 0.0, seed: int = 0, rows: int = 200_000):
    """Frequencies of three cut normals, their cells in random order, and the residuals of pairs."""
    rng = np.random.default_rng(seed)
    z = rng.multivariate_normal(np.zeros(3), R, rows)
    cells = [rng.permutation(len(c) + 1)[np.digitize(z[:, i], c)] for i, c in enumerate(CUTS)]
    sizes = [len(c) + 1 for c in CUTS]
    p = [np.bincount(c, minlength=k) / rows for c, k in zip(cells, sizes, strict=True)]
    residuals = {}
    for i, j in ((0, 1), (0, 2), (1, 2)):
        table = np.bincount(cells[i] * sizes[j] + cells[j], minlength=sizes[i] * sizes[j]) / rows
        noisy = table.reshape(sizes[i], sizes[j]) + rng.normal(0, noise, (sizes[i], sizes[j]))
        residuals[i, j] = residual(noisy, p[i], p[j])
    return p, residuals


def test_the_latent_correlation_comes_back_from_cells_in_any_order():
    p, residuals = tables()
    scores = column_scores(residuals, p, 1e-7, 1)
    carried = [link(phi, own).carried for phi, own in zip(scores, p, strict=True)]
    seen = correlations(residuals, scores, carried, 1e-7)
    assert np.allclose(np.abs(seen), np.abs(R), atol=0.05)
    assert np.sign(seen[0, 1] * seen[1, 2]) == -1 or abs(seen[0, 2]) < 0.05


def test_scores_have_mean_0_variance_1_and_no_correlation():
    p, residuals = tables()
    for phi, own in zip(column_scores(residuals, p, 1e-5, 2), p, strict=True):
        assert phi.shape[1] >= 1
        assert np.allclose(own @ phi, 0)
        assert np.allclose((phi * own[:, None]).T @ phi, np.eye(phi.shape[1]))


def test_noise_alone_gives_hardly_any_correlation():
    p, residuals = tables()
    quiet = {pair: np.random.default_rng(1).normal(0, 0.01, rest.shape) for pair, rest in residuals.items()}
    scores = column_scores(quiet, p, 0.01, 3)
    carried = [
        link(phi, own).carried if phi.size else np.zeros((0, 0)) for phi, own in zip(scores, p, strict=True)
    ]
    seen = correlations(quiet, scores, carried, 0.01)
    assert np.abs(seen - np.eye(len(seen))).sum() < 1.0


def test_what_a_link_hardly_carries_is_not_enlarged_without_end():
    p, residuals = tables()
    scores = column_scores(residuals, p, 1e-5, 1)
    seen = correlations(residuals, scores, [np.zeros((1, 1))] * 3, 1e-5)
    assert np.isfinite(seen).all()
    assert np.abs(seen).max() <= 25


@pytest.mark.parametrize("rank", [None, 1, 2])
def test_the_nearest_correlation_is_one_and_keeps_the_blocks(rank):
    rng = np.random.default_rng(0)
    wild = rng.normal(0, 1, (6, 6))
    wild = (wild + wild.T) / 2
    near = nearest_correlation(wild, [1, 2, 3], rank)
    assert np.allclose(np.diag(near), 1)
    assert np.linalg.eigvalsh(near)[0] > 0
    if rank is None:
        assert np.abs(near[3:, 3:] - np.eye(3)).max() < 0.1
    else:
        spectrum = np.linalg.eigvalsh(near - np.diag(np.diag(near)))
        assert (spectrum > 1e-6).sum() <= rank


def test_a_correlation_matrix_is_nearest_to_itself():
    assert np.allclose(nearest_correlation(R, [1, 1, 1]), R, atol=1e-3)
