"""What cells say, text (`text.py`) or Arrow's own types, by the declared type: total functions of one cell.

Numbers are float64 with NaN for missing; dates and times are int64 days or microseconds with NAT for
missing; categories are their numbers with UNLISTED and MISSING below zero.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.arrow import from_numpy, from_texts, to_numpy
from dpsynth_cli.domain import SECOND, Column
from dpsynth_cli.trusted.rows.formatted import formatted_numbers, instants_of, marked_values, unmark
from dpsynth_cli.trusted.rows.text import (
    DAY,
    MISSING,
    NAT,
    Values,
    days,
    instants,
    matches,
    numbers,
    to_floats,
    whole_days,
)

WORDS = {"false": 0, "f": 0, "no": 0, "n": 0, "0": 0, "true": 1, "t": 1, "yes": 1, "y": 1, "1": 1}


def is_missing(values: Values) -> NDArray[np.bool_]:
    """Which values are missing."""
    if values.dtype == np.float64:
        return np.isnan(values)
    return np.equal(values, NAT if values.dtype == np.int64 else MISSING)


def from_text(array: pa.Array, column: Column) -> Values:
    """What cells of text say, by the declared type and format; the declared marks are missing."""
    return unmark(said_by_text(array, column), column)


def said_by_text(array: pa.Array, column: Column) -> Values:
    """What cells of text say, marks of missing cells among them where they are values."""
    form = column.format
    if column.type in ("continuous", "integer"):
        return numbers(array) if form.plain_numbers else formatted_numbers(array, form)
    if column.type in ("date", "datetime") and form.date:
        return instants_of(array, column)
    if column.type == "date":
        return days(array)
    if column.type == "datetime":
        return instants(array)
    marks = dict.fromkeys(form.missing, MISSING)
    if column.type == "boolean":
        words = {w: code for word, code in form.truth.items() for w in (word, word.lower())} or WORDS
        return matches(array, words | marks, any_case=True)
    return matches(array, {label: code for code, label in enumerate(column.categories)} | marks)


# --- Arrow types --------------------------------------------------------------------------------------


def readable(type: pa.DataType, column: Column) -> bool:
    """Whether cells of this Arrow type can be read as the declared type: a fact of the schema."""
    t = pa.types
    if t.is_dictionary(type):
        return not t.is_dictionary(type.value_type) and readable(type.value_type, column)
    if t.is_null(type) or is_text(type):
        return True
    if t.is_date(type) or t.is_timestamp(type):
        if column.type in ("ordinal", "nominal"):
            return not t.is_timestamp(type) or _writable(type)
        return column.type in ("date", "datetime")
    number = t.is_integer(type) or t.is_floating(type) or t.is_decimal(type) or t.is_boolean(type)
    return bool(number) and column.type not in ("date", "datetime")


def _writable(type: pa.DataType) -> bool:
    """Whether such times can be written as text: a damaged file may name a zone that does not exist."""
    try:
        pa.array([0], type).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def is_text(type: pa.DataType) -> bool:
    t = pa.types
    kinds = (t.is_string, t.is_large_string, t.is_binary, t.is_large_binary, t.is_fixed_size_binary)
    return any(kind(type) for kind in kinds) or type in (pa.string_view(), pa.binary_view())


def from_arrow(array: pa.Array, column: Column) -> Values:
    """What cells of an Arrow type that is `readable` say, by the declared type; marks are missing."""
    return unmark(_said_by_arrow(array, column), column)


def _said_by_arrow(array: pa.Array, column: Column) -> Values:
    type = array.type
    if pa.types.is_null(type):
        return said_by_text(array.cast(pa.binary()), column)
    if is_text(type):
        return said_by_text(plain_binary(array), column)
    if column.type == "integer" and _plain_integers(array, column):
        whole: NDArray[np.int64] = to_numpy(array.cast(pa.int64()))
        return np.clip(whole, int(column.lower) - 1, int(column.upper) + 1)  # beyond is beyond, and not NAT
    if column.type in ("continuous", "integer"):
        return to_floats(array)
    if column.type == "datetime":
        return _micros(array)
    if column.type == "date":
        return whole_days(_micros(array))
    if column.type == "boolean" and pa.types.is_boolean(type):
        return to_numpy(array.cast(pa.int32()), MISSING)
    return said_by_text(_formatted(array), column)


def texts(array: pa.Array) -> pa.Array:
    """Cells of a type that is `readable` as a category, as the bytes of their text; null where there is
    none."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return array.cast(pa.binary())
    return plain_binary(array) if is_text(array.type) else _formatted(array)


def _plain_integers(array: pa.Array, column: Column) -> bool:
    """Whether cells are what they would be as floats, those beyond the bounds being at them: integers without
    nulls, bounds below 2^53. Where codes tell more of a cell than its place in the bounds, what another row
    is must not decide how it is read."""
    small = pa.types.is_integer(array.type) and not pa.types.is_uint64(array.type)
    plain = marked_values(column) is None and not (column.rounding or column.octaves)
    return small and plain and not array.null_count and max(abs(column.lower), abs(column.upper)) < 2**53


def plain_binary(array: pa.Array) -> pa.Array:
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return array.view(pa.large_binary() if pa.types.is_large_string(array.type) else pa.binary())
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        return array
    return array.cast(pa.large_binary())


def _micros(array: pa.Array) -> NDArray[np.int64]:
    """Microseconds since 1970 of dates and timestamps of any unit, rounded down, clamped to int64."""
    if pa.types.is_date32(array.type):
        ticks, scale, divisor = array.cast(pa.int32()).cast(pa.int64()), DAY, 1
    else:
        unit = "ms" if pa.types.is_date64(array.type) else array.type.unit
        scale = {"s": SECOND, "ms": 1000, "us": 1, "ns": 1}[unit]
        ticks, divisor = array.cast(pa.int64()), 1000 if unit == "ns" else 1
    most = np.iinfo(np.int64).max // scale
    values: NDArray[np.int64] = np.clip(to_numpy(ticks), -most, most) * scale // divisor
    if array.null_count:
        values[to_numpy(array.is_null())] = NAT
    return values


def _formatted(array: pa.Array) -> pa.Array:
    """Numbers and times as the text that categories are compared with: 1 for 1.0, 2020-03-01 for a date."""
    if not pa.types.is_floating(array.type):
        return plain_binary(array.cast(pa.string()))
    floats = to_floats(array)
    cells = from_numpy(floats, np.isnan(floats)).dictionary_encode()
    text = [str(int(x)) if x.is_integer() else repr(x) for x in cells.dictionary.to_pylist()]
    return from_texts(text, pa.string()).take(cells.indices).cast(pa.binary())
