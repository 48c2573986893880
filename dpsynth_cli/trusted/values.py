"""What cells say: text or Arrow cells to values, by total functions of one cell alone.

No cell whatever raises or warns. Arrow's casts do the work where they accept every cell of a batch; where
one cell stops them, the rest is read by `number` and `instant`, which give the same value for every cell
that Arrow would have accepted. `pyarrow.compute` is imported where it is needed: it takes as long as all else
that a small file of numbers does.

Numbers are float64 with NaN for missing; dates and times are int64 days or microseconds with NAT for
missing; categories are their numbers with UNLISTED and MISSING below zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.arrow import from_numpy, from_texts, to_numpy
from dpsynth_cli.domain import SECOND, Column

Values: TypeAlias = NDArray[Any]

NAT = np.iinfo(np.int64).min
UNLISTED, MISSING = -1, -2
DAY = 86_400 * SECOND
WORDS = {"false": 0, "f": 0, "no": 0, "n": 0, "0": 0, "true": 1, "t": 1, "yes": 1, "y": 1, "1": 1}
BLANKS = b" \t\n\v\f\r"
MARKS = ("NA", "N/A", "n/a", "na", "NaN", "nan", "NULL", "Null", "null", "None", "none", "?", "-", ".")


def is_missing(values: Values) -> NDArray[np.bool_]:
    """Which values are missing."""
    if values.dtype == np.float64:
        return np.isnan(values)
    return np.equal(values, NAT if values.dtype == np.int64 else MISSING)


# --- text ---------------------------------------------------------------------------------------------


def from_text(array: pa.Array, column: Column) -> Values:
    """What cells of text say, by the declared type."""
    if column.type in ("continuous", "integer"):
        return numbers(array)
    if column.type == "date":
        return days(array)
    if column.type == "datetime":
        return instants(array)
    if column.type == "boolean":
        return matches(array, WORDS, any_case=True)
    return matches(array, {label: code for code, label in enumerate(column.categories)})


_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)
_SURE_NUMBER = r"^-?[0-9]{1,18}(?:\.[0-9]{1,18})?$"  # Arrow reads all of these


def number(cell: bytes) -> float:
    """The float64 nearest to a decimal number, infinity if beyond; NaN for anything else.

    >>> number(b" -1.5e3 "), number(b"1,5"), number(b"inf")
    (-1500.0, nan, inf)
    """
    cell = cell.strip(BLANKS)
    if _NUMBER.fullmatch(cell) or _INFINITE.fullmatch(cell):
        return float(cell)
    return math.nan


def numbers(array: pa.Array) -> NDArray[np.float64]:
    """`number` of each cell."""
    sure = ((_SURE_NUMBER, _to_floats),)
    return _read(array, (_to_floats,), sure, number, np.full(len(array), math.nan))


_MONTH_DAY = (
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_ZONE = r"(?:Z|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])"
_SURE_DAY = rf"^[0-9]{{4}}-{_MONTH_DAY}"
_SURE_MICROS = rf"^[0-9]{{4}}-{_MONTH_DAY}[ T]{_CLOCK}(?::[0-5][0-9](?:\.[0-9]{{1,6}})?)?"
_SURE_NANOS = rf"^(?:1[7-9]|2[01])[0-9]{{2}}-{_MONTH_DAY}[ T]{_CLOCK}:[0-5][0-9]\.[0-9]{{7,9}}"
_INSTANT = re.compile(
    rb"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    rb"(?:[ T]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?"
    rb"(Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)?)?"
)


def instant(cell: bytes) -> int:
    """Microseconds since 1970 (UTC) of an ISO 8601 date or time; NAT for anything else.

    A fraction is cut at the microsecond; without a zone the time is UTC; a date is its midnight.

    >>> instant(b"1970-01-02T01:00:00.5+01:00") == DAY + SECOND // 2, instant(b"1970-02-30") == NAT
    (True, True)
    """
    match = _INSTANT.fullmatch(cell.strip(BLANKS))
    if match is None:
        return NAT
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction, _, sign, zone_hour, zone_minute = match.groups()[6:]
    try:  # Arrow knows the year 0; Python's calendar starts a year later and repeats every 400
        since = date(year or 400, month, day).toordinal() - 719_163 - (0 if year else 146_097)
    except ValueError:
        return NAT
    if hour > 23 or minute > 59 or second > 59 or int(zone_hour or 0) > 23 or int(zone_minute or 0) > 59:
        return NAT
    micros = since * DAY + (hour * 3600 + minute * 60 + second) * SECOND
    micros += int((fraction or b"0")[:6].ljust(6, b"0"))
    offset = (int(zone_hour or 0) * 60 + int(zone_minute or 0)) * 60 * SECOND
    return micros + offset if sign == b"-" else micros - offset


def instants(array: pa.Array) -> NDArray[np.int64]:
    """`instant` of each cell."""
    local, utc = _to_ticks(pa.timestamp("us")), _to_ticks(pa.timestamp("us", "UTC"))
    sure = (
        (_SURE_DAY + "$", local),
        (_SURE_MICROS + "$", local),
        (_SURE_MICROS + _ZONE + "$", utc),
        (_SURE_NANOS + "$", _to_ticks(pa.timestamp("ns"), 1000)),
        (_SURE_NANOS + _ZONE + "$", _to_ticks(pa.timestamp("ns", "UTC"), 1000)),
    )
    return _read(array, (local, utc), sure, instant, np.full(len(array), NAT))


def days(array: pa.Array) -> NDArray[np.int64]:
    """The UTC day of each cell's `instant`."""
    found = _at_once(array, (_to_ticks(pa.date32()),))
    return _whole_days(instants(array)) if found is None else found


