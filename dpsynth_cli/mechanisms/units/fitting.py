"""Weights of what follows what, from noisy tables of pairs: found by drawing units with them, and changing
each by what its table has too much or too little of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpsynth_cli.changes import changes
from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.units.heads import Heads
from dpsynth_cli.mechanisms.units.links import Link, Plan, Told, told
from dpsynth_cli.mechanisms.units.paths import Follow, Steps, Walk
from dpsynth_cli.mechanisms.units.pool import Pool, unit_cells
from dpsynth_cli.numeric.exact import exp, inner, log
from dpsynth_cli.questions import Answer, Bins, Floats, Ints

TRIED = 4  # rows to choose from for each row of a unit that is drawn in a round
ROOMY = 2  # rows of a pool for each cell of leads, on average, at least
ROUNDS, MORE_ROUNDS = 8, 5  # before changes within cells are known, and after
GENTLY = 0.5  # the part of what is missing that a round gives, where several tables are about the same
STRONG = 1.5  # by which one round may change the logarithm of a weight


def fitted(
    wanted: Plan,
    answers: Sequence[Answer],
    follow: Follow,
    heads: Heads,
    codes: Mapping[str, Ints],
    fixed: Collection[str],
) -> tuple[Follow, Heads]:
    """Weights and changes from the answers, on rows of the model; and the rows that units begin with, such
    that all rows together are as the model's. Gaps, the first of the answers, are known, and weighed."""
    time, own = follow.time, follow.own
    given = iter(answers[1:])
    near = {link.column.name: told(next(given), link.shape) for link in wanted.links}
    changed = {name: next(given) for name in wanted.changes}
    far = {link.column.name: told(next(given), link.shape) for link in wanted.links} if wanted.far else {}
    zeros = [np.zeros(link.shape[0] * link.shape[1]) for link in wanted.links]
    links = [
        replace(link, near=none, far=none.copy()) for link, none in zip(wanted.links, zeros, strict=True)
    ]
    follow = replace(follow, links=links)
    if not len(codes[time.name]) or not heads.units.units[1:].any():
        return follow, heads
    follow = replace(follow, leads=_leads(links, near, codes, own))
    pool = Pool(codes, own, time.name, follow.leads, links)
    heads = heads.by([link.axis for link in links if link.axis is not None])
    fit = _Fit(pool, follow, heads, near, far, heads.places(pool.codes))
    for _ in range(ROUNDS):
        fit.round()
    able = [link.column for link in links if link.column.name in set(changed) - set(fixed)]
    pairs = fit.walked([column.name for column in able]).changed or {}
    steps = {
        column.name: _steps(
            column, wanted.changes[column.name], changed[column.name], pairs[column.name], codes[column.name]
        )
        for column in able
        if pairs[column.name]
    }
    fit.follow = replace(follow, steps=steps)
    for _ in range(MORE_ROUNDS):
        fit.round()
    return fit.follow, fit.heads


@dataclass(eq=False)
class _Fit:
    """The weights so far; `usual` is what follows what without any."""

    pool: Pool
    follow: Follow
    heads: Heads
    near: Mapping[str, Told]
    far: Mapping[str, Told]
    places: Sequence[Ints]  # of the pool's rows on the axes of heads
    usual: dict[tuple[str, bool], Floats] = field(default_factory=dict)

    def walked(self, watched: Collection[str] | None = None) -> Walk:
        """Rows of units as they would be drawn, always the same."""
        rng = np.random.default_rng(1)
        changed = None if watched is None else {name: list[tuple[Ints, Ints]]() for name in watched}
        walk = Walk(self.pool, self.follow, rng, changed=changed)
        walk.rows(
            *self.heads.drawn(self.places, max(1, int(self.pool.rows / TRIED / self.heads.units.mean)), rng)
        )
        return walk

    def round(self) -> None:
        """All weights, and which rows units begin with, once nearer to what was told."""
        walk = self.walked()
        seen = {key: _after(counts, self.near[key[0]]) for key, counts in walk.seen.items()}
        self.usual = self.usual or seen
        passed = walk.passed / max(1.0, float(np.sum(walk.passed)))
        self.follow.gaps.weigh(GENTLY * _step(self.follow.gaps.part, passed))
        for link in self.follow.links:
            name = link.column.name
            for is_far, weights, tables in ((False, link.near, self.near), (True, link.far, self.far)):
                if (name, is_far) in seen and name in tables:
                    wanted = tables[name].given(self.usual[name, is_far])
                    weights += GENTLY * _step(wanted, seen[name, is_far]).ravel()
            if link.axis is not None:
                have = walk.states[name] + 0.5
                wants = np.bincount(self.pool.states[name], minlength=len(have)) + 0.5
                self.heads.weigh(link.axis, exp(_step(wants / wants.sum(), have / have.sum())))


def _step(wanted: Floats, seen: Floats) -> Floats:
    """By how much the logarithms of weights are changed."""
    ratio = log(np.maximum(wanted, 1e-4) / np.maximum(seen, 1e-4))
    return np.asarray(np.clip(ratio, -STRONG, STRONG))


def _leads(
    links: Sequence[Link], near: Mapping[str, Told], codes: Mapping[str, Ints], own: Sequence[Column]
) -> tuple[Link, ...]:
    """Links whose states are drawn before a row is looked for: those that tell the most, as long as there are
    rows enough for each combination."""
    unit = unit_cells(codes, own)
    found, cells = list[Link](), int(unit.max(initial=0)) + 1
    for link in sorted(links, key=lambda link: -_worth(link, near[link.column.name], codes)):
        if cells * link.many * ROOMY <= len(unit):
            found.append(link)
            cells *= link.many
    return tuple(found)


def _worth(link: Link, table: Told, codes: Mapping[str, Ints]) -> float:
    """How much is told of what comes after by what was before."""
    if link.axis is not None:
        return table.information
    part = np.bincount(codes[link.column.name]) / max(1, len(codes[link.column.name]))
    chance, same = inner(part, part), float(table.after[0, 1])  # that it is the same
    return float(table.trust[0, 0] * same * log(max(same, 1e-9) / max(chance, 1e-9)))


def _after(seen: Floats, like: Told) -> Floats:
    """Counts as probabilities of what comes after, given what was before."""
    table = seen.reshape(like.after.shape) + 0.5
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _steps(column: Column, axis: Bins, answer: Answer, pairs: list[tuple[Ints, Ints]], codes: Ints) -> Steps:
    """What part of candidates' changes is too much, and which bins lack it."""
    before, after = (np.concatenate(part) for part in zip(*pairs, strict=True))
    bins = np.searchsorted(axis.edges, changes(column, before, after), "right") - 1
    many = len(axis.edges) - 1
    had = np.bincount(bins, minlength=many) / max(1, len(bins))
    table = told(answer, (1, many))
    wanted = table.given(had[None])[0]
    if column.nullable:  # who is missing is a matter of cells
        wanted[-1] = had[-1]
    moved = np.maximum(0.0, 1 - wanted / np.maximum(had, 1e-9))
    lack = np.maximum(0.0, wanted - had)
    values = np.sort(codes[codes < column.size])
    if not lack.sum() > 0 or not len(values):
        moved, lack, values = np.zeros(many), np.ones(many), np.zeros(1, np.int64)
    return Steps(axis, moved, lack, values)
