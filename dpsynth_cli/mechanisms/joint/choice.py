"""Which tables to count, and how fine: a forest of links, then pairs and triples that are worth their noise.

How much of a table's gap a resolution closes is not known before it is counted: taken is that cells of m
neighbours leave a part of 1/m open, and that joined categories leave their mass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import combinations

import numpy as np

from dpsynth_cli.mechanisms.joint.characters import character
from dpsynth_cli.mechanisms.joint.frame import Frame, Scope, Table
from dpsynth_cli.mechanisms.joint.ladder import SIZES
from dpsynth_cli.mechanisms.joint.survey import Gap, Survey, gap_noise
from dpsynth_cli.numeric.exact import log
from dpsynth_cli.numeric.forest import Pair, spanning
from dpsynth_cli.numeric.selection import weight_power, worth_counting
from dpsynth_cli.questions import Floats

OPEN = 0.5  # of a gap, by a table of cells of two neighbours
NOISE = 0.12  # the error that noise of one row in a cell makes, in rows: 0.4, but estimates take most of it
LINKED = 2.0  # a link closes the gaps of other pairs too: its own counts for so much
FINEST = 128  # cells a column, of a table that is counted first
PAIR_CELLS, TRIPLE_CELLS, LINK_CELLS = 2**16, 2**10, 2**18  # of a table with all classes, at most
PAIRS, TRIPLES = 12, 12  # for each column, at most
CANDIDATES = 600  # triples that are looked at
STRONG = 1.85  # of two columns: their joint entropy over the mean of both; 1 determined, 2 independent
CLEAR = 5.0  # a cell that rows are in should have so many times the noise
QUIET = {3: 0.01, 4: 0.004}  # the noise of a character of so many columns, as a part of the rows, at most
CHARACTERS = 1800  # of so many columns, at most


def forest(gaps: Mapping[Scope, Gap], noise: float, d: int) -> list[Scope]:
    """The links of a maximum spanning forest, by gaps that stand above their noise."""
    scores = {scope[0]: round(gap.beyond - noise / 4, 6) for scope, gap in gaps.items()}
    links = {(pair[0], pair[1]): score for pair, score in scores.items()}
    chosen: set[Pair] = set(spanning(links, d))
    return [scope for scope in gaps if scope[0] in chosen]


def worthwhile(survey: Survey, gaps: Mapping[Scope, Gap], share: Fraction, more: float = 1.0) -> list[Scope]:
    """The tables that are worth counting for a share, each at its best levels."""
    return _worth(survey, gaps, share, more)[1]


def worth(survey: Survey, gaps: Mapping[Scope, Gap], share: Fraction) -> float:
    """What counting such tables would close of all gaps, less the noise that they would have."""
    return _worth(survey, gaps, share, 1.0)[0]


def _worth(
    survey: Survey, gaps: Mapping[Scope, Gap], share: Fraction, more: float
) -> tuple[float, list[Scope]]:
    if not gaps:
        return 0.0, []
    ladders = survey.frame.ladders
    sizes = [size for size in SIZES if size <= FINEST]
    options = [[(columns, _levels(survey, columns, size)) for size in sizes] for columns, _ in gaps]
    cells = np.array([[survey.weight(scope) for scope in row] for row in options])
    saved = np.zeros(cells.shape)
    part_of = cache(partial(_closed_by, survey.frame))
    told = survey.told_of_chance
    for at, ((scope, gap), row) in enumerate(zip(gaps.items(), options, strict=True)):
        looked_at, closed = survey.weight(scope), _closed(part_of, scope)
        for number, resolved in enumerate(row):
            part = _closed(part_of, resolved) / closed
            chance = math.sqrt(min(1.0, cells[at, number] / looked_at))
            saved[at, number] = more * gap.beyond * part + told * gap.by_chance * chance
    triples = len(next(iter(gaps))[0]) > 2
    saved[cells > (TRIPLE_CELLS if triples else PAIR_CELLS)] = -1.0
    noise = NOISE * survey.sd(float(share)) / survey.rows
    option = worth_counting(saved, cells, noise, survey.gaussian)
    some = [(at, o) for at, o in enumerate(option) if o >= 0]
    weights = [cells[at, o] ** weight_power(survey.gaussian) for at, o in some]
    value = sum(saved[at, o] for at, o in some) - noise * sum(weights) ** (1.5 if survey.gaussian else 2.0)
    rated = [
        (round(float(saved[at, o] / own), 9), options[at][o])
        for (at, o), own in zip(some, weights, strict=True)
    ]
    most = (TRIPLES if triples else PAIRS) * len(ladders)
    return round(float(value), 9), sorted(scope for _, scope in sorted(rated, reverse=True)[:most])


def _levels(survey: Survey, columns: Sequence[int], size: int) -> tuple[int, ...]:
    return tuple(survey.frame.ladders[j].level(size) for j in columns)


def _closed(part_of: Callable[[int, int], float], scope: Scope) -> float:
    """The part of a gap that a table of these levels closes, about: the parts of its columns multiplied."""
    return math.prod(map(part_of, *scope))


def _closed_by(frame: Frame, j: int, level: int) -> float:
    own = frame.ladders[j]
    if own.column.type != "nominal":
        return 1 - OPEN * (1 / own.size(level) - 1 / own.cells)
    mass = own.masses(level, frame.masses[j].sum(axis=0))
    together = np.bincount(own.levels[level]) > 1
    return 1 - float(mass[together].sum() / max(mass.sum(), 1e-9)) * (1 - 1 / own.cells)


def strong(links: Sequence[Table]) -> dict[int, float]:
    """Strong links by number, and of each its joint entropy over the mean of both columns'."""
    each = [_dimension(link.counts.sum(axis=0)) if link.counts.ndim == 3 else 2.0 for link in links]
    return {at: dimension for at, dimension in enumerate(each) if dimension < STRONG}


