"""Cells of text to values: the kernel that reads a cell is chosen by a pattern on that cell alone.

The grammar is that of `dpsynth_cli.numbers`, with blanks around it allowed. No cell whatever raises, warns,
or takes more than time linear in its bytes: patterns are matched by RE2, which does not backtrack, and
kernels are Arrow's casts. A cell longer than LONGEST bytes says nothing: it is no number, no time, and no
category but one that has its very bytes.

A batch that a kernel takes whole needs no patterns, which are slower than the kernel itself. That changes no
value, because a kernel takes exactly the cells that fit its pattern (and reads the word nan as what is no
number): `test_a_kernel_takes_exactly_the_numbers_that_fit_its_pattern`, and the same for times and for all
short texts. `pyarrow.compute` is imported with the first cell: a command that reads none starts sooner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli import numbers as grammar
from dpsynth_cli.arrow import from_numpy, from_texts, to_numpy
from dpsynth_cli.domain import SECOND

Values: TypeAlias = NDArray[Any]

NAT = np.iinfo(np.int64).min
UNLISTED, MISSING = -1, -2
DAY = 86_400 * SECOND
LONGEST = 2**12  # bytes, blanks around it included
MARKS = ("NA", "N/A", "n/a", "na", "NaN", "nan", "NULL", "Null", "null", "None", "none", "?", "-", ".")


@dataclass(frozen=True)
class Kernel:
    """Cells that fit the pattern, and how Arrow reads them; `one` reads the same cells one by one."""

    pattern: str
    read: Callable[[pa.Array], Values]
    one: Callable[[bytes], float | int]

    def values(self, array: pa.Array) -> Values:
        """What cells say that all fit."""
        try:
            return self.read(as_string(array))
        except pa.ArrowInvalid:  # an Arrow that lacks a form which the one we test with has
            return np.array([self.one(cell) for cell in array.to_pylist()])


# --- numbers ------------------------------------------------------------------------------------------


def to_floats(array: pa.Array) -> NDArray[np.float64]:
    """Arrow's numbers, truth values or text that fits as float64: the nearest, infinity if beyond."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    if array.type != pa.float64():
        array = array.cast(pa.float64(), safe=False)
    floats: NDArray[np.float64] = to_numpy(array, math.nan)
    # One kind of NaN: what numpy.fmax makes of a signalling one depends on its place in the batch.
    unknown = np.isnan(floats)
    return np.where(unknown, np.nan, floats) if unknown.any() else floats


NUMBERS = (Kernel(f"^(?:{grammar.NUMBER}|[+-]?(?i:inf(?:inity)?))$", to_floats, float),)


def numbers(array: pa.Array) -> NDArray[np.float64]:
    """The float64 nearest to each decimal number, infinity if beyond; NaN for anything else."""
    return _read(array, NUMBERS, np.full(len(array), math.nan))


# --- days and moments ---------------------------------------------------------------------------------


def _to_ticks(type: pa.DataType) -> Callable[[pa.Array], NDArray[np.int64]]:
    def ticks(array: pa.Array) -> NDArray[np.int64]:
        return to_numpy(array.cast(type).cast(pa.int64()), NAT)

    return ticks


def _one_moment(cell: bytes) -> int:
    found, day = grammar.moment(cell.decode()), grammar.day(cell.decode())
    return found if found is not None else NAT if day is None else day * DAY


_FINE = grammar.CLOCK.replace("[0-9]+", "[0-9]{1,6}")  # what microseconds can hold
MOMENTS = (
    Kernel(f"^{grammar.DAY}(?:{_FINE})?$", _to_ticks(pa.timestamp("us")), _one_moment),
    Kernel(f"^{grammar.DAY}{_FINE}{grammar.ZONE}$", _to_ticks(pa.timestamp("us", "UTC")), _one_moment),
)


def instants(array: pa.Array) -> NDArray[np.int64]:
    """Microseconds since 1970 (UTC) of each day or moment; NAT for anything else.

    A fraction is cut at the microsecond; without a zone the time is UTC; a day is its midnight.
    """
    return _read(array, MOMENTS, np.full(len(array), NAT), _cut)


def days(array: pa.Array) -> NDArray[np.int64]:
    """The UTC day of each cell's instant."""
    return whole_days(instants(array))