def matches(array: pa.Array, labels: Mapping[str, int], any_case: bool = False) -> NDArray[np.int32]:
    """Each cell's number: of the label with its bytes, else of the label that it is without blanks around.

    MISSING if nothing is left then, UNLISTED if no label fits.
    """
    from pyarrow import compute as pc

    known = {label.encode(): code for label, code in labels.items() if label}
    place = pc.index_in(array, value_set=from_texts(list(known), array.type))
    result: NDArray[np.int32] = np.array([*known.values(), UNLISTED], np.int32)[to_numpy(place, len(known))]
    rest = np.flatnonzero(result == UNLISTED)
    if len(rest):
        cells = array.take(from_numpy(rest)).dictionary_encode("encode")
        distinct = [(cell or b"").strip(BLANKS) for cell in cells.dictionary.to_pylist()]
        distinct = [cell.lower() for cell in distinct] if any_case else distinct
        codes = [known.get(cell, UNLISTED) if cell else MISSING for cell in distinct]
        result[rest] = np.array(codes, np.int32)[to_numpy(cells.indices)]
    return result


def _read(
    array: pa.Array,
    whole: Iterable[Callable[[pa.Array], Values]],
    sure: Iterable[tuple[str, Callable[[pa.Array], Values]]],
    one: Callable[[bytes], float | int],
    result: Values,
) -> Values:
    """`one` of each cell, by Arrow where it can: for the whole array at once; else for the cells that
    fit a pattern of `sure`; and for the distinct others one by one.
    """
    from pyarrow import compute as pc

    if (found := _at_once(array, whole)) is not None:
        return found
    left = np.arange(len(array))
    array = _as_binary(trimmed(array))
    for pattern, read in sure:
        fits = pc.match_substring_regex(array, pattern).fill_null(False)
        taken = to_numpy(fits)
        result[left[taken]] = read(_as_string(array.filter(fits)))
        left, array = left[~taken], array.filter(pc.invert(fits))
    left = left[to_numpy(array.is_valid())]
    distinct = array.drop_null().dictionary_encode()
    values = np.array([one(cell) for cell in distinct.dictionary.to_pylist()], result.dtype)
    result[left] = values[to_numpy(distinct.indices)]
    return result


