"""Every pass over the rows of one release: sums for its questions, and what the steward's figures need.

What a pass sees on its way is kept, so that fewer passes are made: a sample of the rows for `evaluate`, and
the codes of a small table for the next sums, how many cells of each column are not as declared. All of it is
raw data and stays in this object; whoever holds it gets sums, which go to the curator; the sample, which goes
to `evaluate`; and the counts, which go to the steward; and they go nowhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Ints, Progress, Question
from dpsynth_cli.trusted.core.open_labels import LabelCounts
from dpsynth_cli.trusted.core.shapes import columns_of
from dpsynth_cli.trusted.engines import Engine
from dpsynth_cli.trusted.engines.local import sum_over
from dpsynth_cli.trusted.rows.label_counts import Labelled, LabelShelves
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.sample import Sample, Table, scanned
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.rows.unit_marks import Units, unit_column
from dpsynth_cli.trusted.rows.unit_rows import Marked, Truncation
from dpsynth_cli.trusted.sums.memory import MOST_BYTES, BestEffort, Memory
from dpsynth_cli.trusted.sums.unit_sums import KeptUnits


class Passes:
    """Passes over a scan by an engine. `sample_rows` is how many rows are kept aside; 0: none. With `units`
    sums are over at most so many rows of each, and the scan has their column besides."""

    def __init__(
        self,
        scan: Scan,
        omega: Domain,
        engine: Engine,
        sample_rows: int,
        progress: Progress,
        units: Units | None = None,
    ) -> None:
        self._scan, self._omega, self._engine, self._progress = scan, omega, engine, progress
        self._units = units
        self._sample_rows = sample_rows
        self._watched = False
        self._sample: Sample | None = None
        self._memory: Memory | None = None
        self._kept: KeptUnits | None = None
        self._kept_columns: tuple[Column, ...] = ()
        self.problems = Problems()  # of the columns that have been counted

    def declare(self, omega: Domain) -> None:
        """From now on questions are about these columns: the same ones, with bounds or categories that were
        found by earlier answers. What was kept of rows in the old codes is forgotten."""
        if omega == self._omega:
            return
        unit = () if self._units is None else (unit_column(self._units.column),)
        self._omega, self._scan = omega, self._scan.declared((*omega.columns, *unit))
        self._watched, self._sample = False, None
        self.close()

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        """The exact integers of the questions."""
        self._progress("reading", 0, self._scan.size)
        if self._units is not None:
            columns = self._read_for(questions)
            if self._kept is None or self._kept_columns != columns:
                self.close()
                self._kept, self._kept_columns = self._truncated(self._units, columns), columns
            # They are in this process, where an engine of many has no workers.
            add_up = self._engine.sum_over if self._engine.watches else sum_over
            return self._kept.sums(add_up, self._omega, questions)
        if self._memory:
            return self._engine.sum_over(self._memory, self._omega, questions)[0]
        # The first pass that reads every column is watched; of a small table the first that reads any is such
        # a one, unless its codes will be others soon. A watch may fail without a loss to the sums.
        asked, every = set(columns_of(questions)), {column.name for column in self._scan.columns}
        small = bool(asked and self._scan.size and self._scan.size <= MOST_BYTES)
        whole = asked == every or (small and not self._looking)
        sample, memory = Sample(self._sample_rows), Memory(self._omega)
        look, keep = BestEffort(sample.add), BestEffort(memory.keep)
        watched = self._engine.watches and whole and not self._watched
        watches = ((look, keep) if self._sample_rows else (keep,)) if watched else ()
        counted = self._uncounted(every if watched else asked)
        more = (watches, counted) if self._engine.counts else (watches,) if watched else ()
        found, rows = self._engine.sum_over(
            self._scan,
            self._omega,
            questions,
            lambda done: self._progress("reading", done, self._scan.size),
            *more,
        )
        if self._engine.counts and counted.columns:
            self.problems.beside(counted)
        if watched:
            self._watched = True
            self._sample = sample if self._sample_rows and look.whole else None
            self._memory = memory if keep.whole and memory.has(rows) else None
        return found

    def labels(self, names: Sequence[str]) -> Iterator[LabelCounts]:
        """All labels of columns, and how many rows or units have each."""
        assert self._engine.gather is not None
        self._progress("reading", 0, self._scan.size)
        columns = [self._omega[name] for name in names]
        with closing(LabelShelves(Labelled(self._scan, columns, self._units))) as shelves:
            self._engine.gather(shelves, lambda done: self._progress("reading", done, self._scan.size))
            yield from shelves.counts()

    def _read_for(self, questions: Sequence[Question]) -> tuple[Column, ...]:
        """The columns by which rows of a unit are told apart: all, so that every question is about the same
        rows; while bounds or steps are looked for, in codes of their own, only those that are asked for."""
        names = columns_of(questions)
        some = self._looking and names
        return tuple(column for column in self._omega if not some or column.name in names)

    @property
    def _looking(self) -> bool:
        """Whether bounds or steps are looked for, in codes of their own."""
        return any(column.octaves or column.rounding for column in self._omega)

    def _truncated(self, units: Units, columns: tuple[Column, ...]) -> KeptUnits:
        """At most so many rows of each unit, by one pass. The sample, where every column is seen, is of all
        rows: what was left out is an error of the release too."""
        assert self._engine.gather is not None
        whole = columns == self._omega.columns
        sample, watches = (
            Sample(self._sample_rows),
            bool(self._engine.watches and self._sample_rows and whole),
        )
        look = BestEffort(sample.add)
        counted = self._uncounted([column.name for column in columns])
        units = units if whole else replace(units, time=None)  # nothing that is looked for has an order
        with closing(Truncation(Marked(self._scan, columns, units), keeps=True)) as truncation:
            self._engine.gather(
                truncation,
                lambda done: self._progress("reading", done, self._scan.size),
                (look,) if watches else (),
                counted,
            )
            self.problems.beside(counted)
            self._sample = sample if watches and look.whole else None
            return KeptUnits(*truncation.kept())

    def close(self) -> None:
        """Rows that were kept in a file are gone."""
        if self._kept is not None:
            self._kept.close()
        self._kept = self._memory = None

    def sampled(self) -> Table:
        """An even sample of the rows, by a pass of its own if none has seen them all. That pass counts what
        others have not: a release that is resumed asks nothing twice."""
        if self._sample:
            return self._sample.table(self._omega)
        counted = self._uncounted([column.name for column in self._omega])
        scan = self._scan if self._units is None else self._scan.declared(self._omega.columns)
        table = scanned(scan, self._omega, self._sample_rows, self._progress, counted)
        self.problems.beside(counted)
        return table

    def _uncounted(self, names: Collection[str]) -> Problems:
        """Counts to be made of those columns that no pass has counted, once their labels are known."""
        known = (column.name for column in self._scan.columns if not column.open)
        left = (name for name in known if name not in self.problems.columns)
        return Problems.of(name for name in left if name in names)
