"""Whether rows are many enough for their noise to show which columns are linked: a public rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.joint.survey import HOPELESS, gap_noise
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.questions import Ask, CellCounts, Cells, Question
from dpsynth_cli.shares import divide

LOUD = 0.012  # noise of an average column, as a part of the rows, where shares are between few and many rows
MOST_ROWS = 2**40
FINE = 2**0.02  # the number of rows that is enough is told to such a factor

FALLBACK = (
    "At this epsilon and number of rows and columns, noise would hide which columns are linked: columns are "
    "independent (within a class), as in marginals. A delta, fewer columns or more epsilon would help; with "
    "few rows try mechanism.name: factor."
)


def few_rows(ask: Ask, omega: Domain, sizes: Sizes) -> float:
    """From 0, many rows for the noise of an average column, to 1, few."""
    return _few(ask, omega, float(sizes.rows.sum()))


def _few(ask: Ask, omega: Domain, rows: float) -> float:
    d, n = len(omega.modelled), max(1.0, rows)
    sd = ask.sd(Question("columns", CellCounts(Cells(())), Fraction(1, d), omega.strata))
    cells = np.mean([min(column.codes, 24) for column in omega.modelled]) * omega.classes
    loud = 0.4 * float(cells) * sd / n
    return loud / (loud + LOUD)


def weights_of(split: Mapping[str, float], few: float) -> dict[str, float]:
    """Of columns, misfits, links and pairs: more for columns, and less for pairs, where rows are few."""
    scale = {"columns": 1 + 4 * few, "misfit": 1 + 0.6 * few, "links": 1 - 0.3 * few, "pairs": 1 - 0.9 * few}
    return {stage: split[stage] * scale[stage] for stage in scale}


def shows(ask: Ask, pairs: int, sizes: Sizes, share: Fraction) -> bool:
    """Whether the gaps of so many pairs would be told from noise."""
    return _shows(ask, pairs, float(sizes.rows.sum()), share)


def _shows(ask: Ask, pairs: int, rows: float, share: Fraction) -> bool:
    return pairs > 0 and gap_noise(ask, pairs, share, max(1.0, rows)) <= HOPELESS


def rows_for_links(ask: Ask, omega: Domain, rest: Fraction, split: Mapping[str, float]) -> int | None:
    """From about how many rows on `shows` says yes, for a share of the budget; None if there are no pairs."""
    d = len(omega.modelled)

    def enough(rows: float) -> bool:
        misfit = divide(rest, list(weights_of(split, _few(ask, omega, rows)).values()))[1]
        return _shows(ask, d * (d - 1) // 2, rows, misfit / 2)

    low, high = 1.0, float(MOST_ROWS)
    if d < 2 or not enough(high):
        return None
    while high > low * FINE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    digits = 3 - len(str(math.ceil(high)))
    return math.ceil(high) if digits >= 0 else math.ceil(high / 10**-digits) * 10**-digits


def in_words(rows: int | None) -> str:
    """The note of a release whose columns are independent, with how many rows would be enough."""
    return FALLBACK + (f" Links are looked for from about {rows:,} rows on." if rows else "")
