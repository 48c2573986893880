"""How far one row, or one unit of several, can move each kind of question: exact integers, for both neighbour
relations.

Each line is derived in `trusted/README.md` and docs/privacy.md; `tests/trusted/core/test_sensitivity.py`
shows that no row moves a sum further and that a worst case reaches it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import (
    CellCounts,
    CellSums,
    Gram,
    Misfit,
    Moments,
    OpenLabels,
    Question,
    RowScores,
    Statistic,
    Sums,
    Total,
    UnitPairs,
    UnitSizes,
)

MAX_ROWS = 2**34


@dataclass(frozen=True)
class Sensitivity:
    """L1, and L2 squared. With `half_above`, entries above the diagonal of the symmetric matrix get
    half the variance, and L2 squared is that of the full matrix (recipe F).

    `largest`, where it is known: the most that any integer of the answer moves, added up over the blocks.
    """

    l1: int
    l2_squared: int
    half_above: bool = False
    largest: int | None = None

    def times(self, moves: int) -> Sensitivity:
        """What so many moves of this size add up to at most, all in the same direction."""
        largest = None if self.largest is None else moves * self.largest
        return Sensitivity(moves * self.l1, moves**2 * self.l2_squared, self.half_above, largest)


def sensitivity(question: Question, omega: Domain) -> Sensitivity:
    """What one row, or one unit, can change in the answer, under the domain's neighbour relation.

    A unit of at most k kept rows that comes or goes is k rows that do. One that is replaced is made of k
    moves at most, one after the other: rows replaced by others, and the rest rows that come or go, which is
    never the larger move. So it is k times one row's, in every norm.
    """
    if isinstance(question.statistic, RowScores):
        return _row_scores(question.statistic)
    # A unit is counted once, in one cell and at one size, or at one label; its pairs at most so many times.
    if isinstance(question.statistic, UnitSizes | UnitPairs | OpenLabels):
        one = Sensitivity(1, 1) if omega.neighbours == "add_remove" else Sensitivity(2, 2)
        return one.times(question.statistic.most) if isinstance(question.statistic, UnitPairs) else one
    if omega.unit_rows is None:
        return _of_one_row(question, omega)
    if isinstance(question.statistic, Total) and question.by is None:  # rows replaced do not change it
        return Sensitivity(1, 1).times(omega.unit_rows)
    return _of_one_row(question, omega).times(omega.unit_rows)


def _of_one_row(question: Question, omega: Domain) -> Sensitivity:
    """By class, one row is in one block: adding it moves that block only; replacing it moves inside a
    block, or out of one and into another."""
    assert not isinstance(question.statistic, RowScores | UnitSizes | UnitPairs | OpenLabels)
    add = _add_remove(question.statistic, omega)
    if omega.neighbours == "add_remove":
        return add
    replace = _replace_one(question.statistic, add, omega)
    if question.by is None:
        return replace
    largest = None
    if add.largest is not None and replace.largest is not None:
        largest = max(2 * add.largest, replace.largest)
    return Sensitivity(
        max(2 * add.l1, replace.l1), max(2 * add.l2_squared, replace.l2_squared), add.half_above, largest
    )


def is_free(question: Question, omega: Domain) -> bool:
    """The plain total under replace_one: n is public there, exact and without a price; not with units."""
    return isinstance(question.statistic, Total) and question.by is None and omega.rows_public


def largest_value(statistic: Statistic) -> int:
    """The most that one integer of the exact answer is, in size, with MAX_ROWS rows: it must fit in 62 bits.

    Of a `Misfit`, by the triangle inequality: all rows of a table and all that was expected in it. Every sum
    on the way there is smaller, since no |count - expected| is negative.
    """
    if isinstance(statistic, Misfit):
        return MAX_ROWS + max(sum(map(abs, table)) for own in statistic.expected for table in own)
    if isinstance(statistic, OpenLabels):
        return MAX_ROWS
    return MAX_ROWS * _largest_entry(statistic)


def _largest_entry(statistic: Sums) -> int:
    """The most that one row, unit or pair adds to one integer of the sum."""
    match statistic:
        case Moments(degree=degree):
            return int(reach(statistic) ** degree)
        case Gram(scores=scores, bits=bits) if scores is not None:
            return int((2**bits - 1) ** 2)
        case RowScores(bound=bound):
            return bound
        case _:
            return 1


def clip_bound(moments: Moments) -> int:
    """The clip in units of z, an integer: floor(clip q)."""
    assert moments.clip is not None
    return int(moments.clip * (2**moments.bits - 1))


def reach(moments: Moments) -> int:
    """How large one number of a row can be: that of z - c is between -2q and 2q, since c is one of z's."""
    q = 2**moments.bits - 1
    return int(q if moments.about is None else min(2 * q, clip_bound(moments)))


