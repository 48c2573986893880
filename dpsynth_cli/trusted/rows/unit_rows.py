"""At most so many rows of each unit: which are kept, with a small part of the table in memory.

The claim: **the rows that are kept of a unit are a function of the key and of the unit's own rows, whatever
their order.** Each row has a place in its unit's order (`unit_marks.py`), the first k are kept; of rows
that are equal it does not matter which. So a unit that comes, goes or changes leaves every other unit's
rows as they were. Where rows have an order in time, `unit_runs.py` chooses among the first of them those
that follow one another.

Records of rows are put on shelves of a private temporary file, which has no name and goes with this process:
first by the row's mark, so that equal rows meet and are numbered; what may be among the first k of its unit
then by the unit's mark. A group of shelves at a time is in memory. A unit as large as the table leaves k
rows a group.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column
from dpsynth_cli.trusted.rows.kept_rows import IN_MEMORY, Kept, written
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import Piece, Scan, encoded
from dpsynth_cli.trusted.rows.unit_marks import Marks, Units, unit_column
from dpsynth_cli.trusted.rows.unit_runs import chosen, cut, pair_names, starts

MARK = "\0unit"  # under which codes carry the marks of units: no column has this name
SIZE = "\0rows"  # how many rows a unit has, in a table of units
SHELVES, BUCKETS = 256, 4096
TOGETHER = 2**25  # bytes of records that are sorted at once
AT_ONCE = 2**20  # rows whose places are made at once

Records = NDArray[Any]


def record(width: int) -> np.dtype[Any]:
    """A row: its unit's mark, its own, how many equal ones it stands for, its codes."""
    return np.dtype([("unit", "u8", 2), ("mark", "u8", 2), ("times", "i8"), ("codes", "i4", (width,))])


class Marked:
    """A scan whose codes carry the marks of units: what an engine reads where units are protected."""

    def __init__(self, scan: Scan, columns: Sequence[Column], units: Units) -> None:
        self.columns, self.units = tuple(columns), units
        self._scan = scan.declared([*columns, unit_column(units.column)])

    @property
    def kind(self) -> np.dtype[Any]:
        """Of its records."""
        return record(len(self.columns))

    @property
    def size(self) -> int | None:
        return self._scan.size

    @property
    def time(self) -> int | None:
        """The number of the column that says how rows of a unit follow one another."""
        names = [column.name for column in self.columns]
        return None if self.units.time is None else names.index(self.units.time)

    def parts(self, size: int) -> Iterator[Marked]:
        for part in self._scan.parts(size):
            own = copy(self)
            own._scan = part
            yield own

    def pieces(self) -> Iterator[Piece]:
        return self._scan.pieces()

    def encode(self, piece: Piece, counted: Problems | None = None) -> dict[str, NDArray[Any]]:
        arrays, ruined = self._scan.cells(piece)
        codes: dict[str, NDArray[Any]] = dict(encoded(self.columns, arrays, ruined, counted))
        codes[MARK] = self.units.of_cells(arrays[self.units.column], ruined)
        return codes

    def records(self, codes: Mapping[str, NDArray[Any]]) -> Records:
        """The rows of a piece, those that are equal as one record."""
        table = np.empty((len(codes[MARK]), len(self.columns)), np.int32)
        for at, column in enumerate(self.columns):
            table[:, at] = codes[column.name]
        marks = self.units.of_rows(codes[MARK], table)
        order, first = runs(marks)
        times = np.diff(np.append(first, len(order)))
        made = np.empty(len(first), record(len(self.columns)))
        own = order[first]
        made["unit"], made["mark"], made["times"], made["codes"] = (
            codes[MARK][own],
            marks[own],
            times,
            table[own],
        )
        return made


