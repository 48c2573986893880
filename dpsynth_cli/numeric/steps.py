"""A measure on the codes of one column: runs of neighbouring codes, even inside each run."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


class Steps(NamedTuple):
    """Runs of codes from 0 up without gaps: the first code, the number of codes and the mass of each."""

    first: Ints
    width: Ints
    mass: Floats

    @property
    def total(self) -> float:
        return float(self.mass.sum())


def simplex(noisy: Floats, total: float) -> Floats:
    """The nearest non-negative numbers that add up to `total`.

    >>> simplex(np.array([5.0, -1.0, 3.0]), 6.0).tolist()
    [4.0, 0.0, 2.0]
    """
    falling = -np.sort(-noisy)
    excess = (np.cumsum(falling) - max(total, 0.0)) / np.arange(1, len(noisy) + 1)
    return np.maximum(noisy - excess.max(), 0.0)


def even(codes: int) -> Steps:
    """The measure that knows nothing: all codes alike."""
    return Steps(np.array([0]), np.array([codes]), np.array([1.0]))


def below(steps: Steps, code: Ints) -> Floats:
    """How much mass lies below each code.

    >>> below(Steps(np.array([0, 4]), np.array([4, 1]), np.array([2.0, 6.0])), np.array([0, 2, 4, 5])).tolist()
    [0.0, 1.0, 2.0, 8.0]
    """
    edges = np.append(steps.first, steps.first[-1] + steps.width[-1])
    return np.interp(code, edges, np.append(0.0, np.cumsum(steps.mass)))


def quantile(steps: Steps, level: Floats) -> Ints:
    """The code at each level in [0, 1): below it lies that part of the mass.

    >>> quantile(Steps(np.array([0, 4]), np.array([4, 1]), np.array([2.0, 6.0])), np.array([0.0, 0.2, 0.9])).tolist()
    [0, 3, 4]
    """
    first, width, mass = (part[steps.mass > 0] for part in steps)
    upto = np.cumsum(mass)
    at = level * upto[-1]
    run = np.minimum(np.searchsorted(upto, at, side="right"), len(mass) - 1)
    inside = (at - (upto[run] - mass[run])) / mass[run] * width[run]
    return first[run] + np.clip(inside.astype(np.int64), 0, width[run] - 1)


def quantile_edges(steps: Steps, bits: int) -> Ints:
    """2^bits + 1 codes that cut the measure into parts of equal mass, as nearly as codes allow.

    Edges repeat where one code has the mass of several parts; those of fewer bits are among those of more.
    """
    edges = np.append(steps.first, steps.first[-1] + steps.width[-1])
    upto = np.append(0.0, np.cumsum(steps.mass))
    rising = np.append(True, np.diff(upto) > 0)  # an inverse needs each level once
    levels = np.arange(1, 1 << bits) / (1 << bits) * upto[-1]
    inner = np.rint(np.interp(levels, upto[rising], edges[rising])).astype(np.int64)
    return np.concatenate([[0], inner, edges[-1:]])


def split_out(steps: Steps, run: int, pieces: Steps, heavy: NDArray[np.bool_]) -> Steps:
    """The run divided: its heavy pieces keep their mass, the rest is even over its other codes."""
    room, mass = float(steps.mass[run]), np.where(heavy, np.maximum(pieces.mass, 0.0), 0.0)
    if mass.sum() > room:
        mass *= room / mass.sum()
    light = ~heavy & (pieces.width > 0)
    codes = pieces.width[light].sum()
    if codes:
        mass[light] = (room - mass.sum()) * pieces.width[light] / codes
    elif mass.sum() > 0:
        mass *= room / mass.sum()
    new = Steps(pieces.first, pieces.width, mass)
    return Steps(
        *(np.concatenate([old[:run], part, old[run + 1 :]]) for old, part in zip(steps, new, strict=True))
    )