def _at_once(array: pa.Array, whole: Iterable[Callable[[pa.Array], Values]]) -> Values | None:
    """What the first of `whole` reads that can read every cell: as it is, trimmed, or without marks."""
    for prepared in (_as_string, trimmed, _unmarked):
        cells = prepared(array)
        for read in whole:
            try:
                read(cells[:20])  # Arrow spends a microsecond on each cell that it refuses
                return read(cells)
            except pa.ArrowInvalid:  # its text quotes a cell: never shown
                continue
    return None


def _to_floats(array: pa.Array) -> NDArray[np.float64]:
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    if array.type != pa.float64():
        array = array.cast(pa.float64(), safe=False)
    floats: NDArray[np.float64] = to_numpy(array, math.nan)
    # One kind of NaN: what numpy makes of a signalling one depends on its place in the batch.
    unknown = np.isnan(floats)
    return np.where(unknown, np.nan, floats) if unknown.any() else floats


def _to_ticks(type: pa.DataType, divisor: int = 1) -> Callable[[pa.Array], NDArray[np.int64]]:
    def ticks(array: pa.Array) -> NDArray[np.int64]:
        days = pa.types.is_date32(type)
        whole = array.cast(type).cast(pa.int32() if days else pa.int64()).cast(pa.int64())
        numbers = to_numpy(whole, NAT)
        return numbers if divisor == 1 else np.where(numbers == NAT, NAT, numbers // divisor)

    return ticks


def _whole_days(micros: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(micros == NAT, NAT, micros // DAY)


def _as_string(array: pa.Array) -> pa.Array:
    """The same bytes as text, unchecked: no byte is an error."""
    return array.view(pa.large_string() if pa.types.is_large_binary(array.type) else pa.string())


def _as_binary(array: pa.Array) -> pa.Array:
    return array.view(pa.large_binary() if pa.types.is_large_string(array.type) else pa.binary())


def trimmed(array: pa.Array) -> pa.Array:
    """Text without blanks around it, null where nothing is left."""
    from pyarrow import compute as pc

    text = pc.ascii_trim_whitespace(_as_string(array))
    return pc.if_else(pc.equal(pc.binary_length(text), 0), pa.scalar(None, text.type), text)


def _unmarked(array: pa.Array) -> pa.Array:
    """Trimmed text, null where it only marks what is missing, as people do."""
    from pyarrow import compute as pc

    text = trimmed(array)
    marked = pc.is_in(text, value_set=from_texts(MARKS, text.type))
    return pc.if_else(marked, pa.scalar(None, text.type), text)


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
    """What cells of an Arrow type that is `readable` say, by the declared type."""
    type = array.type
    if pa.types.is_null(type):
        return from_text(array.cast(pa.binary()), column)
    if is_text(type):
        return from_text(plain_binary(array), column)
    if column.type == "integer" and _plain_integers(array, column):
        whole: NDArray[np.int64] = to_numpy(array.cast(pa.int64()))
        return np.clip(whole, int(column.lower), int(column.upper))
    if column.type in ("continuous", "integer"):
        return _to_floats(array)
    if column.type == "datetime":
        return _micros(array)
    if column.type == "date":
        return _whole_days(_micros(array))
    if column.type == "boolean" and pa.types.is_boolean(type):
        return to_numpy(array.cast(pa.int32()), MISSING)
    return from_text(_formatted(array), column)


def _plain_integers(array: pa.Array, column: Column) -> bool:
    """Whether cells in bounds are what they would be as floats: integers without nulls, bounds below 2^53."""
    small = pa.types.is_integer(array.type) and not pa.types.is_uint64(array.type)
    return small and not array.null_count and max(abs(column.lower), abs(column.upper)) < 2**53


def plain_binary(array: pa.Array) -> pa.Array:
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return _as_binary(array)
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
        return _as_binary(array.cast(pa.string()))
    floats = _to_floats(array)
    cells = from_numpy(floats, np.isnan(floats)).dictionary_encode()
    text = [str(int(x)) if x.is_integer() else repr(x) for x in cells.dictionary.to_pylist()]
    return from_texts(text, pa.string()).take(cells.indices).cast(pa.binary())
