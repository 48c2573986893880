"""Passes over tables that belong together: sums for questions about parents, then about children.

Which table a question is about is told by the domain that was declared last, and its columns say where their
cells come from. What is kept of rows is raw data in temporary files and stays in this object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Ints, Progress, Question
from dpsynth_cli.trusted.engines import Engine
from dpsynth_cli.trusted.engines.local import sum_over
from dpsynth_cli.trusted.rows.joined_rows import Order, child_rows, parent_rows
from dpsynth_cli.trusted.rows.kept_rows import Kept
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.sample import Sample, Table
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.rows.unit_marks import Units, unit_column
from dpsynth_cli.trusted.rows.unit_rows import Marked, Truncation


@dataclass(frozen=True)
class Source:
    """The rows of one table: the column that says whose a row is, how many rows of one are kept at most, and
    the columns that they are sorted by (with whether the largest is first)."""

    scan: Scan
    key: str
    rows: int
    order: tuple[tuple[str, bool], ...] = ()


class TablePasses:
    """Passes over a table of parents (the first of the sources) and tables of their children."""

    def __init__(
        self, sources: Mapping[str, Source], omega: Domain, engine: Engine, secret: str, progress: Progress
    ) -> None:
        self._sources, self._omega, self._engine = dict(sources), omega, engine
        self._parent = next(iter(sources))
        self._secret, self._progress = secret, progress
        self._kept: Kept | None = None

    def declare(self, omega: Domain) -> None:
        """From now on questions are about this table, with these columns."""
        if omega != self._omega:
            self._omega = omega
            self.close()

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        """The exact integers of the questions: a unit has one row of parents, at most k of children."""
        if self._kept is None:
            self._kept = self._joined()
        add_up = self._engine.sum_over if self._engine.watches else sum_over  # the rows are in this process
        return add_up(self._kept, self._omega, questions)[0]

    def sampled(self, omega: Domain, rows: int | None, problems: Problems | None = None) -> Table:
        """An even sample of the rows of a table, joined with what belongs to them, for the steward; what is
        not as declared in its own columns is counted."""
        self.declare(omega)
        sample = Sample(rows)
        with closing(self._joined(problems)) as kept:
            for piece in kept.pieces():
                sample.add(kept.encode(piece))
        return sample.table(omega)

    def close(self) -> None:
        """Rows that were kept in a file are gone."""
        if self._kept is not None:
            self._kept.close()
        self._kept = None

    def _joined(self, problems: Problems | None = None) -> Kept:
        omega = self._omega
        numbers = [column.origin[1] for column in omega if column.origin and column.origin[0] == "number"]
        if omega.table == self._parent:
            own = [column for column in omega if column.origin is None]
            with ExitStack() as opened:
                parents = self._gathered(opened, self._parent, own, problems)
                return parent_rows(omega, parents, {name: self._gathered(opened, name) for name in numbers})
        own = [column for column in omega if column.origin is None]
        above = [
            replace(column, name=column.origin[1], origin=None)
            for column in omega
            if column.origin and column.origin[0] == "parent"
        ]
        source, names = self._sources[omega.table], [column.name for column in own]
        order = [
            Order(names.index(name), omega[name].size, falling)
            for name, falling in source.order
            if name in names
        ]
        with ExitStack() as opened:
            parents = self._gathered(opened, self._parent, above)
            children = self._gathered(opened, omega.table, own, problems)
            others = {name: self._gathered(opened, name) for name in numbers if name != omega.table}
            return child_rows(omega, parents, children, others, order)

    def _gathered(
        self,
        opened: ExitStack,
        table: str,
        columns: Sequence[Column] = (),
        problems: Problems | None = None,
    ) -> Truncation:
        """The rows of a table with these columns, by their units."""
        source = self._sources[table]
        units = Units(source.key, source.rows, self._secret)
        scan = source.scan.declared([*columns, unit_column(source.key)])
        truncation = opened.enter_context(closing(Truncation(Marked(scan, columns, units))))
        assert self._engine.gather is not None
        self._progress("reading", 0, scan.size)
        self._engine.gather(truncation, lambda done: self._progress("reading", done, scan.size), (), problems)
        return truncation
