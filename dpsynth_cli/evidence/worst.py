"""The worst case, found by itself: tables, rows and a split of the budget where a run tells as much as it
may.

The privacy loss of a recorded run is known exactly (`likelihood.py`), so that candidates are compared
without statistics: first the pairs of tables that show most things (`neighbours.py`), then every row that
could stand there instead, then splits of the budget that put nearly all of it on one stage, since rows that
are the worst for one question need not be so for another. A steward may choose any split, so a claim holds
for all of them or for none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import sqrt
from typing import Any

from dpsynth_cli.evidence.likelihood import Told, loss
from dpsynth_cli.evidence.neighbours import Pair, pairs, with_rows
from dpsynth_cli.evidence.runs import Bench
from dpsynth_cli.evidence.streams import bench_of
from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.trusted.core.accountant import Accountant

NEAR = 0.97  # of the claim: then nothing worse is looked for
REACHED = 0.99  # of the claim: of runs that lose as much, the one by fewer answers is told apart more often
HEAVY = 0.97  # of the budget, on one stage
RUNS = 5  # of each candidate: where questions depend on answers, losses differ


@dataclass(frozen=True, eq=False)
class Worst:
    """A recorded run, and what it can tell at most: of epsilon, or of mu squared."""

    bench: Bench
    told: list[Told]
    loss: Fraction

    @property
    def part(self) -> float:
        """Of the claim: of epsilon, or of mu."""
        return part_of_claim(self.loss, self.bench.budget)

    @property
    def rank(self) -> tuple[bool, float, float]:
        """What is above the claim first, then what loses more, then what loses it by fewer answers."""
        squares = sum(float(each.loss()) ** 2 for each in self.told)
        return not within_claim(self.loss, self.bench.budget), min(self.part, REACHED), squares


def part_of_claim(told: Fraction, budget: Accountant) -> float:
    """How much of the claimed epsilon (or mu) that is.

    >>> part_of_claim(Fraction(1, 4), Accountant.pure(Fraction(1, 2)))
    0.5
    """
    return float(told / budget.total) if budget.currency == "epsilon" else sqrt(told / (2 * budget.total))


def within_claim(told: Fraction, budget: Accountant) -> bool:
    """Exactly."""
    return told <= (budget.total if budget.currency == "epsilon" else 2 * budget.total)


def worst(
    mechanism: Mechanism, params: Any, neighbours: str, budget: Accountant, units: bool = False
) -> Worst:
    """The run that tells most, of all candidates."""
    best: Worst | None = None
    for split in _splits(mechanism.stages):
        for pair in pairs(mechanism, params, neighbours, units):
            bench = bench_of(mechanism, params, pair, budget, split)
            run = _recorded(bench)
            best = _worse(best, run)
            if best.part < NEAR and not mechanism.stream:
                best = _worse(best, _other_rows(bench, run.told))
        if best is not None and best.part >= NEAR:
            break
    assert best is not None
    return best


def _recorded(bench: Bench) -> Worst:
    runs = [bench.transcript() for _ in range(RUNS)]
    return max((Worst(bench, told, loss(told)) for told in runs), key=lambda run: run.rank)


def _worse(one: Worst | None, other: Worst) -> Worst:
    return other if one is None or other.rank > one.rank else one


def _other_rows(bench: Bench, told: list[Told]) -> Worst:
    """The rows of the same domain that tell most by these questions, and a run with them."""
    best = max(
        _same_kind(bench.pair), key=lambda pair: _of_questions(replace(bench, pair=pair, known={}), told)
    )
    return _recorded(replace(bench, pair=best, known={}))


def _same_kind(pair: Pair) -> Iterator[Pair]:
    rows = list(product(*(range(column.codes) for column in pair.omega)))
    for extra, instead in product(rows, rows if pair.omega.neighbours == "replace_one" else [None]):
        if extra != instead:
            yield with_rows(pair, extra, instead)


def _of_questions(bench: Bench, told: list[Told]) -> Fraction:
    questions = [each.charge.question for each in told]
    return loss(
        [
            replace(each, first=first, second=second)
            for each, (first, second) in zip(told, map(bench.exact, questions), strict=True)
        ]
    )


def _splits(stages: Mapping[str, float]) -> Iterator[dict[str, float]]:
    """The default, and one for each stage that has nearly everything."""
    yield dict(stages)
    for heavy in stages:
        rest = (1 - HEAVY) / max(1, len(stages) - 1)
        yield {stage: HEAVY if stage == heavy else rest for stage in stages}
