"""What tables are made of: every column at its levels, with its masses by class, and what rules forbid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.joint.ladder import Ladder
from dpsynth_cli.mechanisms.shared.rules import Rules
from dpsynth_cli.questions import Floats, Ints

Scope: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # columns, rising, and the level of each


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of all classes, (classes, *cells), in the cells of a scope. Where it is 0 no row should be."""

    columns: tuple[int, ...]
    levels: tuple[int, ...]
    counts: Floats


@dataclass(frozen=True, eq=False)
class Frame:
    """Columns by number. `masses` are of the finest cells, (classes, cells) each; `coarse` is the level at
    which tables are looked at before they are counted; `impossible` has pairs of finest cells; `implied` has
    pairs of columns of which the second is missing wherever the first is."""

    ladders: list[Ladder]
    masses: list[Floats]
    coarse: list[int]
    impossible: Mapping[tuple[int, int], NDArray[np.bool_]] = field(default_factory=dict)
    implied: tuple[tuple[int, int], ...] = ()

    @property
    def totals(self) -> Floats:
        return np.asarray(self.masses[0].sum(axis=1))

    def shape(self, scope: Scope) -> list[int]:
        return [len(self.masses[0]), *[self.ladders[j].size(level) for j, level in zip(*scope, strict=True)]]

    def forbidden(
        self, column: int, level: int, before: Sequence[int]
    ) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Earlier columns with a rule about this one: their finest cells x its cells of the level."""
        for (i, j), never in self.impossible.items():
            other = i if column == j else j
            if column in (i, j) and other in before:
                yield other, (never if column == j else never.T)[:, self.ladders[column].first(level)]


def with_rules(frame: Frame, omega: Domain, rules: Rules) -> Frame:
    """The frame with what rules forbid: pairs of cells, and cells of a class."""
    if not rules:
        return frame
    names = [own.column.name for own in frame.ladders]
    codes = [own.codes_of(own.top) for own in frame.ladders]
    pairs = [(i, j) for j in range(len(names)) for i in range(j)]
    impossible = {
        (i, j): found
        for i, j in pairs
        if (found := rules.impossible(names[i], names[j], codes[i], codes[j])).any()
    }
    masses = frame.masses
    if omega.strata:
        classes = np.arange(omega.classes)
        masses = [
            _possible(mass, rules.impossible(omega.strata, name, classes, code))
            for name, code, mass in zip(names, codes, masses, strict=True)
        ]
    return Frame(frame.ladders, masses, frame.coarse, impossible)


def _possible(mass: Floats, never: NDArray[np.bool_]) -> Floats:
    """Masses without those that a rule forbids the class; its size stays."""
    left = np.where(never, 0.0, mass)
    left = np.where(left.any(axis=1, keepdims=True), left, np.where(never, 0.0, 1.0))
    sums = np.maximum(mass.sum(axis=1, keepdims=True), 1e-9)
    return np.asarray(left * (sums / np.maximum(left.sum(axis=1, keepdims=True), 1e-300)))


def without_impossible(
    frame: Frame, omega: Domain, rules: Rules, classes: Ints, cells: Ints, rng: np.random.Generator
) -> Ints:
    """Rows that break a rule replaced by others of their class that break none."""
    if not frame.impossible:
        return cells
    broken = np.zeros(len(classes), bool)
    for (i, j), never in frame.impossible.items():
        broken |= never[cells[i], cells[j]]
    for k in np.unique(classes[broken]):
        good = cells[:, (classes == k) & ~broken]
        if not good.shape[1]:
            good = _possible_row(frame, omega, rules, int(k))
        bad = np.flatnonzero((classes == k) & broken)
        cells[:, bad] = good[:, rng.integers(good.shape[1], size=len(bad))]
    return cells


def _possible_row(frame: Frame, omega: Domain, rules: Rules, k: int) -> Ints:
    codes = rules.possible_row({omega.strata: k} if omega.strata else {})
    assert codes is not None, "a class that the rules leave no row"
    row = [int(np.argmax(mass[k])) for mass in frame.masses]
    for i, own in enumerate(frame.ladders):
        if own.column.name in codes:
            first = own.codes_of(own.top)
            row[i] = int(np.searchsorted(first, codes[own.column.name], side="right")) - 1
    return np.array(row)[:, None]
