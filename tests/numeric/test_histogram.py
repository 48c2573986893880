"""Masses of classes: what they seem to differ by goes where it is noise, and stays where it is not."""

import numpy as np

from dpsynth_cli.numeric.histogram import alike


def test_what_classes_differ_by_in_noise_goes_and_sizes_stay():
    rng = np.random.default_rng(1)
    real = np.outer([6000.0, 2000.0], rng.dirichlet(np.ones(20)))
    noisy = np.maximum(real + rng.normal(0, 60, real.shape), 0)
    noisy *= real.sum(axis=1, keepdims=True) / noisy.sum(axis=1, keepdims=True)
    found = alike(noisy, 60.0**2)
    assert np.allclose(found.sum(axis=1), noisy.sum(axis=1))
    wrong = [np.abs(each[1] / each[1].sum() - real[1] / real[1].sum()).sum() for each in (found, noisy)]
    assert wrong[0] < 0.8 * wrong[1]


def test_real_differences_and_exact_counts_stay():
    real = np.array([[4000.0, 900.0, 100.0], [300.0, 1500.0, 200.0]])
    assert np.abs(alike(real, 30.0**2) - real).max() < 10
    assert np.allclose(alike(real, 0.0), real)


def test_empty_classes_and_cells_give_no_nonsense():
    found = alike(np.array([[0.0, 0.0], [5.0, 0.0]]), 4.0)
    assert np.isfinite(found).all()
    assert np.allclose(found, [[0, 0], [5, 0]])
