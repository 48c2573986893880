"""Estimates from noisy tables: single columns by all tables they are in, and each table towards what is
expected of it, as far as its noise says. Cells that seem empty are empty: that keeps impossible pairs out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from dpsynth_cli.mechanisms.joint.characters import pattern
from dpsynth_cli.mechanisms.joint.frame import Frame, Scope, Table
from dpsynth_cli.mechanisms.joint.ladder import Ladder
from dpsynth_cli.numeric.ratios import decided, interaction, shrunk, shrunk_by_class, vacant
from dpsynth_cli.numeric.systematic import joined
from dpsynth_cli.numeric.tilting import tilted
from dpsynth_cli.questions import Floats

RAKES = 12  # passes of proportional fitting to the sums of a table's columns, at most;
REACHED = 1e-4  # rows: all sums are as near as that, and it ends
EMPTY = 0.01  # rows; less is none
APART = 5  # cells, missing among them: a number that may be missing and has no more is all one neighbourhood


@dataclass(frozen=True, eq=False)
class Counted:
    """A noisy table, classes first, and the variance of the noise in each of its cells. Of a frame of several
    classes it may have them all together, as one."""

    scope: Scope
    noisy: Floats  # of a character, one number a class
    variance: float

    @property
    def is_character(self) -> bool:
        return self.noisy.ndim == 1


def combined(one: Counted, other: Counted) -> Counted:
    """The same table counted twice, by inverse variance."""
    trust = one.variance / max(one.variance + other.variance, 1e-300)
    return Counted(one.scope, one.noisy + trust * (other.noisy - one.noisy), other.variance * trust)


def with_margins(
    frame: Frame, variances: Sequence[float], counted: Sequence[Counted]
) -> tuple[Frame, list[float]]:
    """The masses of single columns by what is known of them (with these variances of a cell) and the sums of
    these tables, by inverse variance; and the variances then."""
    masses, known = list(frame.masses), list(variances)
    for one in counted:
        columns, levels = one.scope
        if one.is_character:
            continue
        for at, (j, level) in enumerate(zip(columns, levels, strict=True)):
            others = tuple(a + 1 for a in range(len(columns)) if a != at)
            own = one.noisy.sum(axis=others)
            variance = one.variance * (one.noisy[0].size / own.shape[1])
            before = frame.ladders[j].masses(level, masses[j])
            together = len(before) // len(own)  # classes that were counted as one
            if together > 1:
                whole = before.sum(axis=0, keepdims=True)
                own = before * np.divide(own, whole, out=np.zeros_like(whole), where=whole > 0)
                variance /= together
            trust = known[j] / max(known[j] + variance, 1e-300)
            # A cell that has no rows by its own counts stays empty; the sizes of classes stay.
            after = np.where(before > 0, np.maximum(before + trust * (own - before), 0.0), 0.0)
            after = np.where(after.any(axis=1, keepdims=True), after, before)
            after *= (before.sum(axis=1) / np.maximum(after.sum(axis=1), 1e-300))[:, None]
            scale = np.divide(after, before, out=np.ones_like(after), where=before > 0)
            masses[j] = masses[j] * scale[:, frame.ladders[j].levels[level]]
            masses[j] = _inside(frame.ladders[j], level, masses[j], own, known[j], variance)
            known[j] *= 1 - trust / together
    return replace(frame, masses=masses), known


def _inside(own: Ladder, level: int, masses: Floats, counts: Floats, known: float, variance: float) -> Floats:
    """Masses of the finest cells by counts of a level whose cells cut runs: rows were taken to be even in a
    run, and how far they are from that is told by the counts. Sums of runs, known better, stay."""
    run, cell = own.counted(), own.levels[level]
    cells_of_run = np.bincount(np.unique(run * own.cells + cell) // own.cells)
    before = own.masses(level, masses)
    cut = np.bincount(cell, cells_of_run[run] > 1) > 0
    away = (counts - before)[:, cut & (before > 0).all(axis=0)]
    if not away.size:
        return masses
    square = float((away**2).mean()) - (known + variance) * math.sqrt(2 / away.size)
    if square <= known + variance:
        return masses
    wanted = np.maximum(before + (1 - variance / square) * (counts - before), 0.0)
    wanted = np.where((before > 0) & cut, wanted, before)
    sums, found = joined(masses, run, len(cells_of_run)), masses
    for _ in range(RAKES):
        found = found * _scale(wanted, own.masses(level, found))[:, cell]
        there = joined(found, run, len(cells_of_run))
        found = np.where((there > 0)[:, run], found * _scale(sums, there)[:, run], masses)
    return np.asarray(np.round(found, 6))


def _scale(wanted: Floats, there: Floats) -> Floats:
    return np.divide(wanted, there, out=np.zeros_like(there), where=there > 0)


def margins(frame: Frame, scope: Scope) -> list[Floats]:
    """The masses of a table's columns at its levels, classes first."""
    return [frame.ladders[j].masses(level, frame.masses[j]) for j, level in zip(*scope, strict=True)]


