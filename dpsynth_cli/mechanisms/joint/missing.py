"""Values that are missing together: one count of patterns tells it, and then it is kept exactly.

A pattern says of each of a few columns whether it is missing. Few patterns occur: a row that has no arrival
time has no delay either. Where every pattern that stands above its noise has one column missing whenever
another is, a row with only the second missing is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.joint.frame import Frame
from dpsynth_cli.questions import Ask, Bins, CellCounts, Cells, Floats, Question

TOGETHER = 8  # columns of a pattern, at most
OFTEN = 30.0  # times the noise of a pattern: so many rows miss a column that is looked at
SEEN = 4.0  # times its noise: a pattern with more rows occurs


def ask_missing(ask: Ask, omega: Domain, frame: Frame, share: Fraction) -> tuple[Frame, Fraction]:
    """The frame with the implications that were found, and what of the share was spent."""
    each = [
        (float(frame.masses[j][:, -1].sum()), j) for j, own in enumerate(frame.ladders) if own.column.nullable
    ]
    often = sorted(each, reverse=True)
    groups = [often[at : at + TOGETHER] for at in range(0, len(often), TOGETHER)]
    if not groups or share <= 0:
        return frame, Fraction(0)
    part = share / len(groups)
    least = OFTEN * ask.sd(Question("missing", CellCounts(Cells(())), part))
    sets = [sorted(j for rows, j in group if rows > least) for group in groups]
    questions = [_question(omega, frame, columns, part) for columns in sets if len(columns) > 1]
    if not questions:
        return frame, Fraction(0)
    implied: list[tuple[int, int]] = []
    asked = [columns for columns in sets if len(columns) > 1]
    for columns, answer in zip(asked, ask(questions), strict=True):
        table = answer.values.astype(np.float64).reshape([2] * len(columns))
        implied += [(columns[a], columns[b]) for a, b in implications(table, SEEN * answer.sd)]
    return kept(frame, implied), part * len(questions)


def implications(patterns: Floats, noise: float) -> list[tuple[int, int]]:
    """Pairs (a, b) of axes of 2 cells each: whenever a is missing, its second cell, so is b.

    >>> implications(np.array([[900.0, 3.0], [80.0, 40.0]]), 10.0)
    [(1, 0)]
    """
    found = []
    for a, b in permutations(range(patterns.ndim), 2):
        missing = np.take(patterns, 1, axis=a)
        only = np.take(missing, 0, axis=b - (b > a))
        if missing.max() > noise >= only.max():
            found.append((a, b))
    return found


def _question(omega: Domain, frame: Frame, columns: Sequence[int], share: Fraction) -> Question:
    names = [frame.ladders[j].column.name for j in columns]
    axes = tuple(Bins(name, (0, omega[name].size, omega[name].codes)) for name in names)
    return Question("missing", CellCounts(Cells(axes)), share)


def kept(frame: Frame, implied: Sequence[tuple[int, int]]) -> Frame:
    """The frame in which a row with the first of two missing, and not the second, is impossible."""
    impossible = dict(frame.impossible)
    for a, b in implied:
        never: NDArray[np.bool_] = np.zeros((frame.ladders[a].cells, frame.ladders[b].cells), bool)
        never[-1, :-1] = True
        pair = (min(a, b), max(a, b))
        both = never if a < b else never.T
        impossible[pair] = impossible.get(pair, np.zeros_like(both)) | both
    return replace(frame, impossible=impossible, implied=(*frame.implied, *implied))
