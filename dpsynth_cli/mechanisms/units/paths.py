"""Rows of units, one after the other: each is a row of the model, chosen by what came before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpsynth_cli.changes import change_step, change_zero, changes
from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.units.gaps import Gaps
from dpsynth_cli.mechanisms.units.links import Link
from dpsynth_cli.mechanisms.units.pool import CANDIDATES, Pool
from dpsynth_cli.numeric.exact import exp
from dpsynth_cli.numeric.systematic import even
from dpsynth_cli.questions import Bins, Block, Floats, Ints

AT_ONCE = 2**20 // CANDIDATES  # units whose candidates are in memory at once


@dataclass(frozen=True, eq=False)
class Steps:
    """How far values go from one row to the next, where that is finer than cells: the part of candidates with
    a change in each bin that get another, and bins they get. `values` are the model's, sorted: bins and cells
    without an end reach to the column's bounds, values seldom do."""

    axis: Bins
    moved: Floats
    wanted: Floats
    values: Ints

    def refined(self, link: Link, before: Ints, after: Ints, rng: np.random.Generator) -> Ints:
        """Values after: the candidates', or such as changes lead to, where those are in a cell next to it."""
        column = link.column
        known = (before < column.size) & (after < column.size)
        bins = np.searchsorted(self.axis.edges, changes(column, before, after), "right") - 1
        move = np.flatnonzero(known & (rng.random(len(before)) < self.moved[bins]))
        upto = np.cumsum(self.wanted)
        to = np.minimum(np.searchsorted(upto, rng.random(len(move)) * upto[-1], "right"), len(upto) - 1)
        value = self._within(column, before[move], to, rng)
        near = np.abs(link.states(np.maximum(value, 0)) - link.states(after[move])) <= 1
        made: Ints = after.copy()
        made[move] = np.where((value >= 0) & near, value, after[move])
        return made

    def _within(self, column: Column, before: Ints, to: Ints, rng: np.random.Generator) -> Ints:
        """Values as far away as the bins say: the model's; where it has none there any that lies between
        others of its, else -1."""
        edges, step = np.asarray(self.axis.edges, np.int64) - change_zero(column), change_step(column)
        least = before + edges[to] * step
        most = before + (edges[to + 1] - 1) * step + step - 1
        first, last = np.searchsorted(self.values, least), np.searchsorted(self.values, most, "right")
        at = rng.random(len(to))
        between = least + (at * (most - least + 1)).astype(np.int64)
        there = (first > 0) & (last < len(self.values))
        own = self.values[np.minimum(first + (at * (last - first)).astype(np.int64), len(self.values) - 1)]
        return np.asarray(np.where(last > first, own, np.where(there, between, -1)))


@dataclass(frozen=True, eq=False)
class Follow:
    """All that is known of rows that follow one another."""

    time: Column
    own: Sequence[Column]  # of a unit
    links: Sequence[Link]
    steps: Mapping[str, Steps]
    gaps: Gaps
    leads: tuple[Link, ...] = ()  # links whose states are drawn first


