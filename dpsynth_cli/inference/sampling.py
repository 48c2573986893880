"""A statistic of rows, and how much it varies over tables from the same population."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.questions import Floats

RESAMPLES = 100  # of rows, for the sampling error


def numbers(statistic: Statistic, rows: Drawn) -> Floats:
    """A statistic of rows that stand for more or fewer."""
    return statistic(rows.table.codes, rows.weight)


def sampling_variance(statistic: Statistic, released: Drawn, rng: np.random.Generator) -> Floats:
    """The variance of a statistic over tables of as many rows from the same population, by rows that are
    drawn again with replacement."""
    rows = len(released.table)
    scale = released.scale
    answer = statistic.prepared(released.table.codes, near=numbers(statistic, released))
    found = np.stack(
        [answer(np.asarray(rng.poisson(1.0, rows) * scale, np.float64)) for _ in range(RESAMPLES)]
    )
    return np.asarray(np.nanvar(found, axis=0, ddof=1) / max(scale, 1e-9))
