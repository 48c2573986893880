"""Parents with places for their children: how many a parent has is a column of the parents' model, and what
the children are is drawn given it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.joint.given import Given, run_given
from dpsynth_cli.questions import Ask, Block, Ints, Model
from dpsynth_cli.shares import divide

ROWS = 2**15  # children that a model is fitted on, at most
PARENTS = 2**15  # that they are looked for among
BLOCK = 2**16  # parents whose children are drawn at once
NUMBER = "number"  # the origin of a column that says how many children there are


def shares(columns: Sequence[int]) -> list[Fraction]:
    """What each table gets of the budget, by how many columns are modelled: the parents first."""
    return divide(Fraction(1), [float(own) ** 0.5 for own in columns])


def number_of(parents: Domain, table: str) -> Column:
    """The column of parents that says how many children there are in a table."""
    return next(column for column in parents if column.origin == (NUMBER, table))


def child_model(
    ask: Ask, omega: Domain, parents: Domain, split: Mapping[str, float], model: Model
) -> Given:
    """A model of the children of parents that another model draws."""
    rows = min(PARENTS, max(1, model.total))
    blocks = list(model.draw(rows, np.random.default_rng(0)))
    some = {column.name: np.concatenate([block[column.name] for block in blocks]) for column in parents}
    number = some[number_of(parents, omega.table).name]
    upto = max(1, int(np.searchsorted(np.cumsum(number), ROWS, side="right")))
    some = {name: codes[:upto] for name, codes in some.items()}
    if not number[:upto].any():  # no children: what they would be like is asked all the same
        some[number_of(parents, omega.table).name] = np.ones(upto, np.int64)
    families, place, _ = opened(some, omega, parents)
    return run_given(ask, omega, split, families, place)


def opened(
    parents: Mapping[str, Ints], omega: Domain, above: Domain
) -> tuple[Block, Ints, Ints]:
    """For each child of these parents what it is given but for the child before, its place among its
    siblings, and which of the parents is its own."""
    number = parents[number_of(above, omega.table).name]
    parent = np.repeat(np.arange(len(number)), number)
    place = np.arange(len(parent)) - np.repeat(np.cumsum(number) - number, number)
    given: Block = {}
    for column in omega:
        kind, name = column.origin or ("", "")
        if kind == "parent":
            given[column.name] = parents[name][parent]
        elif kind == NUMBER:  # parents count from none, and so does a child whose number is one
            given[column.name] = parents[number_of(above, name).name][parent]
        elif kind == "place":
            given[column.name] = place
    return given, place, parent


def children(
    model: Model, given: Given, omega: Domain, above: Domain, foreign_key: str
) -> Model:
    """The model of a whole table of children: `draw` takes the number of parents, and draws the children of
    those that the parents' model draws from the same random numbers."""

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        (own,) = rng.spawn(1)
        first = 0
        for block in model.draw(rows, rng):
            many = len(next(iter(block.values())))
            for start in range(0, many, BLOCK):
                some = {name: np.asarray(codes)[start : start + BLOCK] for name, codes in block.items()}
                told, place, parent = opened(some, omega, above)
                if len(place):
                    made = given.draw(told, place, own)
                    made[foreign_key] = first + start + parent
                    yield made
            first += many

    return Model(given.total, draw, given.notes, given.facts)
