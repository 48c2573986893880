"""The exact integers of every kind of question over batches of rows.

A `Tally` adds up batches of codes in any order; tallies merge by addition. Every number in it is an
integer held exactly (int64; float64 products stay below 2^53), so the result does not depend on how
the rows were cut into batches, on their order or on the number of workers. What is no sum over rows is made
of sums, once, from those of all rows: a tally of a `Misfit` holds its tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import (
    CellCounts,
    Cells,
    CellSums,
    Gram,
    Ints,
    Misfit,
    Moments,
    Question,
    RowScores,
    Total,
    UnitPairs,
    UnitSizes,
)
from dpsynth_cli.trusted.core.shapes import (
    axis_cells,
    cell_count,
    classes_of,
    finer_trees,
    lengths_of,
    summed_cells,
)
from dpsynth_cli.trusted.sums.batch import Batch, CodesByColumn, row_scores
from dpsynth_cli.trusted.sums.products import cell_sums, gram, moments, pairs_of
from dpsynth_cli.trusted.sums.tables import Counted, Tables, distances

PartialSums = tuple[int, list[Ints | None]]  # rows, and the sums of the questions that need one of their own


class Tally:
    """The sums of several questions so far."""

    def __init__(self, questions: Sequence[Question], omega: Domain) -> None:
        self.omega, self.questions = omega, list(questions)
        if any(isinstance(question.statistic, UnitSizes | UnitPairs) for question in self.questions):
            raise ValueError("units are counted in a table of their own: unit_sums.py")
        self.rows = 0
        self._finer = finer_trees(self.questions)
        self._sums: list[Ints | None] = []
        self._rows_of: dict[int, list[Ints]] = {}
        counted: list[Counted] = []
        self._others: list[int] = []  # questions that are more than counts
        for number, question in enumerate(self.questions):
            own = number not in self._finer and not isinstance(question.statistic, RowScores)
            self._sums.append(np.zeros(summed_cells(question, omega), dtype=np.int64) if own else None)
            if isinstance(question.statistic, RowScores):
                self._rows_of[number] = []
            elif own and (tables := self._tables_of(number)):
                counted += tables
            elif own:
                self._others.append(number)
        self._tables = Tables(counted)

    def add(self, codes: CodesByColumn, rows: int) -> None:
        """Add a batch of rows."""
        self.rows += rows
        if rows == 0:
            return
        batch = Batch(codes, rows, self.omega)
        self._tables.add(batch)
        for number in self._others:
            self._add(number, self.questions[number], batch)
        for number, scores in self._rows_of.items():
            asked = self.questions[number].statistic
            assert isinstance(asked, RowScores)
            scores.append(row_scores(asked, batch).ravel())

    def partial(self) -> PartialSums:
        """Rows and sums so far (row scores and the tables of a misfit as they are): all that another machine
        needs to know. Raw data."""
        self._tables.finish()
        found = list(self._sums)
        for number, scores in self._rows_of.items():
            found[number] = np.concatenate([np.zeros(0, np.int64), *scores])
        return self.rows, found

    def merge(self, partial: PartialSums) -> None:
        """Add what another tally of the same questions found."""
        rows, sums = partial
        self.rows += rows
        for number, (mine, theirs) in enumerate(zip(self._sums, sums, strict=True)):
            if number in self._rows_of and theirs is not None:
                self._rows_of[number].append(theirs)
            elif mine is not None and theirs is not None:
                mine += theirs

    def sums(self) -> list[Ints]:
        """The exact answer to each question, blocks one after the other; row scores in any order of rows."""
        self._tables.finish()
        answers: list[Ints] = []
        for number, question in enumerate(self.questions):
            if number in self._rows_of:
                answers.append(np.concatenate([np.zeros(0, np.int64), *self._rows_of[number]]))
                continue
            finest = self._sums[self._finer.get(number, number)]
            assert finest is not None
            if number in self._finer:
                lengths = lengths_of(self.questions[self._finer[number]], self.omega)
                coarse = lengths_of(question, self.omega)
                blocks = np.split(finest, np.cumsum(lengths)[:-1])
                finest = np.concatenate(
                    [b.reshape(size, -1).sum(axis=1) for b, size in zip(blocks, coarse, strict=True)]
                )
            if isinstance(question.statistic, Misfit):
                finest = distances(question.statistic, finest)
            answers.append(finest)
        return answers

    def _add(self, number: int, question: Question, batch: Batch) -> None:
        total, asked = self._sums[number], question.statistic
        assert total is not None
        if isinstance(asked, CellSums):
            self._add_cell_sums(total, question, asked, batch)
        elif isinstance(asked, Moments | Gram):
            length = len(total) // classes_of(question, self.omega)
            for k, part in batch.by_class(question.by):
                own = moments(asked, part) if isinstance(asked, Moments) else gram(asked, part)
                total[k * length : (k + 1) * length] += own

    def _tables_of(self, number: int) -> list[Counted]:
        """The tables that a question counts, each with its part of the sums; none of one that is no count."""
        question, total = self.questions[number], self._sums[number]
        assert total is not None
        classes = classes_of(question, self.omega)
        match question.statistic:
            case Total():
                tables: Sequence[Cells] = (Cells(()),)
            case CellCounts(cells=tuple() as cells):
                return [Counted(cells, question.by, total)]
            case CellCounts(cells=Cells() as cells):
                tables = (cells,)
            case Misfit(tables=tables):
                pass
            case Gram(scores=None) as asked:
                tables = pairs_of(asked)
            case _:
                return []
        ends = np.cumsum([0, *map(cell_count, tables)])
        by_class = total.reshape(classes, -1)
        return [
            Counted(cells, question.by, by_class[:, start:end])
            for cells, start, end in zip(tables, ends[:-1], ends[1:], strict=True)
        ]

    def _add_cell_sums(self, total: Ints, question: Question, asked: CellSums, batch: Batch) -> None:
        widths = [axis_cells(axis) for axis in asked.attributes]
        tables = cell_sums(asked, batch.numbers(asked.cells, question.by), len(total) // sum(widths), batch)
        # Layout: block by class, and inside a block one table after the other.
        flat, first = [], 0
        for length in lengths_of(question, self.omega):
            block = tables[first : first + length // sum(widths)]
            flat += [part.ravel() for part in np.split(block, np.cumsum(widths)[:-1], axis=1)]
            first += length // sum(widths)
        total += np.concatenate(flat)
