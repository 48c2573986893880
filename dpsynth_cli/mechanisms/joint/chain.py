"""The model: columns one after another, each given those before it by the tables that were counted.

A column's distribution in a row begins with its link, the finest table it has with one earlier column, and
has a factor for each other table of it with earlier columns (`numeric/conditional.py`). It is drawn in cells
of its working level; rows of the same cell of the link exchange cells until the other tables are as they
should be; then the finest cell is drawn, given the link again. What comes later depends on cells as they are
then, so links stay exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from dpsynth_cli.mechanisms.joint.frame import Frame, Scope, Table
from dpsynth_cli.mechanisms.joint.steps import Step, cells_of, step_of
from dpsynth_cli.numeric.balance import Aim, balanced
from dpsynth_cli.numeric.conditional import Target, added, fitted, multiplied, normalise
from dpsynth_cli.numeric.systematic import chosen, even, within
from dpsynth_cli.questions import Floats, Ints

Owed: TypeAlias = dict[int, list[Ints]]  # by column: of each of its tables what rows so far have too many

PASSES = 6  # of proportional fitting
SWEEPS = 2  # of exchanges between the rows that a model is fitted on
MANY = 50  # columns, from which on tables that were not counted are not balanced


class Chain:
    """Steps that were fitted to tables, on rows that were drawn on the way.

    `expected` has the tables of the scopes asked for, as the rows' distributions say.
    """

    def __init__(
        self,
        frame: Frame,
        tables: Sequence[Table],
        order: Sequence[tuple[int, Table | None]],
        classes: Ints,
        rng: np.random.Generator,
        wanted: Sequence[Scope] = (),
        known: Mapping[int, Ints] | None = None,
    ) -> None:
        """`order` has every column with its link, those before it first; `classes` are those of the rows.
        Columns whose finest cells are `known`, the first ones, are not drawn."""
        self.frame, self.order = frame, [j for j, _ in order]
        self.at = {j: at for at, j in enumerate(self.order)}
        self.steps: list[Step] = []
        self.expected: dict[Scope, Floats] = {}
        cells = np.zeros((len(order), len(classes)), np.int64)
        own: dict[int, list[Table]] = {j: [] for j in self.order}
        for table in tables:
            own[self._last(table.columns)].append(table)
        asked: dict[int, list[Scope]] = {j: [] for j in self.order}
        for scope in wanted:
            asked[self._last(scope[0])].append(scope)
        for j, link in order:
            if known is not None and j in known:
                cells[j] = known[j]
                continue
            step = step_of(frame, j, own[j], link, asked[j])
            indices = [factor.index(frame, classes, cells) for factor in step.factors]
            targets = [
                Target(index, factor.group, factor.counts)
                for index, factor in zip(indices, step.factors, strict=True)
            ]
            p, found = fitted(self._begin(step, indices, classes, cells), targets, PASSES)
            for factor, fit in zip(step.factors, found, strict=True):
                factor.fit[:] = fit
            for scope in asked[j]:
                self.expected[scope] = self._expected(scope, step, p, classes, cells)
            self.steps.append(step)
            cells[j] = self._drawn(step, p, indices, classes, cells, SWEEPS, rng)

    def draw(
        self,
        classes: Ints,
        sweeps: int,
        rng: np.random.Generator,
        owed: Owed | None = None,
        known: Mapping[int, Ints] | None = None,
    ) -> Ints:
        """New rows of these classes: the finest cell of each column (columns x rows), given those of columns
        that are known. `owed` goes from one block of rows to the next."""
        cells = np.zeros((len(self.order), len(classes)), np.int64)
        for j, own in (known or {}).items():
            cells[j] = own
        for step in self.steps:
            indices = [factor.index(self.frame, classes, cells) for factor in step.factors]
            pairs = [(index, own.group) for index, own in zip(indices, step.factors, strict=True)]
            p = self._begin(step, indices, classes, cells)
            p = multiplied(p, pairs, [factor.fit for factor in step.factors])
            cells[step.column] = self._drawn(step, p, indices, classes, cells, sweeps, rng, owed)
        return cells

    def _last(self, columns: Sequence[int]) -> int:
        return max(columns, key=self.at.__getitem__)

    def _begin(self, step: Step, indices: Sequence[Ints], classes: Ints, cells: Ints) -> Floats:
        """The distributions by the link alone, or by the class; without what rules forbid."""
        p = step.given().take(indices[-1] if step.linked else classes, axis=0)
        for other, never in self.frame.forbidden(step.column, step.level, self.order[: self.at[step.column]]):
            p *= ~never.take(cells[other], axis=0)
        return normalise(p)

    def _expected(self, scope: Scope, step: Step, p: Floats, classes: Ints, cells: Ints) -> Floats:
        """A table whose last column this is, in rows of all classes."""
        columns, levels = scope
        ladders, at = self.frame.ladders, columns.index(step.column)
        rest = tuple(i for i in columns if i != step.column)
        coarse = tuple(own for i, own in zip(columns, levels, strict=True) if i != step.column)
        shape = [len(step.start), *[ladders[i].size(own) for i, own in zip(rest, coarse, strict=True)]]
        own = ladders[step.column].size(levels[at])
        group = ladders[step.column].between(step.level, levels[at])
        index = cells_of(self.frame, classes, cells, rest, coarse)
        table = added(p, index, int(np.prod(shape)), group, own).reshape(*shape, own)
        rows = table.reshape(len(step.start), -1).sum(axis=1)
        scale = self.frame.totals / np.maximum(rows, 1e-9)
        return np.asarray(np.moveaxis(table, -1, at + 1) * scale.reshape(-1, *[1] * len(columns)))

    def _drawn(
        self,
        step: Step,
        p: Floats,
        indices: Sequence[Ints],
        classes: Ints,
        cells: Ints,
        sweeps: int,
        rng: np.random.Generator,
        owed: Owed | None = None,
    ) -> Ints:
        """The finest cell of each row: by its distribution, then exchanged, then given the link."""
        ladder = self.frame.ladders[step.column]
        v = chosen(p, even([*indices[::-1][:2]] or [classes], rng))
        apart = indices[-1] if step.linked else classes
        aims = self._aims(step, p, indices, classes, cells) if sweeps else []
        if owed is not None:
            known = owed.setdefault(step.column, [np.zeros(aim.counts.size, np.int64) for aim in aims])
            aims = [replace(aim, owed=own) for aim, own in zip(aims, known, strict=True)]
        v = balanced(v, apart, aims, sweeps, rng)
        level = step.level
        if step.link is not None:
            v = within(step.link.counts, step.link.index(self.frame, classes, cells), step.link.group, v, rng)
            level = step.link_level
        if level == ladder.top:
            return v
        return within(self.frame.masses[step.column], classes, ladder.levels[level], v, rng)

    def _aims(self, step: Step, p: Floats, indices: Sequence[Ints], classes: Ints, cells: Ints) -> list[Aim]:
        """The tables that exchanges lead to: those that were counted, and of other pairs what p says."""
        counted = step.factors[:-1] if step.linked else step.factors
        aims = [
            Aim(index, own.group, own.counts, own.counts <= 0)
            for index, own in zip(indices, counted, strict=False)
        ]
        ladders, coarse = self.frame.ladders, self.frame.coarse
        known = {own.others for own in step.factors}
        if len(self.order) >= MANY:
            return aims
        group = ladders[step.column].between(step.level, coarse[step.column])
        for i in self.order[: self.at[step.column]]:
            if (i,) not in known:
                index = cells_of(self.frame, classes, cells, (i,), (coarse[i],))
                rows = len(step.start) * ladders[i].size(coarse[i])
                own = ladders[step.column].size(coarse[step.column])
                aims.append(Aim(index, group, added(p, index, rows, group, own)))
        return aims
