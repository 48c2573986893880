"""The exact integer sum of every kind of question over batches of rows.

A `Tally` adds up batches of codes in any order; tallies merge by addition. Every number in it is an
integer held exactly (int64; float64 products stay below 2^53), so the result does not depend on how
the rows were cut into batches, on their order or on the number of workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import (
    Affine,
    Axis,
    Bins,
    CellCounts,
    Cells,
    CellSums,
    Gram,
    Halves,
    Ints,
    Moments,
    Question,
    RowScores,
    Scored,
    Total,
)
from dpsynth_cli.trusted.cells import (
    axis_cells,
    cell_count,
    cells_of,
    check_axis,
    check_cells,
    clipped,
    coordinates,
    fixed_point,
    path_of,
    row_scores,
)
from dpsynth_cli.trusted.sensitivity import MAX_ROWS, clip_bound, largest_entry

Codes = Mapping[str, np.ndarray]
Partial = tuple[int, list[Ints | None]]  # rows, and the sums of the questions that need one of their own
MAX_CELLS = 2**28
CHUNK = 2**19  # numbers that are multiplied together: they stay in the processor's cache


def classes_of(question: Question, omega: Domain) -> int:
    """The number of blocks of the answer."""
    return omega[question.by].codes if question.by else 1


def lengths_of(question: Question, omega: Domain) -> tuple[int, ...]:
    """How many integers the answer has, block by block: public."""
    classes = classes_of(question, omega)
    match question.statistic:
        case Total():
            length = 1
        case CellCounts(cells=cells):
            return tuple(cell_count(part, omega) for part in _per_class(cells, classes))
        case Moments(columns=columns, degree=degree):
            width = sum(omega[name].width for name in columns)
            length = width if degree == 1 else width * (width + 1) // 2
        case Gram(axes=axes, diagonal=diagonal, scores=scores):
            sizes = [axis_cells(axis, omega) for axis in axes]
            if scores is not None:
                length = len(sizes) * (len(sizes) - 1) // 2
            else:
                length = sum(a * b for a, b in combinations(sizes, 2)) + (sum(sizes) if diagonal else 0)
        case CellSums(cells=cells, attributes=attributes, columns=columns):
            width = sum(axis_cells(axis, omega) for axis in attributes) + len(columns)
            return tuple(width * cell_count(part, omega) for part in _per_class(cells, classes))
        case RowScores(weights=weights, rows=rows):
            length = rows * len(weights)
    return (length,) * classes


def columns_of(questions: Sequence[Question]) -> set[str]:
    """The columns that must be read to answer."""
    names: set[str] = set()

    def of_axes(axes: Sequence[Axis]) -> None:
        for axis in axes:
            if isinstance(axis, Scored):
                of_axes(axis.attributes)
            else:
                names.update(axis.columns if isinstance(axis, Affine) else (axis.column,))

    for question in questions:
        if question.by:
            names.add(question.by)
        match question.statistic:
            case CellCounts(cells=cells):
                for part in _as_tuple(cells):
                    of_axes(part.axes)
            case CellSums(cells=cells, attributes=attributes, columns=columns):
                for part in _as_tuple(cells):
                    of_axes(part.axes)
                of_axes(attributes)
                names.update(columns)
            case Moments(columns=columns):
                names.update(columns)
            case Gram(axes=axes) | RowScores(axes=axes):
                of_axes(axes)
    return names


def check_question(question: Question, omega: Domain) -> None:
    """Refuse, before anything is charged or read, what is not one of the closed set's questions."""
    statistic = question.statistic
    if question.by is not None and not omega[question.by].categorical:
        raise ValueError("questions are asked by a categorical column")
    for name in columns_of([question]):
        omega[name]
    match statistic:
        case CellCounts(cells=cells) | CellSums(cells=cells):
            for part in _per_class(cells, classes_of(question, omega)):
                check_cells(part, omega)
        case _:
            pass
    match statistic:
        case CellSums(attributes=attributes, columns=columns):
            if bool(attributes) == bool(columns):
                raise ValueError("cell sums are of attributes or of columns")
            for axis in attributes:
                check_axis(axis, omega)
        case Moments(columns=columns, degree=degree, clip=clip):
            if degree not in (1, 2) or (clip is not None and clip <= 0) or not columns:
                raise ValueError("moments are of degree 1 or 2, with a positive clip")
            if clip is not None and len(columns) * (2**statistic.bits - 1) ** 2 >= 2**62:
                raise ValueError("too many bits: a row's norm would not fit in 64 bits")
        case Gram(axes=axes, scores=scores, diagonal=diagonal, bits=bits):
            if len(axes) < 2 or (scores is not None and diagonal):
                raise ValueError("a Gram has at least two axes, and scores have no diagonal")
            for axis in axes:
                check_axis(axis, omega)
            if scores is not None:
                fits = [len(row) == axis_cells(axis, omega) for row, axis in zip(scores, axes, strict=True)]
                if not all(fits) or max(abs(s) for row in scores for s in row) > 2**bits - 1:
                    raise ValueError("scores do not fit their axes or their bits")
        case RowScores():
            _check_row_scores(question, statistic, omega)
    if max(lengths_of(question, omega)) * classes_of(question, omega) > MAX_CELLS:
        raise ValueError("too many cells for memory and for 32-bit numbers of cells")
    if largest_entry(statistic) * MAX_ROWS >= 2**62:
        raise ValueError("too many bits: sums over many rows would not fit in 64 bits")


