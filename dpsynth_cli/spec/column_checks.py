"""What does not go together in a column's declaration: signs, marks, labels, grids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dpsynth_cli.cell_format import date_format
from dpsynth_cli.domain import GRID, SECOND, Column, CsvOptions, exact
from dpsynth_cli.encodings import as_utf8, beginning
from dpsynth_cli.spec.reader import Reader
from dpsynth_cli.spec.yaml_nodes import shortened

MOST_STEPS = 2**50  # of a bound: a float64 tells half a step there
_FIRST_Y, _END_Y = -365, 36_159  # days of 1969-01-01 and 2069-01-01


def check(declared: Reader, column: Column, labels: Mapping[str, str]) -> Column:
    """The column with its labels; what does not go together is noted."""
    _check_signs(declared, column)
    if column.categorical:
        return _labelled(declared, column, labels)
    _check_grid(declared, column)
    if column.format.date and "y" in date_format(column.format.date).letters:
        day = 1 if column.type == "date" else 86_400 * SECOND
        if column.lower < _FIRST_Y * day or column.upper >= _END_Y * day:
            declared.note("date", "has %y, which is 1969 to 2068; the bounds must lie there")
    return column


def _check_signs(declared: Reader, column: Column) -> None:
    form = column.format
    if form.thousands == form.decimal:
        declared.note("thousands", f'is "{form.thousands}", which is the decimal sign; they must differ')
    if form.currency and form.percent:
        declared.note("percent", "is true, and there is a currency; it must be one of them")
    if bool(form.true) != bool(form.false):
        declared.note("true" if form.true else "false", "is stated without the other; state true and false")
    folded = [word.strip().lower() for word in (*form.true, *form.false)]
    said = folded if column.type == "boolean" else list(column.categories)
    for mark in form.missing:
        if (mark.lower() if column.type == "boolean" else mark) in said:
            declared.note("missing", f"lists {shortened(mark)}, which is a value of the column too")
    if len(set(folded)) < len(folded):
        declared.note("true", "and false share a text; each must mean one thing")


def _labelled(declared: Reader, column: Column, labels: Mapping[str, str]) -> Column:
    strange = [category for category in labels if category not in column.categories]
    if column.type != "boolean" and strange:
        declared.note("labels", f"names {shortened(strange[0])}, which is not one of the categories")
    if not labels or strange:
        return column
    return replace(column, labels=tuple(labels.get(one, one) for one in column.categories))


def _check_grid(declared: Reader, column: Column) -> None:
    if (column.step is not None or column.sought is not None) and column.decimals is not None:
        declared.note("decimals", "is stated beside step; state one of them")
        return
    if column.scale != "linear" and column.grid is not None:
        declared.note("scale", "is stated beside step or decimals, which keep every value; state one of them")
        return
    if column.scale == "log" and column.lower <= 0:
        declared.note("scale", "is log, which needs a lower bound above 0; for other bounds there is asinh")
    if column.scale != "linear" and column.sought:
        declared.note("step", "is private, but the scale is not linear; leave one of them out")
    if column.step is None and column.decimals is None:
        return
    name = "decimals" if column.step is None else "step"
    grid = column.grid
    if grid is not None:
        for bound in (column.lower, column.upper):
            steps = exact(bound) / grid
            if steps.denominator != 1:
                declared.note(name, f"does not fit the bounds: {bound:.15g} is not a multiple of it")
                return
            if abs(steps) > MOST_STEPS or max(grid.numerator, grid.denominator) > MOST_STEPS:
                declared.note(name, "is too fine; there are 2^50 steps at most from 0 to a bound")
                return
    if column.size > GRID:
        declared.note(name, f"gives {column.size:,} values; there may be {GRID:,}: widen it or leave it out")


def unwritable(columns: Iterable[Column], csv: CsvOptions) -> str:
    """The first text of the columns that the encoding of the release cannot write; "" if there is none."""
    codec = beginning(csv.encoding)[1]
    if csv.canonical or as_utf8(codec):
        return ""
    for column in columns:
        form = column.format
        marks = (*form.missing, *form.true, *form.false, form.currency, form.date)
        for text in (column.name, *column.categories, *marks):
            if text.encode(codec, "ignore").decode(codec) != text:
                return text
    return ""
