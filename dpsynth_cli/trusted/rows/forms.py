"""The form that the cells of a column have: an integer, a day, a label. Never what is in them.

**What leaves this module** is, for each column, one word of FORMS, whether cells are missing, how many
decimals numbers have, whether moments are on the hour, the minute or the second, and which of a public list
of formats (`form_formats.py`) numbers, dates or words for true and false are written in. It is a look at the
data that no budget pays for: only a steward who drafts a spec takes it, and sees it before it is published
as a column's type. So that single rows hardly decide, a column has a form if 99 in 100 of its filled cells
do (of whole numbers, 999 in 1,000: else the rest would be rounded), and cells are missing if one in a
thousand is, and more than one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dpsynth_cli import numbers as grammar
from dpsynth_cli.arrow import from_texts, to_numpy
from dpsynth_cli.cell_format import PLAIN, CellFormat, date_format
from dpsynth_cli.domain import SECOND
from dpsynth_cli.trusted.rows.form_formats import date_form, number_format, share, truth
from dpsynth_cli.trusted.rows.formatted import formatted_instants, plain_text
from dpsynth_cli.trusted.rows.text import LONGEST, MARKS, NAT, as_binary, to_floats, too_long, trimmed

SHARE = 0.99  # of the filled cells of a column that have its form
ROUNDED = 0.999  # of those that a coarser grid leaves as they are
MISSING = 0.001  # of all its cells
MOST_DECIMALS = 6
FREE = 0.5  # labels that are more than this share different from each other are no categories
SHORT = 20  # filled cells that are too few to tell so

_SIGN, _UNSIGNED = r"[+-]?", r"(?:0|[1-9][0-9]*)"  # no 007: such cells are codes, not numbers
FORMS = {  # in this order: the first that fits
    "zero_one": r"[01](?:\.0*)?",
    "boolean": r"(?i:true|false|t|f|yes|no|y|n)",
    "integer": rf"{_SIGN}{_UNSIGNED}(?:\.0*)?",
    "number": rf"{_SIGN}(?:{_UNSIGNED}(?:\.[0-9]*)?|\.[0-9]+){grammar.EXPONENT}",
    "day": grammar.DAY,
    "moment": rf"{grammar.DAY}(?:{grammar.CLOCK}{grammar.ZONE}?)?",
}
_STEPS = {  # a moment that is a multiple of the step: as text, and in seconds
    "1d": (rf"{grammar.DAY}(?:[ T]00(?::00(?::00(?:\.0*)?)?)?Z?)?", 86_400),
    "1h": (rf"{grammar.DAY}(?:[ T][0-9]{{2}}(?::00(?::00(?:\.0*)?)?)?{grammar.ZONE}?)?", 3600),
    "1min": (rf"{grammar.DAY}(?:[ T][0-9:]{{2,5}}(?::00(?:\.0*)?)?{grammar.ZONE}?)?", 60),
    "1s": (rf"{grammar.DAY}(?:[ T][0-9:]+(?:\.0*)?{grammar.ZONE}?)?", 1),
}
OTHERS = (
    "empty",
    "label",
    "text",
    "other",
)  # no filled cell; labels; hardly two alike; a type without a form


@dataclass(frozen=True)
class Look:
    """A column's form, a word of FORMS or OTHERS, and whether cells are missing: None if nobody looked.

    `decimals` are the digits after the point of numbers, `step` is what moments are multiples of, `format` is
    how cells are written.
    """

    form: str
    missing: bool | None = None
    decimals: int | None = None
    step: str | None = None
    format: CellFormat = PLAIN


def look(array: pa.Array) -> Look:
    """The look of a column of text, numbers, truth values, days or moments."""
    t = pa.types
    if t.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if t.is_binary(array.type) or t.is_string(array.type):
        return _text(array.cast(pa.binary()))
    if t.is_large_binary(array.type) or t.is_large_string(array.type):
        return _text(array.cast(pa.large_binary()))
    missing = _missing(array.null_count, len(array))
    if t.is_floating(array.type):
        return _floats(array)
    if t.is_decimal(array.type):
        return Look("number" if array.type.scale > 0 else "integer", missing, max(0, array.type.scale))
    if t.is_timestamp(array.type):
        return Look("moment", missing, step=_ticks(array))
    kinds = {"integer": t.is_integer, "boolean": t.is_boolean, "day": t.is_date}
    return Look(next((form for form, is_kind in kinds.items() if is_kind(array.type)), "other"), missing)


def _missing(absent: int, rows: int) -> bool:
    return absent >= max(2, math.ceil(MISSING * rows))


def _floats(array: pa.Array) -> Look:
    """Numbers of a binary file: whole ones are integers, as pandas writes integers beside missing ones."""
    floats = to_floats(array)
    filled = floats[np.isfinite(floats)]
    missing = _missing(len(floats) - len(filled), len(floats))
    if not len(filled):
        return Look("empty", missing)
    with np.errstate(over="ignore", invalid="ignore"):  # numbers near the largest float are on no grid
        for decimals in range(MOST_DECIMALS + 1):
            scaled = filled * 10.0**decimals
            if np.mean(np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(1, np.abs(scaled))) >= ROUNDED:
                return Look("number" if decimals else "integer", missing, decimals)
    return Look("number", missing)


def _text(cells: pa.Array) -> Look:
    from pyarrow import compute as pc

    long = too_long(cells)
    text = trimmed(cells)
    marked = pc.is_in(text, value_set=from_texts(MARKS, text.type))
    absent = pc.or_(pc.is_null(text), marked)
    filled = text.filter(pc.invert(absent))
    missing = _missing(len(text) - len(filled), len(text))
    if not len(filled):
        return Look("empty", missing)
    if long.any():
        filled = filled.filter(pc.less_equal(pc.binary_length(filled), LONGEST))
    bytes_ = filled.view(pa.large_binary() if pa.types.is_large_string(filled.type) else pa.binary())
    for form, pattern in FORMS.items():
        if share(bytes_, pattern) >= (ROUNDED if form in ("zero_one", "integer") else SHARE):
            decimals = _decimals(bytes_) if form == "number" else None
            written = _words(bytes_) if form == "boolean" else PLAIN
            return Look(form, missing, decimals, _step(bytes_) if form == "moment" else None, written)
    if (found := _formatted(bytes_, missing)) is not None:
        return found
    different = len(bytes_.unique()) / max(1, len(bytes_))
    return Look("text" if different > FREE and len(bytes_) >= SHORT else "label", missing)


def _formatted(cells: pa.Array, missing: bool) -> Look | None:
    """The look of cells in one of the formats that are known."""
    if number := number_format(cells, SHARE):
        decimals = _decimals(as_binary(plain_text(cells, number)).drop_null())
        return Look("number" if decimals != 0 else "integer", missing, decimals or None, None, number)
    if date := date_form(cells, SHARE):
        written = date_format(date)
        if written.resolution >= 86_400 * SECOND:
            return Look("day", missing, format=CellFormat(date=date))
        instants = formatted_instants(cells, written)
        step = _coarsest(instants[instants != NAT], SECOND)
        return Look("moment", missing, step=step, format=CellFormat(date=date))
    words = truth(cells, SHARE)
    return None if words is None else Look("boolean", missing, format=words)


def _words(cells: pa.Array) -> CellFormat:
    """The words of a boolean column that are others than true and false, so that they come out again."""
    found = truth(cells, SHARE)
    return PLAIN if found is None or found.true == ("true",) else found


def _decimals(cells: pa.Array) -> int | None:
    """The digits after the point that hardly a cell exceeds; None where they are many."""
    for digits in range(MOST_DECIMALS + 1):
        if share(cells, rf"[+-]?[0-9]*(?:\.[0-9]{{0,{digits}}}0*)?") >= ROUNDED:
            return digits
    return None


def _step(cells: pa.Array) -> str | None:
    """The coarsest step that hardly a moment is off."""
    return next((step for step, (pattern, _) in _STEPS.items() if share(cells, pattern) >= ROUNDED), None)


def _ticks(array: pa.Array) -> str | None:
    """The same of moments in a binary file."""
    ticks = to_numpy(array.drop_null().cast(pa.int64()))
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[array.type.unit]
    return _coarsest(ticks, second)


def _coarsest(ticks: Any, second: int) -> str | None:
    """The coarsest step that hardly one of these counts is off, of so many a second."""
    steps = (step for step, (_, seconds) in _STEPS.items() if _on(ticks, seconds * second) >= ROUNDED)
    return next(steps, None) if len(ticks) else None


def _on(ticks: Any, step: int) -> float:
    return float(np.mean(ticks % step == 0))