def _check_row_scores(question: Question, statistic: RowScores, omega: Domain) -> None:
    """Under add_remove a row that is not there would show as fewer coordinates, whatever the noise."""
    if omega.neighbours != "replace_one" or question.by is not None:
        raise ValueError("row scores are defined under replace_one only, and not by class")
    for axis in statistic.axes:
        check_axis(axis, omega)
    d, r = len(statistic.axes), len(statistic.weights)
    fits = [
        len(row) == axis_cells(axis, omega)
        for row, axis in zip(statistic.scores, statistic.axes, strict=True)
    ]
    if not d or not r or not all(fits) or any(len(row) != d for row in statistic.weights):
        raise ValueError("scores or weights do not fit their axes")
    if statistic.bound < 1 or statistic.rows < 0:
        raise ValueError("row scores have a positive bound and a number of rows")
    highest = [max(map(abs, row)) for row in statistic.scores]
    reach = max(sum(abs(w) * s for w, s in zip(row, highest, strict=True)) for row in statistic.weights)
    if r * reach**2 >= 2**62:
        raise ValueError("too many bits: a row's norm would not fit in 64 bits")


class Tally:
    """The sums of several questions so far."""

    def __init__(self, questions: Sequence[Question], omega: Domain) -> None:
        self.omega, self.questions = omega, list(questions)
        self.rows = 0
        self._finer = _finer_trees(self.questions)
        self._sums: list[Ints | None] = []
        self._pending: dict[int, list[np.ndarray]] = {}
        self._rows_of: dict[int, list[Ints]] = {}
        for number, question in enumerate(self.questions):
            own = number not in self._finer and not isinstance(question.statistic, RowScores)
            self._sums.append(np.zeros(sum(lengths_of(question, omega)), dtype=np.int64) if own else None)
            if isinstance(question.statistic, RowScores):
                self._rows_of[number] = []

    def add(self, codes: Codes, rows: int) -> None:
        """Add a batch of rows."""
        self.rows += rows
        if rows == 0:
            return
        seen = _Batch(codes, rows, self.omega)
        for number, question in enumerate(self.questions):
            if isinstance(question.statistic, RowScores):
                self._rows_of[number].append(row_scores(question.statistic, codes, self.omega).ravel())
            elif number not in self._finer:
                self._add(number, question, seen)

    def partial(self) -> Partial:
        """Rows and sums so far (row scores as they are): all that another machine needs to know. Raw data."""
        found = list(self._flushed())
        for number, scores in self._rows_of.items():
            found[number] = np.concatenate([np.zeros(0, np.int64), *scores])
        return self.rows, found

    def merge(self, partial: Partial) -> None:
        """Add what another tally of the same questions found."""
        rows, sums = partial
        self.rows += rows
        for number, (mine, theirs) in enumerate(zip(self._sums, sums, strict=True)):
            if number in self._rows_of and theirs is not None:
                self._rows_of[number].append(theirs)
            elif mine is not None and theirs is not None:
                mine += theirs

    def sums(self) -> list[Ints]:
        """The exact sum of each question, blocks one after the other; row scores in any order of the rows."""
        sums = self._flushed()
        answers: list[Ints] = []
        for number, question in enumerate(self.questions):
            if number in self._rows_of:
                answers.append(np.concatenate([np.zeros(0, np.int64), *self._rows_of[number]]))
                continue
            finest = sums[self._finer.get(number, number)]
            assert finest is not None
            if number in self._finer:
                lengths = lengths_of(self.questions[self._finer[number]], self.omega)
                coarse = lengths_of(question, self.omega)
                blocks = np.split(finest, np.cumsum(lengths)[:-1])
                finest = np.concatenate(
                    [b.reshape(size, -1).sum(axis=1) for b, size in zip(blocks, coarse, strict=True)]
                )
            answers.append(finest)
        return answers

    def _add(self, number: int, question: Question, batch: _Batch) -> None:
        match question.statistic:
            case Total() | CellCounts(cells=Cells(axes=())) if question.by is None:
                total = self._sums[number]
                assert total is not None
                total += batch.rows
            case Total():
                self._count(number, batch.classes(question.by))
            case CellCounts(cells=cells):
                self._count(number, batch.numbers(cells, question.by))
            case CellSums():
                self._add_cell_sums(number, question, question.statistic, batch)
            case Moments() | Gram():
                total = self._sums[number]
                assert total is not None
                length = len(total) // classes_of(question, self.omega)
                for k, part in batch.by_class(question.by):
                    total[k * length : (k + 1) * length] += _products(question.statistic, part)

    def _add_cell_sums(self, number: int, question: Question, sums: CellSums, batch: _Batch) -> None:
        total = self._sums[number]
        assert total is not None
        width = sum(axis_cells(axis, self.omega) for axis in sums.attributes) + len(sums.columns)
        cells = batch.numbers(sums.cells, question.by)
        count = len(total) // width
        tables = np.zeros((count, width), dtype=np.int64)
        start = 0
        for axis in sums.attributes:
            k = axis_cells(axis, self.omega)
            table = np.bincount(cells * k + batch.cells(axis), minlength=count * k)
            tables[:, start : start + k] = table.reshape(count, k)
            start += k
        for name in sums.columns:
            x = fixed_point(batch.codes[name], self.omega[name], sums.bits)
            assert len(x) * (2**sums.bits - 1) < 2**53, "a batch too large for exact float sums"
            tables[:, start] = np.bincount(cells, weights=x, minlength=count)
            start += 1
        # Layout: block by class, and inside a block one table after the other.
        lengths = lengths_of(question, self.omega)
        widths = [axis_cells(axis, self.omega) for axis in sums.attributes] or [len(sums.columns)]
        flat, first = [], 0
        for length in lengths:
            block = tables[first : first + length // width]
            flat += [part.ravel() for part in np.split(block, np.cumsum(widths)[:-1], axis=1)]
            first += length // width
        total += np.concatenate(flat)

    def _count(self, number: int, cells: np.ndarray) -> None:
        # Small batches wait until there are enough of them: a count costs as much as it has cells.
        waiting = self._pending.setdefault(number, [])
        waiting.append(cells)
        total = self._sums[number]
        assert total is not None
        if 2 * sum(map(len, waiting)) >= len(total):
            total += np.bincount(np.concatenate(waiting), minlength=len(total))
            waiting.clear()

    def _flushed(self) -> list[Ints | None]:
        for number, waiting in self._pending.items():
            total = self._sums[number]
            if waiting and total is not None:
                total += np.bincount(np.concatenate(waiting), minlength=len(total))
                waiting.clear()
        return self._sums


class _Batch:
    """One batch of codes, and the cells already looked up for it."""

    def __init__(self, codes: Codes, rows: int, omega: Domain) -> None:
        self.codes, self.rows, self.omega = codes, rows, omega
        self._cells: dict[Axis, np.ndarray] = {}
        self._parts: dict[str, list[tuple[int, _Batch]]] = {}
        self._first: dict[Moments, Ints] = {}

    def classes(self, by: str | None) -> np.ndarray:
        return np.zeros(self.rows, dtype=np.int64) if by is None else self.codes[by]

    def cells(self, axis: Axis) -> np.ndarray:
        if axis not in self._cells:
            self._cells[axis] = cells_of(axis, self.codes, self.omega)
        return self._cells[axis]

    def by_class(self, by: str | None) -> list[tuple[int, _Batch]]:
        if by is None:
            return [(0, self)]
        if by not in self._parts:
            label = self.codes[by]
            parts = self._parts[by] = []
            for k in np.unique(label):
                own = np.flatnonzero(label == k)
                codes = {name: values[own] for name, values in self.codes.items()}
                parts.append((int(k), _Batch(codes, len(own), self.omega)))
        return self._parts[by]

    def moments(self, asked: Moments) -> Ints:
        """The sum of z, or of the upper triangle of z z^T; one look at the rows gives both."""
        if asked in self._first:
            return self._first[asked]
        first, second = _moments(asked, self)
        self._first[replace(asked, degree=1)] = first
        return first if asked.degree == 1 else second

    def numbers(self, cells: Cells | tuple[Cells, ...], by: str | None) -> np.ndarray:
        """Each row's cell, numbered through all classes."""
        if isinstance(cells, Cells):
            number = path_of(cells, self.codes, self.omega) if cells.axes else self.classes(None)
            if by is None:
                return number
            return np.asarray(self.classes(by).astype(np.int64) * cell_count(cells, self.omega) + number)
        first = np.cumsum([0] + [cell_count(part, self.omega) for part in cells])
        label = self.codes[by] if by else self.classes(None)
        number = np.empty(self.rows, dtype=np.int64)
        for k in np.unique(label):
            own = np.flatnonzero(label == k)
            codes = {name: values[own] for name, values in self.codes.items()}
            number[own] = first[k] + path_of(cells[k], codes, self.omega)
        return number


def _moments(asked: Moments, batch: _Batch) -> tuple[Ints, Ints]:
    """The sum of z and (for degree 2) of the upper triangle of z z^T, a few rows at a time.

    Exact: float64 products of integers, in chunks whose sums stay below 2^53.
    """
    d, q = sum(batch.omega[name].width for name in asked.columns), 2**asked.bits - 1
    rows = max(1, min(max(256, CHUNK // d), 2**53 // (q * q) // 2))
    first, second = np.zeros(d, np.int64), np.zeros((d, d), np.int64)
    for start in range(0, batch.rows, rows):
        here = slice(start, start + rows)
        z = np.stack(
            [
                part
                for name in asked.columns
                for part in coordinates(batch.codes[name][here], batch.omega[name], asked.bits)
            ]
        )
        if asked.clip is not None:
            z = clipped(z.T, clip_bound(asked)).T
        first += z.sum(axis=1)
        if asked.degree == 2:
            chunk = z.astype(np.float64)
            second += (chunk @ chunk.T).astype(np.int64)
    return first, second[np.triu_indices(d)]


def _products(statistic: Moments | Gram, batch: _Batch) -> Ints:
    if isinstance(statistic, Moments):
        return batch.moments(statistic)
    omega = batch.omega
    cells = [batch.cells(axis) for axis in statistic.axes]
    if statistic.scores is not None:
        columns = [
            np.asarray(row, dtype=np.int64)[cell] for row, cell in zip(statistic.scores, cells, strict=True)
        ]
        return _upper(np.stack(columns, axis=1), 2**statistic.bits - 1)
    sizes = [axis_cells(axis, omega) for axis in statistic.axes]
    return _pair_tables(cells, sizes, statistic.diagonal)


def _upper(z: Ints, q: int) -> Ints:
    """What z^T z has above its diagonal, exactly: float64 products in chunks whose sums stay below 2^53."""
    d = z.shape[1]
    rows = max(1, 2**53 // max(1, q * q) // 2)
    total = np.zeros((d, d), dtype=np.int64)
    for start in range(0, len(z), rows):
        chunk = z[start : start + rows].astype(np.float64)
        total += (chunk.T @ chunk).astype(np.int64)
    return np.asarray(total[np.triu_indices(d, 1)])


def _pair_tables(cells: list[np.ndarray], sizes: list[int], diagonal: bool) -> Ints:
    """All pair tables. Few wide attributes: a count a pair. Many narrow ones: one product of one-hots."""
    d, width = len(sizes), sum(sizes)
    if width * width < 60 * d * d:
        first = np.cumsum([0, *sizes])
        gram = np.zeros((width, width), dtype=np.int64)
        for start in range(0, len(cells[0]), 2**14):
            hot = np.zeros((min(2**14, len(cells[0]) - start), width), dtype=np.float32)
            for cell, offset in zip(cells, first, strict=False):
                hot[np.arange(len(hot)), offset + cell[start : start + 2**14]] = 1.0
            gram += (hot.T @ hot).astype(np.int64)  # at most 2^14 in float32: exact
        own = [np.diagonal(gram)[first[i] : first[i + 1]] for i in range(d)]
        pair = {
            (i, j): gram[first[i] : first[i + 1], first[j] : first[j + 1]].ravel()
            for i, j in combinations(range(d), 2)
        }
    else:
        own = (
            [np.bincount(cell, minlength=k) for cell, k in zip(cells, sizes, strict=True)] if diagonal else []
        )
        pair = {}
        for i, j in combinations(range(d), 2):
            number = cells[i] * sizes[j] + cells[j]
            pair[i, j] = np.bincount(number, minlength=sizes[i] * sizes[j])
    parts = []
    for i in range(d):
        if diagonal:
            parts.append(own[i])
        parts += [pair[i, j] for j in range(i + 1, d)]
    return np.concatenate(parts).astype(np.int64)


def _as_tuple(cells: Cells | tuple[Cells, ...]) -> tuple[Cells, ...]:
    return (cells,) if isinstance(cells, Cells) else cells


def _per_class(cells: Cells | tuple[Cells, ...], classes: int) -> tuple[Cells, ...]:
    if isinstance(cells, Cells):
        return (cells,) * classes
    if len(cells) != classes:
        raise ValueError("one partition a class")
    return cells


def _finer_trees(questions: Sequence[Question]) -> dict[int, int]:
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
