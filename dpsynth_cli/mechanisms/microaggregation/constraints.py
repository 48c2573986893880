"""Public convex constraints between numeric columns, kept by projection of the synthetic rows.

    start <= end        a + b <= c        x + y + z = 1        2 a - b >= 0        norm(x - 3, 2 y) <= 5 - z

Only rows that break one are moved, to the nearest point that keeps all of them (columns measured by their
bounds). A constraint does not concern a row in which one of its columns is missing. An inequality holds in
every row, after rounding to the columns' grid too; an equation holds as finely as that grid, so it is for
continuous columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.microaggregation.cones import Cone
from dpsynth_cli.mechanisms.microaggregation.polytope import Polytope
from dpsynth_cli.mechanisms.registry import Structure
from dpsynth_cli.numbers import RANGE, UNSIGNED, decimal
from dpsynth_cli.questions import Block, Floats, Ints

_NUMBER = re.compile(UNSIGNED)
_NORM = re.compile(r"\s*norm\s*\((?P<terms>.*)\)\s*<=(?P<limit>[^<>=]*)")
_ROUND = re.compile(r"\s*norm\s*\(")
_SIGN = re.compile(r"<=|>=|=")


ALLOWED = "a list of constraints such as [a <= b, a + b <= c]"


def read(value: Any) -> list[str]:
    """The constraints as written; what they say of columns is found by `kept`."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(ALLOWED)
    return value


STRUCTURE = Structure(ALLOWED, {"type": "array", "items": {"type": "string"}}, read)


class NotLinear(ValueError):
    """A text that is no constraint of the declared columns; says why."""


@dataclass(frozen=True)
class Constraint:
    """sum of weight * value <= bound, or = bound."""

    weights: dict[str, Fraction]
    bound: Fraction
    equal: bool
    text: str = ""

    @property
    def names(self) -> list[str]:
        return list(self.weights)


@dataclass(frozen=True)
class Norm:
    """The root of the sum of squares of terms, each of one column (weight, constant), is at most a limit: a
    constant, and a weight of one other column at most."""

    terms: dict[str, tuple[Fraction, Fraction]]
    limit: dict[str, Fraction]
    text: str = ""

    @property
    def names(self) -> list[str]:
        return [*self.terms, *(name for name in self.limit if name)]


def parsed(text: str, names: Sequence[str]) -> Constraint:
    """The constraint that a text says about columns of these names.

    >>> found = parsed("2 a - b >= 1", ["a", "b"])
    >>> {name: int(weight) for name, weight in found.weights.items()}, int(found.bound), found.equal
    ({'a': -2, 'b': 1}, -1, False)
    """
    sides = _SIGN.split(text)
    if len(sides) != 2:
        raise NotLinear("it needs exactly one of <=, >= and =")
    left, right = (_sum(side, sorted(names, key=len, reverse=True)) for side in sides)
    sign = -1 if ">=" in text else 1
    difference = {name: left.get(name, Fraction(0)) - right.get(name, Fraction(0)) for name in left | right}
    weights = {name: sign * w for name, w in difference.items() if name and w}
    if not weights:
        raise NotLinear("it names no column")
    equal = "<" not in text and ">" not in text
    return Constraint(weights, -sign * difference.get("", Fraction(0)), equal, text)


def parsed_norm(text: str, names: Sequence[str]) -> Norm:
    """The ball or the cone that a text says.

    >>> found = parsed_norm("norm(a - 3, 2 b) <= 5 - c", ["a", "b", "c"])
    >>> {name: (int(weight), int(constant)) for name, (weight, constant) in found.terms.items()}
    {'a': (1, -3), 'b': (2, 0)}
    >>> {name: int(weight) for name, weight in found.limit.items()}
    {'': 5, 'c': -1}
    """
    read = _NORM.fullmatch(text)
    if read is None:
        raise NotLinear("a norm is written as norm(a, b) <= 5, or with one column in the place of 5")
    longest = sorted(names, key=len, reverse=True)
    terms: dict[str, tuple[Fraction, Fraction]] = {}
    for part in read["terms"].split(","):
        own = _sum(part, longest)
        constant = own.pop("", Fraction(0))
        ((name, weight),) = own.items() if len(own) == 1 else [("", Fraction(0))]
        if not weight or name in terms:
            raise NotLinear("each part of a norm has one column, and each column one part")
        terms[name] = weight, constant
    limit = _sum(read["limit"], longest)
    if len(set(limit) - {""}) > 1 or set(limit) & set(terms):
        raise NotLinear("a norm is at most a number, or a number and one other column")
    return Norm(terms, limit, text)


