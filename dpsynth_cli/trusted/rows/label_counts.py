"""How many rows, or units, each label of a column has: exactly, with a small part of the table in memory.

The claim: **a row's label is a function of its own cell** (`dpsynth_cli.labels`; a cell that marks what is
missing, as people do or as declared, has none). **A unit has one label at most: that of one of its rows,
which its own labels and the key of the release choose, whatever other units are.**

Labels are put on shelves of a private temporary file (`unit_rows.py`), by a keyed hash, so that equal ones
meet; a group of shelves at a time is in memory. The hash decides on which shelf a label is, and nothing else;
that two labels of a table share its 128 bits, and are counted as one, has probability below n^2/2^129.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.arrow import from_numpy, to_numpy
from dpsynth_cli.domain import Column
from dpsynth_cli.labels import KIND, LONGEST, Labels, is_label
from dpsynth_cli.trusted.core.open_labels import LabelCounts
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import Piece, Scan
from dpsynth_cli.trusted.rows.text import as_binary, too_long, unmarked, without
from dpsynth_cli.trusted.rows.unit_marks import Marks, Units, fresh_key
from dpsynth_cli.trusted.rows.unit_rows import Records, Shelves, runs
from dpsynth_cli.trusted.rows.values import texts

RECORDS = "\0labels"  # under which a piece's records are passed on
KINDS = [("unit", "u8", 2), ("place", "u8", 2), ("mark", "u8", 2), ("column", "u1"), ("times", "i8")]
RECORD = np.dtype([*KINDS, ("label", KIND)])


class Labelled:
    """A scan whose rows are labels: what an engine reads. With units one label of each is counted."""

    kind = RECORD

    def __init__(self, scan: Scan, columns: Sequence[Column], units: Units | None) -> None:
        names = {column.name for column in columns}
        self._columns, self.units = tuple(columns), units
        self._scan = scan.only(names if units is None else {*names, units.column})
        self._hash = units or Units("", 1, fresh_key())

    @property
    def size(self) -> int | None:
        return self._scan.size

    def parts(self, size: int) -> Iterator[Labelled]:
        for part in self._scan.parts(size):
            own = copy(self)
            own._scan = part
            yield own

    def pieces(self) -> Iterator[Piece]:
        return self._scan.pieces()

    def encode(self, piece: Piece, counted: Problems | None = None) -> dict[str, Records]:
        arrays, _ = self._scan.cells(piece)  # a ruined record has no label
        units = None if self.units is None else self.units.of_cells(arrays[self.units.column])
        found = [self._of(place, arrays[c.name], c, units) for place, c in enumerate(self._columns)]
        return {RECORDS: np.concatenate(found)}

    def records(self, codes: Mapping[str, Records]) -> Records:
        return codes[RECORDS]

    def _of(self, place: int, cells: pa.Array, column: Column, units: Marks | None) -> Records:
        labels, rows = labels_of(cells, column)
        marks = self._marks(labels, place)
        if units is None:
            order, first = runs(marks)
            made = np.zeros(len(first), RECORD)
            made["times"] = np.diff(np.append(first, len(order)))
        else:  # a unit has each of its labels once, at a place that the label and the unit say
            places = self._hash.order(marks ^ units[rows], np.zeros(len(rows), np.int64))
            order, first = runs(places)
            made = np.zeros(len(first), RECORD)
            made["times"], own = 1, order[first]
            made["unit"], made["place"] = units[rows[own]], places[own]
        own = order[first]
        made["mark"], made["column"], made["label"] = marks[own], place, labels[own]
        return made

    def _marks(self, labels: Labels, place: int) -> Marks:
        """A keyed hash of each label and its column."""
        wide = labels.view(np.int32).reshape(-1, LONGEST // 4)
        start = np.full((len(labels), 2), place, np.uint64)
        return self._hash.of_rows(start, wide)


def labels_of(cells: pa.Array, column: Column) -> tuple[Labels, NDArray[np.int64]]:
    """The labels of those cells that have one, but for what `is_label` refuses, and which cells these are.

    >>> found, rows = labels_of(pa.array([" AMS", "NA", None, "BER", "x" * 99]), Column("city", "nominal"))
    >>> found.tolist(), rows.tolist()
    ([b'AMS', b'BER'], [0, 3])
    """
    said = texts(cells)
    text = as_binary(unmarked(without(said, too_long(said)), column.format.missing)).cast(pa.large_binary())
    rows = np.flatnonzero(to_numpy(text.is_valid()) & ~too_long(text, LONGEST))
    text = text.take(from_numpy(rows))
    ends = np.frombuffer(text.buffers()[1], np.int64, len(text) + 1, 8 * text.offset)
    data = np.frombuffer(text.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
    length = np.diff(ends)
    wide = np.zeros((len(text), LONGEST), np.uint8)
    column_of = np.arange(len(data)) - np.repeat(ends[:-1] - ends[0], length)
    wide[np.repeat(np.arange(len(text)), length), column_of] = data
    whole = np.count_nonzero(wide, axis=1) == length  # no byte of it is 0
    return wide[whole].view(KIND).ravel(), rows[whole]


class LabelShelves:
    """Labels as they come, in any order and from several threads; then how many rows, or units, each has."""

    def __init__(self, marked: Labelled) -> None:
        self.marked, self._shelves = marked, Shelves(RECORD)

    def add(self, codes: Mapping[str, NDArray[Any]], rows: int) -> None:
        """A piece of the scan."""
        self.put(self.marked.records(codes))

    def put(self, records: Records) -> None:
        self._shelves.put(records, records["mark" if self.marked.units is None else "unit"])

    def counts(self) -> Iterator[LabelCounts]:
        """Every label once."""
        with closing(self._shelves if self.marked.units is None else self._one_a_unit()) as shelves:
            for group in shelves.groups():
                order, first = runs(group["mark"])
                times = np.add.reduceat(group["times"][order], first)
                each = group[order[first]]
                for place in np.unique(each["column"]):
                    own = np.flatnonzero(each["column"] == place)
                    own = own[_are_labels(each["label"][own])]
                    yield int(place), each["label"][own], times[own]

    def _one_a_unit(self) -> Shelves:
        """Of each unit, and column, the label whose place is the first."""
        by_label = Shelves(RECORD)
        for group in self._shelves.groups():
            unit, place = group["unit"], group["place"]
            order = np.lexsort((place[:, 1], place[:, 0], group["column"], unit[:, 1], unit[:, 0]))
            ordered = group[order]
            new = np.ones(len(order), np.bool_)
            new[1:] = (ordered["unit"][1:] != ordered["unit"][:-1]).any(axis=1)
            new[1:] |= ordered["column"][1:] != ordered["column"][:-1]
            by_label.put(ordered[new], ordered["mark"][new])
        self.close()
        return by_label

    def close(self) -> None:
        self._shelves.close()


def _are_labels(labels: Labels) -> NDArray[np.bool_]:
    """`is_label` of each; most are printable ASCII, which is."""
    wide = np.ascontiguousarray(labels).view(np.uint8).reshape(-1, LONGEST)
    sure: NDArray[np.bool_] = (((wide >= 32) & (wide < 127)) | (wide == 0)).all(axis=1)
    for place in np.flatnonzero(~sure):
        sure[place] = is_label(bytes(labels[place]))
    return sure
