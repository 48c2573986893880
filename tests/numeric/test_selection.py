"""Which tables are worth their noise: fewer where noise is large, finer where it is small."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.numeric.selection import sampling_part, worth_counting


@pytest.mark.parametrize("gaussian", [True, False])
def test_the_choice_is_the_best_of_all(gaussian):
    """Against every subset of six tables."""
    rng = np.random.default_rng(0)
    power, b = (2 / 3, 1.5) if gaussian else (1 / 2, 2.0)
    for noise in (0.001, 0.01, 0.1):
        saved, cells = rng.exponential(1.0, (6, 1)), rng.integers(4, 200, (6, 1)).astype(float)
        option = worth_counting(saved, cells, noise, gaussian)

        def total(inside, saved=saved, cells=cells, noise=noise):
            return noise * float((cells[inside, 0] ** power).sum()) ** b + float(saved[~inside].sum())

        every = [total(np.array([n >> i & 1 for i in range(6)], bool)) for n in range(64)]
        assert total(option >= 0) <= min(every) * 1.25 + 1e-9


def test_less_noise_means_more_and_finer_tables():
    saved = np.outer([3.0, 1.0, 0.3], [0.6, 0.8, 0.9, 0.95])
    cells = np.tile([4.0, 16.0, 64.0, 256.0], (3, 1))
    before = np.full(3, -2)
    for noise in (1.0, 0.1, 0.01, 0.001, 1e-5):
        option = worth_counting(saved, cells, noise, True)
        assert (option >= before).all()
        before = option
    assert before.tolist() == [3, 3, 3]
    assert worth_counting(saved, cells, 10.0, True).tolist() == [-1, -1, -1]


def test_the_part_of_sampling_is_that_of_a_poisson():
    rng = np.random.default_rng(1)
    for mean in (0.05, 0.7, 3.0, 29.0, 31.0, 400.0):
        drawn = np.abs(rng.poisson(mean, 200_000) - mean).mean()
        assert float(sampling_part(np.array([mean]))[0]) == pytest.approx(drawn, rel=0.02)
