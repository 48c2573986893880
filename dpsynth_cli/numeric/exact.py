"""Arithmetic that gives the same bits on every processor, where numpy's own may not.

Sums and products of single numbers, quotients and roots are rounded as IEEE 754 says, everywhere; sums of
numpy's arrays are added in one order. But `np.exp`, `np.log` and powers are other programs on other
processors, and a product of matrices adds up in another order, with other roundings. A fit in many steps
makes a last bit grow until rows differ. So here

- exp and log are made of single operations;
- matrices are multiplied as whole numbers below 2^53 (times a power of two): then no sum is rounded, in
  whatever order it is added. What is lost is how finely a number can be told beside the largest of its array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

WHOLE = 53  # bits of a whole number that a float64 holds exactly
CHUNK = 2**15  # numbers that are worked on together: they stay near the processor

PIECES = 64  # of an octave, whose powers of two are in a table
LEAST, MOST = -708.0, 709.0  # exp of less is 0 here, and of more as of MOST

ENTRY = 26  # bits of an entry of a factor whose rows are not longer than 1: sums of two have twice as many
FAINT = 2.0**-20  # of a variance: a factor is of the matrix with so much more on its diagonal
PANEL = 32  # columns of a factor that are found one by one


def exp(x: Floats) -> Floats:
    """e^x, but for about a last bit; less than 10^-307 is 0.

    >>> exp(np.array([0.0, 1.0, -np.inf])).tolist() == [1.0, math.e, 0.0]
    True
    """
    powers, high, low = _powers()
    found = np.empty(np.shape(x))
    given, flat = np.ravel(x), found.reshape(-1)
    for at in range(0, len(given), CHUNK):
        y, p = given[at : at + CHUNK], flat[at : at + CHUNK]
        nothing = y < LEAST
        y = np.minimum(np.maximum(y, LEAST), MOST)
        steps = y * (PIECES / math.log(2))
        np.rint(steps, out=steps)
        number = steps.astype(np.int64)
        y -= steps * high
        steps *= low
        y -= steps  # at most log(2) / 128
        np.multiply(y, 1 / 120, out=p)
        for coefficient in (1 / 24, 1 / 6, 1 / 2, 1.0):
            p += coefficient
            p *= y
        power = powers.take(number & (PIECES - 1))
        p *= power
        p += power
        number >>= PIECES.bit_length() - 1
        number += 1023
        number <<= 52
        p *= number.view(np.float64)  # a power of two
        if nothing.any():
            p[nothing] = 0.0
    return found


@cache
def _powers() -> tuple[Floats, float, float]:
    """2^(j/64), and log(2)/64 as a float of few bits, whose multiples are exact, and the rest of it."""
    with localcontext() as context:
        context.prec = 40
        two = Decimal(2)
        powers = np.array([float(two ** (Decimal(j) / PIECES)) for j in range(PIECES)])
        step = two.ln() / PIECES
        high = float(round(step * 2**38)) * 2.0**-38
        return powers, high, float(step - Decimal(high))


def log(x: Floats | float) -> Floats:
    """The natural logarithm, but for about a last bit; of 0 it is minus infinity, and so of less.

    >>> log(np.array([1.0, 2.0, math.e])).tolist() == [0.0, math.log(2), 1.0]
    True
    """
    x = np.asarray(x, np.float64)
    part, octave = np.frexp(np.maximum(x, 0.0))
    below = part < math.sqrt(0.5)
    part, octave = np.where(below, 2 * part, part), octave - below
    s = (part - 1) / (part + 1)
    square = s * s
    series = np.full(np.shape(s), 1 / 23)
    for odd in range(21, 1, -2):
        series = series * square + 1 / odd
    _, high, low = _powers()
    small = 2 * s + 2 * s * (square * series) + octave * (PIECES * low)
    return np.asarray(np.where(x > 0, octave * (PIECES * high) + small, -np.inf))


def power(x: Floats, y: Floats | float) -> Floats:
    """x^y for x of at least 0 and y above 0.

    >>> power(np.array([0.0, 1.0, 8.0]), 1 / 3).round(12).tolist()
    [0.0, 1.0, 2.0]
    """
    return exp(y * log(x))


def inner(x: Floats, y: Floats | NDArray[np.int64]) -> float:
    """The sum of the products of two vectors.

    >>> inner(np.array([1.0, 2.0]), np.array([3, 4]))
    11.0
    """
    return float((x * y).sum())


def turned(x: Floats, matrices: Sequence[tuple[Floats, int]]) -> Floats:
    """Every axis of a table multiplied by its matrix of whole numbers, given with `bits_of` it. Each product
    takes the first axis and puts it last.

    Before each, numbers are rounded to 2^-53 of the largest, times the largest sum of a column's entries.

    >>> signs = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> turned(np.array([0.5, 0.25]), [(signs, bits_of(signs))]).tolist()
    [0.75, 0.25]
    """
    scale = 0  # of numbers that are held as so many powers of two times themselves
    for matrix, own in matrices:
        x = x.reshape(len(matrix), -1)
        bits = WHOLE - own - _bits(max(float(x.max()), -float(x.min())))
        found = np.empty((x.shape[1], matrix.shape[1]))
        wide, up = max(1, CHUNK // len(x)), math.ldexp(1.0, bits)
        for at in range(0, x.shape[1], wide):
            whole = x[:, at : at + wide] * up
            np.rint(whole, whole)
            np.matmul(whole.T, matrix, found[at : at + wide])
        x, scale = found, scale + bits
    x = x.reshape(-1)
    x *= math.ldexp(1.0, -scale)
    return x


def bits_of(matrix: Floats) -> int:
    """By how many bits a product of whole numbers with a column can be longer than the longest of them."""
    return _bits(float(np.abs(matrix).sum(axis=0).max()))


def _bits(x: float) -> int:
    """The least power of two that is above x."""
    return math.frexp(x)[1]


def gram(rows: Floats) -> Floats:
    """The products of all pairs of rows that are no longer than 1, each entry rounded to 2^-26."""
    whole = np.rint(rows * 2.0**ENTRY)
    return np.asarray(whole @ whole.T) * 4.0**-ENTRY


def solver(matrix: Floats) -> Callable[[Floats], Floats]:
    """What undoes a symmetric positive matrix, about: one that has 2^-20 more of its diagonal on it. The
    matrix is overwritten.

    By Cholesky's factor, whose entries are rounded to 2^-26 as they are found: then all products of its rows
    are exact.

    >>> solver(np.array([[4.0, 0.0], [0.0, 1.0]]))(np.array([1.0, 1.0])).round(4).tolist()
    [0.25, 1.0]
    """
    scale = 1 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    matrix *= scale[:, None]
    matrix *= scale
    factor, inverses = matrix, _factor(matrix)
    cuts = range(0, len(matrix), PANEL)

    def solved(x: Floats) -> Floats:
        y = x * scale
        for at, inverse in zip(cuts, inverses, strict=True):
            above = factor[:at, at : at + PANEL] * y[:at, None]
            y[at : at + PANEL] = (inverse * (y[at : at + PANEL] - above.sum(axis=0))).sum(axis=1)
        for at, inverse in zip(reversed(cuts), reversed(inverses), strict=True):
            to = at + PANEL
            rest = y[at:to] - (factor[at:to, to:] * y[to:]).sum(axis=1)
            y[at:to] = (inverse.T * rest).sum(axis=1)
        return np.asarray(y * scale)

    return solved


def _factor(matrix: Floats) -> list[Floats]:
    """Cholesky's factor of a matrix of diagonal 1, transposed, in place of its upper triangle; given are the
    inverses of the factor's blocks along the diagonal."""
    inverses = []
    for at in range(0, len(matrix), PANEL):
        to = at + PANEL
        panel = matrix[at:to, at:]
        panel -= matrix[:at, at:to].T @ matrix[:at, at:]
        for c in range(len(panel)):
            pivot = math.sqrt(max(float(panel[c, c]), 0.0) + FAINT)
            row = panel[c, c:]
            row[0] = pivot * pivot
            row *= 2.0**ENTRY / pivot
            np.rint(row, out=row)
            row *= 2.0**-ENTRY
            panel[c + 1 :, c + 1 :] -= row[1 : len(panel) - c, None] * row[1:]
        inverses.append(_inverse(np.triu(panel[:, : len(panel)]).T))
    return inverses


def _inverse(lower: Floats) -> Floats:
    found = np.eye(len(lower))
    for c in range(len(lower)):
        found[c] /= lower[c, c]
        found[c + 1 :] -= lower[c + 1 :, c, None] * found[c]
    return found
