"""Small worlds: every table of up to three rows over twelve possible ones, and all neighbours.

A table is a multiset of rows (that sums do not depend on their order is shown elsewhere). A relation says
which tables are neighbours: one row comes or goes, or is replaced by another. A unit may have several rows:
then as many come, go or are replaced together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from unittest.mock import patch

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import (
    Affine,
    Bins,
    CellCounts,
    Cells,
    CellSums,
    Centres,
    Distance,
    Gram,
    Halves,
    Misfit,
    Moments,
    Question,
    Scored,
    Statistic,
    Total,
)
from dpsynth_cli.trusted.core import curator
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.sums.tally import Tally

RELATIONS = ("add_remove", "replace_one")
NUMBER = Column("x", "integer", lower=0, upper=1, nullable=True)
PLACE = Column("e", "nominal", categories=("here", "there"))
LABEL = Column("k", "nominal", categories=("u", "v"))
MOST = 3  # rows

Row = tuple[int, ...]
Table = tuple[Row, ...]


def world(neighbours: str, unit: int | None = None) -> Domain:
    return Domain((NUMBER, PLACE, LABEL), neighbours, unit_rows=unit)


def statistics(by: str | None) -> dict[str, Statistic]:
    """One or more of each kind of question; some are of other columns in each class."""
    x, e = Bins("x", (0, 1, 2, 3)), Halves("e", 1)
    scored = Scored((x, e), ((-3, 1, 0), (2, 0)), (-2, 0, 1, 5))
    tilted = Affine(("x", "e"), (2, 1, -1), (-2, 0, 2, 4), 1)
    near, near_both = Centres(((1,), (-1,)), "k"), Centres(((7, 0, 2), (0, 7, 7)), "k")
    tables = (Cells((x,)), Cells((e, scored)))
    found: dict[str, Statistic] = {
        "Total": Total(),
        "CellCounts": CellCounts(Cells((x, e))),
        "CellCounts, level of a tree": CellCounts(Cells((Halves("x", 2), e), (0, 1, 0))),
        "CellCounts, scored": CellCounts(Cells((scored,))),
        "CellCounts, affine": CellCounts(Cells((tilted,))),
        "Moments 1": Moments(("x",), 1, 1),
        "Moments 1, two columns": Moments(("x", "e"), 1, 1),
        "Moments 1, clipped": Moments(("x", "e"), 3, 1, Fraction(1)),
        "Moments 2": Moments(("x",), 1, 2),
        "Moments 1, about": Moments(("x",), 1, 1, Fraction(2), near),
        "Moments 2, about": Moments(("x", "e"), 3, 2, Fraction(1), near_both, 1),
        "CellCounts, distance": CellCounts(Cells((Distance(("x", "e"), near_both, (0, 5, 12, 20), 3, 1),))),
        "Moments 2, two columns": Moments(("x", "e"), 1, 2),
        "Moments 2, clipped": Moments(("x", "e"), 2, 2, Fraction(1)),
        "Gram": Gram((x, e)),
        "Gram with diagonal": Gram((x, e), diagonal=True),
        "Gram of scores": Gram((x, e), scores=((-1, 1, 0), (1, -1)), bits=1),
        "CellSums": CellSums(Cells((e,)), (x,)),
        "CellSums, two attributes": CellSums(Cells((scored,)), (x, e)),
        "Misfit": Misfit(tables, (((1, 0, 1), (0, 1, 0, 2, 1, 0)),) * (2 if by else 1)),
    }
    if by:
        found["CellCounts, own cells"] = CellCounts((Cells((x,)), Cells((e,))))
    return found


def every_row(omega: Domain) -> list[Row]:
    return list(product(*(range(column.codes) for column in omega)))


def every_table(omega: Domain, most: int = MOST) -> list[Table]:
    rows = every_row(omega)
    return [table for n in range(most + 1) for table in combinations_with_replacement(rows, n)]


def neighbouring(tables: list[Table], neighbours: str, unit: int = 1) -> Iterator[tuple[int, int]]:
    """Pairs of tables, by their numbers, that differ in one unit of at most so many rows."""
    number = {table: i for i, table in enumerate(tables)}
    rows = sorted({row for table in tables for row in table})
    units = [one for n in range(1, unit + 1) for one in combinations_with_replacement(rows, n)]
    for table in tables:
        for place, one in enumerate(units):
            more = number.get(tuple(sorted(table + one)))
            if more is None:  # too many rows
                continue
            if neighbours == "add_remove":
                yield number[table], more
                continue
            for other in units[:place]:  # of no more rows
                yield number[tuple(sorted(table + other))], more


def sums(question: Question, omega: Domain, tables: list[Table]) -> np.ndarray:
    """The exact answer of every table."""
    found = []
    for table in tables:
        codes = np.array(table, np.int64).reshape(len(table), len(omega.columns))
        tally = Tally([question], omega)
        tally.add({column.name: codes[:, i] for i, column in enumerate(omega)}, len(table))
        found.append(tally.sums()[0])
    return np.array(found)


@lru_cache(maxsize=8)
def _pairs(tables: tuple[Table, ...], neighbours: str, unit: int) -> np.ndarray:
    return np.array(list(neighbouring(list(tables), neighbours, unit)))


def moves(question: Question, omega: Domain, tables: list[Table], unit: int | None = None) -> np.ndarray:
    """How far the answers of two neighbours are apart: every different vector once, and its opposite. A
    unit has as many rows as the domain says, unless stated."""
    answers = sums(question, omega, tables)
    pairs = _pairs(tuple(tables), omega.neighbours, unit or omega.unit_rows or 1)
    moved = np.unique(answers[pairs[:, 1]] - answers[pairs[:, 0]], axis=0)
    return np.unique(np.concatenate([moved, -moved]), axis=0)


# --- which noise each integer of an answer gets -------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """One call of a sampler: integers that it drew together."""

    noise: str
    parameter: Fraction
    places: tuple[int, ...]


def drawn(charge: Charge, omega: Domain) -> list[Drawn]:
    """What the curator really draws for an answer: its own code, with samplers that note how they are
    called."""
    calls: list[tuple[str, Fraction]] = []

    def noting(noise: str):
        def sampler(parameter: Fraction, size: int, source: object) -> np.ndarray:
            calls.append((noise, parameter))
            return np.full(size, len(calls), np.int64)

        return sampler

    with (
        patch.object(curator, "discrete_laplace", noting("discrete_laplace")),
        patch.object(curator, "discrete_cube", noting("discrete_cube")),
        patch.object(curator, "rounded_gaussian", noting("rounded_gaussian")),
    ):
        of = curator.noise_for(charge, omega, None)  # type: ignore[arg-type]
    return [
        Drawn(noise, parameter, tuple(np.flatnonzero(of == number + 1).tolist()))
        for number, (noise, parameter) in enumerate(calls)
        if (of == number + 1).any()
    ]