def _sum(text: str, names: Sequence[str]) -> dict[str, Fraction]:
    """Weights by column; the constant is under the empty name."""
    found: dict[str, Fraction] = {}
    rest = text.strip()
    sign = 1
    while True:
        if rest[:1] in ("+", "-"):
            sign, rest = sign * (-1 if rest[0] == "-" else 1), rest[1:].lstrip()
        number = _NUMBER.match(rest)
        factor = decimal(number.group()) if number else Fraction(1)
        if factor is None:
            raise NotLinear(f"{rest[:30]!r} does not begin with 0 or a number {RANGE}")
        after = rest[number.end() :].lstrip().removeprefix("*").lstrip() if number else rest
        name = next((n for n in names if re.match(re.escape(n) + r"(?![\w-]*\w)", after)), "")
        if not name and not number:
            raise NotLinear(f"{rest[:30]!r} is neither a number nor a declared column")
        rest = after[len(name) :].lstrip()
        found[name] = found.get(name, Fraction(0)) + sign * factor
        if not rest:
            return found
        if rest[0] not in "+-":
            raise NotLinear(f"there must be + or - before {rest[:30]!r}")
        sign = 1


@dataclass(frozen=True, eq=False)
class Kept:
    """All constraints of a release; `apply` makes rows keep them."""

    columns: tuple[Column, ...]
    whole: Polytope
    centre: Floats
    tight: Polytope
    tight_centre: Floats

    def apply(self, block: Block) -> None:
        """Move the rows that break a constraint; the block is changed."""
        codes = np.stack([block[column.name] for column in self.columns], axis=1)
        missing = codes == [column.size if column.nullable else -1 for column in self.columns]
        for pattern in np.unique(missing, axis=0):
            own = np.flatnonzero((missing == pattern).all(axis=1))
            codes[np.ix_(own, np.flatnonzero(~pattern))] = self._kept(codes[own], ~pattern)
        for column, kept in zip(self.columns, codes.T, strict=True):
            block[column.name] = kept

    def _kept(self, codes: Ints, there: np.ndarray) -> Ints:
        """Codes of the columns that are there, in rows without the others."""
        columns = [column for column, is_there in zip(self.columns, there, strict=True) if is_there]
        codes = codes[:, there]
        for polytope, centre in ((self.whole, self.centre), (self.tight, self.tight_centre)):
            part = _without(polytope, there)
            x = _values(codes, columns)
            # An equation holds if it does to the grid's fineness.
            broken = (_without(self.whole, there).excess(x) > 1e-12) | (part.apart(x) > len(columns) / GRID)
            if broken.any():
                codes[broken] = _codes(part.nearest(x[broken], centre[there]), columns)
        return codes


def kept(texts: Sequence[str], omega: Domain) -> Kept | None:
    """The constraints of a spec; None where there are none. NotLinear says what is wrong with one."""
    if not texts:
        return None
    names = [column.name for column in omega]
    found = [parsed(text, names) for text in texts if not _ROUND.match(text)]
    round_ = [parsed_norm(text, names) for text in texts if _ROUND.match(text)]
    every: list[Constraint | Norm] = [*found, *round_]
    for constraint in every:
        text = constraint.text
        for name in constraint.names:
            if omega[name].type not in ("continuous", "integer"):
                raise NotLinear(f"{text}: {name} is not a continuous or integer column")
            if omega[name].scale != "linear":
                raise NotLinear(f"{text}: {name} has a {omega[name].scale} scale")
            if isinstance(constraint, Constraint) and constraint.equal and _stepped(omega[name]):
                words = "is an integer column" if omega[name].type == "integer" else "has a step"
                raise NotLinear(f"{text}: {name} {words}, and an equation needs continuous ones")
    columns = tuple(c for c in omega if any(c.name in one.names for one in every))
    cones = tuple(_cone(one, columns) for one in round_)
    # x in [0, 1] by the bounds: value = lower + x (upper - lower).
    rows = []
    for constraint in found:
        weights = [constraint.weights.get(column.name, Fraction(0)) for column in columns]
        lowest = sum((w * Fraction(c.lower) for w, c in zip(weights, columns, strict=True)), Fraction(0))
        scaled = [w * _span(c) for w, c in zip(weights, columns, strict=True)]
        size = max(map(abs, scaled)) or Fraction(1)
        # With weights of at most 1, no sum is beyond the number of columns: nor need a bound be.
        most = Fraction(len(columns) + 1)
        bound = float(max(-most, min(most, (constraint.bound - lowest) / size)))
        rows.append((np.array([float(w / size) for w in scaled]), bound, constraint.equal))
    inner, even = ([row for row in rows if row[2] is equal] for equal in (False, True))
    d = len(columns)
    A, E = (np.array([row[0] for row in part]).reshape(-1, d) for part in (inner, even))
    b, f = (np.array([row[1] for row in part]) for part in (inner, even))
    whole = Polytope(A, b, E, f, cones)
    tight = whole.tightened(np.array([1.0 / max(1, column.size - 1) for column in columns]))
    centre, tight_centre = whole.centre(), tight.centre()
    if centre is None:
        raise NotLinear("no row within the bounds keeps all constraints")
    if tight_centre is None:
        raise NotLinear("the constraints leave too little room for values on the columns' grid")
    return Kept(columns, whole, centre, tight, tight_centre)


