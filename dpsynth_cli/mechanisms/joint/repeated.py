"""Values that many rows share, in a column whose grid is far finer than its values: found to the code.

A marginal's question about spikes tells in which piece of the bounds many rows are. Where the codes of a
column are so many that a piece has thousands, one that stands out from those beside it is cut and counted
again, until the value is alone: a wind of 10.35702 miles an hour, not one of about 10.357. These are counts
of many rows, so a small share is enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.shared.oneway import PIECES, Marginal, with_spikes
from dpsynth_cli.mechanisms.shared.oneway_plan import count
from dpsynth_cli.numeric.spikes import cut, threshold
from dpsynth_cli.questions import Ask, Bins, Halves, Ints, Question

MANY = 2**20  # codes
ROUNDS = 6
ALONE = 8.0  # times the density of the runs beside
CLEAR = 2.0  # times what noise may reach
ROWS = 50  # of fewer chance may be the cause


def ask_repeated(
    ask: Ask, omega: Domain, marginals: Mapping[str, Marginal], share: Fraction
) -> tuple[dict[str, Marginal], Fraction]:
    """The marginals with repeated values to the code, and what of the share was spent."""
    found, spent = dict(marginals), Fraction(0)
    names = [name for name in marginals if not omega[name].categorical and omega[name].size >= MANY]
    if not names:
        return found, spent
    own = share / len(names) / ROUNDS
    sd = {name: ask.sd(count(omega, Halves(name, 1), own)) for name in names}
    open_ = {name: _outstanding(found[name], omega[name].size, sd[name]) for name in names}
    for _ in range(ROUNDS):
        open_ = {name: runs for name, runs in open_.items() if runs.any()}
        if not open_:
            break
        looks = {name: _look(omega, name, found[name], runs, own) for name, runs in open_.items()}
        spent += own * len(looks)
        for (name, look), answer in zip(looks.items(), ask(list(looks.values())), strict=True):
            cut_up, spikes = with_spikes(found[name], look, answer)
            found[name], alone = _joined(cut_up, spikes, found[name].first)
            open_[name] = alone & (found[name].width > 1)
    return found, spent


def _outstanding(marginal: Marginal, size: int, sd: float) -> NDArray[np.bool_]:
    """The runs whose rows noise cannot be, and that stand out from the runs beside them."""
    mass, width = np.sum(marginal.masses, axis=0), marginal.width.astype(np.float64)
    density = mass / np.maximum(width, 1.0)
    beside = np.full((2, len(mass)), np.inf)
    beside[0, 1:], beside[1, :-1] = density[:-1], density[1:]
    height = CLEAR * math.sqrt(len(marginal.masses)) * threshold(np.full(len(mass), PIECES), sd)
    there = (
        (mass > np.maximum(height, ROWS)) & (density > ALONE * beside.min(axis=0)) & (marginal.first < size)
    )
    return np.asarray(there & (marginal.width > 1))


def _look(omega: Domain, name: str, marginal: Marginal, runs: NDArray[np.bool_], share: Fraction) -> Question:
    """Each of these runs in as many pieces as there is room for."""
    pieces = np.where(runs, np.minimum(marginal.width, max(2, PIECES // int(runs.sum()))), 1)
    starts, _ = cut(marginal.first, marginal.width, pieces)
    return count(omega, Bins(name, (*starts.tolist(), omega[name].codes)), share)


def _joined(marginal: Marginal, spikes: NDArray[np.bool_], runs: Ints) -> tuple[Marginal, NDArray[np.bool_]]:
    """Pieces of a run that are beside each other and no spikes are one again: it is even there. `runs` are
    the first codes of those that were cut; and which of the new ones are spikes."""
    starts = np.isin(marginal.first, runs)
    starts[1:] |= spikes[1:] | spikes[:-1]
    at = np.flatnonzero(starts)
    masses = [np.add.reduceat(mass, at) for mass in marginal.masses]
    width = np.add.reduceat(marginal.width, at)
    joined = Marginal(marginal.first[at], width, masses, marginal.counted, marginal.stands)
    return joined, spikes[at]
