"""What a release knows of its columns and pairs of them: for the public audit and the report.

From questions, prices and the private total alone. A pair is `measured` where an answer has both columns,
`looked_at` where only its distance from the model was asked, `follows` where measured pairs connect its
columns (the model takes them as independent given the columns between), and `assumed` independent else.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from dpsynth_cli.mechanisms.search.find import STEP
from dpsynth_cli.questions import CellCounts, Gram, Misfit, Moments, Question, Total
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.core.shapes import columns_of

LISTED = 2000  # pairs; of wider tables only how many there are of each kind
EXTREMES = 10

Pair = tuple[str, str]


def what_is_known(charges: Sequence[Charge], names: Sequence[str], total: int) -> dict[str, Any]:
    """The relations of columns that were measured, with their noise; those that follow, and those assumed."""
    place = {name: at for at, name in enumerate(names)}
    tables: dict[tuple[str, ...], dict[str, Any]] = {}
    looked: set[Pair] = set()
    for charge in charges:
        question = charge.question
        if question.step == STEP:  # where values are, not how many
            continue
        if isinstance(question.statistic, Misfit):
            for cells in question.statistic.tables:
                looked |= _pairs(columns_of([Question("", CellCounts(cells), question.share)]), place)
            continue
        for columns in _together(question, place):
            line = _line(charge, columns)
            before = tables.get(columns)
            if before is None or line["_worth"] < before["_worth"]:
                tables[columns] = line
    measured = sorted(
        {pair for columns in tables for pair in combinations(columns, 2)},
        key=lambda pair: _places(pair, place),
    )
    group = _groups(names, measured)
    every = list(combinations(names, 2))
    kinds: dict[str, list[Pair]] = {"looked_at": [], "follows": [], "assumed": []}
    known = set(measured)
    for pair in every:
        if pair not in known:
            kind = (
                "looked_at"
                if pair in looked
                else "follows"
                if group[pair[0]] == group[pair[1]]
                else "assumed"
            )
            kinds[kind].append(pair)
    ranked = sorted(_not_better_known(tables), key=lambda line: line["_worth"])
    found: dict[str, Any] = {
        "pairs": len(every),
        "numbers": {"measured": len(measured)} | {kind: len(own) for kind, own in kinds.items()},
        "best_known": [_shown(line, total) for line in ranked[:EXTREMES]],
        "least_known": [_shown(line, total) for line in ranked[::-1][:EXTREMES]],
    }
    if len(every) <= LISTED:
        found["measured"] = [_shown(tables[columns], total) for columns in _in_order(tables, place)]
        found |= {kind: [list(pair) for pair in own] for kind, own in kinds.items()}
    return found


def _together(question: Question, place: dict[str, int]) -> list[tuple[str, ...]]:
    """The sets of columns that an answer is about, all of each at once."""
    by = {question.by} if question.by else set()
    match question.statistic:
        case Total():
            return [tuple(by)] if by else []
        case Gram(axes=axes):
            sets = [
                columns_of([Question("", Gram(pair), question.share)]) | by for pair in combinations(axes, 2)
            ]
        case Moments(columns=columns, degree=degree):
            sets = [{*pair, *by} for pair in combinations(columns, 2)] if degree == 2 else []
            sets = sets or [{name, *by} for name in columns]
        case _:
            sets = [columns_of([question])]
    return [tuple(sorted(own, key=place.__getitem__)) for own in sets if own]


def _line(charge: Charge, columns: tuple[str, ...]) -> dict[str, Any]:
    cells = sum(charge.lengths)
    return {
        "columns": list(columns),
        "question": type(charge.question.statistic).__name__,
        "cells": cells,
        "noise": charge.price.noise,
        "standard_deviation": charge.price.sd,
        "_worth": charge.price.sd * cells**0.5,
    }


def _shown(line: dict[str, Any], total: int) -> dict[str, Any]:
    """A table with its noise, in rows and as a part of all rows; other sums have a unit of their own."""
    shown = {key: value for key, value in line.items() if not key.startswith("_")}
    counts = line["question"] in ("CellCounts", "Total")
    return shown | ({"part_of_rows": line["standard_deviation"] / max(1, total)} if counts else {})


def _not_better_known(tables: dict[tuple[str, ...], dict[str, Any]]) -> list[dict[str, Any]]:
    """The tables of which no larger one, added up, has less noise."""
    sets = [(set(columns), line["_worth"]) for columns, line in tables.items()]
    return [
        line
        for columns, line in tables.items()
        if not any(set(columns) < other and worth <= line["_worth"] for other, worth in sets)
    ]


def _pairs(columns: set[str], place: dict[str, int]) -> set[Pair]:
    return {(one, other) for one, other in combinations(sorted(columns, key=place.__getitem__), 2)}


def _places(pair: Sequence[str], place: dict[str, int]) -> list[int]:
    return [place[name] for name in pair]


def _in_order(tables: dict[tuple[str, ...], dict[str, Any]], place: dict[str, int]) -> list[tuple[str, ...]]:
    return sorted(
        (columns for columns in tables if len(columns) > 1),
        key=lambda columns: (len(columns), _places(columns, place)),
    )


def _groups(names: Sequence[str], pairs: Sequence[Pair]) -> dict[str, str]:
    """For each column one that stands for all that pairs connect it with."""
    above = {name: name for name in names}

    def top(name: str) -> str:
        while above[name] != name:
            name = above[name]
        return name

    for one, other in pairs:
        above[top(one)] = top(other)
    return {name: top(name) for name in names}
