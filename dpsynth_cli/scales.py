"""The grid of a column whose steps are equal on a logarithmic or hyperbolic scale.

Logarithms of cells would be taken by code that may differ between machines and between places in a batch. So
the scale is a table of edges, made from the declaration alone by exact decimals rounded once, between which
steps are equal: what a cell becomes is a search in the table, and a division.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import GRID, Column

PIECES = 2**10
_INSIDE = GRID // PIECES
_DIGITS = Context(prec=40)


@lru_cache(maxsize=1000)
def edges(scale: str, lower: float, upper: float) -> NDArray[np.float64]:
    """Values at equal distances on the scale, from the lower to the upper bound.

    >>> edges("log", 1.0, 1024.0)[::512].tolist()
    [1.0, 32.0, 1024.0]
    """
    c, low, high = _DIGITS, Decimal(repr(lower)), Decimal(repr(upper))
    to, back = (c.ln, c.exp) if scale == "log" else (_asinh, _sinh)
    first, last = to(low), to(high)
    distance = c.divide(c.subtract(last, first), Decimal(PIECES))
    inner = [float(back(c.add(first, c.multiply(distance, Decimal(i))))) for i in range(1, PIECES)]
    return np.maximum.accumulate(np.clip([lower, *inner, upper], lower, upper))


def _asinh(x: Decimal) -> Decimal:
    c, size = _DIGITS, abs(x)
    root = c.sqrt(c.add(c.multiply(size, size), Decimal(1)))
    return c.ln(c.add(size, root)).copy_sign(x)


def _sinh(t: Decimal) -> Decimal:
    c, up = _DIGITS, _DIGITS.exp(t)
    return c.divide(c.subtract(up, c.divide(Decimal(1), up)), Decimal(2))


def to_codes(x: NDArray[np.float64], column: Column) -> NDArray[np.int32]:
    """The codes of values, clamped; NaN as the lower bound."""
    table = edges(column.scale, float(column.lower), float(column.upper))
    x = np.minimum(np.fmax(x, table[0]), table[-1])
    piece = np.clip(np.searchsorted(table, x, side="right") - 1, 0, PIECES - 1)
    low, width = table[piece], np.diff(table)[piece]
    inside = np.minimum((x - low) / np.where(width > 0, width, 1) * _INSIDE, _INSIDE - 1)
    return (piece * _INSIDE + inside.astype(np.int64)).astype(np.int32)


def to_values(codes: NDArray[Any], column: Column) -> NDArray[np.float64]:
    """The middles of codes, in bounds."""
    table = edges(column.scale, float(column.lower), float(column.upper))
    codes = np.clip(codes, 0, GRID - 1).astype(np.int64)
    piece, inside = codes // _INSIDE, codes % _INSIDE
    x: NDArray[np.float64] = table[piece] + (inside + 0.5) / _INSIDE * np.diff(table)[piece]
    bounded: NDArray[np.float64] = np.minimum(x, table[-1])
    return bounded
