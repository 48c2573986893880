"""Every pass over the rows of one release: sums for its questions, and what the steward's figures need.

What a pass sees on its way is kept, so that fewer passes are made: a sample of the rows for `evaluate`, and
the codes of a small table for the next sums. Both are raw data and stay in this object; whoever holds it
gets sums, which go to the curator, and the sample, which goes to `evaluate` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Ints, Progress, Question
from dpsynth_cli.trusted.core.shapes import columns_of
from dpsynth_cli.trusted.engines import Engine
from dpsynth_cli.trusted.rows.sample import Sample, Table, scanned
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.sums.memory import Memory, Softly


class Passes:
    """Passes over a scan by an engine. `sample_rows` is how many rows are kept aside; 0: none."""

    def __init__(
        self, scan: Scan, omega: Domain, engine: Engine, sample_rows: int, progress: Progress
    ) -> None:
        self._scan, self._omega, self._engine, self._progress = scan, omega, engine, progress
        self._sample_rows = sample_rows
        self._watched = False
        self._sample: Sample | None = None
        self._memory: Memory | None = None

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        """The exact integers of the questions."""
        self._progress("reading", 0, self._scan.size)
        if self._memory:
            return self._engine.sum_over(self._memory, self._omega, questions)[0]
        # The first pass that reads every column is watched. A watch may fail without a loss to the sums.
        whole = set(columns_of(questions)) == {column.name for column in self._scan.columns}
        sample, memory = Sample(self._sample_rows), Memory(self._omega)
        look, keep = Softly(sample.add), Softly(memory.keep)
        watched = self._engine.watches and whole and not self._watched
        found, rows = self._engine.sum_over(
            self._scan,
            self._omega,
            questions,
            lambda done: self._progress("reading", done, self._scan.size),
            *([(look, keep) if self._sample_rows else (keep,)] if watched else []),
        )
        if watched:
            self._watched = True
            self._sample = sample if self._sample_rows and look.whole else None
            self._memory = memory if keep.whole and memory.has(rows) else None
        return found

    def sampled(self) -> Table:
        """An even sample of the rows, by a pass of its own if none has seen them all."""
        if self._sample:
            return self._sample.table(self._omega)
        return scanned(self._scan, self._omega, self._sample_rows, self._progress)
