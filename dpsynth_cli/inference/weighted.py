"""A statistic of released rows whose weights give the measured counts again, with its interval.

Two things are not known: the noise, of which other values are drawn from its exact distribution, and what no
answer tells, such as where in a cell values lie (unknown.py). Their variances are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.inference.calibration import Calibration
from dpsynth_cli.inference.empty import with_empty_cells, with_rows_anywhere
from dpsynth_cli.inference.honesty import counted
from dpsynth_cli.inference.inversion import below_ends
from dpsynth_cli.inference.relations import Known
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.inference.unknown import DRAWS, unknown_variance
from dpsynth_cli.questions import Floats

Bools: TypeAlias = NDArray[np.bool_]
FEW = "no interval: one of the two outcomes has too few rows for log-odds with this noise"
CONSTANT = "no interval: a column may have one value alone, but for noise"
NOISES = 64  # times that other noise is drawn
FEWEST = 3  # standard deviations of noise that the rows of a group must have
FEWEST_OF_OUTCOME = 10  # and those of the rarer outcome of a logistic regression


@dataclass(frozen=True, eq=False)
class Interval:
    """The numbers of a statistic, their intervals, in which part of draws there is no number, and why none of
    them has an interval, if so."""

    centre: Floats
    low: Floats
    high: Floats
    undefined: Floats
    why: str = ""


def weighted(
    statistic: Statistic,
    released: Drawn,
    known: Known,
    level: float,
    sampling: Floats | None,
    rng: np.random.Generator,
) -> Interval:
    """From rows that have the measured counts; about the population, if there is a variance of sampling."""
    cells = counted(statistic, known)
    if cells:
        rows = with_empty_cells(statistic.columns, released, known, rng)
    else:
        rows = with_rows_anywhere(released, known, rng)
    own, codes = Calibration.about(statistic.columns, rows, known), rows.table.codes
    weight, drawn = own.weights(), [own.weights(rng) for _ in range(NOISES)]
    centre = statistic(codes, weight)
    few = _few_of_outcome(statistic, rows, weight, drawn)
    if few or _hardly_spread(statistic, rows, weight, drawn):
        none = np.full(len(centre), np.nan)
        return Interval(centre, none, none, none, FEW if few else CONSTANT)
    answer = statistic.prepared(codes, near=centre)
    moved = np.stack([answer(other) for other in drawn]) - centre
    undefined = 1 - np.isfinite(moved).mean(axis=0)
    undefined[_hardly_there(statistic, rows, weight, drawn)] = 1.0
    by_noise = (np.where(np.isfinite(moved), moved, 0.0) ** 2).mean(axis=0)
    rest = np.zeros(len(centre)) if sampling is None else sampling
    if cells:
        rest = rest + unknown_variance(
            partial(statistic, near=centre), statistic.columns, rows, known, weight, rng
        )
    variance = by_noise + rest
    width = _student(level, DRAWS - 1)
    half = np.where(variance > 0, width * np.sqrt(variance), np.nan)
    low, high = centre - half, centre + half
    if statistic.query.kind == "corr":
        low, high = _by_quotient(statistic, rows, weight, drawn, centre, centre + moved, rest, width)
    if statistic.query.kind == "quantile":
        below = below_ends(statistic, codes, weight, own.cells(statistic.query.named[0]))
        if below is not None:
            beyond = below(codes, weight)
            apart = (np.stack([below(codes, other) for other in drawn]) - beyond) ** 2
            spread = apart.mean(axis=0)
            if statistic.query.where is not None:  # it may cut cells
                spread = spread + unknown_variance(below, statistic.columns, rows, known, weight, rng)
            if sampling is not None:
                spread = spread + below.spread(codes, weight)
            ends = [below.interval(*one) for one in zip(beyond, width * np.sqrt(spread), strict=True)]
            low, high = np.array(ends).T
            centre = np.clip(centre, low, high)
    return Interval(centre, low, high, undefined)


def _by_quotient(
    statistic: Statistic,
    rows: Drawn,
    weight: Floats,
    drawn: Sequence[Floats],
    centre: Floats,
    others: Floats,
    rest: Floats,
    width: float,
) -> tuple[Floats, Floats]:
    """The interval of a correlation, a quotient whose denominator has noise too: all r for which the
    covariance less r times the product of both spreads may be nothing (E. Fieller, JRSS B 16, 1954)."""
    parts = [replace(statistic.query, kind="sd", of=(part,)) for part in statistic.query.of]
    sds = [replace(statistic, query=part).prepared(rows.table.codes) for part in parts]
    below = sds[0](weight) * sds[1](weight)
    noisy = np.stack([sds[0](other) * sds[1](other) for other in drawn])
    above = centre * below
    moved = np.stack([others * noisy - above, noisy - below])
    moved = np.where(np.isfinite(moved).all(axis=0), moved, 0.0)
    r = np.linspace(-1.0, 1.0, 801)[:, None]
    by_noise = ((moved[0] - r[:, None] * moved[1]) ** 2).mean(axis=1)
    may_be = np.abs(above - r * below) <= width * np.sqrt(by_noise + rest * below**2)
    there = may_be.any(axis=0)
    low, high = r[np.argmax(may_be, axis=0), 0], r[len(r) - 1 - np.argmax(may_be[::-1], axis=0), 0]
    return np.where(there, low, np.nan), np.where(there, high, np.nan)


def _hardly_there(statistic: Statistic, rows: Drawn, weight: Floats, drawn: Sequence[Floats]) -> Bools:
    """Groups that may be noise alone: a mean of them is a quotient by noise."""
    if statistic.query.kind not in ("mean", "sd", "quantile", "corr"):
        return np.zeros(len(statistic.keys), bool)
    count = replace(statistic, query=replace(statistic.query, kind="count", of=())).prepared(rows.table.codes)
    moved = np.stack([count(other) for other in drawn])
    return np.asarray(count(weight) <= FEWEST * moved.std(axis=0))


def _few_of_outcome(statistic: Statistic, rows: Drawn, weight: Floats, drawn: Sequence[Floats]) -> bool:
    """Whether noise changes the rows of one outcome of a logistic regression by so much of them that log-odds
    are no longer a straight line in it: then they are off to one side, and by more than their interval."""
    query = statistic.query
    if query.kind != "logistic":
        return False
    part = np.array([statistic.part(rows.table.codes, own) for own in (weight, *drawn)])
    rarer = np.minimum(part, 1 - part)
    return bool(rarer[0] <= FEWEST_OF_OUTCOME * rarer[1:].std())


def _hardly_spread(statistic: Statistic, rows: Drawn, weight: Floats, drawn: Sequence[Floats]) -> bool:
    """Whether a column may be constant but for noise: then what is divided by its spread can be anything."""
    query = statistic.query
    parts = {"sd": query.of, "corr": query.of, "linear": query.of[1:]}.get(query.kind, ())
    for part in parts:
        one = replace(query, kind="sd", of=(part,), terms=(), by=())
        if statistic.typing(part).kind == "text":
            continue
        spread = replace(statistic, query=one).prepared(rows.table.codes)
        others = np.nan_to_num(np.stack([spread(other) for other in drawn])) ** 2
        if not spread(weight)[0] ** 2 > FEWEST * others.std():
            return True
    return False


def _student(level: float, freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))
