"""A model whose rows have units again: how many rows each has is asked for a small share, the rest
follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.units.blocks import first_rows, gathered
from dpsynth_cli.mechanisms.units.grouping import grouped, sizes_drawn
from dpsynth_cli.mechanisms.units.sizes import Sizes, axis_of, size_edges, sizes_of
from dpsynth_cli.questions import Ask, Block, Cells, Ints, Model, Question, UnitSizes
from dpsynth_cli.shares import divide

STEP = "units"
LOOKED_AT = 20_000  # rows of the model
MOST_CHANCES = 2**24  # probabilities that are in memory at once


def with_units(ask: Ask, omega: Domain, model: Model, share: Fraction, name: str) -> Model:
    """The model with units, whose numbers are under `name`; what a unit has in common are the columns that
    are declared `of: unit`."""
    columns = tuple(column for column in omega if column.of == "unit")
    k = omega.unit_rows
    assert k is not None
    looked_at = first_rows(
        model, omega, min(max(0, model.total), max(100, min(LOOKED_AT, MOST_CHANCES // k)))
    )
    axes = [axis_of(column, looked_at[column.name]) for column in columns]
    tables = [Cells((axis,)) for axis in axes] or [Cells(())]
    shares = divide(share, [1.0] * len(tables))
    edges = size_edges(k)
    asked = zip(tables, shares, strict=True)
    answers = ask([Question(STEP, UnitSizes(cells, edges), own) for cells, own in asked])
    sizes = sizes_of(axes, answers, looked_at, edges)
    mean = float(sizes.units @ np.arange(1, k + 1))
    facts = {
        "units": {"rows_of_a_unit": [round(part, 6) for part in sizes.units.tolist()], "mean": round(mean, 6)}
    }
    return replace(model, draw=_drawing(model, columns, sizes, name), facts=model.facts | facts)


def _drawing(
    model: Model, columns: Sequence[Column], sizes: Sizes, name: str
) -> Callable[..., Iterator[Block]]:
    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        own = np.random.default_rng(rng.integers(2**63))
        first = 0
        for block in gathered(model.draw(rows, rng)):
            made, units = grouped(block, columns, _drawn(sizes, block, own), name, first, own)
            first += units
            yield made

    return draw


def _drawn(sizes: Sizes, block: Block, rng: np.random.Generator) -> Ints:
    """How many rows the unit of each row has."""
    rows, step = len(next(iter(block.values()))), max(1, MOST_CHANCES // len(sizes.overall))
    parts = ({name: codes[at : at + step] for name, codes in block.items()} for at in range(0, rows, step))
    return np.concatenate([sizes_drawn(sizes.chances(part), rng) for part in parts])
