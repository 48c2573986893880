"""A model whose units have rows that follow one another: times that rise, gaps, values that go on.

The mechanism's model says what a row is. A unit begins with one of its rows (`heads.py`) and goes on with
others, chosen so that pairs are as the noisy tables of pairs say (`links.py`, `fitting.py`, `paths.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.units.blocks import first_rows, gathered, joined
from dpsynth_cli.mechanisms.units.distribution import distribution_of, rows_known, size_edges
from dpsynth_cli.mechanisms.units.fitting import fitted
from dpsynth_cli.mechanisms.units.gaps import gaps_of
from dpsynth_cli.mechanisms.units.heads import Heads, heads_of, in_time
from dpsynth_cli.mechanisms.units.links import plan
from dpsynth_cli.mechanisms.units.paths import Follow, Walk
from dpsynth_cli.mechanisms.units.pool import Pool
from dpsynth_cli.mechanisms.units.sizes import CATEGORIES, axis_of
from dpsynth_cli.questions import Ask, Bins, Block, Cells, Ints, Model, Question, UnitSizes
from dpsynth_cli.shares import divide

OF_SIZES = Fraction(1, 5)  # of the share: for how many rows units have, and when they begin
FEWEST, SMALLEST = 2**12, 2**15  # rows of the model that are chosen from: eight for each row, in between


def with_order(
    ask: Ask, omega: Domain, model: Model, share: Fraction, name: str, fixed: Collection[str]
) -> Model:
    """The model with units, whose numbers are under `name` and whose rows are in the order of time. Values of
    `fixed` columns are those of whole rows, since rules bind them."""
    assert omega.unit_rows is not None
    assert omega.unit_order is not None
    time, own = omega[omega.unit_order], tuple(column for column in omega if column.of == "unit")
    looked_at = first_rows(model, omega, _rows_to_choose_from(model) if model.total > 0 else 0)
    axes = [*(axis_of(column, looked_at[column.name]) for column in own), _times(time, looked_at[time.name])]
    edges = size_edges(omega.unit_rows)
    shares = divide(share * OF_SIZES, [1.0] * len(axes))
    asked = zip(axes, shares, strict=True)
    answers = ask([Question("units", UnitSizes(Cells((axis,)), edges), part) for axis, part in asked])
    units = distribution_of(answers, edges, rows_known(omega, model))
    columns = [column for column in omega if column not in own and column.name != time.name]
    wanted = plan(ask, columns, time, looked_at, units.each, share * (1 - OF_SIZES))
    pairs = ask(wanted.questions)
    follow = Follow(time, own, wanted.links, {}, gaps_of(pairs[0], wanted.gap, time))
    heads = heads_of(axes, answers, looked_at, units, in_time(time, follow.gaps.least, edges))
    follow, heads = fitted(wanted, pairs, follow, heads, looked_at, fixed)
    facts = units.facts | {
        "order": time.name,
        "pairs_of_a_unit": wanted.most,
        "cells_before_and_after": {link.column.name: list(link.shape) for link in wanted.links},
    }
    draw = _drawing(model, heads, follow, name)
    return replace(model, draw=draw, facts=model.facts | {"units": facts})


def _rows_to_choose_from(model: Model) -> int:
    return min(max(8 * model.total, FEWEST), SMALLEST)


def _times(column: Column, codes: Ints) -> Bins:
    """Cells of time: each alone where there are few, else parts of the model's rows."""
    if column.size <= CATEGORIES:
        return Bins(column.name, tuple(range(column.codes + 1)))
    return axis_of(column, codes)


def _drawing(model: Model, heads: Heads, follow: Follow, name: str) -> Callable[..., Iterator[Block]]:
    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        own = np.random.default_rng(rng.integers(2**63))
        more = int(own.integers(2**63))
        first = 0
        for block in gathered(model.draw(rows, rng)):
            count, chosen_from = len(next(iter(block.values()))), block
            if count < _rows_to_choose_from(model):
                others = list(model.draw(_rows_to_choose_from(model), np.random.default_rng(more)))
                chosen_from = joined([block, *others])
            pool = Pool(chosen_from, follow.own, follow.time.name, follow.leads, follow.links)
            for made, number in _units(pool, heads, follow, count, own):
                yield made | {name: first + number}
                first += int(number[-1]) + 1

    return draw


def _units(
    pool: Pool, heads: Heads, follow: Follow, rows: int, rng: np.random.Generator
) -> Iterator[tuple[Block, Ints]]:
    """So many rows of units; the last may be cut off."""
    mean, places = heads.units.mean, heads.places(pool.codes)
    while rows > 0:
        head, size = heads.drawn(places, max(1, int(rows / mean)), rng)
        made, number = Walk(pool, follow, rng).rows(head, size)
        kept = min(rows, len(number))
        yield {column: codes[:kept] for column, codes in made.items()}, number[:kept]
        rows -= kept
