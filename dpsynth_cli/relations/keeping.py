"""Rows that keep all rules, from rows that a model drew without knowing of them: post-processing.

Rows that break a rule first exchange values with other rows, of one column or of those that are missing
together, where fewer rows are broken then: that leaves every column's distribution as it was. The other row
has nearly the same value at first, and any only where no near one will do: what columns have to do with each
other, such as how long it is from start to end, stays nearly as it was, too. Before that, what a rule about
one column forbids is replaced by values that it allows, and what is missing together is exchanged. Rows that
are still broken take the columns that the rules connect from rows that keep them, and where there are none,
from a row that was found before anything was read; always within their class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.bounds import no_bound
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Block, Ints, Model
from dpsynth_cli.relations.relations import Relations, Rule

SWEEPS = 200  # of exchanges, at most: each tries every column once
REACH = 2**-10  # of the rows of a class: those with the nearest values, in the first sweep; then
WIDER = 1.25  # times as many in each
PATIENCE, SLOW = 12, 0.9  # no more of them where so many left so large a part of the broken rows

Names = tuple[str, ...]
Rows = Mapping[int, Mapping[str, int]]  # for each class (0 without strata) codes that keep all rules


@dataclass(frozen=True)
class Keeper:
    """The relations of a spec, its domain, and a possible row for each class."""

    relations: Relations
    omega: Domain
    possible: Rows

    def model(self, model: Model) -> Model:
        """The same model; its rows keep the rules."""
        if not self.relations.kept:
            return model

        def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
            for block in model.draw(rows, rng):
                yield self.kept(block, rng)

        return replace(model, draw=draw, bound=no_bound)

    def kept(self, block: Block, rng: np.random.Generator) -> Block:
        """The same rows where they keep the rules; others where they do not."""
        rows = len(next(iter(block.values())))
        if not self.relations.kept or not rows:
            return block
        block = {name: np.array(codes, np.int64) for name, codes in block.items()}
        classes = block[self.omega.strata] if self.omega.strata else np.zeros(rows, np.int64)
        alone: dict[Names, list[Rule]] = {}
        for rule in self.relations.rules:
            alone.setdefault(self.relations.modelled(rule.expression), []).append(rule)
        for columns, rules in alone.items():
            if len(columns) == 1:
                self._replace(block, columns, rules, classes, rng)
        for one, other in self.relations.missing_with:
            _miss_together(block, self.omega[one], self.omega[other], classes, rng)
        for columns, connected in self.relations.groups():
            self._exchange(block, columns, connected, classes, rng)
            self._replace(block, columns, connected, classes, rng)
        return block

    def _exchange(
        self, block: Block, columns: Names, rules: Sequence[Rule], classes: Ints, rng: np.random.Generator
    ) -> None:
        own = {name: block[name] for name in columns}
        broken = self.relations.broken(own, self.omega, rules)
        units = self._units(columns)
        partners = [_Partners(classes, own[unit[0]], self._ordered(unit), rng) for unit in units]
        before, reach = list[int](), REACH
        for _ in range(SWEEPS):
            before += [int(broken.sum())] if reach >= 1 else []
            stuck = len(before) > PATIENCE and before[-1] > SLOW * before[-PATIENCE]
            if stuck or not broken.any():
                return
            for at in rng.permutation(len(units)):
                left, right = partners[at].of(np.flatnonzero(broken), reach, rng)
                both = np.concatenate([left, right])
                across = np.concatenate([right, left])
                tried = {name: own[name][across if name in units[at] else both] for name in columns}
                after = self.relations.broken(tried, self.omega, rules).reshape(2, -1)
                # Fewer broken rows than before: else values would be carried ever further from the rule.
                fine = after.sum(axis=0) < broken[left].astype(int) + broken[right]
                left, right, after = left[fine], right[fine], after[:, fine]
                for name in units[at]:
                    own[name][left], own[name][right] = own[name][right], own[name][left]
                for unit, each in zip(units, partners, strict=True):
                    if unit[0] in units[at]:
                        each.exchanged(left, right)
                broken[left], broken[right] = after
            reach = min(1.0, reach * WIDER)

    def _ordered(self, unit: Names) -> bool:
        return len(unit) == 1 and self.omega[unit[0]].type != "nominal"

    def _units(self, columns: Names) -> list[Names]:
        """What is exchanged at once: each column, and those that are missing together."""
        together: dict[str, list[str]] = {}
        for one, other in self.relations.missing_with:
            together.setdefault(other, [other]).append(one)
        movable = [(name,) for name in columns if name != self.omega.strata]
        bundles = [tuple(names) for root, names in together.items() if root in columns]
        return movable + [names for names in bundles if self.omega.strata not in names]

    def _replace(
        self, block: Block, columns: Names, rules: Sequence[Rule], classes: Ints, rng: np.random.Generator
    ) -> None:
        broken = self.relations.broken({name: block[name] for name in columns}, self.omega, rules)
        movable = [name for name in columns if name != self.omega.strata]
        for k in np.unique(classes[broken]):
            bad, good = (np.flatnonzero((classes == k) & side) for side in (broken, ~broken))
            donors = rng.choice(good, len(bad)) if len(good) else None
            for name in movable:
                block[name][bad] = self.possible[int(k)][name] if donors is None else block[name][donors]


class _Partners:
    """Pairs of rows of one class, near in the order of some codes, or in any if these have none."""

    def __init__(self, classes: Ints, codes: Ints, ordered: bool, rng: np.random.Generator) -> None:
        self.classes, self.ordered = classes, ordered
        mixed = rng.permutation(len(classes))
        keys = (codes[mixed], classes[mixed]) if ordered else (classes[mixed],)
        self.order = mixed[np.lexsort(keys)]
        self.place = np.argsort(self.order)
        self.sizes = np.bincount(classes)
        self.starts = np.cumsum(self.sizes) - self.sizes

    def of(self, broken: Ints, reach: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Broken rows, and for each another row at random, one of so large a part of its class; no row is in
        two pairs."""
        own = self.classes[broken]
        size = self.sizes[own]
        if self.ordered:
            away = 1 + (rng.random(len(broken)) * np.maximum(reach * size, 8)).astype(np.int64)
            at = self.place[broken] - self.starts[own] + np.where(rng.random(len(broken)) < 0.5, away, -away)
            last = size - 1
            at = np.clip(last - np.abs(last - np.abs(at)), 0, last)  # from the ends back
        else:
            at = (rng.random(len(broken)) * size).astype(np.int64)
        pairs = rng.permutation(np.stack([broken, self.order[self.starts[own] + at]], axis=1))
        _, first = np.unique(pairs.ravel(), return_index=True)
        alone = np.zeros(pairs.size, bool)
        alone[first] = True
        left, right = pairs[alone.reshape(-1, 2).all(axis=1)].T
        return left, right

    def exchanged(self, left: Ints, right: Ints) -> None:
        """These rows have each other's codes now."""
        self.place[left], self.place[right] = self.place[right], self.place[left]
        self.order[self.place[left]], self.order[self.place[right]] = left, right


def _miss_together(block: Block, one: Column, other: Column, classes: Ints, rng: np.random.Generator) -> None:
    """`one` is missing where `other` is: missing cells go where they belong as long as there are any, and of
    what is left, values are taken from other rows, or taken away."""
    codes, gone = block[one.name], block[other.name] == other.size
    for k in np.unique(classes):
        own = classes == k
        too_few = rng.permutation(np.flatnonzero(own & gone & (codes != one.size)))
        too_many = rng.permutation(np.flatnonzero(own & ~gone & (codes == one.size)))
        both = min(len(too_few), len(too_many))
        codes[too_many[:both]] = codes[too_few[:both]]
        codes[too_few] = one.size
        rest = too_many[both:]
        if len(rest):
            codes[rest] = _some(codes[own & (codes != one.size)], len(rest), one, rng)


def _some(there: NDArray[np.int64], count: int, column: Column, rng: np.random.Generator) -> Ints:
    """Values of a column, from rows that have one; any, where none has."""
    return rng.choice(there, count) if len(there) else rng.integers(column.size, size=count)