class Shelves:
    """Records in a private temporary file, shelf by shelf; safe to fill from several threads."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._kind, self._lock = kind, Lock()
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (closed by close)
        self._places: list[list[tuple[int, int]]] = [[] for _ in range(SHELVES)]
        self._end = 0

    def put(self, records: Records, marks: Marks) -> None:
        """Each on the shelf that its mark says."""
        shelf = (marks[:, 0] % SHELVES).astype(np.uint8)
        data = records[np.argsort(shelf, kind="stable")].tobytes()
        with self._lock:
            self._file.seek(self._end)
            written(self._file, data)
            for own, count in enumerate(np.bincount(shelf, minlength=SHELVES).tolist()):
                if count:
                    self._places[own].append((self._end, count))
                self._end += count * self._kind.itemsize

    def groups(self) -> Iterator[Records]:
        """All records, whole shelves together, as few at a time as there is memory for."""
        return (group for (group,) in side_by_side([self]) if len(group))

    def size(self, shelf: int) -> int:
        """How many bytes are on a shelf."""
        return sum(count for _, count in self._places[shelf]) * self._kind.itemsize

    def read(self, shelves: range) -> Records:
        """What is on these shelves."""
        found = []
        for start, count in (place for shelf in shelves for place in self._places[shelf]):
            self._file.seek(start)
            found.append(self._file.read(count * self._kind.itemsize))
        return np.frombuffer(b"".join(found), self._kind)

    def close(self) -> None:
        self._file.close()


def side_by_side(several: Sequence[Shelves]) -> Iterator[list[Records]]:
    """The records of the same shelves of each, as many shelves at a time as there is memory for: a unit's
    records of all of them together."""
    first, held = 0, 0
    for shelf in range(SHELVES):
        size = sum(one.size(shelf) for one in several)
        if held and held + size > TOGETHER:
            yield [one.read(range(first, shelf)) for one in several]
            first, held = shelf, 0
        held += size
    yield [one.read(range(first, SHELVES)) for one in several]


class Truncation:
    """Rows as they come, in any order and from several threads; then those that are kept. One that only
    `keeps` may also be given what is kept of some units."""

    def __init__(self, marked: Marked, keeps: bool = False) -> None:
        self.marked, self.keeps, self._kind = marked, keeps, record(len(marked.columns))
        self._by_row = Shelves(self._kind)
        self._tables: tuple[Kept, ...] = ()
        self.rows = 0
        self._lock = Lock()

    def add(self, codes: Mapping[str, NDArray[Any]], rows: int) -> None:
        """A piece of a marked scan."""
        self.put(self.marked.records(codes))

    def put(self, records: Records) -> None:
        self._by_row.put(records, records["mark"])
        with self._lock:
            self.rows += int(records["times"].sum())

    def take(self, tables: Sequence[NDArray[np.int32]]) -> None:
        """Some units, truncated: what `first_of` and `cut` made of all their rows."""
        if not self._tables:
            names = [column.name for column in self.marked.columns]
            self._tables = (Kept(names), Kept([*names, SIZE]), Kept(pair_names(names)))
        for table, codes in zip(self._tables, tables, strict=True):
            table.add(codes)

    def kept(self) -> tuple[Kept, Kept, Kept]:
        """At most k rows of each unit; the units: one of its rows, and how many it has; and pairs of rows
        that follow one another, where there is an order. To be closed by whoever has them now."""
        time, k = self.marked.time, self.marked.units.rows
        for first in self.first(chosen(k, time)):
            self.take(cut(first, time, k))
        self.take(cut(np.empty(0, self._kind), time, k))  # there may be no units
        (rows, each, pairs), self._tables = self._tables, ()
        return rows, each, pairs

    def first(self, most: int) -> Iterator[Records]:
        """So many rows of each unit at most, those with the first places: whole units together, unit by unit,
        in each by place. Nothing can be added afterwards."""
        with closing(self.by_unit(most)) as by_unit:
            for group in by_unit.groups():
                yield group[least(group, most)]

    def by_unit(self, most: int) -> Shelves:
        """So many rows of every unit, and others, by their unit; a mark is now a place in its order."""
        shelves = Shelves(self._kind)
        for group in self._by_row.groups():
            for placed in _placed(group, self.marked.units):
                first = placed[least(placed, most)] if _crowded(placed, most) else placed
                shelves.put(first, first["unit"])
        self._by_row.close()
        return shelves

    def close(self) -> None:
        self._by_row.close()
        for table in self._tables:
            table.close()


def first_of(records: Records, units: Units, most: int) -> Records:
    """The same of all records of some units, which are in memory."""
    placed = [np.empty(0, records.dtype), *_placed(records, units)]
    together = np.concatenate(placed)
    return together[least(together, most)]


def _placed(records: Records, units: Units) -> Iterator[Records]:
    """Every row by itself, its mark now its place in the order of its unit: equal ones are numbered."""
    order, first = runs(records["mark"])
    if len(first) == len(records) and (records["times"] == 1).all():  # no two are equal
        placed = records.copy()
        placed["mark"] = units.order(records["mark"], np.zeros(len(records), np.int64))
        yield placed
        return
    times = np.add.reduceat(records["times"][order], first) if len(order) else np.zeros(0, np.int64)
    each = records[order[first]]
    ends = np.cumsum(times)
    for start in range(0, int(ends[-1]) if len(ends) else 0, AT_ONCE):
        row = np.arange(start, min(start + AT_ONCE, int(ends[-1])))
        which = np.searchsorted(ends, row, side="right")
        placed = each[which]
        placed["times"] = 1
        placed["mark"] = units.order(placed["mark"], row - (ends[which] - times[which]))
        yield placed


def _crowded(records: Records, k: int) -> bool:
    """Whether some unit may have many times k of these rows, so that most can be left out at once. Whatever
    it says, the same rows are kept in the end."""
    buckets = np.bincount((records["unit"][:, 0] % BUCKETS).astype(np.int64), minlength=BUCKETS)
    return bool(buckets.max() > 64 * k + 4 * len(records) // BUCKETS)


def least(records: Records, k: int) -> NDArray[np.int64]:
    """The first k of each unit, unit by unit."""
    order = _by_unit(records["unit"], records["mark"])
    new = starts(records["unit"][order])
    start = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    return order[np.arange(len(order)) - start < k]


def _by_unit(unit: Marks, place: Marks) -> NDArray[np.int64]:
    """By unit, and in each by place: by half of their bits, and by all of them where that does not decide."""
    words = np.ascontiguousarray(unit[:, 0])
    order = np.argsort(words)
    words = words[order]
    number = np.cumsum(np.append(False, words[1:] != words[:-1]), dtype=np.uint64)
    key = (number << np.uint64(40)) | (place[order, 0] >> np.uint64(24))
    again = np.argsort(key)
    order, key, number = order[again], key[again], number[again]
    unclear = (key[1:] == key[:-1]) | ((number[1:] == number[:-1]) & (np.diff(unit[order, 1]) != 0))
    if unclear.any() or len(unit) >= 2**24:
        return np.lexsort((place[:, 1], place[:, 0], unit[:, 1], unit[:, 0]))
    return order


def runs(marks: Marks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order in which equal marks are neighbours, and where each run of them begins."""
    order = np.argsort(np.ascontiguousarray(marks[:, 0]))
    ordered = marks[order]
    if ((ordered[1:, 0] == ordered[:-1, 0]) & (ordered[1:, 1] != ordered[:-1, 1])).any():
        order = np.lexsort((marks[:, 1], marks[:, 0]))
        ordered = marks[order]
    return order, np.flatnonzero(starts(ordered))
