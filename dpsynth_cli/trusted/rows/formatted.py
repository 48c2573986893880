"""Cells in a declared format to values: 1.234,56 and $13,520 and 23/07/2019, by the million.

The claim is that of `text.py`: what a cell becomes depends on that cell and the declared format alone. A
pattern of the format, matched by RE2 in time linear in the cell, says whether a cell is one; what is one
is then read by kernels that take every such cell. What is none is missing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.arrow import from_numpy, from_texts, to_numpy
from dpsynth_cli.cell_format import GAPS, MONTHS, CellFormat, DateFormat, date_format, in_bytes
from dpsynth_cli.domain import SECOND, Column
from dpsynth_cli.numbers import EXPONENT
from dpsynth_cli.trusted.rows.text import (
    DAY,
    NAT,
    Values,
    as_binary,
    as_string,
    numbers,
    too_long,
    trimmed,
    whole_days,
    without,
)

_BLANK = rf"(?: |{in_bytes(GAPS[' '][1])}|{in_bytes(GAPS[' '][2])})"


def _cells(array: pa.Array) -> pa.Array:
    """Cells without blanks around them, null where empty or too long."""
    return as_binary(trimmed(without(array, too_long(array))))


# --- numbers ------------------------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def number_pattern(form: CellFormat) -> str:
    """What a number looks like in a format; thousands, currency and percent sign may be left out."""
    digits, point = "[0-9]+", in_bytes(form.decimal)
    if form.thousands:
        between = "|".join(map(in_bytes, GAPS.get(form.thousands, (form.thousands,))))
        digits = f"(?:[0-9]{{1,3}}(?:(?:{between})[0-9]{{3}})+|[0-9]+)"
    body = f"(?:{digits}(?:{point}[0-9]*)?|{point}[0-9]+)"
    sign = "".join(form.currency_signs).strip()
    if form.percent:
        return f"^[-+]?{body}(?:{_BLANK}?%)?$"
    if not sign:
        return f"^[-+]?{body}{EXPONENT}$"
    money = in_bytes(sign)
    before, after = f"(?:{money}{_BLANK}?)?", f"(?:{_BLANK}?{money})?"
    either = f"{before}{body}|{body}{after}"
    return f"^(?:{before}[-+]?{body}|[-+]{before}{body}|[-+]?{body}{after}|\\((?:{either})\\))$"


def formatted_numbers(array: pa.Array, form: CellFormat) -> NDArray[np.float64]:
    """The float64 nearest to each number that is written in a format; NaN for anything else.

    >>> cells = pa.array([b"1.234,56", b"-3", b"1.5", b""])
    >>> formatted_numbers(cells, CellFormat(decimal=",", thousands=".")).tolist()
    [1234.56, -3.0, nan, nan]
    """
    return numbers(as_binary(plain_text(array, form)))


def plain_text(array: pa.Array, form: CellFormat) -> pa.Array:
    """Numbers that are written in a format as `dpsynth_cli.numbers` writes them; null for anything else."""
    from pyarrow import compute as pc

    cells = _cells(array)
    fits = to_numpy(pc.match_substring_regex(cells, number_pattern(form)).fill_null(False))
    # As text: each literal stands in a cell that fits only as what it means.
    text = as_string(without(cells, ~fits))
    sign = "".join(form.currency_signs).strip()
    gone = [sign] if sign else []
    gone += ["%"] if form.percent else []
    gone += GAPS[" "] if sign or form.percent else ()
    gone += GAPS.get(form.thousands, (form.thousands,)) if form.thousands else ()
    gone += [")"] if sign else []
    for literal in gone:
        text = pc.replace_substring(text, literal, "")
    if sign:
        text = pc.replace_substring(text, "(", "-")
    if form.decimal != ".":
        text = pc.replace_substring(text, form.decimal, ".")
    return text


# --- days and moments ---------------------------------------------------------------------------------


def formatted_instants(array: pa.Array, form: DateFormat) -> NDArray[np.int64]:
    """Microseconds since 1970 (UTC) of each cell that is written in a format of dates; NAT for anything else.

    >>> formatted_instants(pa.array([b"2/1/1970", b"30/2/1970"]), date_format("%d/%m/%Y")).tolist()[0] // DAY
    1
    """
    from pyarrow import compute as pc

    cells = _cells(array)
    fits = to_numpy(pc.match_substring_regex(cells, form.pattern).fill_null(False))
    there = cells.filter(from_numpy(fits))
    result = np.full(len(array), NAT)
    if not len(there):
        return result
    parts = pc.extract_regex(there, form.pattern)
    said = {letter: pc.struct_field(parts, letter) for letter in form.letters}
    found: dict[str, Any] = {letter: _number(letter, text) for letter, text in said.items()}
    year = found["Y"] if "Y" in found else found["y"] + np.where(found["y"] < 69, 2000, 1900)
    month = found["m"] if "m" in found else found["b"] if "b" in found else found["B"]
    days, real = days_of(year, month, found["d"])
    hour = found.get("H", 0)
    if "I" in found:
        real &= (found["I"] >= 1) & (found["I"] <= 12)
        hour = found["I"] % 12 + 12 * found["p"]
    minute, second = found.get("M", 0), found.get("S", 0)
    real &= (hour <= 23) & (minute <= 59) & (second <= 59)
    micros = days * DAY + ((hour * 60 + minute) * 60 + second) * SECOND + found.get("f", 0)
    micros = micros - found.get("z", 0) * (60 * SECOND)
    result[np.flatnonzero(fits)[real]] = micros[real]
    return result


def _number(letter: str, text: pa.Array) -> NDArray[np.int64]:
    """What the cells of one directive say."""
    from pyarrow import compute as pc

    lower = pc.ascii_lower(as_string(text))
    if letter in "bB":
        names = MONTHS if letter == "B" else tuple(month[:3] for month in MONTHS)
        place = pc.index_in(lower, value_set=from_texts(names, lower.type))
        return to_numpy(place).astype(np.int64) + 1
    if letter == "p":
        return to_numpy(pc.equal(lower, "pm")).astype(np.int64)
    if letter == "f":
        lower = pc.ascii_rpad(lower, 6, "0")
    if letter == "z":
        for literal, instead in ((":", ""), ("+", ""), ("z", "0000")):
            lower = pc.replace_substring(lower, literal, instead)
        ahead = to_numpy(lower.cast(pa.int64())).astype(np.int64)  # +0130 is 130
        minutes: NDArray[np.int64] = np.abs(ahead) // 100 * 60 + np.abs(ahead) % 100
        return np.where(ahead < 0, -minutes, minutes)
    said: NDArray[np.int64] = to_numpy(lower.cast(pa.int64()))
    return said


def days_of(
    year: NDArray[np.int64], month: NDArray[np.int64], day: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Days since 1970 of dates of the Gregorian calendar, and which of them there are."""
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    months = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    known = (month >= 1) & (month <= 12)
    length = months[np.where(known, month, 0)] + (leap & (month == 2))
    real = known & (day >= 1) & (day <= length)
    # Years begin in March, so that the leap day is their last: 365 a year and one more every 4, not 100, 400.
    y, m = year - (month <= 2), (month + 9) % 12
    return 365 * y + y // 4 - y // 100 + y // 400 + (153 * m + 2) // 5 + day - 719_469, real


# --- marks of missing cells -----------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def marked_values(column: Column) -> Values | None:
    """What the column's marks of missing cells say as values of its type: -9 under `missing: ["-9"]`."""
    from dpsynth_cli.trusted.rows.values import is_missing, said_by_text

    if not column.format.missing or column.categorical:
        return None
    values = said_by_text(from_texts(column.format.missing, pa.binary()), column)
    there = values[~is_missing(values)]
    return there if len(there) else None


def unmark(values: Values, column: Column) -> Values:
    """The same values, missing where one of the column's marks says so."""
    marks = marked_values(column)
    if marks is None:
        return values
    return np.where(np.isin(values, marks), np.nan if values.dtype == np.float64 else NAT, values)


def instants_of(array: pa.Array, column: Column) -> NDArray[np.int64]:
    """Days or microseconds of cells in the column's format of dates."""
    micros = formatted_instants(array, date_format(column.format.date))
    return whole_days(micros) if column.type == "date" else micros
