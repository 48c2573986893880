"""Parents with places for their children: how many a parent has is a column of the parents' model, and what
the children are is drawn given it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.joint.given import Given, run_given
from dpsynth_cli.questions import Ask, Block, Ints, Model
from dpsynth_cli.shares import divide

ROWS = 2**16  # children that a model is fitted on, at most
CELLS = 64.0  # of a table, when it is chosen how many children of a parent are asked about
PARENTS = 2**15  # that they are looked for among
BLOCK = 2**16  # parents whose children are drawn at once
NUMBER = "number"  # the origin of a column that says how many children there are


def shares(columns: Sequence[int]) -> list[Fraction]:
    """What each table gets of the budget, by how many columns are modelled: the parents first."""
    return divide(Fraction(1), [float(own) ** 0.5 for own in columns])


def number_of(parents: Domain, table: str) -> Column:
    """The column of parents that says how many children there are in a table."""
    return next(column for column in parents if column.origin == (NUMBER, table))


@dataclass(frozen=True)
class Some:
    """Parents that a model drew, always the same ones, and how many children each has in a table."""

    parents: Block
    number: Ints

    @classmethod
    def of(cls, model: Model, parents: Domain, table: str) -> Some:
        blocks = list(model.draw(min(PARENTS, 8 * max(1, model.total)), np.random.default_rng(0)))
        some = {column.name: np.concatenate([block[column.name] for block in blocks]) for column in parents}
        own = number_of(parents, table).name
        if not some[own].any():  # no children: what they would be like is asked all the same
            some[own] = np.ones_like(some[own])
        return cls(some, some[own])

    def asked(self, variance: float, total: int, most: int) -> int:
        """How many children of a parent questions are about, at most: more of them have less chance and more
        noise; fewer stand for others, in large families for many. `variance` is that of a count about one."""
        tried = sorted({1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, most})
        sizes = [own for own in tried if own <= most]
        errors = []
        for own in sizes:
            some = np.minimum(self.number, own).astype(np.float64)
            many = max(1, total) * max(1e-9, float(some.mean()))
            stands = self.number / np.maximum(some, 1)  # a child that is asked about, for so many
            uneven = float((some * stands**2).mean() * some.mean() / max(1e-9, (some * stands).mean()) ** 2)
            errors.append(uneven * (own**2 * variance + many / CELLS) / many**2)
        return sizes[int(np.argmin(errors))]


def child_model(ask: Ask, omega: Domain, parents: Domain, split: Mapping[str, float], some: Some) -> Given:
    """A model of the children of parents that another model draws."""
    upto = max(1, int(np.searchsorted(np.cumsum(some.number), ROWS, side="right")))
    families, place, parent = opened({name: own[:upto] for name, own in some.parents.items()}, omega, parents)
    return run_given(ask, omega, split, families, place, of_parents(parent, omega.unit_rows or 1))


def of_parents(parent: Ints, most: int) -> Ints:
    """At most so many children of each parent, at random, always the same; parents are in their order."""
    by = np.lexsort((np.random.default_rng(0).random(len(parent)), parent))
    first = np.searchsorted(parent[by], np.arange(int(parent.max(initial=-1)) + 1))
    return np.sort(by[np.arange(len(by)) - first[parent[by]] < most])


def opened(parents: Mapping[str, Ints], omega: Domain, above: Domain) -> tuple[Block, Ints, Ints]:
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


def in_order(
    made: Mapping[str, Ints], omega: Domain, parent: Ints, order: Sequence[tuple[str, bool]]
) -> Ints:
    """The places of children sorted by these columns, those of one parent together as before; a missing one
    is last, and equal ones stay as they are."""
    keys = [
        np.where(made[name] == omega[name].size, omega[name].size, -made[name] if falling else made[name])
        for name, falling in order
        if name in made
    ]
    return np.lexsort((*keys[::-1], parent))


def children(
    model: Model,
    given: Given,
    omega: Domain,
    above: Domain,
    foreign_key: str,
    order: Sequence[tuple[str, bool]] = (),
) -> Model:
    """The model of a whole table of children: `draw` takes the number of parents, and draws the children of
    those that the parents' model draws from the same random numbers; with what they were given. Those of one
    parent are sorted by the columns of `order`, each with whether the largest is first."""

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
                    by = in_order(made, omega, parent, order)
                    made = told | {name: codes[by] for name, codes in made.items()}
                    for column in omega:
                        if column.origin and column.origin[0] == "previous":
                            before = np.roll(made[column.origin[1]], 1)
                            made[column.name] = np.where(place == 0, column.size, before)
                    made[foreign_key] = first + start + parent
                    yield made
            first += many

    return Model(given.total, draw, given.notes, given.facts)
