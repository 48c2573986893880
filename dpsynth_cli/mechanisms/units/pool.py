"""Rows of a model to choose from: by their unit's columns, by the states of leading links, and by time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.units.links import Link
from dpsynth_cli.numeric.exact import log
from dpsynth_cli.questions import Block, Floats, Ints

CANDIDATES = 16  # rows of which one is chosen
OF_UNITS = 512  # rows for each cell of a unit's columns, on average, at least
WIDE = 2**31  # above every code
LOOKED_UP = 2**22  # cells and times, of which it is looked up where their rows begin


class Pool:
    """Rows sorted by the cell of their unit's columns, by the states of one lead after the other, by time.
    `states` has those of each row by the column of every link."""

    def __init__(
        self,
        block: Mapping[str, Ints],
        own: Sequence[Column],
        time: str,
        leads: Sequence[Link],
        links: Sequence[Link],
    ) -> None:
        unit = unit_cells(block, own)
        self.leads, cell = tuple(leads), unit
        self.counts: list[
            Floats
        ] = []  # logarithms: a row for each cell so far, by the state of the next lead
        for link in leads:
            states, cells = link.many, int(cell.max(initial=0)) + 1
            if self.counts:
                cells = self.counts[-1].size
            cell = cell * states + link.states(np.asarray(block[link.column.name]))
            counts = np.bincount(cell, minlength=cells * states).reshape(cells, states)
            self.counts.append(log(np.maximum(counts, 1e-30)))
        order = np.lexsort((block[time], cell))
        self.codes: Block = {name: np.asarray(codes)[order] for name, codes in block.items()}
        self.unit, self._key = unit[order], cell[order] * WIDE + self.codes[time]
        self.rows = len(order)
        self.states = {link.column.name: link.states(self.codes[link.column.name]) for link in links}
        cells = self.counts[-1].size if self.counts else int(cell.max(initial=0)) + 1
        self._starts = np.searchsorted(cell[order], np.arange(cells + 1))
        self._times = int(np.max(block[time], initial=0)) + 2  # the last is after all others, and has no rows
        self._begin: Ints | None = None
        if cells * self._times <= LOOKED_UP:
            keys = cell[order] * self._times + self.codes[time]
            counts = np.bincount(keys, minlength=cells * self._times)
            self._begin = np.concatenate([[0], np.cumsum(counts)])

    def candidates(self, cell: Ints, time: Ints, rng: np.random.Generator) -> Ints:
        """The places of rows in each cell: those of that time, or where there are few of them next to it."""
        low, high = self._between(cell, time)
        first, last = self._starts[cell], self._starts[cell + 1]
        few = high - low < CANDIDATES
        width = np.minimum(CANDIDATES, last - first)
        start = np.clip((low + high - width) // 2, first, last - width)
        low, many = np.where(few, start, low), np.where(few, width, high - low)
        part = (np.arange(CANDIDATES) + rng.random((len(cell), CANDIDATES))) / CANDIDATES
        return np.asarray(low[:, None] + (part * many[:, None]).astype(np.int64))

    def _between(self, cell: Ints, time: Ints) -> tuple[Ints, Ints]:
        """Where the rows of a cell and a time begin and end."""
        if self._begin is not None:
            at = cell * self._times + np.minimum(time, self._times - 1)
            return self._begin[at], self._begin[at + 1]
        at = cell * WIDE + time
        return np.searchsorted(self._key, at), np.searchsorted(self._key, at, side="right")


def unit_cells(block: Mapping[str, Ints], own: Sequence[Column]) -> Ints:
    """A number for rows that are alike in the columns of a unit: by categories, and by parts of numbers, as
    long as there are rows enough for each."""
    rows = len(next(iter(block.values())))
    cell, room = np.zeros(rows, np.int64), max(1, rows // OF_UNITS)
    labels = [column for column in own if column.categorical]
    for column in [*labels, *(column for column in own if not column.categorical)]:
        codes = np.asarray(block[column.name])
        for parts in (None, 8, 4, 2) if column.categorical else (8, 4, 2):
            values = codes if parts is None else _ranks(codes, parts)
            _, finer = np.unique(cell * WIDE + values, return_inverse=True)
            if finer.max(initial=0) < room:
                cell = finer.astype(np.int64)
                break
    return cell


def _ranks(codes: Ints, parts: int) -> Ints:
    """Ranks in so many parts; equal values in the same."""
    return np.asarray(np.searchsorted(np.sort(codes), codes) * parts // max(1, len(codes)), np.int64)
