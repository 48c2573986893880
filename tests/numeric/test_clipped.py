"""Clipped normals: their moments by another way of computing them, and centres that undo the clip."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.numeric.clipped import centred, moments, widened


def quantiles() -> np.ndarray:
    """Normal numbers without randomness: the midpoints of ten thousand parts of equal chance."""
    from scipy.special import ndtri

    return ndtri((np.arange(10_000) + 0.5) / 10_000)


@pytest.mark.parametrize(("centre", "sd"), [(0.1, 0.3), (-0.6, 0.4), (0.5, 0.1), (0.0, 3.0), (-0.5, 1e-6)])
def test_moments_are_those_of_clipped_numbers(centre, sd):
    whole = centre + sd * quantiles()
    kept = np.clip(whole, -0.5, 0.5)
    mean, variance, inside = moments(np.array(centre), np.array(sd), -0.5, 0.5)
    assert mean == pytest.approx(kept.mean(), abs=1e-4)
    assert variance == pytest.approx(kept.var(), abs=1e-4)
    assert inside == pytest.approx(np.mean(np.abs(whole) < 0.5), abs=2e-3)


def test_a_mean_next_to_a_bound_is_kept_and_one_at_it_too():
    mean, sd = np.array([-0.5, -0.499, -0.3, 0.0, 0.49, 0.5]), np.full(6, 0.2)
    kept = moments(centred(mean, sd, -0.5, 0.5), sd, -0.5, 0.5)[0]
    assert kept == pytest.approx(mean, abs=1e-6)


def test_places_count_as_often_as_their_chances_say():
    places, chances = np.array([[-0.3, 0.4, 0.0]]), np.array([[0.7, 0.3, 0.0]])
    shift = centred(np.array([-0.35]), np.array([0.05]), -0.5, 0.5, (places, chances))
    each = [np.clip(shift + place + 0.05 * quantiles(), -0.5, 0.5).mean() for place in (-0.3, 0.4)]
    assert 0.7 * each[0] + 0.3 * each[1] == pytest.approx(-0.35, abs=1e-4)


def test_variances_come_out_as_wanted_where_the_mean_leaves_room():
    mean, sd = np.array([-0.45, -0.2, 0.0, 0.3]), np.array([0.15, 0.4, 0.45, 0.2])
    centre, wide = widened(mean, sd, -0.5, 0.5)
    kept, variance, _ = moments(centre, wide, -0.5, 0.5)
    assert kept == pytest.approx(mean, abs=1e-6)
    assert np.sqrt(variance) == pytest.approx(sd, abs=1e-4)
    assert (wide > sd).all()
