"""The model: columns one after another, each given those before it by the tables that were counted.

A column's distribution in a row begins with its link, the finest table it has with one earlier column, and
has a factor for each other table of it with earlier columns (`numeric/conditional.py`). It is drawn in cells
of its working level, then the finest cell is drawn, given the link again. What comes later depends on cells
as they are then, so links stay exact. Many rows are drawn block by block, and a block's columns in turns
(`feedback.py`); few rows are settled (`numeric/settled.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dpsynth_cli.mechanisms.joint.dead_ends import Bools, dead_ends, possible
from dpsynth_cli.mechanisms.joint.feedback import Feedback
from dpsynth_cli.mechanisms.joint.frame import Frame, Scope, Table
from dpsynth_cli.mechanisms.joint.fused import fused
from dpsynth_cli.mechanisms.joint.steps import Rows, Step, step_of
from dpsynth_cli.numeric.conditional import Alike, Target, added, fitted, normalise, picked, products
from dpsynth_cli.numeric.settled import settled
from dpsynth_cli.numeric.systematic import chosen, even_along, within
from dpsynth_cli.questions import Floats, Ints

PASSES = 6  # of proportional fitting;
ROUGH = 3  # of a model that is only asked what it expects
FITTED = 2**15  # numbers in a table of several factors that are fitted together, at most;
FUSED = 2**14  # in one that rows are drawn by;
ALL_FUSED = 2**22  # and times the factors of a model
UNLIKELY = 1e-9  # a product of factors; less, and few rows are not moved there
WIDE = 2**10  # cells; more, and rows are not moved between them
REDRAWN = 2**12  # rows of a batch that is drawn again


class Chain:
    """Steps that were fitted to tables, on rows that were drawn on the way.

    `expected` has the tables of the scopes asked for, as the rows' distributions say; `astray` how far the
    rows are from the tables of each column with earlier ones, beyond chance.
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
        self._left = dead_ends(frame, tables, order)
        rows = Rows(frame, classes, rng)
        own: dict[int, list[Table]] = {j: [] for j in self.order}
        for table in tables:
            own[self._last(table.columns)].append(table)
        asked: dict[int, list[Scope]] = {j: [] for j in self.order}
        for scope in wanted:
            asked[self._last(scope[0])].append(scope)
        for j, link in order:
            if known is not None and j in known:
                rows.set(j, known[j])
                continue
            step = step_of(frame, j, own[j], link, asked[j])
            indices = [rows.index(factor.others, factor.levels) for factor in step.factors[-2:]]
            p = self._fit(step, indices, rows, ROUGH if wanted else PASSES)
            for scope in asked[j]:
                self.expected[scope] = self._expected(scope, step, p, rows)
            self.steps.append(step)
            v = chosen(p, even_along(rows.sorted(indices[-1] if indices else classes), rng))
            rows.set(j, self._finest(step, v, rows, rng))
        self.astray = {j: sum(_astray(table, rows) for table in own[j]) for j in self.order}

    def _fit(self, step: Step, indices: Sequence[Ints], rows: Rows, passes: int) -> Floats:
        """The rows' distributions, with the factors of the step; `indices` are of the last tables."""
        tables = fused(self.frame, step, FITTED)[::-1]  # the link is in the last
        several = [
            Alike(
                rows.index(table.others, table.levels),
                table.shape[0],
                [Target(part.row, part.factor.group, part.factor.counts) for part in table.parts],
            )
            for table in tables
        ]
        p, found = fitted(self._begin(step, indices, rows), several, passes)
        for table, fits in zip(tables, found, strict=True):
            for part, fit in zip(table.parts, fits, strict=True):
                part.factor.fit[:] = fit
        return p

    def feedback(self) -> list[Feedback]:
        """For each step, to draw many blocks with."""
        factors = sum(len(step.factors) for step in self.steps)
        most = min(FUSED, ALL_FUSED // max(1, factors))
        return [Feedback(self.frame, step, most) for step in self.steps]

    def draw(
        self,
        classes: Ints,
        feedback: Sequence[Feedback],
        rng: np.random.Generator,
        known: Mapping[int, Ints] | None = None,
        turns: int = 1,
        few: bool = False,
    ) -> Ints:
        """New rows of these classes: the finest cell of each column (columns x rows). Each column is drawn in
        so many turns, every `turns`-th of the sorted rows at a time, and what rows have too many of goes by
        `feedback` from one to the next; not where they are drawn given cells that are `known`: such rows are
        not like all others. Where rows are `few`, they are settled then (`numeric/settled.py`)."""
        rows = Rows(self.frame, classes, rng)
        for j, cells in (known or {}).items():
            rows.set(j, cells)
        for step, own in zip(self.steps, feedback, strict=True):
            begin = own.products() if few else []
            indices = [rows.index(table.others, table.levels) for table in own.tables] or [classes]
            left = possible(self.frame, self._left[step.column], step.column, step.level, rows)
            never = [(one.astype(np.float32), index) for one, index in (*self._allowed(step, rows), *left)]
            v = np.empty(len(classes), np.int64)
            key = rows.index(step.factors[-1].others, step.factors[-1].levels) if step.linked else classes
            order = rows.sorted(key)
            u = even_along(order, rng)
            for some in (order[at::turns] for at in range(min(turns, len(classes)))):
                first, *more = zip(own.products(), indices, strict=True)
                each = [first, *never, *more]  # the first is kept where all together leave a row nothing
                v[some] = picked([table for table, _ in each], [index[some] for _, index in each], u[some])
                if known is None:
                    own.seen(classes[some], [index[some] for index in indices], v[some])
            if few:
                there = products([*zip(begin, indices, strict=True), *never])
                v = settled(v, self._targets(step, rows), there > UNLIKELY, rng)
            rows.set(step.column, self._finest(step, v, rows, rng, few))
        return rows.cells

    def _last(self, columns: Sequence[int]) -> int:
        return max(columns, key=self.at.__getitem__)

    def _begin(self, step: Step, indices: Sequence[Ints], rows: Rows) -> Floats:
        """The distributions by the link, or the class, without what rules or later columns forbid."""
        p = step.given().take(indices[-1] if step.linked else rows.classes, axis=0)
        for one, index in self._allowed(step, rows):
            p *= one.take(index, axis=0)
        p = normalise(p)
        for one, index in possible(self.frame, self._left[step.column], step.column, step.level, rows):
            p = normalise(p * one.take(index, axis=0), p)
        return p

    def _allowed(self, step: Step, rows: Rows) -> Iterator[tuple[Bools, Ints]]:
        """What rules leave of the column's cells, given those of earlier columns."""
        for other, never in self.frame.forbidden(step.column, step.level, self.order[: self.at[step.column]]):
            yield ~never, rows.cells[other]

    def _expected(self, scope: Scope, step: Step, p: Floats, rows: Rows) -> Floats:
        """A table whose last column this is, in rows of all classes."""
        columns, levels = scope
        ladders, at = self.frame.ladders, columns.index(step.column)
        rest = tuple(i for i in columns if i != step.column)
        coarse = tuple(own for i, own in zip(columns, levels, strict=True) if i != step.column)
        shape = [len(step.start), *[ladders[i].size(own) for i, own in zip(rest, coarse, strict=True)]]
        own = ladders[step.column].size(levels[at])
        group = ladders[step.column].between(step.level, levels[at])
        index = rows.index(rest, coarse)
        table = added(p, index, int(np.prod(shape)), group, own).reshape(*shape, own)
        sums = table.reshape(len(step.start), -1).sum(axis=1)
        scale = self.frame.totals / np.maximum(sums, 1e-9)
        return np.asarray(np.moveaxis(table, -1, at + 1) * scale.reshape(-1, *[1] * len(columns)))

    def _targets(self, step: Step, rows: Rows) -> list[Target]:
        """The column itself and all its tables, by the rows that are there."""
        own = Target(rows.classes, np.arange(step.start.shape[1]), step.start)
        factors = [Target(rows.index(one.others, one.levels), one.group, one.counts) for one in step.factors]
        return [own, *factors]

    def _finest(self, step: Step, v: Ints, rows: Rows, rng: np.random.Generator, few: bool = False) -> Ints:
        """The finest cell of each row inside its cell, given the link."""
        j, level, link = step.column, step.level, step.link
        ladder, left = self.frame.ladders[j], self._left[j]
        if link is not None:
            masses = ladder.masses(step.link_level, self.frame.masses[j])
            tables = [(rows.index(link.others, link.levels), link.counts), (rows.classes, masses)]
            more = possible(self.frame, left, j, step.link_level, rows, above=level)
            v, level = _inside(link.group, v, tables, rng, few, more), step.link_level
        if level == ladder.top:
            return v
        more = possible(self.frame, left, j, ladder.top, rows, above=level)
        return _inside(ladder.levels[level], v, [(rows.classes, self.frame.masses[j])], rng, few, more)


def _lost(cells: Ints, left: Sequence[tuple[Bools, Ints]]) -> Ints:
    """The rows whose cell is not among those that are left."""
    there = np.ones(len(cells), bool)
    for one, row in left:
        there &= one[row, cells]
    return np.flatnonzero(~there)


def _astray(table: Table, rows: Rows) -> float:
    """Total variation distance of rows from a table, less what it would be by chance."""
    there = np.bincount(rows.index(table.columns, table.levels), minlength=table.counts.size)
    due = table.counts.ravel() * (len(rows.classes) / max(float(table.counts.sum()), 1e-9))
    chance = (2 / np.pi) ** 0.5 * np.sqrt(due)
    return max(0.0, float((np.abs(there - due) - chance).sum()) / (2 * len(rows.classes)))


def _inside(
    group: Ints,
    v: Ints,
    tables: Sequence[tuple[Ints, Floats]],
    rng: np.random.Generator,
    few: bool,
    left: Sequence[tuple[Bools, Ints]] = (),
) -> Ints:
    """A finer cell for each row inside its cell, by the first of these tables, each with the row's place in
    it, and among those that are `left`; where rows are few, as near to all of them as can be."""
    index, weights = tables[0]
    found = within(weights, index, group, v, rng)
    lost = _lost(found, left)
    for at in range(0, len(lost), REDRAWN):
        some = lost[at : at + REDRAWN]
        p = weights.take(index[some], axis=0) * (group == v[some, None])
        for one, row in left:
            p *= one.take(row[some], axis=0)
        ends = p.any(axis=1)  # the others have no way out
        found[some[ends]] = chosen(p[ends], rng.random(int(ends.sum())))
    if not few or len(group) > WIDE:
        return found
    allowed = (group == v[:, None]) & (weights > 0).take(index, axis=0)
    for one, row in left:
        allowed &= one.take(row, axis=0)
    allowed[np.arange(len(v)), found] = True
    targets = [Target(index, np.arange(len(group)), counts) for index, counts in tables]
    return settled(found, targets, allowed, rng)