def _cone(norm: Norm, columns: Sequence[Column]) -> Cone:
    """With x in [0, 1] in the place of values, and weights of at most 1."""
    zero = (Fraction(0), Fraction(0))
    parts = [norm.terms.get(c.name, zero) for c in columns]
    spans, lows = [_span(c) for c in columns], [Fraction(c.lower) for c in columns]
    slope = [norm.limit.get(c.name, Fraction(0)) for c in columns]
    offset = sum((w * low for w, low in zip(slope, lows, strict=True)), norm.limit.get("", Fraction(0)))
    scale = [abs(w) * span for (w, _), span in zip(parts, spans, strict=True)]
    middle = [
        (-constant / w - low) / span if w and span else Fraction(0)
        for (w, constant), low, span in zip(parts, lows, spans, strict=True)
    ]
    size = max(*scale, *(abs(w) * span for w, span in zip(slope, spans, strict=True))) or Fraction(1)
    return Cone(
        np.array([float(one / size) for one in scale]),
        np.array([float(one) for one in middle]),
        np.array([float(w * span / size) for w, span in zip(slope, spans, strict=True)]),
        float(offset / size),
    )


def keeping(blocks: Iterator[Block], keep: Kept | None) -> Iterator[Block]:
    """The same rows, but those that break a constraint are moved. Equal rows stay equal."""
    for block in blocks:
        if keep is not None:
            keep.apply(block)
        yield block


def _stepped(column: Column) -> bool:
    """Whether its codes are values, and not the cells between bounds."""
    return column.type != "continuous" or column.grid is not None


def _span(column: Column) -> Fraction:
    """From the first value to the last one on the column's grid."""
    if column.type == "integer":
        return Fraction((column.size - 1) * column.unit)
    if column.grid is not None:
        return (column.size - 1) * column.grid
    return Fraction(column.upper) - Fraction(column.lower)


def _without(polytope: Polytope, there: np.ndarray) -> Polytope:
    """The constraints that concern only columns that are there."""
    ours, even = ((part[:, ~there] == 0).all(axis=1) for part in (polytope.A, polytope.E))
    return Polytope(
        polytope.A[ours][:, there],
        polytope.b[ours],
        polytope.E[even][:, there],
        polytope.f[even],
        tuple(cone.of(there) for cone in polytope.cones if not (cone.concerned & ~there).any()),
    )


def _values(codes: Ints, columns: Sequence[Column]) -> Floats:
    """Places between the bounds, as `write.py` writes them."""
    x = np.empty(codes.shape)
    for j, column in enumerate(columns):
        if not _stepped(column):
            x[:, j] = (codes[:, j] + 0.5) / column.size if column.size > 1 else 0.0
        else:
            x[:, j] = codes[:, j] / max(1, column.size - 1)
    return x


def _codes(x: Floats, columns: Sequence[Column]) -> Ints:
    codes = np.empty(x.shape, np.int64)
    for j, column in enumerate(columns):
        last = column.size - 1
        place = np.rint(x[:, j] * last) if _stepped(column) else np.floor(x[:, j] * column.size)
        codes[:, j] = np.clip(place, 0, last).astype(np.int64)
    return codes
