"""Where in its declared bounds a numeric column has its rows, so that loose bounds do no harm.

Bounds are public knowledge and may be far too wide: then all rows are in one of the cells that a mechanism
counts. So, for a small share, each column with many codes is first counted in 32 equal cells. If most rows
are in few neighbouring ones, these are cut into 32 again, and so on. What is found is a `Scale`: cells are
narrow in the focus and grow outside. A range that was found stays the focus unless the next one in it is
much narrower: bounds that are as tight as that do well without one. No code is lost; how many rows are in
cells where they do not stand above noise is told by a law of tails (`ends.py`). A column whose rows are all
over its bounds is asked once, and keeps its even scale.

If most rows have one and the same code, such as a zero for nothing, the focus is where the others are, if
these can be seen: the whole range is looked at once more, and the scale only remembers the code
(`Scale.spike`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.questions import Answer, Ask, Axis, Bins, CellCounts, Cells, Floats, Halves, Question

CELLS = 32  # of the range that is looked at
FEW = 2**9  # a column of fewer codes is not worth it
ROUNDS = 10
NARROW = 2**7  # codes: a range of fewer is counted code by code
SPIKE = 4  # codes at most that most rows have, and are no focus
# All rows over the noise of a cell, and the part of a column's share that one look so sharp may cost.
LOOKS = ((64, 1 / 100), (24, 1 / 20), (12, 1 / 6), (7, 1 / 4), (5, 1 / 4))
MOST = Fraction(7, 8)  # of a column's share, for all looks together: the rest is for its counts
DULL = 6  # below that a look shows nothing
FAINT = 4  # below that not even the largest of its counts is told from noise
SEEN, DOUBT = 0.75, 1.25  # of the rows are in the focus, by so many standard deviations
# Where all rows are less than that over the noise: a focus that is missed costs most, one too many little.
SHARP, GUESSED = 12, 0.55
MAYBE, AGAIN = 0.6, 2  # of the rows in two cells: look again, so many times in all
LOOSE = 4  # times wider than the next focus in it: a range that was found and is less wide stays the focus
GAIN, MORE = 1.6, 3  # how much narrower a focus is than what is looked at; and for another look


@dataclass
class _Looked:
    """A column that is looked at: the range, what was seen of it so far, and the focus."""

    column: Column
    share: Fraction  # for all of the column
    price: Fraction  # of a look
    begin: int
    end: int
    scale: Scale
    counts: list[Floats] = field(default_factory=list)
    spent: Fraction = Fraction(0)
    spike: tuple[int, int] | None = None
    spiked: float = 0.0  # rows

    @property
    def affordable(self) -> bool:
        """Whether another look leaves something for the counts."""
        return self.spent + self.price <= MOST * self.share

    def learn(self, answer: Answer, again: Callable[[float], Fraction], n: float) -> bool:
        """Take in an answer; whether to look once more. `again` prices a look at so many rows."""
        edges = _edges(self.begin, self.end)
        inside = slice(1, len(edges)) if edges[0] > 0 else slice(0, len(edges) - 1)
        self.counts.append(answer.values[inside].astype(np.float64))
        there = max(1.0, n - (max(0.0, float(answer.values[-1])) if self.column.nullable else 0.0))
        counts, sd = np.mean(self.counts, axis=0), answer.sd / math.sqrt(len(self.counts))
        if self.spike is not None:
            there = max(1.0, there - self.spiked)
            counts = counts - self.spiked * _parts(edges, self.spike)
        cells = narrowest(counts, sd, max(there, FAINT * sd))
        if cells is None and there < DULL * sd:  # mostly missing: to see so few rows it takes a sharper look
            sharper, self.counts = again(there), []
            dull, self.price = self.price, max(self.price, sharper)
            return self.price > 2 * dull
        if cells is None:
            if self.spike is not None and self.end - self.begin == self.column.size:
                self.scale = _even(self.column)
            few = np.convolve(counts, np.ones(min(2, len(counts))), "valid").max()
            return len(self.counts) < AGAIN and bool(few >= MAYBE * there)
        narrow = self.end - self.begin < NARROW  # then only a spike is looked for
        within = not self.scale.plain and self.scale.focus == (self.begin, self.end)
        near = within and self.end - self.begin < LOOSE * (edges[cells[1]] - edges[cells[0]])
        self.begin, self.end, self.counts = edges[cells[0]], edges[cells[1]], []
        if not narrow and not near:  # what was found before is taken as bounds, and as tight ones
            self.scale = Scale.focused(self.column.size, self.column.nullable, self.begin, self.end)
        width, one = self.end - self.begin, cells[1] - cells[0] == 1
        if width <= SPIKE and self.spike is None:  # the others, if they can be seen
            self.spike, self.spiked = (self.begin, self.end), float(counts[slice(*cells)].sum())
            sharper = again(max(1.0, there - self.spiked))
            self.begin, self.end, self.price = 0, self.column.size, max(self.price, sharper)
            return sharper > 0
        return width > SPIKE if one else width >= NARROW and MORE * (cells[1] - cells[0]) < len(edges)


def ask_scales(
    ask: Ask, step: str, columns: Sequence[Column], shares: Sequence[Fraction], n: float, loose: int = 16
) -> tuple[list[Scale], Fraction]:
    """A scale for each column, and what is left of all shares. All columns are asked together, in rounds.

    `n` is how many rows there are, at least. Classes are not told apart. Bounds that are less than `loose`
    times wider than the focus are taken as they are.
    """
    looked = [
        _Looked(column, share, _price(ask, step, column, share, n), 0, column.size, _even(column))
        for column, share in zip(columns, shares, strict=True)
    ]
    looking = [one for one in looked if one.price]
    for _ in range(ROUNDS):
        if not looking:
            break
        questions = [_look(step, one.column, one.begin, one.end, one.price) for one in looking]
        for one in looking:
            one.spent += one.price
        answers = zip(looking, ask(questions), strict=True)
        looking = [
            one
            for one, answer in answers
            if one.learn(answer, partial(_price, ask, step, one.column, one.share), n) and one.affordable
        ]
    left = sum((one.share - one.spent for one in looked), Fraction(0))
    scales = [one.scale if one.scale.loose >= loose else _even(one.column) for one in looked]
    return [replace(scale, spike=one.spike) for scale, one in zip(scales, looked, strict=True)], left


def surely(sizes: Sizes) -> float:
    """How many rows there are at least, all but surely."""
    n = max(1.0, float(sizes.rows.sum()))
    spread = math.sqrt(sizes.variance * len(sizes.rows)) if math.isfinite(sizes.variance) else 0.0
    return max(1.0, n - min(2 * spread, n / 4))


def _even(column: Column) -> Scale:
    return Scale.even(column.size, column.nullable)


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
    seen = SEEN if n >= SHARP * sd else GUESSED
    for k in range(1, int(len(counts) / GAIN) + 1):
        sums = reached[k:] - reached[:-k]
        best = int(np.argmax(sums))
        if sums[best] - DOUBT * sd * math.sqrt(k) >= seen * n:
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


def _parts(edges: list[int], spike: tuple[int, int]) -> Floats:
    """What part of the spike's codes each cell has."""
    inside = np.clip(edges, *spike).astype(np.float64)
    return np.asarray(np.diff(inside) / (spike[1] - spike[0]))


def _look(step: str, column: Column, begin: int, end: int, share: Fraction) -> Question:
    """The cells of a range, what is below and above it, and missing."""
    edges = sorted({0, *_edges(begin, end), column.size, column.codes})
    return Question(step, CellCounts(Cells((Bins(column.name, tuple(edges)),))), share)
