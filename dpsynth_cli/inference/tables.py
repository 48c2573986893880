"""The counts that a transcript has: tables over cells of columns, and signed sums, each with its noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.numeric.partition import along
from dpsynth_cli.questions import (
    Affine,
    Answer,
    Axis,
    Bins,
    CellCounts,
    Cells,
    Distance,
    Floats,
    Gram,
    Halves,
    Ints,
    Moments,
    Question,
    Scored,
    Total,
)
from dpsynth_cli.trusted.core.shapes import axis_cells
from dpsynth_cli.trusted.sums.cells import between, column_cells, coordinates

CellOf = Callable[[NDArray[Any]], Ints]  # codes of a column -> cells of an axis; -1 is outside of the table


@dataclass(frozen=True, eq=False)
class Counted:
    """Noisy counts: an array with one axis for each of `columns`, whose cells `cell` tells, and the noise of
    each of the counts. `step` and `number` say which answer they are from."""

    columns: tuple[str, ...]
    cell: tuple[CellOf, ...]
    values: Floats
    sd: float
    noise: str
    step: str
    number: int

    def whole(self, a: int, domain: Domain) -> bool:
        """Whether the cells of an axis hold all codes: one that leaves codes out is of one class."""
        codes = np.arange(min(domain[self.columns[a]].codes, 2**12))
        return bool((self.cell[a](codes) >= 0).all())

    def alone(self, column: Column, code: int) -> bool:
        """Whether a code of a categorical column has a cell of its own."""
        cells = self.cell[self.columns.index(column.name)](np.arange(column.codes))
        return int((cells == cells[code]).sum()) == 1


@dataclass(frozen=True, eq=False)
class Signed:
    """A noisy sum over rows of a product of scores: one for each code of each of `columns`."""

    columns: tuple[str, ...]
    scores: tuple[Callable[[NDArray[Any]], Floats], ...]
    value: float
    sd: float
    noise: str
    step: str
    number: int
    pooled: str | None = None  # the column of the classes that were added up
    above: bool = (
        False  # above the diagonal of a symmetric matrix, where Gaussian noise has half the variance
    )


def counted_tables(
    asked: Sequence[tuple[Question, Answer]], omega: Domain
) -> tuple[list[Counted], list[Signed]]:
    """All that answers count. What is not a count of cells or a signed sum is left out."""
    tables: list[Counted] = []
    signed: list[Signed] = []
    for number, (question, answer) in enumerate(asked):
        blocks = [list(_in_block(question, block, k, omega)) for k, block in enumerate(answer.blocks)]
        noise: dict[str, Any] = {
            "sd": answer.sd, "noise": answer.noise, "step": question.step, "number": number
        }  # fmt: skip
        for same in zip(*blocks, strict=True):  # one of each class
            known = [one for one in same if isinstance(one, Counted)]
            if known:
                tables += [replace(one, **noise) for one in _by_class(question, known)]
            else:
                sums = [one for one in same if isinstance(one, Signed)]
                signed += [replace(one, **noise) for one in _signed_by_class(question, sums)]
                signed += _of_all_classes(question, sums, noise)
    return tables, signed


def _by_class(question: Question, same: list[Counted]) -> list[Counted]:
    """One table with an axis of classes, if the cells of all are the same; else one a class."""
    if question.by is None:
        return same
    alike = not (isinstance(question.statistic, CellCounts) and isinstance(question.statistic.cells, tuple))
    names = (question.by, *same[0].columns)
    if alike:
        values = np.stack([one.values for one in same])
        return [replace(same[0], columns=names, cell=(_every, *same[0].cell), values=values)]
    return [
        replace(one, columns=(question.by, *one.columns), cell=(_only(k), *one.cell), values=one.values[None])
        for k, one in enumerate(same)
    ]


def _signed_by_class(question: Question, same: list[Signed]) -> list[Signed]:
    if question.by is None:
        return same
    return [
        replace(one, columns=(question.by, *one.columns), scores=(_indicator(k), *one.scores))
        for k, one in enumerate(same)
    ]


def _of_all_classes(question: Question, same: list[Signed], noise: dict[str, Any]) -> list[Signed]:
    """The sum over classes, for whoever does not ask about them."""
    if question.by is None:
        return []
    one = replace(same[0], value=sum(one.value for one in same), pooled=question.by)
    return [replace(one, **noise | {"sd": noise["sd"] * len(same) ** 0.5})]


def _every(codes: NDArray[Any]) -> Ints:
    return np.asarray(codes, np.int64)


def _only(k: int) -> CellOf:
    return lambda codes: np.where(codes == k, 0, -1)


def _indicator(k: int) -> Callable[[NDArray[Any]], Floats]:
    return lambda codes: (codes == k).astype(np.float64)


def _in_block(question: Question, block: Ints, k: int, omega: Domain) -> Iterator[Counted | Signed]:
    """The tables and sums of one class's part of an answer."""
    values = block.astype(np.float64)
    match question.statistic:
        case Total():
            yield _table((), (), values.reshape(()))
        case CellCounts(cells=cells):
            yield from _product(cells if isinstance(cells, Cells) else cells[k], values, omega)
        case Gram(axes=axes, diagonal=diagonal, scores=None):
            yield from _pairs(axes, diagonal, values, omega)
        case Gram(axes=axes, scores=scores) if scores is not None:
            for (i, j), value in zip(combinations(range(len(axes)), 2), values, strict=True):
                yield from _score_product((axes[i], axes[j]), (scores[i], scores[j]), float(value), omega)
        case Moments(columns=columns, bits=bits, degree=degree, clip=None):
            each = [
                (name, _coordinate(omega[name], bits, place))
                for name in columns
                for place in range(omega[name].width)
            ]
            products = combinations_with_replacement(each, 2) if degree == 2 else ((one,) for one in each)
            for factors, value in zip(products, values, strict=True):
                names, scores = zip(*factors, strict=True)
                yield Signed(names, scores, float(value), 0.0, "", "", 0)
        case _:
            return