def whole_days(micros: NDArray[np.int64]) -> NDArray[np.int64]:
    missing = micros == NAT
    return np.where(missing, NAT, micros // DAY) if missing.any() else micros // DAY


def _cut(array: pa.Array) -> pa.Array:
    """Moments without what follows the sixth digit of their fraction; all else as it is."""
    from pyarrow import compute as pc

    return pc.replace_substring_regex(array, r"^([0-9-]{10}[ T][0-9:]{8}\.[0-9]{6})[0-9]+", r"\1")


# --- labels -------------------------------------------------------------------------------------------


def matches(array: pa.Array, labels: Mapping[str, int], any_case: bool = False) -> NDArray[np.int32]:
    """Each cell's number: of the label with its bytes, else of the label that it is without blanks around.

    MISSING if nothing is left then, UNLISTED if no label fits.
    """
    from pyarrow import compute as pc

    known = {label.encode(): code for label, code in labels.items() if label}
    numbers = np.array([*known.values(), UNLISTED], np.int32)

    def found(cells: pa.Array) -> NDArray[np.int32]:
        place = pc.index_in(cells, value_set=from_texts(list(known), cells.type))
        return np.asarray(numbers[to_numpy(place, len(known))], np.int32)

    result = found(array)
    rest = np.flatnonzero(result == UNLISTED)
    if len(rest):
        cells = array.take(from_numpy(rest))
        long = too_long(cells)
        cells = trimmed(without(cells, long))
        result[rest] = found(as_binary(pc.ascii_lower(cells) if any_case else cells))
        result[rest[to_numpy(cells.is_null()) & ~long]] = MISSING
    return result


# --- one cell at a time, many at once -----------------------------------------------------------------


def _read(
    array: pa.Array,
    kernels: tuple[Kernel, ...],
    result: Values,
    tidy: Callable[[pa.Array], pa.Array] = lambda array: array,
) -> Values:
    """Each cell by the kernel whose pattern it fits, as it stands or tidied; `result` where it fits none."""
    from pyarrow import compute as pc

    if (found := _whole(array, kernels)) is not None:
        return found
    left, cells = np.arange(len(array)), as_binary(without(array, too_long(array)))
    for tidied in (False, True):
        cells = tidy(as_binary(trimmed(cells))) if tidied else cells
        for kernel in kernels:
            fits = pc.match_substring_regex(cells, kernel.pattern).fill_null(False)
            taken = to_numpy(fits)
            result[left[taken]] = kernel.values(cells.filter(fits))
            left, cells = left[~taken], cells.filter(pc.invert(fits))
    return result


def _whole(array: pa.Array, kernels: tuple[Kernel, ...]) -> Values | None:
    """What one kernel says of every cell, if it takes all: as they are, trimmed, or without marks.

    A mark fits no pattern, so that it is no number and no time; nor does a cell that is too long.
    """
    array = without(array, too_long(array))
    for prepared in (as_string, trimmed, unmarked):
        cells = prepared(array)
        for kernel in kernels:
            try:
                kernel.read(cells[:20])  # Arrow spends a microsecond on each cell that it refuses
                return kernel.read(cells)
            except pa.ArrowInvalid:  # its text quotes a cell: never shown
                continue
    return None


def shortened(array: pa.Array, longest: int) -> pa.Array:
    """Text, or a dictionary of it, without longer cells: in their place is one that says as little.

    A cell of a damaged page may name a label that its dictionary does not have: it is missing.
    """
    from pyarrow import compute as pc

    if pa.types.is_dictionary(array.type):
        labels, places = array.dictionary, array.indices
        short = shortened(labels, longest)
        ends = pc.min_max(places).as_py()
        if places.null_count < len(places) and not 0 <= ends["min"] <= ends["max"] < len(labels):
            there = pc.and_(pc.greater_equal(places, 0), pc.less(places, len(labels)))
            places = pc.if_else(there, places, pa.scalar(None, places.type))
        elif short is labels:
            return array
        return pa.DictionaryArray.from_arrays(places, short)
    long = too_long(array, longest)
    return pc.if_else(from_numpy(long), pa.scalar("\0 too long", array.type), array) if long.any() else array


def too_long(array: pa.Array, longest: int = LONGEST) -> NDArray[np.bool_]:
    """Which cells of text are longer than any cell that says something."""
    kind = np.dtype(np.int64 if _is_large(array.type) else np.int32)
    if not len(array):
        return np.zeros(0, np.bool_)
    ends = np.frombuffer(array.buffers()[1], kind, len(array) + 1, array.offset * kind.itemsize)
    long = np.diff(ends) > longest
    return long & to_numpy(array.is_valid()) if array.null_count and long.any() else long


def without(array: pa.Array, which: NDArray[np.bool_]) -> pa.Array:
    """The same cells, null where told."""
    if not which.any():
        return array
    from pyarrow import compute as pc

    return pc.if_else(from_numpy(which), pa.scalar(None, array.type), array)


def _is_large(type: pa.DataType) -> bool:
    return bool(pa.types.is_large_binary(type) or pa.types.is_large_string(type))


def as_string(array: pa.Array) -> pa.Array:
    """The same bytes as text, unchecked: no byte is an error."""
    return array.view(pa.large_string() if _is_large(array.type) else pa.string())


def as_binary(array: pa.Array) -> pa.Array:
    """The same bytes, as bytes."""
    return array.view(pa.large_binary() if _is_large(array.type) else pa.binary())


def trimmed(array: pa.Array) -> pa.Array:
    """Text without blanks around it, null where nothing is left."""
    from pyarrow import compute as pc

    text = pc.ascii_trim_whitespace(as_string(array))
    return pc.if_else(pc.equal(pc.binary_length(text), 0), pa.scalar(None, text.type), text)


def empty(array: pa.Array) -> NDArray[np.bool_]:
    """Which cells are null or blank; a long one is neither."""
    long = too_long(array)
    return to_numpy(trimmed(without(array, long)).is_null()) & ~long


def unmarked(array: pa.Array, marks: Sequence[str] = ()) -> pa.Array:
    """Trimmed text, null where it only marks what is missing, as people do or as `marks` do."""
    from pyarrow import compute as pc

    text = trimmed(array)
    marked = pc.is_in(text, value_set=from_texts((*MARKS, *marks), text.type))
    return pc.if_else(marked, pa.scalar(None, text.type), text)
