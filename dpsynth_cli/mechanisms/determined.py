"""Columns that another one determines, by a table that is found from noisy counts: kept in every row.

The steward says that a column determines another (`rules.determines`, `private`), and not by which table.
Rows are counted by both columns, for a small share of the budget; the value of the second that most rows have
with one of the first is its own, and where none stands above the noise, the most frequent one of all. The
second is no part of the model: it is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.search.noise import reach
from dpsynth_cli.questions import Answer, Ask, Bins, Block, CellCounts, Cells, Floats, Ints, Model, Question
from dpsynth_cli.shares import divide
from dpsynth_cli.values import numbers_of

STEP = "determines"
SHARE = Fraction(1, 20)  # of the budget, for all tables together
CHANCE = 0.05  # that noise is taken for rows, in any cell of a table
MOST_CELLS = 2**20
LISTED = 200  # entries of a table in the audit
BROKEN = 0.05  # of the rows: more are warned of

Pair = tuple[str, str]  # a column, and one that it determines


@dataclass(frozen=True, eq=False)
class Table:
    """For each code of a column the code of the one that it determines, whether rows showed that, and the
    part of all rows that are as the table says, as far as noise lets it be seen."""

    to: Ints
    sure: np.ndarray
    kept: float


def rest_of(omega: Domain, pairs: Sequence[Pair]) -> Domain:
    """The columns that are left to a model."""
    gone = {determined for _, determined in pairs}
    return replace(omega, columns=tuple(column for column in omega if column.name not in gone))


def with_determined(ask: Ask, omega: Domain, pairs: Sequence[Pair], model: Model, share: Fraction) -> Model:
    """The model with the columns that others determine, for a share of the budget."""
    shares = divide(share, [1.0] * len(pairs))
    questions = [
        Question(STEP, CellCounts(Cells((_each(omega[one]), _each(omega[other])))), own)
        for (one, other), own in zip(pairs, shares, strict=True)
    ]
    answers = ask(questions)
    tables = [found(answer, omega[one].codes) for (one, _), answer in zip(pairs, answers, strict=True)]

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        for block in model.draw(rows, rng):
            looked_up = {
                other: table.to.take(block[one]) for (one, other), table in zip(pairs, tables, strict=True)
            }
            yield {**block, **looked_up}

    each = list(zip(pairs, tables, strict=True))
    facts = {other: _facts(omega[one], omega[other], table) for (one, other), table in each}
    notes = [_note(one, other, table) for (one, other), table in each if table.kept < 1 - BROKEN]
    return replace(model, draw=draw, facts=model.facts | {"determines": facts}, notes=(*model.notes, *notes))


def _each(column: Column) -> Bins:
    return Bins(column.name, tuple(range(column.codes + 1)))


def found(answer: Answer, codes: int) -> Table:
    """The table that noisy counts show, row-major, of so many codes of the first column.

    >>> counts = np.array([[90, 1, 0], [2, 0, 70], [0, 1, 2]])
    >>> table = found(Answer(counts.ravel(), (9,), "rounded_gaussian", 2.0), 3)
    >>> table.to.tolist(), table.sure.tolist(), round(table.kept, 2)
    ([0, 2, 0], [True, True, False], 0.96)
    """
    counts: Floats = answer.values.reshape(codes, -1).astype(np.float64)
    reached = reach(answer.noise, answer.sd, counts.size, CHANCE)
    best, top = counts.argmax(axis=1), counts.max(axis=1)
    sure = top >= reached
    usual = int(counts.sum(axis=0).argmax())
    total = max(1.0, float(counts.sum()))
    return Table(np.where(sure, best, usual), sure, float(np.clip(top[sure].sum() / total, 0.0, 1.0)))


def _facts(one: Column, other: Column, table: Table) -> dict[str, Any]:
    """What was found: for whoever wants to state the table in the next spec."""
    facts: dict[str, Any] = {
        "by": one.name,
        "values": len(table.to),
        "seen": int(table.sure.sum()),
        "part_of_rows": round(table.kept, 4),
    }
    if one.size <= LISTED:
        keys, values = _texts(one, np.arange(one.size)), _texts(other, table.to[: one.size])
        facts["table"] = {key: value for key, value in zip(keys, values, strict=True) if key is not None}
    return facts


def _texts(column: Column, codes: Ints) -> list[str | None]:
    if column.categorical:
        labels: list[str | None] = [*column.categories, None]
        return [labels[code] for code in codes]
    numbers = numbers_of(np.minimum(codes, column.size - 1), column).tolist()
    return [str(number) if code < column.size else None for code, number in zip(codes, numbers, strict=True)]


def _note(one: str, other: str, table: Table) -> str:
    return (
        f"{one} determines {other} in about {100 * table.kept:.0f} % of the rows as far as noise lets it be "
        f"seen, and in all rows of the release. If {one} does not determine it, leave that out of the rules."
    )
