"""Public knowledge about a table: its columns, their bounds and categories, and the grid of codes.

Every cell of every column is one integer, its *code*. A column has `size` codes for its values,
0 .. size-1 in order, and one more, `size`, for missing where the column is nullable. Categories are
numbered as declared. Numbers, dates and times lie on a grid of at most 2**30 codes over the declared
bounds. The grid is a function of the declaration alone, so it is public.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

GRID = 2**30
TYPES = ("continuous", "integer", "ordinal", "nominal", "boolean", "date", "datetime")
CATEGORICAL = ("ordinal", "nominal", "boolean")
SECOND = 1_000_000  # datetimes are counted in microseconds
OCTAVES = {"continuous": (-128, 128), "integer": (0, 53)}  # of size 2^k to 2^(k+1): the first k, and the end


@dataclass(frozen=True)
class Column:
    """One declared column.

    Bounds are in the column's own unit: a float for continuous, an int for integer, days since
    1970-01-01 for date, microseconds since then for datetime.

    Of a `private` column the steward does not know the bounds, or which of the categories there are: these
    are stand-ins until a part of the budget has found them. A column in `octaves` is one that is being
    looked for: its codes are 0 in the middle, and on both sides powers of two, larger ones outside.

    >>> Column("age", "integer", lower=0, upper=120, nullable=True).codes
    122
    """

    name: str
    type: str
    lower: float | int = 0
    upper: float | int = 0
    categories: tuple[str, ...] = ()
    other: str | None = None
    nullable: bool = False
    private: bool = False
    octaves: bool = False

    @property
    def categorical(self) -> bool:
        return self.type in CATEGORICAL

    @cached_property
    def unit(self) -> int:
        """How many of the column's own units one code spans (integer, date, datetime).

        >>> Column("seen", "datetime", lower=0, upper=365 * 86400 * SECOND).unit == SECOND
        True
        """
        span = int(self.upper) - int(self.lower)
        unit = 1
        if self.type == "datetime":
            unit = next((u for u in (1, 1000, SECOND) if span // u < GRID), SECOND)
        while span // unit >= GRID:
            unit *= 2
        return unit

    @cached_property
    def size(self) -> int:
        """The number of codes for values that are not missing."""
        if self.categorical:
            return len(self.categories)
        if self.octaves:
            first, end = OCTAVES[self.type]
            return 2 * (end - first) + 1
        if self.type == "continuous":
            return GRID if self.upper > self.lower else 1
        return (int(self.upper) - int(self.lower)) // self.unit + 1

    @property
    def codes(self) -> int:
        """The number of codes, missing included."""
        return self.size + self.nullable

    @property
    def width(self) -> int:
        """How many coordinates it has in `Moments`: one, but one for each code if it is nominal."""
        return self.codes if self.type == "nominal" else 1

    @property
    def bits(self) -> int:
        """Halvings until every code is alone: ceil(log2(size)), one more for missing."""
        return (self.size - 1).bit_length() + self.nullable


Ranges = tuple[tuple[int, int], ...]  # codes: the first, and the one after the last


@dataclass(frozen=True)
class Impossible:
    """No row has one of these codes in the first column and one of those in the second."""

    columns: tuple[str, str]
    codes: tuple[Ranges, Ranges]


@dataclass(frozen=True)
class Domain:
    """The columns of the model, in order, and what else is public about the table. Rows that are `impossible`
    need not be modelled; no row that is released is one."""

    columns: tuple[Column, ...]
    neighbours: str = "add_remove"
    rows_hint: int | None = None
    strata: str | None = None
    impossible: tuple[Impossible, ...] = ()

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @property
    def classes(self) -> int:
        """The number of classes a model is made for: 1 without strata, else the label's codes."""
        return self[self.strata].codes if self.strata else 1

    @property
    def modelled(self) -> tuple[Column, ...]:
        """The columns inside a class: all but the label of the strata."""
        return tuple(column for column in self.columns if column.name != self.strata)


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV input is cut into cells; `multiline` lets a quoted field contain line breaks."""

    multiline: bool = False
    delimiter: str = ","
