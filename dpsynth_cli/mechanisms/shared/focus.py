"""Where in its declared bounds a numeric column has its rows, so that loose bounds do no harm.

Bounds are public knowledge and may be far too wide: then all rows are in one of the cells that a mechanism
counts. So, for a small share, each column with many codes is first counted in 32 equal cells. If most rows
are in few neighbouring ones, these are cut into 32 again, and so on. What is found is a `Scale`: cells are
narrow in the focus and grow outside; no code is lost. A column whose rows are all over its bounds is asked
once, and keeps its even scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.questions import Ask, Axis, Bins, CellCounts, Cells, Floats, Halves, Question

CELLS = 32  # of the range that is looked at
FEW = 2**9  # a column of fewer codes is not worth it
ROUNDS = 6
# All rows over the noise of a cell, and the part of a column's share that one look so sharp may cost.
DULL = 10  # below that a look shows nothing
LOOKS = ((64, 1 / 100), (24, 1 / 20), (12, 1 / 6))
SEEN, DOUBT = 0.75, 1.25  # of the rows are in the focus, by so many standard deviations
GAIN, MORE = 1.6, 3  # how much narrower a focus is than what is looked at; and for another look


def ask_scales(
    ask: Ask, step: str, columns: Sequence[Column], shares: Sequence[Fraction], n: float
) -> tuple[list[Scale], Fraction]:
    """A scale for each column, and what is left of all shares. All columns are asked together, in rounds.

    `n` is about how many rows there are. Classes are not told apart.
    """
    scales = [Scale.even(column.size, column.nullable) for column in columns]
    left = list(shares)
    prices = [_price(ask, step, column, share, n) for column, share in zip(columns, shares, strict=True)]
    looking = {i: (0, column.size) for i, column in enumerate(columns) if prices[i]}
    for _ in range(ROUNDS):
        if not looking:
            break
        questions = [_look(step, columns[i], *focus, prices[i]) for i, focus in looking.items()]
        found: dict[int, tuple[int, int]] = {}
        for i, answer in zip(list(looking), ask(questions), strict=True):
            left[i] -= prices[i]
            edges = _edges(*looking[i])
            inside = slice(1, len(edges)) if edges[0] > 0 else slice(0, len(edges) - 1)
            counts = answer.values[inside].astype(np.float64)
            missing = float(answer.values[-1]) if columns[i].nullable else 0.0
            there = max(1.0, n - missing)
            if there < DULL * answer.sd:  # mostly missing: to see so few rows it takes a sharper look
                sharper = _price(ask, step, columns[i], shares[i], there)
                if sharper > 2 * prices[i]:
                    prices[i] = sharper
                    found[i] = looking[i]
                continue
            cells = narrowest(counts, answer.sd, there)
            if cells is None:
                continue
            begin, end = edges[cells[0]], edges[cells[1]]
            scales[i] = Scale.focused(columns[i].size, columns[i].nullable, begin, end)
            if end - begin >= FEW and MORE * (cells[1] - cells[0]) <= len(counts):
                found[i] = (begin, end)
        looking = found
    return scales, sum(left, Fraction(0))


def axis_of(column: Column, scale: Scale, bits: int) -> Axis:
    """The 2^bits cells of a scale as a question names them."""
    return Halves(column.name, bits) if scale.plain else Bins(column.name, scale.edges(bits))


def narrowest(counts: Floats, sd: float, n: float) -> tuple[int, int] | None:
    """The fewest neighbouring cells, from .. up to, that surely have most of n rows; None if these are not
    few.

    >>> narrowest(np.array([3.0, 1, 90, 4, 0, 1, -2, 1]), 1.0, 99.0)
    (2, 3)
    """
    reached = np.append(0.0, np.cumsum(counts))
    for k in range(1, int(len(counts) / GAIN) + 1):
        sums = reached[k:] - reached[:-k]
        best = int(np.argmax(sums))
        if sums[best] - DOUBT * sd * math.sqrt(k) >= SEEN * n:
            return best, best + k
    return None


def _price(ask: Ask, step: str, column: Column, share: Fraction, n: float) -> Fraction:
    """The share of one look: what it takes to see sharply if that is little, else what it takes to see at
    all; nothing where that is too much."""
    if column.categorical or column.size < FEW:
        return Fraction(0)
    sd, more = (ask.sd(_look(step, column, 0, column.size, part)) for part in (share, share / 4))
    power = max(math.log(max(more, 1e-9) / max(sd, 1e-9), 4), 0.5)  # 1 for Laplace noise, 1/2 for Gaussian
    for sharp, most in LOOKS:
        part = (sd * sharp / n) ** (1 / power)
        if part <= most:
            return share * Fraction(max(1, math.ceil(part * 2**14)), 2**14)
    return Fraction(0)


def _edges(begin: int, end: int) -> list[int]:
    cells = np.arange(CELLS + 1, dtype=np.int64)
    return sorted(set((begin + cells * (end - begin) // CELLS).tolist()))


def _look(step: str, column: Column, begin: int, end: int, share: Fraction) -> Question:
    """The cells of a range, what is below and above it, and missing."""
    edges = sorted({0, *_edges(begin, end), column.size, column.codes})
    return Question(step, CellCounts(Cells((Bins(column.name, tuple(edges)),))), share)