@dataclass(eq=False)
class Walk:
    """Units on their way: `seen` counts pairs of states by link, near and far, `states` those of all rows,
    `passed` the time from row to row."""

    pool: Pool
    follow: Follow
    rng: np.random.Generator
    seen: dict[tuple[str, bool], Floats] = field(default_factory=dict)
    states: dict[str, Floats] = field(default_factory=dict)
    passed: Floats = field(default_factory=lambda: np.zeros(1))
    changed: dict[str, list[tuple[Ints, Ints]]] | None = None  # values before and after, where wanted

    def rows(self, head: Ints, size: Ints) -> tuple[Block, Ints]:
        """Rows of units that begin with a row of the pool each, unit by unit, and the number of each row's
        unit. A unit for whose next row there is no time left ends."""
        now = {name: codes[head] for name, codes in self.pool.codes.items()}
        first = {link.column.name: link.states(now[link.column.name]) for link in self.follow.links}
        cell, unit = self.pool.unit[head], np.arange(len(head))
        made, whose, clock = [now], [unit], self.follow.time.name
        for link in self.follow.links:
            self._count(link, first[link.column.name])
        for step in range(1, int(size.max(initial=0))):
            least, most, time = self.follow.gaps.after(now[clock], np.maximum(0, size - step - 1), self.rng)
            on = (size > step) & (least <= most)
            now, size, cell, unit = (
                {name: codes[on] for name, codes in now.items()},
                size[on],
                cell[on],
                unit[on],
            )
            first = {name: states[on] for name, states in first.items()}
            if not len(unit):
                break
            now = self._after(now, first if step > 1 else None, cell, least[on], most[on], time[on])
            made.append(now)
            whose.append(unit)
        number = np.concatenate(whose)
        order = np.argsort(number, kind="stable")
        block = {name: np.concatenate([codes[name] for codes in made])[order] for name in made[0]}
        return block, number[order]

    def _after(
        self, now: Block, first: Mapping[str, Ints] | None, cell: Ints, least: Ints, most: Ints, time: Ints
    ) -> Block:
        """The next row of each unit."""
        parts = []
        for start in range(0, len(cell), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            own = {name: codes[part] for name, codes in now.items()}
            far = None if first is None else {name: states[part] for name, states in first.items()}
            parts.append(self._chosen(own, far, cell[part], time[part]))
        row = np.concatenate(parts)
        made = {name: codes[row] for name, codes in self.pool.codes.items()}
        clock = self.follow.time.name
        made[clock] = np.where((made[clock] >= least) & (made[clock] <= most), made[clock], time)
        passed = np.bincount(
            self.follow.gaps.bins(now[clock], made[clock]), minlength=len(self.follow.gaps.part)
        )
        self.passed = self.passed + passed
        for column in self.follow.own:
            made[column.name] = now[column.name]
        for link in self.follow.links:
            name = link.column.name
            if self.changed is not None and name in self.changed:
                self.changed[name].append((now[name], made[name]))
            if name in self.follow.steps:
                made[name] = self.follow.steps[name].refined(link, now[name], made[name], self.rng)
            self._see(link, False, link.states(now[name]), made[name])
            if first is not None:
                self._see(link, True, first[name], made[name])
        return made

    def _chosen(self, now: Block, first: Mapping[str, Ints] | None, cell: Ints, time: Ints) -> Ints:
        """A row for each unit: the state of one lead after the other, then one of the rows that have them, by
        the weights of all other links."""

        def weighed(link: Link, after: Ints, score: Floats) -> Floats:
            name = link.column.name
            score += link.near[link.cells(link.states(now[name])[:, None], after)]
            if first is not None:
                score += link.far[link.cells(first[name][:, None], after)]
            return score

        for link, counts in zip(self.pool.leads, self.pool.counts, strict=True):
            states, before = link.many, link.states(now[link.column.name])
            score = weighed(link, np.arange(states)[None], counts[cell])
            upto = np.cumsum(exp(score - score.max(axis=1, keepdims=True)), axis=1)
            at = even([cell, before], self.rng) * upto[:, -1]
            cell = cell * states + np.minimum((at[:, None] >= upto).sum(axis=1), states - 1)
        found = self.pool.candidates(cell, time, self.rng)
        score = self.rng.gumbel(size=found.shape)
        for link in self.follow.links:
            if link not in self.pool.leads:
                weighed(link, self.pool.states[link.column.name].take(found), score)
        return np.asarray(found[np.arange(len(found)), score.argmax(axis=1)])

    def _see(self, link: Link, far: bool, before: Ints, codes: Ints) -> None:
        after = link.states(codes)
        cells = link.cells(before, after)
        counts = np.bincount(cells, minlength=link.shape[0] * link.shape[1]).astype(np.float64)
        key = (link.column.name, far)
        self.seen[key] = self.seen.get(key, 0.0) + counts
        if not far:
            self._count(link, after)

    def _count(self, link: Link, states: Ints) -> None:
        if link.axis is not None:
            counts = np.bincount(states, minlength=link.shape[1]).astype(np.float64)
            self.states[link.column.name] = self.states.get(link.column.name, 0.0) + counts
