"""Normal numbers that are clipped to an interval: where they must be centred, and how wide they must be, for
mean and variance to come out as wanted after the clip.

X = c + s Z with Z normal, clipped to [a, b]: with t = (c - x) / s, E (X - x)_+ = s (t Phi(t) + phi(t)) and
E (X - x)_+^2 = s^2 ((1 + t^2) Phi(t) + t phi(t)), and clip(X) - a = (X - a)_+ - (X - b)_+.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import exp

Floats: TypeAlias = NDArray[np.float64]

STEPS = 48  # of a bisection
FAR = 8.0  # how many standard deviations a centre may be outside, and how many times wider than wanted


def moments(centre: Floats, sd: Floats, low: float, high: float) -> tuple[Floats, Floats, Floats]:
    """Mean and variance of clip(X), and the chance that X is inside.

    >>> [float(one.round(4)) for one in moments(np.array(0.0), np.array(1.0), 0.0, 100.0)]
    [0.3989, 0.3408, 0.5]
    """
    mean, s, (t, u), (above, beyond), (peak, edge) = _first(centre, sd, low, high)
    # Beyond `high`, (X - low)^2 = (X - high)^2 + 2 (high - low) (X - high) + (high - low)^2.
    square = s**2 * ((1 + t**2) * above + t * peak - (1 + u**2) * beyond - u * edge)
    square -= 2 * (high - low) * s * (u * beyond + edge)
    return np.asarray(low + mean), np.asarray(np.maximum(square - mean**2, 0.0)), np.asarray(above - beyond)


def _first(centre: Floats, sd: Floats, low: float, high: float) -> tuple[Floats, ...]:
    """The mean of clip(X) less `low`, and what it is made of: s; t and u for both ends, Phi and phi there."""
    from scipy.special import ndtr  # takes long to import

    s = np.maximum(sd, 1e-12)
    ends = np.stack(np.broadcast_arrays((centre - low) / s, (centre - high) / s))
    chances, densities = ndtr(ends), exp(-(ends**2) / 2) / np.sqrt(2 * np.pi)
    (t, u), (above, beyond), (peak, edge) = ends, chances, densities
    return s * (t * above + peak - u * beyond - edge), s, ends, chances, densities


def centred(
    mean: Floats, sd: Floats, low: float, high: float, beside: tuple[Floats, Floats] | None = None
) -> Floats:
    """The centre c for which clip(c + sd Z) has this mean; where none has, one far outside.

    With `beside`, places and their chances (a row of them for each number): for which clip(c + place + sd Z)
    has it.

    >>> c = centred(np.array([0.5, 0.1]), np.array([1.0, 1.0]), 0.0, 1.0)
    >>> moments(c, np.array([1.0, 1.0]), 0.0, 1.0)[0].round(6).tolist()
    [0.5, 0.1]
    """
    places, chances = (np.zeros((len(mean), 1)), np.ones((len(mean), 1))) if beside is None else beside
    least = low - FAR * sd - places.max(axis=1)
    most = high + FAR * sd - places.min(axis=1)
    for _ in range(STEPS):
        middle = (least + most) / 2
        each = low + _first(middle[:, None] + places, sd[:, None], low, high)[0]
        below = (each * chances).sum(axis=1) < mean
        least, most = np.where(below, middle, least), np.where(below, most, middle)
    return np.asarray((least + most) / 2)


def widened(mean: Floats, sd: Floats, low: float, high: float) -> tuple[Floats, Floats]:
    """Centre and standard deviation with which mean and variance after the clip are these, as far as it goes.

    >>> c, s = widened(np.array([0.2]), np.array([0.25]), 0.0, 1.0)
    >>> m, v, _ = moments(c, s, 0.0, 1.0)
    >>> m.round(6).tolist(), (v**0.5).round(6).tolist()
    ([0.2], [0.25])
    """
    least, most = sd, FAR * sd
    for _ in range(STEPS // 2):
        middle = np.sqrt(least * most)
        narrow = moments(centred(mean, middle, low, high), middle, low, high)[1] < sd**2
        least, most = np.where(narrow, middle, least), np.where(narrow, most, middle)
    wide = np.sqrt(least * most)
    return centred(mean, wide, low, high), np.asarray(wide)
