"""How many cells of a column are not as declared: counted from what was read of them, while they are encoded.

Private: integers about real rows, for the steward's terminal and the steward's audit. A count is a sum over
cells of a function of that cell alone, so it depends neither on how a file is cut nor on who reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.arrow import from_numpy, to_numpy
from dpsynth_cli.domain import Column
from dpsynth_cli.trusted.rows.problem_forms import OTHER, forms
from dpsynth_cli.trusted.rows.text import UNLISTED, Values, too_long, unmarked, without
from dpsynth_cli.trusted.rows.values import is_missing, is_text, plain_binary

KINDS = ("missing", "unparseable", "out of bounds", "unlisted", "lowest", "highest")


@dataclass
class Counts:
    """Of one column. `lowest` and `highest` are the cells that are at a bound, or beyond it; `forms` says
    how the unparseable and unlisted ones look.

    A mark such as NA counts as missing; a ruined record counts in none of these.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)

    def merge(self, other: Counts) -> None:
        self.kinds.update(other.kinds)
        self.forms.update(other.forms)

    def as_json(self) -> dict[str, Any]:
        return {kind: self.kinds[kind] for kind in KINDS} | {"forms": dict(sorted(self.forms.items()))}

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Counts:
        return cls(Counter({kind: said[kind] for kind in KINDS}), Counter(said["forms"]))

    def add(
        self,
        array: pa.Array,
        values: Values,
        column: Column,
        weigh: Callable[[], NDArray[np.int64]] | None = None,
    ) -> None:
        """Count cells and what was read of them; `weigh` gives how often each counts, else once."""
        if not len(values):
            return
        with np.errstate(invalid="ignore"):
            # Most pieces are done with these two: NaN is neither more nor less than a bound.
            low, high = values.min(), values.max()
            if (low >= 0) if column.categorical else (low > column.lower and high < column.upper):
                return
            times = None if weigh is None else weigh()
            if column.categorical:
                self._add_unlisted(array, values, column, times)
                return
            if not low > column.lower:
                self.kinds["lowest"] += _many(_at_most(column.lower, values), times)
            if not high < column.upper:
                self.kinds["highest"] += _many(values >= column.upper, times)
            if not (low >= column.lower and high <= column.upper):
                self.kinds["out of bounds"] += _many(_beyond(values, column), times)
                self._add_missing(array, is_missing(values), column, times)

    def _add_unlisted(
        self, array: pa.Array, values: Values, column: Column, times: NDArray[np.int64] | None
    ) -> None:
        strange = values == UNLISTED  # among them marks of missing cells
        count = unread = _many(strange, times)
        if count and is_text(array.type):
            read = Counts() if column.open else self  # any label may be one of an open column
            unread = read._add_forms(plain_binary(array), strange, column, times)
        self.kinds["missing"] += _many(is_missing(values), times) + count - unread
        if not column.open:
            self.kinds["unlisted"] += unread

    def _add_missing(
        self, array: pa.Array, absent: NDArray[np.bool_], column: Column, times: NDArray[np.int64] | None
    ) -> None:
        unread = 0
        if is_text(array.type) and np.count_nonzero(absent) > array.null_count:
            unread = self._add_forms(plain_binary(array), absent, column, times)
        self.kinds["missing"] += _many(absent, times) - unread
        self.kinds["unparseable"] += unread

    def _add_forms(
        self,
        array: pa.Array,
        strange: NDArray[np.bool_],
        column: Column,
        times: NDArray[np.int64] | None,
    ) -> int:
        """How many of the strange cells say something that is not understood; their forms are counted."""
        cells = array.filter(from_numpy(strange))
        times = None if times is None else times[strange]
        long = too_long(cells)
        text = unmarked(without(cells, long), column.format.missing)
        there = to_numpy(text.is_valid())
        found = forms(text.filter(from_numpy(there)), column, None if times is None else times[there])
        unread = _many(there | long, times)
        found[OTHER] += unread - sum(found.values())
        self.forms.update(+found)
        return unread


def _many(which: NDArray[np.bool_], times: NDArray[np.int64] | None) -> int:
    return int(np.count_nonzero(which) if times is None else times[which].sum())


def _at_most(lower: float, values: Values) -> NDArray[np.bool_]:
    """Which cells are at the lower bound or below it; of dates, what is missing is not."""
    at = values <= lower
    return at & ~is_missing(values) if values.dtype == np.int64 else at


def _beyond(values: Values, column: Column) -> NDArray[np.bool_]:
    """Which cells are out of bounds: a number that is rounded to a bound is not."""
    if values.dtype == np.int64:
        return (values < column.lower) & ~is_missing(values) | (values > column.upper)
    whole = np.rint(values) if column.type == "integer" else values
    return np.asarray((whole < column.lower) | (whole > column.upper))
