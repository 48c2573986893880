"""Simulated releases of the released table: how far a statistic of a release is from that of its table.

The parametric bootstrap of the whole mechanism (C. Ferrando, S. Wang, D. Sheldon: Parametric Bootstrap for
Differentially Private Confidence Intervals, AISTATS 2022): the released rows stand for the real ones, and
what a release makes of them stands for what it made of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.inference.simulate import Drawn, simulated
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.questions import Floats, Progress, no_progress
from dpsynth_cli.spec.spec import Spec

SIMULATIONS = 40
RESAMPLES = 100  # of rows, for the sampling error


def simulations(
    spec: Spec, released: Drawn, count: int, seed: int, progress: Progress = no_progress
) -> list[Drawn]:
    """So many releases of the released table; each has its own noise."""
    progress("simulating", 0, count)
    found = []
    for rng in np.random.default_rng(seed).spawn(count):
        found.append(simulated(spec, released, rng).rows())
        progress("simulating", 1, count)
    return found


def numbers(statistic: Statistic, rows: Drawn) -> Floats:
    """A statistic of rows that stand for more or fewer."""
    return statistic(rows.table.codes, rows.weight)


@dataclass(frozen=True, eq=False)
class Errors:
    """The mean and the variance of simulated errors of each number of a statistic, and how many."""

    bias: Floats
    variance: Floats
    count: int
    undefined: Floats  # part of the simulations that gave no number


def errors(statistic: Statistic, released: Drawn, simulated: Sequence[Drawn]) -> Errors:
    """How far simulated releases are from the released table."""
    truth = numbers(statistic, released)
    found = np.stack([_aligned(statistic, one) - truth for one in simulated])
    there = np.isfinite(found)
    many = np.maximum(there.sum(axis=0), 1)
    bias = np.where(there, found, 0.0).sum(axis=0) / many
    variance = np.where(there, (found - bias) ** 2, 0.0).sum(axis=0) / np.maximum(many - 1, 1)
    return Errors(bias, variance, len(simulated), 1 - there.mean(axis=0))


def _aligned(statistic: Statistic, rows: Drawn) -> Floats:
    """The numbers in the order of the statistic's keys: what was found of private columns may differ."""
    if rows.domain == statistic.domain:
        return numbers(statistic, rows)
    own = Statistic(statistic.query, rows.domain, statistic.relations)
    by_key = dict(zip(own.keys, numbers(own, rows), strict=True))
    return np.array([by_key.get(key, np.nan) for key in statistic.keys])


def sampling_variance(statistic: Statistic, released: Drawn, rng: np.random.Generator) -> Floats:
    """The variance of a statistic over tables of as many rows from the same population, by rows that are
    drawn again with replacement."""
    rows = len(released.table)
    scale = released.scale
    answer = statistic.prepared(released.table.codes)
    found = np.stack(
        [answer(np.asarray(rng.poisson(1.0, rows) * scale, np.float64)) for _ in range(RESAMPLES)]
    )
    return np.asarray(np.nanvar(found, axis=0, ddof=1) / max(scale, 1e-9))