def independent(frame: Frame, scope: Scope) -> Floats:
    """The table of a scope if its columns were independent in each class."""
    sums = margins(frame, scope)
    tables = []
    for k, total in enumerate(frame.totals):
        parts = [own[k] / max(float(total), 1e-9) for own in sums]
        tables.append(reduce(np.multiply.outer, parts) * total)
    return np.array(tables)


def estimated(frame: Frame, one: Counted, expected: Floats) -> Table:
    """The table by what was counted and what is expected, with the sums of its columns.

    What fewer of its columns do is expected to be known better than the table itself tells: as far as it
    is no more than noise by which they differ, only what all of them do together is learnt from it.
    """
    sums = margins(frame, one.scope)
    most = [reduce(np.minimum.outer, [own[k] for own in sums]) for k in range(len(expected))]
    variance = max(one.variance, 1e-9)
    together = expected if len(one.noisy) == len(expected) else expected.sum(axis=0, keepdims=True)
    away, noise = interaction(one.noisy - together, variance)
    noisy, noise = together + away, max(noise, 1e-9)
    if len(noisy) == len(expected):
        found = np.array(shrunk_by_class(list(noisy), noise, list(expected), most, zeros=True))
    else:  # all classes together: each as far from what is expected as they are
        before = together[0]
        parts = (noisy.ravel(), noise, before.ravel(), np.sum(most, axis=0).ravel())
        after = shrunk(*parts, zeros=True).reshape(before.shape)
        found = expected * np.divide(after, before, out=np.ones_like(before), where=before > 0)
    columns = [frame.ladders[j].column for j in one.scope[0]]
    ordered = [
        at
        for at, (j, column) in enumerate(zip(one.scope[0], columns, strict=True))
        if column.type != "nominal" and (not column.nullable or frame.ladders[j].cells > APART)
    ]
    if ordered:
        alone = [at for at in ordered if columns[at].nullable]
        whole = one.noisy.sum(axis=0), variance * len(one.noisy), expected.sum(axis=0)
        found = np.where(vacant(*whole, ordered, alone), 0.0, found)
    if one.noisy.ndim == 3:
        both, noise = one.noisy.sum(axis=0), variance * len(one.noisy)
        found = np.where(decided(both, noise) | decided(both.T, noise).T, 0.0, found)
    even = independent(frame, one.scope)
    found = raked(found, even, sums)
    if one.noisy.ndim == 3:
        found = _with_moments(frame, one, found, even, sums)
    return Table(*one.scope, np.where(found < EMPTY, 0.0, found))


def _with_moments(frame: Frame, one: Counted, found: Floats, even: Floats, sums: Sequence[Floats]) -> Floats:
    """The table of two columns with the moments of what was counted: how large one is given the other."""
    first, second = (
        frame.ladders[j].scores(level, frame.masses[j].sum(axis=0))
        for j, level in zip(*one.scope, strict=True)
    )
    if first is None and second is None:
        return found
    if len(one.noisy) == len(found):
        return tilted(found, one.noisy, one.variance, (first, second), lambda table: raked(table, even, sums))
    both = found.sum(axis=0, keepdims=True)
    alike, whole = even.sum(axis=0, keepdims=True), [own.sum(axis=0, keepdims=True) for own in sums]
    after = tilted(both, one.noisy, one.variance, (first, second), lambda table: raked(table, alike, whole))
    return raked(found * np.divide(after, both, out=np.ones_like(both), where=both > 0), even, sums)


