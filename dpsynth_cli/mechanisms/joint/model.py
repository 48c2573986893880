"""All that was counted, and the chain that is fitted to it: links first, then pairs, then larger tables.

Each kind is drawn towards what the model of the kinds before it expects. What early columns have to do with
each other in fine cells is lost where it follows only from a late one: where rows are far from the tables of
a column, the chain is made again with that column first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpsynth_cli.mechanisms.joint.chain import Chain
from dpsynth_cli.mechanisms.joint.estimates import Counted, estimates, independent, refined, with_margins
from dpsynth_cli.mechanisms.joint.frame import Frame, Scope, Table
from dpsynth_cli.mechanisms.joint.parts import pair_sums, together
from dpsynth_cli.mechanisms.joint.siblings import Siblings, given_first
from dpsynth_cli.numeric.forest import rooted
from dpsynth_cli.numeric.sampling import whole
from dpsynth_cli.questions import Ints

ROWS = 2**15  # that a model is fitted on: fewer for small tables and, by a root, for more than 20 columns;
ROUGH = 0.5  # of them where it is only asked what it expects
LEAST_ROWS = 2**12
TRIES = 2  # of another root, the column whose tables the rows are furthest from,
ASTRAY = 0.3  # if that is more, in all of its tables together
ROUNDS = 2  # in which rows are drawn again where each is given the one before it
SEED = 2**20 + 7  # of the rows a model is fitted on: they are part of the model, not of what is drawn from it


@dataclass
class Evidence:
    """Noisy tables; `variances` are those of single columns' cells."""

    frame: Frame
    variances: list[float]
    links: list[Counted] = field(default_factory=list)
    finer: dict[int, Counted] = field(default_factory=dict)  # links once more, by their number
    pairs: list[Counted] = field(default_factory=list)
    told: list[Counted] = field(default_factory=list)  # pairs that only larger tables tell of
    more: list[list[Counted]] = field(default_factory=list)  # tables of three columns, of four
    siblings: Siblings | None = None  # what rows are drawn given

    def learn(self, counted: Sequence[Counted]) -> None:
        """What new tables say of single columns."""
        self.frame, self.variances = with_margins(self.frame, self.variances, counted)

    def learn_pairs(self) -> None:
        """What tables of three columns say of pairs; those that were not counted are in these."""
        sums = pair_sums(one for kind in self.more for one in kind)
        self.links = [together(self.frame, one, sums.pop(one.scope[0], [])) for one in self.links]
        self.pairs = [together(self.frame, one, sums.pop(one.scope[0], [])) for one in self.pairs]
        given = [] if self.siblings is None else self.siblings.given
        for own in [own for pair, own in sums.items() if not set(pair) <= set(given)]:
            first, *others = sorted(own, key=lambda one: (-one.noisy.size, one.scope))
            self.told.append(together(self.frame, first, others))

    def estimated_links(self) -> list[Table]:
        links = estimates(self.frame, self.links, lambda scope: independent(self.frame, scope))
        for number, counted in self.finer.items():
            links[number] = refined(self.frame, links[number], counted)
        return links

    def fit(self, wanted: Sequence[Scope] = (), rounds: int = ROUNDS) -> tuple[Chain, list[Table]]:
        """The chain of all tables, with what it expects of the scopes wanted; and the tables. Where rows are
        given the one before them, they are drawn so many times on the way."""
        rng = np.random.default_rng(SEED)
        links = self.estimated_links()
        tables = list(links)
        for kind in (self.pairs + self.told, *self.more):
            if kind:
                chain = self._chain(tables, links, rng, [one.scope for one in kind])
                tables += estimates(self.frame, kind, chain.expected.__getitem__)
        if self.siblings is not None and self.siblings.before:
            for _ in range(rounds):
                self.siblings.draw_again(self._chain(tables, links, rng, ()), rng)
        chain, tried = self._chain(tables, links, rng, wanted), set[int]()
        for _ in range(TRIES if self.siblings is None else 0):
            away = {j: far for j, far in chain.astray.items() if far >= ASTRAY and j not in tried}
            if not away:
                break
            root = max(away, key=lambda j: away[j])
            tried.add(root)
            other = self._chain(tables, links, rng, wanted, root)
            chain = min(chain, other, key=lambda one: sum(one.astray.values()))
        return chain, tables

    def _chain(
        self,
        tables: Sequence[Table],
        links: Sequence[Table],
        rng: np.random.Generator,
        wanted: Sequence[Scope],
        root: int | None = None,
    ) -> Chain:
        d = len(self.frame.ladders)
        pairs = {(link.columns[0], link.columns[1]): link for link in links}
        if self.siblings is not None:
            order = given_first(self.siblings.given, pairs, d)
            classes = np.zeros(len(self.siblings.asked), np.int64)
            return Chain(self.frame, tables, order, classes, rng, wanted, self.siblings.known)
        order = [
            (j, None if parent is None else pairs[min(j, parent), max(j, parent)])
            for j, parent in rooted(list(pairs), d, root)
        ]
        most = ROWS * min(1.0, (20 / d) ** 0.5) * (ROUGH if wanted else 1)
        rows = max(LEAST_ROWS, int(min(most, 8 * float(self.frame.totals.sum()))))
        classes = classes_of(np.maximum(whole(self.frame.totals, rows, rng), 1))
        return Chain(self.frame, tables, order, classes, rng, wanted)


def classes_of(counts: Ints) -> Ints:
    """The class of each row, so many of each."""
    return np.repeat(np.arange(len(counts)), counts)
