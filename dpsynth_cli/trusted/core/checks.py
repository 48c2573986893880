"""What is not one of the closed set's questions is refused before anything is charged or read."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpsynth_cli.changes import change_codes
from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import (
    Affine,
    Axis,
    Bins,
    CellCounts,
    Cells,
    CellSums,
    Centres,
    Distance,
    Gram,
    Halves,
    Misfit,
    Moments,
    OpenLabels,
    Question,
    RowScores,
    Scored,
    UnitPairs,
    UnitSizes,
)
from dpsynth_cli.trusted.core.sensitivity import largest_value
from dpsynth_cli.trusted.core.shapes import (
    axis_cells,
    cell_count,
    classes_of,
    columns_of,
    lengths_of,
    per_class,
)

MAX_CELLS = 2**28
MAX_EXPECTED, MAX_EXPECTED_CELLS = 2**53, 2**24  # they are in the transcript, as text


def check_question(question: Question, omega: Domain) -> None:
    """Refuse what nobody knows the sum or the sensitivity of, or what would not fit in memory or 64 bits."""
    statistic = question.statistic
    if question.by is not None and not omega[question.by].categorical:
        raise ValueError("questions are asked by a categorical column")
    if isinstance(statistic, Misfit):
        _check_misfit(question, statistic, omega)
    for name in columns_of([question]):
        omega[name]
    match statistic:
        case CellCounts(cells=cells) | CellSums(cells=cells):
            for part in per_class(cells, classes_of(question, omega)):
                _check_cells(part, omega)
        case _:
            pass
    match statistic:
        case CellSums(attributes=attributes):
            if not attributes:
                raise ValueError("cell sums are of one attribute or more")
            for axis in attributes:
                _check_axis(axis, omega)
        case Moments(columns=columns, degree=degree, clip=clip):
            if degree not in (1, 2) or (clip is not None and clip <= 0) or not columns:
                raise ValueError("moments are of degree 1 or 2, with a positive clip")
            if clip is not None and len(columns) * (2**statistic.bits - 1) ** 2 >= 2**62:
                raise ValueError("too many bits: a row's norm would not fit in 64 bits")
            if statistic.about is None and statistic.norm != 2:
                raise ValueError("rows are clipped by another norm about a centre only")
            if statistic.about is not None:
                if clip is None:
                    raise ValueError("rows about a centre have a clip")
                _check_centres(statistic.about, columns, statistic.bits, statistic.norm, omega)
        case Gram(axes=axes, scores=scores, diagonal=diagonal, bits=bits):
            if len(axes) < 2 or (scores is not None and diagonal):
                raise ValueError("a Gram has at least two axes, and scores have no diagonal")
            for axis in axes:
                _check_axis(axis, omega)
            if scores is not None:
                fits = [len(row) == axis_cells(axis) for row, axis in zip(scores, axes, strict=True)]
                if not all(fits) or max(abs(s) for row in scores for s in row) > 2**bits - 1:
                    raise ValueError("scores do not fit their axes or their bits")
        case RowScores():
            _check_row_scores(question, statistic, omega)
        case UnitSizes(cells=cells, edges=edges):
            if omega.unit_rows is None or question.by is not None or cells.order is not None:
                raise ValueError("sizes are of units, in row-major cells, and not by class")
            if sorted({*edges, 0, omega.unit_rows}) != list(edges):
                raise ValueError("edges of sizes must rise from 0 to the rows that are kept of a unit")
            _check_cells(cells, omega)
        case OpenLabels(column=column, delta=delta):
            if question.by is not None or not omega[column].open:
                raise ValueError("labels are those of a column that is open, and not by class")
            if not isinstance(delta, Fraction) or not 0 < delta <= Fraction(1, 10):
                raise ValueError("the delta of labels is a Fraction above 0 and at most 0.1")
        case UnitPairs():
            _check_pairs(question, statistic, omega)
    if max(lengths_of(question, omega), default=0) * classes_of(question, omega) > MAX_CELLS:
        raise ValueError("too many cells for memory and for 32-bit numbers of cells")
    if largest_value(statistic) >= 2**62:
        raise ValueError("too many bits: sums over many rows would not fit in 64 bits")


def _check_pairs(question: Question, statistic: UnitPairs, omega: Domain) -> None:
    """Rows of a unit follow one another in the order of a declared column, k - 1 of k another; k - 2 of them
    are not the second of a run."""
    if omega.unit_rows is None or omega.unit_order is None or question.by is not None:
        raise ValueError("pairs are of rows of a unit that have an order, and not by class")
    if not 1 <= statistic.most <= omega.unit_rows - (2 if statistic.far else 1):
        raise ValueError("a unit has fewer pairs than rows")
    axes = (*statistic.before, *statistic.after, *statistic.change)
    if not all(isinstance(axis, Bins) for axis in axes):
        raise ValueError("pairs are counted in bins")
    for axis in (*statistic.before, *statistic.after):
        _check_axis(axis, omega)
    for axis in statistic.change:
        _check_edges(axis.edges, change_codes(omega[axis.column]))


def _check_row_scores(question: Question, statistic: RowScores, omega: Domain) -> None:
    """Under add_remove a row that is not there would show as fewer coordinates, whatever the noise; so would
    a unit that is replaced by one of fewer rows."""
    if not omega.rows_public or question.by is not None:
        raise ValueError("row scores are defined under replace_one only, and not by class or for units")
    for axis in statistic.axes:
        _check_axis(axis, omega)
    d, r = len(statistic.axes), len(statistic.weights)
    fits = [len(row) == axis_cells(axis) for row, axis in zip(statistic.scores, statistic.axes, strict=True)]
    if not d or not r or not all(fits) or any(len(row) != d for row in statistic.weights):
        raise ValueError("scores or weights do not fit their axes")
    if statistic.bound < 1 or statistic.rows < 0:
        raise ValueError("row scores have a positive bound and a number of rows")
    highest = [max(map(abs, row)) for row in statistic.scores]
    reach = max(sum(abs(w) * s for w, s in zip(row, highest, strict=True)) for row in statistic.weights)
    if r * reach**2 >= 2**62:
        raise ValueError("too many bits: a row's norm would not fit in 64 bits")


def _check_misfit(question: Question, statistic: Misfit, omega: Domain) -> None:
    """Tables are partitions, so that a row is in one cell of each, and every cell has an integer to be
    compared with: by other numbers a distance would not be one."""
    tables, expected = statistic.tables, statistic.expected
    if not isinstance(tables, tuple) or not tables or not all(isinstance(part, Cells) for part in tables):
        raise ValueError("a misfit is of one table or more")
    if any(part.order is not None for part in tables):
        raise ValueError("the tables of a misfit are row-major: they have no order")
    for part in tables:
        _check_cells(part, omega)
    if not isinstance(expected, tuple) or len(expected) != classes_of(question, omega):
        raise ValueError("a misfit has one list of expected tables a class")
    sizes = [cell_count(part) for part in tables]
    if sum(sizes) * len(expected) > MAX_EXPECTED_CELLS:
        raise ValueError("too many expected cells for memory and for a transcript")
    for own in expected:
        if not isinstance(own, tuple) or not all(isinstance(table, tuple) for table in own):
            raise ValueError("expected tables are tuples")
        if [len(table) for table in own] != sizes:
            raise ValueError("expected tables do not fit the tables")
        for table in own:
            if set(map(type, table)) != {int}:
                raise ValueError("what is expected in a cell is an integer")
            if max(table) > MAX_EXPECTED or min(table) < -MAX_EXPECTED:
                raise ValueError("what is expected in a cell is at most 2^53")


def _check_cells(cells: Cells, omega: Domain) -> None:
    """Refuse a partition that is not one: edges that miss codes, an order that does not fit."""
    for number, axis in enumerate(cells.axes):
        _check_axis(axis, omega)
        if cells.order is not None and axis_cells(axis) != 2 ** cells.order.count(number):
            raise ValueError("order does not fit the axes")
    if cells.order is not None and not set(cells.order) <= set(range(len(cells.axes))):
        raise ValueError("order names an axis that is not there")


def _check_axis(axis: Axis, omega: Domain) -> None:
    """Refuse an axis whose cells do not cover every code exactly once."""
    if isinstance(axis, Halves):
        omega[axis.column]
        if not 0 <= axis.bits <= 31:
            raise ValueError("too many or too few halvings")
        return
    _check_edges(axis.edges, omega[axis.column].codes if isinstance(axis, Bins) else None)
    if isinstance(axis, Affine):
        q = 2**axis.bits - 1
        width = sum(omega[name].width for name in axis.columns)
        fits = len(axis.weights) == width and 1 <= axis.bits <= 28
        if not fits or sum(map(abs, axis.weights)) * q >= 2**53:
            raise ValueError("weights do not fit")
    if isinstance(axis, Distance):
        _check_centres(axis.about, axis.columns, axis.bits, axis.norm, omega)
    if isinstance(axis, Scored):
        if not all(isinstance(inner, Halves | Bins) for inner in axis.attributes):
            raise ValueError("scores are of the cells of one column each")
        sizes = [axis_cells(inner) for inner in axis.attributes]
        if not sizes or sizes != [len(row) for row in axis.scores]:
            raise ValueError("scores do not fit their axes")
        if sum(max(map(abs, row)) for row in axis.scores) >= 2**62:
            raise ValueError("scores do not fit in 64 bits")
        for inner in axis.attributes:
            _check_axis(inner, omega)


def _check_centres(about: Centres, columns: tuple[str, ...], bits: int, norm: int, omega: Domain) -> None:
    """A centre is one of the places that z can have, one for each class; no row's norm leaves 64 bits."""
    if norm not in (1, 2) or not 1 <= bits <= 28 or not columns:
        raise ValueError("distances are of one column or more, in the norms 1 and 2")
    if about.of is not None and not omega[about.of].categorical:
        raise ValueError("centres are those of the classes of a categorical column")
    q, width = 2**bits - 1, sum(omega[name].width for name in columns)
    if len(about.points) != (1 if about.of is None else omega[about.of].codes):
        raise ValueError("one centre a class")
    if any(len(point) != width or max(map(abs, point)) > q for point in about.points):
        raise ValueError("centres do not fit")
    if width * (2 * q) ** 2 >= 2**62:
        raise ValueError("too many bits: a row's norm would not fit in 64 bits")


def _check_edges(given: tuple[int, ...], codes: int | None) -> None:
    """Refuse edges that fall; of a column, such that do not cover its codes."""
    if any(abs(edge) >= 2**62 for edge in given):
        raise ValueError("edges do not fit in 64 bits")
    edges = np.asarray(given)
    if len(edges) < 2 or (np.diff(edges) < 0).any():
        raise ValueError("edges must not fall")
    if codes is not None and (edges[0] != 0 or edges[-1] != codes):
        raise ValueError("edges must cover all codes")
