"""The residual basis: what a table of some columns has beyond the tables of fewer of them.

Each column of k cells has k functions that are orthonormal where all cells are equally likely: the constant,
and k - 1 contrasts (Helmert's; for two cells +1 and -1). Their products over the columns are a basis of all
functions of the cells, and those that have contrasts of just the columns S are the residual of S: what S
tells beyond every part of S. Known as effects of the analysis of variance, for columns of two values as the
Fourier or Walsh-Hadamard basis. Means of these functions are linear in counts, with independent noise where
that of the counts is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import bits_of, turned

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

RARE = 1e-6  # part of the rows that a cell of a column is taken to have at least
TOGETHER = 64  # cells of neighbouring axes that are turned by one product of matrices
FINE = 2.0**24  # steps of the largest entry of a row, to which other functions than contrasts are rounded,
COARSE = 2.0**20  # and their squares


def contrasts(k: int) -> Floats:
    """The k functions of a column of k cells, one a row: orthonormal where cells are equally likely.

    >>> contrasts(2).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    return _helmert(k) * _units(k)[:, None]


def _helmert(k: int) -> Floats:
    """The same in whole numbers."""
    found = np.ones((k, k))
    for row in range(1, k):
        found[row] = [1.0] * row + [-float(row)] + [0.0] * (k - 1 - row)
    return found


def _units(k: int) -> Floats:
    """What each of them is to be multiplied by."""
    return np.array([1.0, *(math.sqrt(k / (row * (row + 1))) for row in range(1, k))])


class Basis:
    """The residual basis of a table with so many cells on each axis, row-major."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes, self.cells = tuple(sizes), math.prod(sizes)
        self._turn = Turn(
            [reduce(_kron, [_helmert(self.sizes[axis]) for axis in some]) for some in _axes(self.sizes)],
            reduce(_kron, map(_units, self.sizes), np.ones(1)),
        )

    def means(self, p: Floats) -> Floats:
        """The mean of every function under a distribution over all cells."""
        return self._turn.means(p)

    def values(self, weights: Floats) -> Floats:
        """The sum of all functions, each with its weight, in every cell."""
        return self._turn.values(weights)

    def orthonormal(self, p: Floats) -> Orthonormal:
        """Functions that would be orthonormal, about, if the columns of a distribution were independent."""
        table, several = p.reshape(self.sizes), range(len(self.sizes))
        turns = []
        for axis in several:
            own = np.maximum(table.sum(axis=tuple(a for a in several if a != axis)), RARE)
            turns.append(_orthonormal(own / own.sum()))
        return Orthonormal([reduce(_kron, [turns[axis] for axis in some]) for some in _axes(self.sizes)])

    def residual(self, axes: Sequence[int]) -> Ints:
        """The numbers of the functions that have contrasts of just these axes, row-major."""
        index = np.zeros(1, np.int64)
        for axis, size in enumerate(self.sizes):
            index = index * size
            if axis in axes:
                index = (index[:, None] + np.arange(1, size)).ravel()
        return index

    def functions(self, index: Ints, cells: Ints) -> Floats:
        """The values of the functions of these numbers in these cells, a function a row.

        >>> Basis((2, 2)).functions(np.array([1, 3]), np.array([0, 1, 2])).tolist()
        [[1.0, -1.0, 1.0], [1.0, -1.0, -1.0]]
        """
        found = np.ones((len(index), len(cells)))
        each = zip(
            self.sizes, np.unravel_index(index, self.sizes), np.unravel_index(cells, self.sizes), strict=True
        )
        for size, number, cell in each:
            found *= contrasts(size)[np.ix_(number, cell)]
        return found


@dataclass(frozen=True, eq=False)
class Turn:
    """Functions of all cells: products of whole numbers by blocks of axes, each times its unit."""

    blocks: Sequence[Floats]
    unit: Floats
    _across: list[tuple[Floats, int]] = field(init=False)
    _back: list[tuple[Floats, int]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_across", [(block.T, bits_of(block.T)) for block in self.blocks])
        object.__setattr__(self, "_back", [(block, bits_of(block)) for block in self.blocks])

    def means(self, x: Floats) -> Floats:
        """The sum over cells of each function times a number of the cell."""
        found = turned(x, self._across)
        found *= self.unit
        return found

    def values(self, x: Floats) -> Floats:
        """The sum over functions, in each cell, of each times its number."""
        return turned(x * self.unit, self._back)


class Orthonormal:
    """Other functions, each a sum of those of the basis; by blocks of axes."""

    def __init__(self, blocks: Sequence[Floats]) -> None:
        self._turn = _in_whole_numbers(blocks, FINE)
        self._squares = _in_whole_numbers([block * block for block in blocks], COARSE)

    def to(self, means: Floats) -> Floats:
        """The means of these functions, by those of the basis."""
        return self._turn.means(means)

    def back(self, weights: Floats) -> Floats:
        """The weights of the basis that make the same sum as weights of these functions."""
        return self._turn.values(weights)

    def squares(self, variances: Floats) -> Floats:
        """The variances of their means, of independent noise in the means of the basis."""
        return self._squares.means(variances)


def _in_whole_numbers(blocks: Sequence[Floats], fine: float) -> Turn:
    units = [np.abs(block).max(axis=1) / fine for block in blocks]
    whole = [np.rint(block / unit[:, None]) for block, unit in zip(blocks, units, strict=True)]
    return Turn(whole, reduce(_kron, units))


def parts(table: Floats) -> dict[tuple[int, ...], Floats]:
    """The means of the functions of each residual of a table of parts of 1, by its axes; row-major.

    >>> {axes: found.round(2).tolist() for axes, found in parts(np.array([[0.4, 0.1], [0.2, 0.3]])).items()}
    {(): [1.0], (1,): [0.2], (0,): [0.0], (0, 1): [0.4]}
    """
    basis = Basis(table.shape)
    means = basis.means(table.ravel())
    several = range(2**table.ndim)
    each = [
        tuple(axis for axis in range(table.ndim) if number >> (table.ndim - 1 - axis) & 1)
        for number in several
    ]
    return {axes: means[basis.residual(axes)] for axes in each}


def _orthonormal(mass: Floats) -> Floats:
    """Functions of a column that are orthonormal where its cells have these masses, one a row: by contrasts,
    each made orthogonal to those before it (Gram and Schmidt)."""
    whole = contrasts(len(mass))
    turn = np.eye(len(mass))
    for row in range(len(mass)):
        length = math.sqrt(float((mass * whole[row] * whole[row]).sum()))
        whole[row] /= length
        turn[row] /= length
        common = (mass * whole[row] * whole[row + 1 :]).sum(axis=1)[:, None]
        whole[row + 1 :] -= common * whole[row]
        turn[row + 1 :] -= common * turn[row]
    return turn


def _kron(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.kron(one, other))


def _axes(sizes: Sequence[int]) -> list[list[int]]:
    """Axes in their order, those side by side together as long as their cells are few."""
    groups: list[list[int]] = []
    for axis, size in enumerate(sizes):
        if groups and math.prod(sizes[a] for a in groups[-1]) * size <= TOGETHER:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups
