"""Tables tilted to the moments of their noisy counts."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.numeric.tilting import moments, tilted

X, Y = np.linspace(-1.7, 1.7, 12), np.linspace(-1.7, 1.7, 9)


def normal(rows: float, correlation: float) -> np.ndarray:
    """A table of two numbers, one class."""
    square = (X[:, None] ** 2 - 2 * correlation * np.outer(X, Y) + Y**2) / (1 - correlation**2)
    table = np.exp(-square / 2)
    return table[None] * (rows / table.sum())


def raked(sums: tuple[np.ndarray, np.ndarray]):
    """Proportional fitting to the sums of rows and columns."""

    def fit(table):
        for _ in range(12):
            table = table * (sums[0] / np.maximum(table.sum(axis=2), 1e-12))[:, :, None]
            table = table * (sums[1] / np.maximum(table.sum(axis=1), 1e-12))[:, None]
        return table

    return fit


def sums_of(table):
    return table.sum(axis=2), table.sum(axis=1)


@pytest.mark.parametrize("scores", [(X, Y), (None, Y), (X, None)])
def test_what_cells_say_together_is_kept_though_each_was_drawn_to_independence(scores):
    real, noise = normal(20_000, 0.5), np.random.default_rng(1)
    flat = np.einsum("ka,kb->kab", *sums_of(real)) / real.sum()
    shrunk = flat + 0.6 * (real - flat)
    noisy = real + np.rint(noise.normal(0, 20, real.shape))
    found = tilted(shrunk, noisy, 400.0, scores, raked(sums_of(real)))
    lost = np.abs(moments(shrunk, scores) - moments(real, scores)).sum()
    left = np.abs(moments(found, scores) - moments(real, scores)).sum()
    assert left < 0.3 * lost
    assert np.abs(found - real).sum() < np.abs(shrunk - real).sum()
    for own, due in zip(sums_of(found), sums_of(real), strict=True):
        assert own == pytest.approx(due, rel=0.02)


def test_empty_cells_stay_empty_and_classes_keep_their_own():
    real = np.concatenate([normal(5_000, 0.6), normal(5_000, -0.6)])
    flat = np.einsum("ka,kb->kab", *sums_of(real)) / real.sum(axis=(1, 2), keepdims=True)
    flat[:, 0, -1] = 0
    found = tilted(flat, real, 1.0, (X, Y), raked(sums_of(real)))
    assert (found[:, 0, -1] == 0).all()
    one, other = moments(found, (X, Y)).ravel()
    assert one > 1_000
    assert other < -1_000


def test_noise_alone_hardly_changes_a_table():
    flat, rng = normal(2_000, 0.0), np.random.default_rng(2)
    moved = []
    for _ in range(40):
        noisy = flat + rng.normal(0, 100, flat.shape)
        found = tilted(flat, noisy, 1e4, (X, Y), raked(sums_of(flat)))
        moved.append(moments(found - flat, (X, Y)).item() / moments(noisy - flat, (X, Y)).item())
    assert np.mean(moved) < 0.25