def _table(columns: tuple[str, ...], cell: tuple[CellOf, ...], values: Floats) -> Counted:
    return Counted(columns, cell, values, 0.0, "", "", 0)


def _product(cells: Cells, values: Floats, omega: Domain) -> Iterator[Counted]:
    """The table of a partition whose axes have one column each, no two the same."""
    found = [_axis(axis, omega) for axis in cells.axes]
    known = [one for one in found if one is not None]
    names = tuple(one[0] for one in known)
    if len(known) < len(found) or len(set(names)) < len(names):
        return
    shape = tuple(axis_cells(axis) for axis in cells.axes)
    if cells.order is not None:
        path = np.zeros(len(values), np.int64)
        for a, size in enumerate(shape):
            path = path * size + along(cells.order, a)
        sorted_values = np.empty_like(values)
        sorted_values[path] = values
        values = sorted_values
    yield _table(names, tuple(one[1] for one in known), values.reshape(shape))


def _pairs(axes: tuple[Axis, ...], diagonal: bool, values: Floats, omega: Domain) -> Iterator[Counted]:
    """Every pair's table, one after the other; each axis's own histogram before its pairs, if it is there."""
    at = 0
    for i, one in enumerate(axes):
        scopes = ([(one,)] if diagonal else []) + [(one, other) for other in axes[i + 1 :]]
        for scope in scopes:
            size = int(np.prod([axis_cells(axis) for axis in scope]))
            yield from _product(Cells(scope), values[at : at + size], omega)
            at += size


def _score_product(
    axes: tuple[Axis, Axis], scores: tuple[tuple[int, ...], ...], value: float, omega: Domain
) -> Iterator[Signed]:
    """A sum of products; a parity of several columns is the product of their signs."""
    names: list[str] = []
    functions: list[Callable[[NDArray[Any]], Floats]] = []
    for axis, own in zip(axes, scores, strict=True):
        parts = _factors(axis, np.asarray(own, np.float64), omega)
        if parts is None:
            return
        for name, function in parts:
            names.append(name)
            functions.append(function)
    yield Signed(tuple(names), tuple(functions), value, 0.0, "", "", 0)


def _factors(
    axis: Axis, scores: Floats, omega: Domain
) -> list[tuple[str, Callable[[NDArray[Any]], Floats]]] | None:
    single = _axis(axis, omega)
    if single is not None:
        name, cell = single
        return [(name, lambda codes: scores[cell(codes)])]
    if not isinstance(axis, Scored):
        return None
    # Several columns of two values: is the score the product of one sign each?
    sizes = [axis_cells(attribute) for attribute in axis.attributes]
    if any(size != 2 for size in sizes):
        return None
    for cells in product(range(2), repeat=len(sizes)):
        total = np.array([sum(s[c] for s, c in zip(axis.scores, cells, strict=True))])
        if scores[int(between(axis.edges, total)[0])] != (-1) ** sum(cells):
            return None
    found = []
    for attribute in axis.attributes:
        own = _axis(attribute, omega)
        if own is None:
            return None
        found.append((own[0], _sign(own[1])))
    return found


def _sign(cell: CellOf) -> Callable[[NDArray[Any]], Floats]:
    return lambda codes: (1 - 2 * cell(codes)).astype(np.float64)


def _coordinate(column: Column, bits: int, place: int) -> Callable[[NDArray[Any]], Floats]:
    return lambda codes: coordinates(codes, column, bits)[place].astype(np.float64)


def _axis(axis: Axis, omega: Domain) -> tuple[str, CellOf] | None:
    """The column of an axis, and the cells of its codes; None where it has several columns."""
    if isinstance(axis, Affine | Distance):
        return None
    if isinstance(axis, Scored):
        if len(axis.attributes) != 1:
            return None
        inner, scores = axis.attributes[0], np.asarray(axis.scores[0], np.int64)
        return inner.column, _scored(inner, scores, axis.edges, omega[inner.column])
    return axis.column, _cells(axis, omega[axis.column])


def _cells(axis: Halves | Bins, column: Column) -> CellOf:
    return lambda codes: column_cells(axis, np.asarray(codes, np.int64), column).astype(np.int64)


def _scored(inner: Halves | Bins, scores: Ints, edges: tuple[int, ...], column: Column) -> CellOf:
    cell = _cells(inner, column)
    return lambda codes: between(edges, scores[cell(codes)]).astype(np.int64)
