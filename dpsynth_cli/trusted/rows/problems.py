"""How many cells of a table are not as declared: for the steward's eyes, never for a public file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.arrow import to_numpy
from dpsynth_cli.domain import Column
from dpsynth_cli.trusted.rows.counts import Counts
from dpsynth_cli.trusted.rows.text import Values
from dpsynth_cli.trusted.rows.values import from_arrow

if TYPE_CHECKING:
    from dpsynth_cli.trusted.rows.scan import Scan


@dataclass
class Problems:
    """How many rows and ruined records were seen, and by column how many cells are not as declared.

    Private. `columns` are the columns that are counted; `lost` those whose counting failed, which must
    not cost a release anything. Merged by addition, as sums are.
    """

    rows: int = 0
    ruined: int = 0
    columns: dict[str, Counts] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, names: Iterable[str]) -> Problems:
        """Nothing counted yet, of these columns."""
        return cls(columns={name: Counts() for name in names})

    def empty(self) -> Problems:
        """Nothing counted yet, of the same columns: for another worker."""
        return Problems.of(self.columns)

    def merge(self, other: Problems) -> None:
        """Add what was counted in other rows."""
        self.rows, self.ruined = self.rows + other.rows, self.ruined + other.ruined
        self.lost |= other.lost
        for name, counts in other.columns.items():
            self.columns.setdefault(name, Counts()).merge(counts)

    def beside(self, other: Problems) -> None:
        """Take over other columns of the same rows."""
        self.rows, self.ruined = other.rows, other.ruined
        self.columns |= {name: own for name, own in other.columns.items() if name not in other.lost}

    def count_rows(self, rows: int, ruined: int) -> None:
        self.rows, self.ruined = self.rows + rows + ruined, self.ruined + ruined

    def count_cells(
        self,
        array: pa.Array,
        values: Values,
        column: Column,
        weigh: Callable[[], NDArray[np.int64]] | None = None,
    ) -> None:
        """Count cells of a column, if it is one of those, and what was read of them."""
        if column.name in self.columns and column.name not in self.lost:
            try:
                self.columns[column.name].add(array, values, column, weigh)
            except Exception:  # memory that is short, most of all
                self.lost.add(column.name)

    def count_nulls(self, nulls: int, column: Column) -> None:
        if column.name in self.columns:
            self.columns[column.name].kinds["missing"] += nulls

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "ruined": self.ruined,
            "columns": {name: own.as_json() for name, own in self.columns.items() if name not in self.lost},
        }

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Problems:
        counted = {name: Counts.of_json(own) for name, own in said["columns"].items()}
        return cls(said["rows"], said["ruined"], counted)


def count_piece(
    columns: Collection[Column], arrays: dict[str, pa.Array], ruined: int, into: Problems
) -> None:
    """Count a piece whose cells need not be encoded."""
    into.count_rows(len(next(iter(arrays.values()))), ruined)
    for column in columns:
        if column.name not in into.columns:
            continue
        array, weigh = arrays[column.name], None
        if pa.types.is_dictionary(array.type):  # never written out: a long label may be in every row
            weigh = partial(_uses, array)
            into.count_nulls(array.indices.null_count, column)
            array = array.dictionary
        into.count_cells(array, from_arrow(array, column), column, weigh)


def _uses(array: pa.Array) -> NDArray[np.int64]:
    """How often each label of a dictionary is used."""
    there = to_numpy(array.indices.drop_null()).astype(np.int64)
    return np.bincount(there, minlength=len(array.dictionary))


def count_problems(scan: Scan, most: int | None = None) -> Problems:
    """Count the cells that are not as declared, ruined records apart: of all rows, or of about the first so
    many."""
    problems = Problems.of(column.name for column in scan.columns)
    for piece in scan.pieces():
        count_piece(scan.columns, *scan.cells(piece), problems)
        if most is not None and problems.rows >= most:
            break
    return problems