def refined(frame: Frame, coarse: Table, one: Counted) -> Table:
    """A finer table of the same columns: each cell of the coarse one divided as the finer counts say."""
    each = zip(*one.scope, coarse.levels, strict=True)
    groups = [frame.ladders[j].between(fine, level) for j, fine, level in each]
    at = np.ix_(np.arange(len(coarse.counts)), *groups)
    even = independent(frame, one.scope)

    def divided(table: Floats) -> Floats:
        whole = coarser(frame, table, one.scope, coarse.levels)
        scale = np.divide(coarse.counts, whole, out=np.zeros_like(whole), where=whole > 0)
        return np.asarray(table * scale[at])

    found = divided(estimated(frame, one, divided(even)).counts)
    found = raked(found, even, margins(frame, one.scope))
    return Table(*one.scope, np.where(found < EMPTY, 0.0, found))


def estimates(frame: Frame, counted: Sequence[Counted], expected: Callable[[Scope], Floats]) -> list[Table]:
    """A table for each that was counted, in their order."""
    signs = [one for one in counted if one.is_character]
    found = iter(signed(frame, signs, [expected(one.scope) for one in signs]))
    return [
        next(found) if one.is_character else estimated(frame, one, expected(one.scope)) for one in counted
    ]


def signed(frame: Frame, several: Sequence[Counted], expected: Sequence[Floats]) -> list[Table]:
    """Tables from characters: what is expected, and of the difference to it the part that is not noise."""
    if not several:
        return []
    signs = [pattern(len(one.scope[0])) for one in several]
    away = [
        one.noisy - (table * sign).reshape(len(one.noisy), -1).sum(axis=1)
        for one, table, sign in zip(several, expected, signs, strict=True)
    ]
    size = frame.totals / max(float(frame.totals.sum()), 1e-9)
    noise = np.concatenate([np.full(len(a), one.variance) for one, a in zip(several, away, strict=True)])
    square = float((np.concatenate(away) ** 2 - noise).mean())
    tables = []
    for one, table, sign, a in zip(several, expected, signs, away, strict=True):
        keep = max(0.0, square) / max(square + one.variance, 1e-9)
        each = a if len(a) == len(table) else a * size  # all classes together: by their sizes
        change = np.multiply.outer(each * keep / sign.size, sign)
        found = raked(
            np.maximum(table + change, 0.0), independent(frame, one.scope), margins(frame, one.scope)
        )
        tables.append(Table(*one.scope, np.where(found < EMPTY, 0.0, found)))
    return tables


def raked(table: Floats, even: Floats, sums: Sequence[Floats]) -> Floats:
    """The table scaled to the sums of its columns in each class (iterative proportional fitting).

    A cell that is empty stays so, even if sums are not reached then, being noisy themselves: a column that
    another determines stays determined. Only where nothing is left of a sum is it spread as `even` is.
    """
    axes = range(1, table.ndim)
    for turn in range(RAKES):
        far = 0.0
        for at, own in enumerate(sums, start=1):
            along = [len(own), *[own.shape[1] if a == at else 1 for a in axes]]
            there = table.sum(axis=tuple(a for a in axes if a != at))
            if not turn and (lost := (there <= 1e-9) & (own > 0)).any():
                table = np.where(lost.reshape(along), even, table)
                there = table.sum(axis=tuple(a for a in axes if a != at))
            far = max(far, float(np.abs(own - there).max(initial=0.0)))
            scale = np.divide(own, there, out=np.zeros_like(there), where=there > 0)
            table = table * scale.reshape(along)
        if far <= REACHED:
            break
    return np.asarray(np.round(table, 6))


def coarser(frame: Frame, table: Floats, scope: Scope, levels: Sequence[int]) -> Floats:
    """A table of a scope at coarser levels."""
    for at, (j, fine, coarse) in enumerate(zip(*scope, levels, strict=True)):
        ladder = frame.ladders[j]
        table = joined(table, ladder.between(fine, coarse), ladder.size(coarse), at + 1)
    return table
