"""The joint model of rows that are drawn given columns that are known: children of parents.

Asked are a child's own columns, and their tables with each other, with those of its parent and with those of
the child before it. Tables of given columns alone are not asked: their rows come from the model of parents,
and from children that were drawn before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.joint import REPEATED, explored, facts_of
from dpsynth_cli.mechanisms.joint.columns import SCREENED, ask_columns
from dpsynth_cli.mechanisms.joint.enough import FALLBACK, few_rows, shows, weights_of
from dpsynth_cli.mechanisms.joint.frame import Frame, without_impossible
from dpsynth_cli.mechanisms.joint.model import Evidence
from dpsynth_cli.mechanisms.joint.siblings import (
    Siblings,
    cells_of_codes,
    known_ladder,
    ladder_before,
    with_given,
)
from dpsynth_cli.mechanisms.joint.survey import Survey
from dpsynth_cli.mechanisms.shared.rules import Rules
from dpsynth_cli.mechanisms.shared.sizes import sizes_and_rest
from dpsynth_cli.questions import Ask, Block, CellCounts, Cells, Ints, Question
from dpsynth_cli.shares import divide

BEFORE = 0.5  # of what an own column gets, for one of the child before
UNKNOWN = 1e12  # the variance of what is only guessed
ROUNDS = 6  # of the last fit: what the child before is like changes with each


@dataclass(frozen=True)
class Given:
    """A model of children: how many there are, and their own columns given the others, and given the place of
    each among its siblings, which stand one after the other."""

    total: int
    draw: Callable[[Mapping[str, Ints], Ints, np.random.Generator], Block]
    notes: tuple[str, ...]
    facts: dict[str, Any]


def run_given(
    ask: Ask,
    omega: Domain,
    split: Mapping[str, float],
    families: Mapping[str, Ints],
    place: Ints,
    asked: Ints,
) -> Given:
    """The model of a table whose columns with an origin are given. `families` has those of some rows, but for
    what is of the child before; `asked` are those of them that questions are about."""
    alone = replace(omega, columns=tuple(column for column in omega if column.origin is None))
    sizes, rest = sizes_and_rest(ask, omega, split)
    rules = Rules(alone)
    weights = weights_of(split, few_rows(ask, alone, sizes))
    columns, misfit, links, pairs = divide(rest, list(weights.values()))
    looks = divide(misfit, [1, 1])
    own, given = len(alone.columns), len(omega.columns) - len(alone.columns)
    linked = shows(ask, own * (own - 1) // 2 + own * given, sizes, looks[0])
    if not linked:
        columns = rest

    # Columns: a private marginal of each of its own, and of those of the child before; the others are known.
    before = [column for column in omega if column.origin and column.origin[0] == "previous"]
    if linked and before:
        columns, of_before = divide(columns, [1.0, BEFORE * len(before) / own])
    frame, spent = ask_columns(ask, alone, sizes, columns, rules, REPEATED * pairs if linked else Fraction(0))
    one = Question("columns", CellCounts(Cells(())), columns / own)
    known = _with_families(frame, omega, families, place, asked, ask.sd(one) ** 2)
    if linked:
        if before:
            scopes = [((j,), (known.frame.coarse[j],)) for j in _siblings(known).before]
            known.learn(Survey(ask, omega, known.frame).count("columns", scopes, of_before, even=True))
        explored(ask, omega, known, looks, links, pairs - spent)
    chain, _ = known.fit(rounds=ROUNDS)
    siblings, frame = _siblings(known), known.frame

    def draw(block: Mapping[str, Ints], place: Ints, rng: np.random.Generator) -> Block:
        cells = {
            j: cells_of_codes(frame.ladders[j], block[frame.ladders[j].column.name])
            for j in siblings.given
            if j not in siblings.before
        }
        classes = np.zeros(len(place), np.int64)
        found = siblings.drawn(chain, cells, place, rng)
        found[:own] = without_impossible(frame, alone, rules, classes, found, rng)[:own]
        return {
            ladder.column.name: ladder.finest.codes(classes, cell, rng)
            for ladder, cell in zip(frame.ladders[:own], found, strict=False)
        }

    notes = () if linked else (FALLBACK,)
    return Given(round(float(frame.totals.sum())), draw, notes, facts_of(known, chain))


def _siblings(known: Evidence) -> Siblings:
    assert known.siblings is not None
    return known.siblings


def _with_families(
    frame: Frame, omega: Domain, families: Mapping[str, Ints], place: Ints, asked: Ints, variance: float
) -> Evidence:
    """What is known before tables are counted: the frame with the given columns, and families to fit on. What
    the child before is like is not known yet: like any."""
    names = [ladder.column.name for ladder in frame.ladders]
    rng = np.random.default_rng(0)
    ladders, cells, before = [], dict[int, Ints](), dict[int, tuple[int, Ints]]()
    first = float((place[asked] == 0).mean())
    for at, column in enumerate(omega.columns[len(names) :], len(names)):
        kind, name = column.origin or ("", "")
        if kind != "previous":
            ladders.append(known_ladder(column, families[column.name][asked]))
            cells[at] = cells_of_codes(ladders[-1], families[column.name])
            continue
        source = names.index(name)
        own, mass = frame.ladders[source], frame.masses[source][0]
        ladders.append(ladder_before(column, own, mass, first))
        copy = cells_of_codes(ladders[-1], np.append(own.codes_of(own.top), column.size))
        weights = np.maximum(mass, 1e-12)
        any_ = rng.choice(own.cells, len(place), p=weights / weights.sum())
        cells[at] = np.where(place == 0, copy[-1], copy[any_])
        before[at] = (source, copy)
    whole = with_given(frame, ladders, SCREENED)
    guess = dict.fromkeys(before, UNKNOWN)  # like those of any child: the answers will tell
    variances = [variance] * len(names) + [guess.get(at, 0.0) for at in cells]
    return Evidence(whole, variances, siblings=Siblings(cells, before, place, asked))
