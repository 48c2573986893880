"""Public knowledge about a table: its columns, their bounds and categories, and the grid of codes.

Every cell of every column is one integer, its *code*. A column has `size` codes for its values,
0 .. size-1 in order, and one more, `size`, for missing where the column is nullable. Categories are
numbered as declared. Numbers, dates and times lie on a grid of at most 2**30 codes over the declared
bounds: on the declared one where there is a `step` or `decimals`. The grid is a function of the declaration
alone, so it is public.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dpsynth_cli.cell_format import PLAIN, CellFormat, date_format

GRID = 2**30
UNIT_KEY = ("unit", "")  # the origin of the column that says whose a row is
TYPES = ("continuous", "integer", "ordinal", "nominal", "boolean", "date", "datetime")
CATEGORICAL = ("ordinal", "nominal", "boolean")
SECOND = 1_000_000  # datetimes are counted in microseconds
# What numbers may be rounded to, each a multiple of the next: thousands, halves of these, hundreds ...
STEPS = tuple(Fraction(10) ** k / part for k in range(3, -9, -1) for part in ((1, 2) if k > -8 else (1,)))
OCTAVES = {"continuous": (-128, 128), "integer": (0, 53)}  # of size 2^k to 2^(k+1): the first k, and the end


@dataclass(frozen=True)
class Column:
    """One declared column.

    Bounds are in the column's own unit: a float for continuous, an int for integer, days since
    1970-01-01 for date, microseconds since then for datetime. So is the step; `decimals: 2` is a step of
    0.01 that is also written with two decimals. `scale` says between which values steps are equal where there
    is no step, `labels` what categories mean, `format` how cells are written.

    Of a `private` column the steward does not know the bounds, or which of the categories there are: these
    are stand-ins until a part of the budget has found them; nobody has listed the labels of an `open` one,
    which are found among its cells. A column in `octaves` is one that is being looked for: its codes are 0 in
    the middle, and on both sides powers of two, larger ones outside. The codes of one in `rounding` are the
    `STEPS` that its values are multiples of, none of them, and zero. `sought` says whether the step is to be
    found, where the steward says anything about it. One `of` a unit has the same value in all rows of it.

    Where tables belong together, `origin` says where cells come from that are not the row's own: ("parent",
    column), ("previous", column) of the child before it, ("number", table) of children, ("place", "") among
    them.

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
    step: Fraction | None = None
    decimals: int | None = None
    scale: str = "linear"
    labels: tuple[str, ...] = ()
    format: CellFormat = PLAIN
    private: bool = False
    open: bool = False
    octaves: bool = False
    rounding: bool = False
    sought: bool | None = None
    of: str | None = None
    origin: tuple[str, str] | None = None

    @property
    def categorical(self) -> bool:
        return self.type in CATEGORICAL

    @cached_property
    def unit(self) -> int:
        """How many of the column's own units one code spans (integer, date, datetime).

        >>> Column("seen", "datetime", lower=0, upper=365 * 86400 * SECOND).unit == SECOND
        True
        """
        if self.step is not None:
            return int(self.step)
        span = int(self.upper) - int(self.lower)
        unit = 1
        if self.type == "datetime":
            unit = next((u for u in (1, 1000, SECOND) if span // u < GRID), SECOND)
            if self.format.date:
                unit = max(unit, date_format(self.format.date).resolution)
        while span // unit >= GRID:
            unit *= 2
        return unit

    @cached_property
    def grid(self) -> Fraction | None:
        """The distance of two values of a continuous column that has a step: its bounds are multiples of it.

        >>> Column("price", "continuous", lower=0.0, upper=9.99, decimals=2).size
        1000
        """
        if self.type != "continuous" or (self.step is None and self.decimals is None):
            return None
        return self.step if self.step is not None else Fraction(1, 10 ** (self.decimals or 0))

    @cached_property
    def first(self) -> int:
        """How many steps of the grid the lower bound is above 0."""
        return 0 if self.grid is None else round(exact(self.lower) / self.grid)

    @cached_property
    def size(self) -> int:
        """The number of codes for values that are not missing."""
        if self.categorical:
            return len(self.categories)
        if self.octaves:
            first, end = OCTAVES[self.type]
            return 2 * (end - first) + 1
        if self.rounding:
            return len(STEPS) + 2
        if self.grid is not None:
            return round((exact(self.upper) - exact(self.lower)) / self.grid) + 1
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


def exact(bound: float | int) -> Fraction:
    """A bound as its shortest decimal says it: 0.1 is one tenth."""
    return Fraction(repr(bound))


Ranges = tuple[tuple[int, int], ...]  # codes: the first, and the one after the last


@dataclass(frozen=True)
class Impossible:
    """No row has one of these codes in the first column and one of those in the second."""

    columns: tuple[str, str]
    codes: tuple[Ranges, Ranges]


@dataclass(frozen=True)
class Domain:
    """The columns of the model, in order, and what else is public about the table. Rows that are `impossible`
    need not be modelled; no row that is released is one. With `unit_rows` neighbours differ in all rows of
    one unit, of which at most so many are kept; else in one row. `unit_order` is the column that says how
    those of a unit follow one another; `table` says which table it is where a release has several."""

    columns: tuple[Column, ...]
    neighbours: str = "add_remove"
    rows_hint: int | None = None
    strata: str | None = None
    impossible: tuple[Impossible, ...] = ()
    unit_rows: int | None = None
    unit_order: str | None = None
    table: str = ""

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @property
    def rows_public(self) -> bool:
        """Whether neighbours have the same number of rows, so that it is public: a unit that is replaced may
        have fewer or more."""
        return self.neighbours == "replace_one" and self.unit_rows is None

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
    """How a CSV file is cut into cells; `multiline` lets a quoted field contain line breaks. The synthetic
    file has the same delimiter, encoding and formats of cells; where `canonical`, it is plain CSV."""

    multiline: bool = False
    delimiter: str = ","
    encoding: str = "utf-8"
    canonical: bool = False


def as_written(domain: Domain, csv: CsvOptions) -> tuple[Domain, CsvOptions]:
    """The columns and the form of the synthetic CSV file: the input's, or plain where that is wanted."""
    if not csv.canonical:
        return domain, replace(csv, multiline=False)
    plain = tuple(replace(column, format=PLAIN) for column in domain)
    return replace(domain, columns=plain), CsvOptions()