def _about_a_centre(statistic: Moments, d: int) -> Sensitivity:
    """One row of d coordinates: its norm is at most C, and none is above the reach, 2q or C. So C may be
    taken as 2 q d in l1, and its square as 4 q^2 d in l2, where these are less."""
    c, most = clip_bound(statistic), reach(statistic)
    if statistic.norm == 1:  # |w|_2 <= |w|_1, and |w|_2^2 <= |w|_1 max|w|
        c = min(c, most * d)
        first, squares, second = c, c * c, (c * c + c * most) // 2
    else:  # |w|_1 <= sqrt(d) |w|_2
        squares = min(c * c, most * most * d)
        first, second = isqrt(d * squares), (d + 1) * squares // 2
    if statistic.degree == 1:
        return Sensitivity(first, squares, largest=most)
    # sum over i <= j of |w_i w_j| = (|w|_1^2 + |w|_2^2) / 2; Frobenius norm of w w^T = |w|_2^2
    return Sensitivity(second, squares**2, True, most * most)


def _row_scores(statistic: RowScores) -> Sensitivity:
    """One row replaced moves its own r coordinates only, from one point of the ball to another: 2 C in L2,
    and 2 sqrt(r) C in L1, since |w|_1 <= sqrt(r) |w|_2."""
    r, c = len(statistic.weights), statistic.bound
    return Sensitivity(2 * isqrt(r * c * c), 4 * c * c)


def _add_remove(
    statistic: Total | CellCounts | Moments | Gram | CellSums | Misfit, omega: Domain
) -> Sensitivity:
    match statistic:
        case Total() | CellCounts():
            return Sensitivity(1, 1)
        case Moments(columns=columns, about=about) if about is not None:
            return _about_a_centre(statistic, sum(omega[name].width for name in columns))
        case Moments(columns=columns, bits=bits, degree=degree, clip=clip):
            # A nominal column has many coordinates, but a row has q at one of them: d counts columns.
            d, q = len(columns), 2**bits - 1
            if degree == 1:
                plain = Sensitivity(d * q, d * q * q, largest=q)
            else:
                plain = Sensitivity(q * q * d * (d + 1) // 2, q**4 * d * (d + 1) // 2, largest=q * q)
            if clip is None:
                return plain
            c = clip_bound(statistic)
            most = min(q, c) ** degree
            if degree == 1:  # |z|_1 <= sqrt(d) |z|_2
                l1 = min(plain.l1, isqrt(d * c * c))
                return Sensitivity(l1, min(plain.l2_squared, c * c), largest=most)
            # sum over i <= j of |z_i z_j| = (|z|_1^2 + |z|_2^2) / 2; Frobenius norm of z z^T = |z|_2^2
            return Sensitivity(min(plain.l1, (d + 1) * c * c // 2), min(q**4 * d * d, c**4), True, most)
        case Gram(axes=axes, diagonal=diagonal, scores=scores, bits=bits):
            d = len(axes)
            pairs = d * (d + 1) // 2 if diagonal else d * (d - 1) // 2
            unit = 1 if scores is None else (2**bits - 1) ** 2
            return Sensitivity(pairs * unit, pairs * unit * unit)
        case CellSums(attributes=attributes):
            return Sensitivity(len(attributes), len(attributes))
        case Misfit(tables=tables):
            # A row is in one cell of each table, and moves its count by 1, so |count - expected| by 1.
            return Sensitivity(len(tables), len(tables))


def _replace_one(
    statistic: Total | CellCounts | Moments | Gram | CellSums | Misfit, add: Sensitivity, omega: Domain
) -> Sensitivity:
    both = None if add.largest is None else 2 * add.largest
    match statistic:
        case Moments(degree=1):
            return Sensitivity(2 * add.l1, 4 * add.l2_squared, largest=both)
        case Moments(columns=columns, bits=bits, clip=None) if all(omega[n].width == 1 for n in columns):
            # Entries of z z^T on the diagonal are never negative, and two rows cannot disagree fully
            # everywhere: L1 is that of one row (proof in trusted/README.md); L2 of the triangle is q^2 d.
            return Sensitivity(add.l1, (2**bits - 1) ** 4 * len(columns) ** 2, largest=both)
        case Gram(axes=axes, scores=scores, bits=bits) if scores is not None:
            cross = len(axes) ** 2 // 4
            unit = (2**bits - 1) ** 2
            return Sensitivity(2 * cross * unit, 4 * cross * unit * unit)
        case Misfit():
            # Two cells of each table move by 1, and both may add to the same distance: 2, and 4 squared.
            return Sensitivity(2 * add.l1, 4 * add.l2_squared)
        case _:
            # Two rows, each moving non-negative (or clipped) entries: at most both moves together,
            # in L2 at right angles or better.
            return Sensitivity(2 * add.l1, 2 * add.l2_squared, add.half_above, both)
