"""Decoded columns as lines of CSV, in the format that the spec declares: the input's own, or plain CSV.

What is written here is read back by `trusted/rows/formatted.py` as the same values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth_cli.arrow import from_numpy, from_texts, to_numpy
from dpsynth_cli.cell_format import MONTHS, CellFormat, date_format
from dpsynth_cli.domain import SECOND, Column, CsvOptions, Domain, as_written
from dpsynth_cli.encodings import as_utf8, beginning

DAY = 86_400 * SECOND
_TEXT = pa.large_string()


class Lines:
    """Lines of these columns, as bytes in the encoding of the file."""

    def __init__(self, columns: Sequence[Column], csv: CsvOptions) -> None:
        written, self.csv = as_written(Domain(tuple(columns)), csv)
        self.columns = written.columns
        self._mark, self._codec = beginning(self.csv.encoding)

    def head(self) -> bytes:
        """The mark of the encoding, if it has one, and the header."""
        names = self.csv.delimiter.join(_quoted(column.name, self.csv.delimiter) for column in self.columns)
        return self._mark + f"{names}\n".encode(self._codec, "replace")

    def of(self, arrays: Sequence[pa.Array]) -> bytes | memoryview:
        """The lines of a group: cells joined by the delimiter, a newline after each."""
        texts = [
            cells(array, column, self.csv.delimiter)
            for array, column in zip(arrays, self.columns, strict=True)
        ]
        if len(texts) == 1:  # many readers skip a blank line
            texts = [texts[0].fill_null('""')]
        lines = _joined(texts, self.csv.delimiter)
        return lines if as_utf8(self._codec) else str(lines, "utf-8").encode(self._codec, "replace")


def _joined(texts: list[pa.Array], delimiter: str) -> memoryview:
    nothing, between, newline = from_texts(("", delimiter, "\n"), _TEXT)
    none = pc.JoinOptions(null_handling="replace", null_replacement="")
    last = pc.binary_join_element_wise(texts[-1], nothing, newline, options=none)
    joined = pc.binary_join_element_wise(*texts[:-1], last, between, options=none)
    _, offsets, data = joined.buffers()
    start, end = np.frombuffer(offsets, np.int64)[[joined.offset, joined.offset + len(joined)]]
    return memoryview(data)[start:end]


def cells(array: pa.Array, column: Column, delimiter: str) -> pa.Array:
    """A decoded column as fields of CSV; missing as the first declared mark, else null."""
    form = column.format
    if column.type == "boolean" and form.true:
        words = [_quoted(word, delimiter) for word in (form.false[0], form.true[0])]
        text = from_texts(words, _TEXT).take(array.cast(pa.int8()))
    elif pa.types.is_dictionary(array.type):
        labels = from_texts([_quoted(label, delimiter) for label in column.categories], _TEXT)
        text = labels.take(array.indices)
    elif form.date and column.type in ("date", "datetime"):
        text = _dates(array, form.date, delimiter)
    elif column.type in ("continuous", "integer") and not (form.plain_numbers and column.decimals is None):
        text = _numbers(array, column)
        if delimiter in _signs(form):
            text = _around('"', text, '"')
    else:
        if column.type == "datetime":
            array = array.cast(pa.timestamp(_resolution(column)))
        text = array.cast(_TEXT)
    return text.fill_null(_quoted(form.missing[0], delimiter)) if form.missing and form.missing[0] else text


def _signs(form: CellFormat) -> str:
    return form.decimal + form.thousands + form.currency + "%"


def _around(before: str, text: pa.Array, after: str) -> pa.Array:
    left, nothing, right = from_texts((before, "", after), _TEXT)
    return pc.binary_join_element_wise(left, text, right, nothing)


def _numbers(array: pa.Array, column: Column) -> pa.Array:
    """Numbers with their decimals, signs between thousands, currency and percent."""
    form = column.format
    below = to_numpy(pc.less(array, 0).fill_null(False))
    text = pc.abs(array).cast(_TEXT)
    if column.decimals is not None:
        # Whole steps of the grid, exactly: all their digits, then the point before the last of them.
        steps = pc.round(pc.multiply(pc.abs(array), float(10**column.decimals))).cast(pa.int64())
        text = steps.cast(_TEXT)
        if column.decimals:
            text = pc.ascii_lpad(text, column.decimals + 1, "0")
            text = pc.replace_substring_regex(text, f"([0-9]{{{column.decimals}}})$", r".\1")
    text = pc.replace_substring(text, ".", form.decimal) if form.decimal != "." else text
    grouped = text
    while form.thousands:  # the last three digits of what is not yet cut, from the right
        grouped = pc.replace_substring_regex(text, r"^([0-9]+)([0-9]{3})", rf"\1{form.thousands}\2")
        if grouped.equals(text):
            break
        text = grouped
    before, after = form.currency_signs
    signed = from_texts((before, f"-{before}"), _TEXT).take(from_numpy(below.astype(np.int8)))
    nothing, end = from_texts(("", after + "%" * form.percent), _TEXT)
    return pc.binary_join_element_wise(signed, text, end, nothing)


def _dates(array: pa.Array, form: str, delimiter: str) -> pa.Array:
    """Days or times by the directives of a format."""
    absent = to_numpy(array.is_null())
    if pa.types.is_date(array.type):
        micros = to_numpy(array.cast(pa.int32())).astype(np.int64) * DAY
    else:
        micros = to_numpy(array.cast(pa.int64()))
    parts = date_format(form)
    said = _parts(micros, set(parts.letters))
    pieces = [said[text] if directive else from_texts((text,), _TEXT)[0] for text, directive in parts.parts]
    literal = "".join(text for text, directive in parts.parts if not directive)
    text = pc.binary_join_element_wise(*pieces, from_texts(("",), _TEXT)[0])
    if delimiter in literal or '"' in literal:
        text = _around('"', pc.replace_substring(text, '"', '""'), '"')
    return pc.if_else(from_numpy(absent), pa.scalar(None, _TEXT), text) if absent.any() else text


def _parts(micros: NDArray[np.int64], letters: set[str]) -> dict[str, pa.Array]:
    """What each directive says, as text."""
    days, clock = micros // DAY, micros % DAY
    dates = days.astype("datetime64[D]")
    year = dates.astype("datetime64[Y]").astype(np.int64) + 1970
    month = dates.astype("datetime64[M]").astype(np.int64) % 12
    first = dates.astype("datetime64[M]").astype("datetime64[D]")
    day = (dates - first).astype(np.int64) + 1
    hour, minute, second = clock // (3600 * SECOND), clock // (60 * SECOND) % 60, clock // SECOND % 60
    two, names = [f"{i:02}" for i in range(100)], [name.capitalize() for name in MONTHS]
    found = {
        "Y": lambda: _of([f"{i:04}" for i in range(10_000)], np.clip(year, 0, 9999)),
        "y": lambda: _of(two, year % 100),
        "m": lambda: _of(two, month + 1),
        "b": lambda: _of([name[:3] for name in names], month),
        "B": lambda: _of(names, month),
        "d": lambda: _of(two, day),
        "H": lambda: _of(two, hour),
        "I": lambda: _of(two, (hour + 11) % 12 + 1),
        "p": lambda: _of(["AM", "PM"], hour // 12),
        "M": lambda: _of(two, minute),
        "S": lambda: _of(two, second),
        "f": lambda: pc.ascii_lpad(from_numpy(clock % SECOND).cast(_TEXT), 6, "0"),
        "z": lambda: _of(["+0000"], np.zeros(len(micros), np.int64)),
    }
    return {letter: found[letter]() for letter in letters}


def _of(texts: list[str], which: NDArray[np.int64]) -> pa.Array:
    return from_texts(texts, _TEXT).take(from_numpy(which))


def _resolution(column: Column) -> str:
    """The coarsest unit of time that all values of a datetime column are whole in."""
    step = math.gcd(int(column.lower), column.unit)
    return "s" if step % SECOND == 0 else "ms" if step % 1000 == 0 else "us"


def _quoted(text: str, delimiter: str) -> str:
    """A field of CSV: in quotes if it would be read differently without them."""
    odd = set(text) & {delimiter, ",", '"', "\r", "\n"}
    if text and text == text.strip() and not odd and not text.startswith("\ufeff"):
        return text
    return '"' + text.replace('"', '""') + '"'
