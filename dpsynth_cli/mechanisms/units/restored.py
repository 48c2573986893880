"""A model whose rows have units again: how many rows each has is asked for a small share, the rest
follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.units.blocks import first_rows, gathered
from dpsynth_cli.mechanisms.units.distribution import distribution_of, rows_known, size_edges
from dpsynth_cli.mechanisms.units.grouping import grouped, groups_drawn, sizes_drawn
from dpsynth_cli.mechanisms.units.sizes import Sizes, axis_of, sizes_of
from dpsynth_cli.questions import Ask, Block, Cells, Model, Question, UnitSizes
from dpsynth_cli.shares import divide

STEP = "units"
LOOKED_AT = 20_000  # rows of the model


def with_units(ask: Ask, omega: Domain, model: Model, share: Fraction, name: str) -> Model:
    """The model with units, whose numbers are under `name`; what a unit has in common are the columns that
    are declared `of: unit`."""
    columns = tuple(column for column in omega if column.of == "unit")
    assert omega.unit_rows is not None
    looked_at = first_rows(model, omega, min(max(0, model.total), LOOKED_AT))
    axes = [axis_of(column, looked_at[column.name]) for column in columns]
    tables = [Cells((axis,)) for axis in axes] or [Cells(())]
    shares = divide(share, [1.0] * len(tables))
    edges = size_edges(omega.unit_rows)
    asked = zip(tables, shares, strict=True)
    answers = ask([Question(STEP, UnitSizes(cells, edges), own) for cells, own in asked])
    units = distribution_of(answers, edges, rows_known(omega, model))
    sizes = sizes_of(axes, answers, looked_at, units)
    draw = _drawing(model, columns, sizes, name)
    return replace(model, draw=draw, facts=model.facts | {"units": units.facts})


def _drawing(
    model: Model, columns: Sequence[Column], sizes: Sizes, name: str
) -> Callable[..., Iterator[Block]]:
    edges = np.asarray(sizes.units.edges)

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        own = np.random.default_rng(rng.integers(2**63))
        first = 0
        for block in gathered(model.draw(rows, rng)):
            size = sizes_drawn(sizes.units, len(next(iter(block.values()))), own)
            group = np.searchsorted(edges, size) - 1
            wanted = np.bincount(group, size, len(edges) - 1).astype(np.int64)
            groups = groups_drawn(sizes.chances(block), wanted, own)
            by_group = [size[group == one] for one in range(len(edges) - 1)]
            yield grouped(block, columns, groups, by_group, name, first, own)
            first += len(size)

    return draw
