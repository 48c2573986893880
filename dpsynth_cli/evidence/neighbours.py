"""Worst-case neighbouring tables: small, and different in one row where that row shows most.

All rows are alike but one (or those of one unit), so nothing hides it: it lies alone in an empty cell, at a
boundary, in a category or class of its own, it is missing, it is one more of many, or the first of all.
Tables are public, and so is everything about them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.questions import Ints

FEW, MANY = 20, 1000  # rows; with many, mechanisms that fall back for small tables do not
UNIT = 3  # rows of a unit, where units are protected

NUMBER = Column("x", "integer", lower=0, upper=3)
ANSWER = Column("y", "boolean", categories=("false", "true"))
GAPS = Column("x", "integer", lower=0, upper=3, nullable=True)
GROUP = Column("g", "ordinal", categories=("a", "b", "c"))
LABEL = Column("label", "boolean", categories=("false", "true"))

Row = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables of codes, and the row (or rows, all alike) that only the first has."""

    name: str
    omega: Domain
    row: Row
    usual: tuple[Row, int]  # the rows that both have, and how many
    tables: tuple[dict[str, Ints], dict[str, Ints]]


def pairs(mechanism: Mechanism, params: Any, neighbours: str, units: bool = False) -> list[Pair]:
    """The pairs that the mechanism can release; with `units`, those that differ in a unit of several rows."""
    made = _units(neighbours) if units else _added() if neighbours == "add_remove" else _replaced()
    refused = units and mechanism.stream  # a stream protects rows
    return [pair for pair in made if not refused and not mechanism.fits(pair.omega, params)]


def _added() -> Iterator[Pair]:
    one = Domain((NUMBER,))
    two = Domain((NUMBER, ANSWER))
    gaps = Domain((GAPS, GROUP))
    label = Domain((NUMBER, LABEL), strata="label")
    yield _pair("a row in an empty cell at the boundary", one, (0,), FEW, (3,))
    yield _pair("one more of many alike: n and n + 1", one, (0,), FEW, (0,))
    yield _pair("the first row: 0 and 1", one, (0,), 0, (3,))
    yield _pair("a count at the end of a byte: 127 and 128", one, (3,), 127, (3,))
    yield _pair("the opposite corner of two columns", two, (0, 0), MANY, (3, 1))
    yield _pair("a missing value and a new category", gaps, (0, 0), FEW, (4, 2))
    yield _pair("the first of its class", label, (0, 0), MANY, (3, 1))


def _replaced() -> Iterator[Pair]:
    one = Domain((NUMBER,), "replace_one")
    two = Domain((NUMBER, ANSWER), "replace_one")
    gaps = Domain((GAPS, GROUP), "replace_one")
    label = Domain((NUMBER, LABEL), "replace_one", strata="label")
    yield _pair("a row moved to an empty cell at the boundary", one, (0,), FEW, (3,), (0,))
    yield _pair("a row moved to the opposite corner", two, (0, 0), MANY, (3, 1), (0, 0))
    yield _pair("a row moved from the boundary past the centre", one, (0,), FEW, (3,), (1,))
    yield _pair("a value gone missing and a new category", gaps, (0, 0), FEW, (4, 2), (0, 0))
    yield _pair("a moved label", label, (0, 0), MANY, (0, 1), (0, 0))
    yield _pair("a moved label and value", label, (0, 0), MANY, (3, 1), (0, 0))


def _units(neighbours: str) -> Iterator[Pair]:
    two = Domain((NUMBER, ANSWER), neighbours, unit_rows=UNIT)
    label = Domain((NUMBER, LABEL), neighbours, strata="label", unit_rows=UNIT)
    instead = (0, 0) if neighbours == "replace_one" else None
    yield _pair("a unit of three rows alike at the opposite corner", two, (0, 0), FEW, (3, 1), instead)
    yield _pair("the first of its class, three rows of a unit", label, (0, 0), MANY, (3, 1), instead)


def _pair(name: str, omega: Domain, usual: Row, rows: int, extra: Row, instead: Row | None = None) -> Pair:
    own = omega.unit_rows or 1  # rows that differ: all of a unit, all alike
    with_row = [usual] * rows + [extra] * own
    without = [usual] * rows + ([instead] * own if instead is not None else [])
    return Pair(name, omega, extra, (usual, rows), (_table(omega, with_row), _table(omega, without)))


def with_rows(pair: Pair, extra: Row, instead: Row | None) -> Pair:
    """Tables of the same kind that differ by these rows."""
    words = f"{extra}" if instead is None else f"{extra} instead of {instead}"
    return _pair(f"{pair.name}: the row {words}", pair.omega, *pair.usual, extra, instead)


def _table(omega: Domain, rows: list[Row]) -> dict[str, Ints]:
    codes = np.array(rows, np.int64).reshape(len(rows), len(omega.columns))
    return {column.name: codes[:, i] for i, column in enumerate(omega)}
