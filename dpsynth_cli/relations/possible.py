"""Is there a row that keeps all rules? Found, or shown not to be, before anything is read.

First rows at random, then a search: a box of rows (a range or some categories of each column) in which some
rule can only be false holds none; every other one is cut in two. Where rules are linear and the search takes
too long, the same is an integer program (`linear.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Block
from dpsynth_cli.relations.facts import Typing
from dpsynth_cli.relations.kinds import Facts, of_column
from dpsynth_cli.relations.nodes import names
from dpsynth_cli.relations.relations import Relations, Rule
from dpsynth_cli.values import numbers_of

RANDOM = 4096  # rows that are tried at first
TRIED = 48  # rows of each box
BOXES = 3000  # that are looked at


@dataclass(frozen=True)
class Box:
    """Codes from `low` to `high` of each column, and whether it may be missing, may be there."""

    low: Mapping[str, int]
    high: Mapping[str, int]
    gone: Mapping[str, tuple[bool, bool]]


@dataclass(frozen=True)
class Found:
    """A row that keeps all rules; or none, and whether there is `surely` none."""

    row: dict[str, int] | None
    surely: bool = True


def possible_row(relations: Relations, omega: Domain, fixed: Mapping[str, int] | None = None) -> Found:
    """Codes of the columns that rules name, with those that are fixed.

    >>> age = Column("age", "integer", lower=0, upper=9)
    >>> from dpsynth_cli.relations.language import parse
    >>> rules = tuple(Rule(text, parse(text)) for text in ("age > 4", "age * 2 < 9"))
    >>> possible_row(Relations(rules=rules), Domain((age,)))
    Found(row=None, surely=True)
    """
    row: dict[str, int] = dict(fixed or {})
    for columns, rules in relations.groups():
        found = _search(relations, omega, columns, rules, fixed or {})
        if found.row is None and not found.surely:
            from dpsynth_cli.relations.linear import solved  # scipy takes long to import

            found = Found(*solved(relations, omega, columns, rules, fixed or {}))
        if found.row is None:
            return found
        row |= found.row
    return Found(row)


def _search(
    relations: Relations,
    omega: Domain,
    columns: tuple[str, ...],
    rules: tuple[Rule, ...],
    fixed: Mapping[str, int],
) -> Found:
    rng = np.random.default_rng(0)
    own = {name: omega[name] for name in columns}
    whole = _whole(own, fixed)
    todo, looked = [whole], 0
    tried = RANDOM
    while todo:
        box = todo.pop()
        if not _may_hold(box, own, relations, rules):
            continue
        block = _rows(box, own, tried, rng)
        good = np.flatnonzero(~relations.broken(block, omega, rules))
        if len(good):
            return Found({name: int(codes[good[0]]) for name, codes in block.items()})
        looked, tried = looked + 1, TRIED
        if looked > BOXES:
            return Found(None, surely=False)
        todo += _halves(box, own)
    return Found(None)


def _whole(own: Mapping[str, Column], fixed: Mapping[str, int]) -> Box:
    low = dict.fromkeys(own, 0)
    high = {name: column.size - 1 for name, column in own.items()}
    gone = {name: (column.nullable, True) for name, column in own.items()}
    for name in own.keys() & fixed.keys():
        missing = fixed[name] >= own[name].size
        gone[name] = (missing, not missing)
        if not missing:
            low[name] = high[name] = fixed[name]
    return Box(low, high, gone)


def _may_hold(box: Box, own: Mapping[str, Column], relations: Relations, rules: tuple[Rule, ...]) -> bool:
    """Whether every rule can be true or missing somewhere in a box."""
    known = {name: _facts(box, column) for name, column in own.items()}
    typing = Typing(known, strict=False)
    needed = relations.computed_for(name.name for rule in rules for name in names(rule.expression))
    for one in relations.computed:
        if one.column.name in needed:
            known[one.column.name] = typing(one.expression)
    return all(facts.can_be_true or facts.missing for facts in (typing(rule.expression) for rule in rules))


def _facts(box: Box, column: Column) -> Facts:
    low, high = box.low[column.name], box.high[column.name]
    missing, present = box.gone[column.name]
    facts = replace(of_column(column), missing=missing, present=present)
    if column.type == "boolean":
        return replace(facts, low=low, high=high)
    if column.categorical:
        return replace(facts, labels=column.categories[low : high + 1])
    ends = numbers_of(np.array([low, high]), column).tolist()
    return replace(facts, low=ends[0], high=ends[1])


def _rows(box: Box, own: Mapping[str, Column], count: int, rng: np.random.Generator) -> Block:
    """Rows of a box: its ends, its middle, and others at random."""
    block: Block = {}
    for name, column in own.items():
        low, high = box.low[name], box.high[name]
        codes = rng.integers(low, high + 1, size=count)
        codes[rng.random(count) < 0.2] = low
        codes[rng.random(count) < 0.2] = high
        codes[:3] = low, high, (low + high) // 2
        missing, present = box.gone[name]
        if missing:
            codes[rng.random(count) < (0.3 if present else 2.0)] = column.size
        block[name] = codes
    return block


def _halves(box: Box, own: Mapping[str, Column]) -> list[Box]:
    """A box in two: a column that may be missing or not is cut there first, else the one with most codes."""
    for name, (missing, present) in box.gone.items():
        if missing and present:
            return [replace(box, gone={**box.gone, name: only}) for only in ((False, True), (True, False))]
    there = [name for name in own if box.gone[name][1] and box.high[name] > box.low[name]]
    if not there:
        return []
    widest = max(there, key=lambda name: box.high[name] - box.low[name])
    middle = (box.low[widest] + box.high[widest]) // 2
    return [
        replace(box, high={**box.high, widest: middle}),
        replace(box, low={**box.low, widest: middle + 1}),
    ]
