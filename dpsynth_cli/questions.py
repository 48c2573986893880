"""The inert words between mechanisms and the trusted core: questions, answers, models.

A question is data, never code. The closed set of statistics is here; what each one is worth (its
integers, its sensitivity, its noise) only the trusted core knows. See `trusted/README.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.bounds import Bound, no_bound

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


# --- how a column, or a map of several, is cut into cells -------------------------------------------


@dataclass(frozen=True)
class Halves:
    """The column's codes halved `bits` times: code u of `size` goes to cell floor(u 2^b / size).

    In a nullable column the first halving separates values (lower half) from missing (first cell of
    the upper half), and the remaining b = bits - 1 halvings cut the values.
    """

    column: str
    bits: int


@dataclass(frozen=True)
class Bins:
    """Cell i holds the codes edges[i] <= u < edges[i+1]; edges rise from 0 to the column's `codes`.

    Equal neighbours make an empty cell. Missing is the column's last code.
    """

    column: str
    edges: tuple[int, ...]


@dataclass(frozen=True)
class Affine:
    """Cell i holds the rows with edges[i] <= sum_j weights[j] z_j < edges[i+1], clipped at both ends.

    z is the row's vector of the columns as in `Moments`, with one weight for each coordinate.
    """

    columns: tuple[str, ...]
    weights: tuple[int, ...]
    edges: tuple[int, ...]
    bits: int


@dataclass(frozen=True)
class Scored:
    """Cell i holds the rows with edges[i] <= sum_j scores[j][c_j] < edges[i+1], clipped at both ends.

    c_j is the row's cell on attributes[j], and scores[j] has one integer for each of its cells.
    """

    attributes: tuple[Halves | Bins, ...]
    scores: tuple[tuple[int, ...], ...]
    edges: tuple[int, ...]


@dataclass(frozen=True)
class Centres:
    """A point for each class of the categorical column `of`, or one for all rows: integers, in units of z."""

    points: tuple[tuple[int, ...], ...]
    of: str | None = None


@dataclass(frozen=True)
class Distance:
    """Cell i holds the rows with edges[i] <= the size of z - c < edges[i+1], clipped at both ends.

    z is the row's vector of the columns as in `Moments`, c its centre; z - c is 0 where a value is missing.
    Its size is the sum of absolute values (`norm` 1) or of squares (2).
    """

    columns: tuple[str, ...]
    about: Centres
    edges: tuple[int, ...]
    bits: int
    norm: int = 2


Axis: TypeAlias = Halves | Bins | Affine | Scored | Distance


@dataclass(frozen=True)
class Cells:
    """A public partition: the product of its axes.

    Without `order`, cells are numbered row-major (the last axis fastest). With it, axis order[0] is
    halved first, then order[1] and so on: a cell's number is its path from the root, first split in
    the highest bit, so that the cells of a level are pairs of the next. Each axis then has
    2^(its count in order) cells.
    """

    axes: tuple[Axis, ...]
    order: tuple[int, ...] | None = None


# --- the closed set of statistics: what is asked about the rows --------------------------------------


@dataclass(frozen=True)
class Total:
    """The number of rows. Free and exact under replace_one, unless asked by class or for units."""


@dataclass(frozen=True)
class CellCounts:
    """How many rows each cell has. One `Cells`, or by class one a class."""

    cells: Cells | tuple[Cells, ...]


@dataclass(frozen=True)
class Moments:
    """Sums of centred fixed-point values z = 2x - q, q = 2^bits - 1 (degree 1), or of their products:
    the upper triangle of z z^T, row by row (degree 2). z is 0 where missing.

    A nominal column has one coordinate for each of its codes, missing too: q at the row's own, else 0.
    `clip` is a public bound on the row's norm |z| / q (`norm` 1 or 2); None leaves rows as they are. With
    `about` a row is z - c, c its centre (0 where missing, still), and there must be a clip.
    """

    columns: tuple[str, ...]
    bits: int
    degree: int
    clip: Fraction | None = None
    about: Centres | None = None
    norm: int = 2


@dataclass(frozen=True)
class Gram:
    """Cross products of attributes, for all pairs i < j in order.

    Without scores: the table of every pair of axes (one-hot cross products), row-major, one after
    the other; `diagonal` adds each axis's own histogram in front of its pairs. With scores (one
    integer a cell, |score| <= 2^bits - 1): one sum of products a pair.
    """

    axes: tuple[Axis, ...]
    diagonal: bool = False
    scores: tuple[tuple[int, ...], ...] | None = None
    bits: int = 0


@dataclass(frozen=True)
class CellSums:
    """The row's one-hot `attributes` added up in its cell: a table cell x attribute cell for each, one after
    the other.
    """

    cells: Cells | tuple[Cells, ...]
    attributes: tuple[Axis, ...]


@dataclass(frozen=True)
class RowScores:
    """Every row's own coordinates, row after row in a secret random order: not a sum over rows. Defined
    under replace_one only, where `rows`, the number of them, is public.

    A row's cell on each axis has an integer score, and coordinate f is sum_a weights[f][a] score_a. The row
    is shrunk, toward zero, to integer norm at most `bound`.
    """

    axes: tuple[Axis, ...]
    scores: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[int, ...], ...]
    bound: int
    rows: int


@dataclass(frozen=True)
class Misfit:
    """For each table the sum over its cells of |count - expected|: how far the rows are from a prediction.

    Tables have no `order`. expected[k][t] has one integer for each cell of table t, row-major, in class k
    (one class without `by`); they follow from public facts and earlier answers. Not a sum over rows.
    """

    tables: tuple[Cells, ...]
    expected: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True)
class UnitSizes:
    """How many units of each cell have so many rows; rows fastest. Size i is edges[i] < rows <= edges[i+1];
    edges rise from 0 to how many are kept of a unit.

    A unit is in the cell of one of its rows, which its own rows and a secret choose. A sum over units.
    """

    cells: Cells
    edges: tuple[int, ...]


@dataclass(frozen=True)
class OpenLabels:
    """The labels of a column, whatever they are, whose noisy number of rows reaches a threshold: so high that
    one of a single row (or unit) does with probability at most `delta`. Answered by `labels.packed`."""

    column: str
    delta: Fraction


@dataclass(frozen=True)
class UnitPairs:
    """How many pairs of two rows of one unit are in each cell: the product of the cells of the row before, of
    the row after, and of changes, the last fastest. Rows of a unit are in the order of time.

    The row before is the one that the row after follows; with `far` the first of those that follow one
    another, and then the row after is the third or a later one. A change is the code after less the code
    before (`changes.py`). Of each unit at most `most` pairs
    are counted, which its own rows and a secret choose. A sum over pairs.
    """

    before: tuple[Bins, ...]
    after: tuple[Bins, ...]
    change: tuple[Bins, ...]
    most: int
    far: bool = False


OfUnits: TypeAlias = UnitSizes | UnitPairs  # not sums over rows
Sums: TypeAlias = Total | CellCounts | Moments | Gram | CellSums | RowScores | Misfit | OfUnits
Statistic: TypeAlias = Sums | OpenLabels


@dataclass(frozen=True)
class Question:
    """A statistic, the share of the release's budget to spend on it, and the stage it belongs to.

    `by` asks it for each class of a declared categorical column: one answer, one block a class.
    """

    step: str
    statistic: Statistic
    share: Fraction
    by: str | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """The noisy integers, block by block (one block without `by`), and the noise that is in them."""

    values: Ints
    lengths: tuple[int, ...]
    noise: str
    sd: float

    @property
    def blocks(self) -> list[Ints]:
        """One array a class."""
        return np.split(self.values, np.cumsum(self.lengths)[:-1])


Progress: TypeAlias = Callable[[str, int, int | None], None]


def no_progress(what: str, done: int, whole: int | None) -> None:
    """What is going on, how much more of it is done (0 when it begins), of how much: say nothing."""


class Ask(Protocol):
    """What a mechanism receives: the only way to learn anything about rows.

    `progress` is told how far a long computation is; it says nothing unless somebody watches.
    """

    @property
    def progress(self) -> Progress: ...

    def __call__(self, questions: Sequence[Question]) -> list[Answer]: ...

    def sd(self, question: Question) -> float:
        """The standard deviation the noise would have: public, free, asks nothing."""
        ...


@dataclass(frozen=True)
class Asking:
    """An `Ask` made of functions."""

    answer: Callable[[Sequence[Question]], list[Answer]]
    sd: Callable[[Question], float]
    progress: Progress = no_progress

    def __call__(self, questions: Sequence[Question]) -> list[Answer]:
        return self.answer(questions)


Block: TypeAlias = dict[str, Ints]


@dataclass(frozen=True)
class Model:
    """What a mechanism returns: a private total, and rows to draw from what it learnt.

    `draw(rows, rng)` yields blocks of codes, a column each, `rows` in all. `notes` are sentences for
    the audit, from answers and public facts only (fallbacks taken, dimensions chosen). `exports` are other
    outputs that follow from the answers, by name, made when somebody wants them. `bound` says what is known
    of W1 from the answers, for so many rows that are drawn. `held` is how many numbers were held to make it.
    """

    total: int
    draw: Callable[[int, np.random.Generator], Iterator[Block]]
    notes: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    exports: Mapping[str, Callable[[], dict[str, Any]]] = field(default_factory=dict, repr=False)
    bound: Callable[[int], Bound | None] = field(default=no_bound, repr=False)
    held: int = 0
