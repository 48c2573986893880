"""What is public about a question: how long its answer is, which columns it reads, what it is part of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

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
    Total,
    UnitPairs,
    UnitSizes,
)


def axis_cells(axis: Axis) -> int:
    """How many cells an axis has."""
    return 2**axis.bits if isinstance(axis, Halves) else len(axis.edges) - 1


def cell_count(cells: Cells) -> int:
    """How many cells a partition has."""
    count = 1
    for axis in cells.axes:
        count *= axis_cells(axis)
    return count


def classes_of(question: Question, omega: Domain) -> int:
    """The number of blocks of the answer."""
    return omega[question.by].codes if question.by else 1


def lengths_of(question: Question, omega: Domain) -> tuple[int, ...]:
    """How many integers the answer has, block by block."""
    classes = classes_of(question, omega)
    match question.statistic:
        case Total():
            length = 1
        case CellCounts(cells=cells):
            return tuple(cell_count(part) for part in per_class(cells, classes))
        case Moments(columns=columns, degree=degree):
            width = sum(omega[name].width for name in columns)
            length = width if degree == 1 else width * (width + 1) // 2
        case Gram(axes=axes, diagonal=diagonal, scores=scores):
            sizes = [axis_cells(axis) for axis in axes]
            if scores is not None:
                length = len(sizes) * (len(sizes) - 1) // 2
            else:
                length = sum(a * b for a, b in combinations(sizes, 2)) + (sum(sizes) if diagonal else 0)
        case CellSums(cells=cells, attributes=attributes):
            width = sum(axis_cells(axis) for axis in attributes)
            return tuple(width * cell_count(part) for part in per_class(cells, classes))
        case RowScores(weights=weights, rows=rows):
            length = rows * len(weights)
        case Misfit(tables=tables):
            length = len(tables)
        case UnitSizes(cells=cells, edges=edges):
            length = cell_count(cells) * (len(edges) - 1)
        case OpenLabels():  # how many there are is what is asked
            return ()
        case UnitPairs(before=before, after=after, change=change):
            length = cell_count(Cells((*before, *after, *change)))
    return (length,) * classes


def summed_cells(question: Question, omega: Domain) -> int:
    """How many integers are added up over the rows: the answer's, or those of the tables it is made of."""
    if isinstance(question.statistic, Misfit):
        return sum(map(cell_count, question.statistic.tables)) * classes_of(question, omega)
    return sum(lengths_of(question, omega))


def tables_only(question: Question) -> Question:
    """The question without what was expected: all that is needed to add up rows."""
    if isinstance(question.statistic, Misfit):
        return replace(question, statistic=replace(question.statistic, expected=()))
    return question


def columns_of(questions: Sequence[Question]) -> set[str]:
    """The columns that must be read to answer."""
    names: set[str] = set()

    def of_axes(axes: Sequence[Axis]) -> None:
        for axis in axes:
            if isinstance(axis, Scored):
                of_axes(axis.attributes)
            else:
                names.update(axis.columns if isinstance(axis, Affine | Distance) else (axis.column,))
            if isinstance(axis, Distance):
                names.update(_class(axis.about))

    for question in questions:
        if question.by:
            names.add(question.by)
        match question.statistic:
            case CellCounts(cells=cells):
                for part in _as_tuple(cells):
                    of_axes(part.axes)
            case CellSums(cells=cells, attributes=attributes):
                for part in _as_tuple(cells):
                    of_axes(part.axes)
                of_axes(attributes)
            case Moments(columns=columns, about=about):
                names.update(columns, _class(about))
            case Gram(axes=axes) | RowScores(axes=axes):
                of_axes(axes)
            case Misfit(tables=tables):
                for part in tables:
                    of_axes(part.axes)
            case UnitSizes(cells=cells):
                of_axes(cells.axes)
            case OpenLabels(column=column):
                names.add(column)
            case UnitPairs(before=before, after=after, change=change):
                of_axes((*before, *after, *change))
    return names


def _class(about: Centres | None) -> tuple[str, ...]:
    """The column that chooses a row's centre."""
    return (about.of,) if about is not None and about.of else ()


def per_class(cells: Cells | tuple[Cells, ...], classes: int) -> tuple[Cells, ...]:
    """One partition a class."""
    if isinstance(cells, Cells):
        return (cells,) * classes
    if len(cells) != classes:
        raise ValueError("one partition a class")
    return cells


def finer_trees(questions: Sequence[Question]) -> dict[int, int]:
    """Questions about a coarser level of a tree that another question counts: number -> finest."""
    levels = [
        (number, question.by, _as_tuple(question.statistic.cells))
        for number, question in enumerate(questions)
        if isinstance(question.statistic, CellCounts)
    ]
    levels.sort(key=lambda level: -max(len(part.order or ()) for part in level[2]))
    finest: list[tuple[int, str | None, tuple[Cells, ...]]] = []
    found = {}
    for number, by, cells in levels:
        for other, other_by, other_cells in finest:
            if by == other_by and len(cells) == len(other_cells) and all(map(_coarsens, cells, other_cells)):
                found[number] = other
                break
        else:
            finest.append((number, by, cells))
    return found


def _coarsens(coarse: Cells, fine: Cells) -> bool:
    """Whether coarse is an upper level of the tree of fine (or the same)."""
    if coarse.order is None or fine.order is None or coarse.order != fine.order[: len(coarse.order)]:
        return False
    return len(coarse.axes) == len(fine.axes) and all(map(_axis_coarsens, coarse.axes, fine.axes))


def _axis_coarsens(coarse: Axis, fine: Axis) -> bool:
    if isinstance(coarse, Halves) and isinstance(fine, Halves):
        return coarse.column == fine.column and coarse.bits <= fine.bits
    if isinstance(coarse, Bins) and isinstance(fine, Bins) and coarse.column == fine.column:
        step = (len(fine.edges) - 1) // (len(coarse.edges) - 1)
        return coarse.edges == fine.edges[::step]
    return coarse == fine


def _as_tuple(cells: Cells | tuple[Cells, ...]) -> tuple[Cells, ...]:
    return (cells,) if isinstance(cells, Cells) else cells