def finer(
    survey: Survey, links: Sequence[Table], strong: Mapping[int, float], share: float
) -> dict[int, Scope]:
    """Levels at which a cell of a strong link that rows are in still stands above its noise, if all have such
    a share: by number, those that are finer than the link."""
    found: dict[int, Scope] = {}
    if not strong:
        return found
    sd = max(survey.sd(share / len(strong)), 1e-6)
    for at, dimension in strong.items():
        columns = links[at].columns
        most = (survey.rows / survey.classes / (CLEAR * sd)) ** (1 / dimension)
        scope = (columns, _levels(survey, columns, round(most)))
        while math.prod(survey.frame.shape(scope)) > LINK_CELLS:
            most /= 1.4
            scope = (columns, _levels(survey, columns, round(most)))
        higher = [new - old for new, old in zip(scope[1], links[at].levels, strict=True)]
        if min(higher) >= 0 and max(higher) > 0:
            found[at] = scope
    return found


def _dimension(table: Floats) -> float:
    """The entropy of a pair over the mean of both columns': 1 if one determines the other, 2 if unlinked."""
    both = _entropy(table.sum(axis=0)) + _entropy(table.sum(axis=1))
    return max(1.0, 2 * _entropy(table) / both) if both > 1e-9 else 2.0


def _entropy(mass: Floats) -> float:
    p = mass[mass > 0] / max(float(mass.sum()), 1e-300)
    return float(-(p * log(p)).sum())


def triples(survey: Survey, gaps: Mapping[Scope, Gap], cells: int) -> list[Scope]:
    """Three columns of which two pairs at least are linked: those of the strongest pairs, in so many cells.
    Columns of two values have characters instead."""
    strength = {scope[0]: gap.beyond for scope, gap in gaps.items()}
    columns = sorted({j for pair in strength for j in pair})
    some = sorted(columns, key=lambda j: (-max(v for pair, v in strength.items() if j in pair), j))[:40]
    scores = {
        three: round(sum(sorted(strength.get(pair, 0.0) for pair in combinations(three, 2))[1:]), 9)
        for three in combinations(sorted(some), 3)
        if not survey.binary(three) and _looked_at(strength, three)
    }
    chosen = sorted(scores, key=lambda three: (-scores[three], three))[:CANDIDATES]
    return [(three, _levels(survey, three, cells)) for three in sorted(chosen)]


def _looked_at(strength: Mapping[tuple[int, ...], float], columns: Sequence[int]) -> bool:
    """Whether a pair of these was looked at: not where rows are drawn given all of them."""
    return any(pair in strength for pair in combinations(columns, 2))


def interactions(survey: Survey, gaps: Mapping[Scope, Gap], share: Fraction) -> list[Scope]:
    """Characters of three, then four columns of two values, if a share buys all of them with little noise."""
    strength = {scope[0]: gap.beyond for scope, gap in gaps.items()}
    ladders = survey.frame.ladders
    two = [j for j in range(len(ladders)) if survey.binary([j])]
    chosen: list[tuple[int, ...]] = []
    for order, most in QUIET.items():
        scores = {
            some: round(
                sum(sorted(strength.get(pair, 0.0) for pair in combinations(some, 2))[1 - order :]), 9
            )
            for some in (combinations(two, order) if math.comb(len(two), order) <= 50_000 else ())
            if _looked_at(strength, some)
        }
        sets = sorted(sorted(scores, key=lambda some: (-scores[some], some))[:CHARACTERS])
        if not sets:
            break
        own = share / (len(chosen) + len(sets))
        asked = character("triples", [ladders[two[0]].column], own, survey.by)
        noise = 0.4 * survey.ask.sd(asked) * math.sqrt(survey.classes) / survey.rows
        if noise > most:
            break
        chosen += sets
    return [(some, tuple(ladders[j].top for j in some)) for some in chosen]


def triples_show(survey: Survey, tables: int, share: Fraction, most: float) -> bool:
    """Whether the gaps of so many triples would be told from noise."""
    return bool(tables) and gap_noise(survey.ask, tables, share, survey.rows) < most
