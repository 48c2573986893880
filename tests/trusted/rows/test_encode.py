"""The code of a cell depends on that cell and its column alone, and every cell has one."""

from __future__ import annotations

import itertools
import math
import re
import time
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsynth_cli import numbers as grammar
from dpsynth_cli.arrow import from_texts
from dpsynth_cli.domain import GRID, SECOND, STEPS, Column
from dpsynth_cli.trusted.rows.encode import encode_arrow, encode_bytes
from dpsynth_cli.trusted.rows.text import (
    DAY,
    LONGEST,
    MARKS,
    MOMENTS,
    NAT,
    NUMBERS,
    Kernel,
    instants,
    numbers,
    to_floats,
)
from dpsynth_cli.trusted.rows.text import days as days_of
from dpsynth_cli.trusted.rows.values import readable

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def micros(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=timezone.utc) - EPOCH) // timedelta(microseconds=1)


def days(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def both(**fields) -> list[Column]:
    return [Column(**fields), Column(**fields, nullable=True)]


COLUMNS = [
    *both(name="x", type="continuous", lower=-1.5, upper=2.5),
    *both(name="x", type="continuous", lower=-1.7e308, upper=1.7e308),
    *both(name="x", type="continuous", lower=3.0, upper=3.0),
    *both(name="x", type="continuous", lower=0.0, upper=5e-324),
    *both(name="n", type="integer", lower=-5, upper=120),
    *both(name="n", type="integer", lower=-(2**53), upper=2**53),
    *both(name="x", type="continuous", lower=-(2.0**128), upper=2.0**128, octaves=True),
    *both(name="n", type="integer", lower=-(2**53 - 1), upper=2**53 - 1, octaves=True),
    *both(name="x", type="continuous", lower=-1.5, upper=2.5, rounding=True),
    *both(name="n", type="integer", lower=-5, upper=120, rounding=True),
    *both(name="c", type="nominal", categories=("a", "b", " c ", "7", "2.5", "é", "true")),
    *both(name="c", type="nominal", categories=("a", "b"), other="b"),
    *both(name="o", type="ordinal", categories=("low", "mid", "high")),
    *both(name="b", type="boolean", categories=("false", "true")),
    *both(name="d", type="date", lower=days("2020-01-01"), upper=days("2020-12-31")),
    *both(name="t", type="datetime", lower=micros("2020-01-01"), upper=micros("2020-12-31")),
    *both(name="t", type="datetime", lower=0, upper=1000),
    *both(name="t", type="datetime", lower=micros("0001-01-01"), upper=micros("9999-12-31")),
]


def by_name(name: str, nullable: bool = True) -> Column:
    return next(column for column in COLUMNS if column.name == name and column.nullable == nullable)


def codes(column: Column, *cells: bytes) -> list[int]:
    return encode_bytes(pa.array(cells, pa.binary()), column).tolist()


numeric_text = st.text("0123456789.+-eEinfatyNA \t,x", max_size=9).map(str.encode)
time_text = st.one_of(
    st.from_regex(
        r"\A(0000|1677|19[67]\d|2020|2262|9999)-(0[0-9]|1[0-3])-([0-3]\d)"
        r"([ T][0-2]\d(:[0-6]\d(:[0-6]\d(\.\d{0,10})?)?)?(Z|[+-][0-2]\d(:?[0-6]\d)?)?)?\Z"
    ),
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(str),
    st.datetimes(timezones=st.just(timezone(timedelta(hours=-5, minutes=-30)))).map(datetime.isoformat),
    st.dates().map(str),
    st.text("0123456789-:. TZ+", max_size=28),
).map(str.encode)
label_text = st.sampled_from(
    [b"a", b" a", b"a ", b" c ", b"c", b"B", b"\xc3\xa9", b"TRUE", b"No", b"y", b"7", b"0"]
)
any_cell = st.one_of(
    st.sampled_from([b"", b" ", b"nan", b"inf", b"-inf", b"1e400", b"9" * 400, b"\xff", b"\0", b"1\0"]),
    st.floats().map(lambda x: repr(x).encode()),
    st.integers().map(lambda n: str(n).encode()),
    numeric_text,
    time_text,
    label_text,
    st.sampled_from(MARKS).map(str.encode),
    st.binary(max_size=6),
)


# --- the claim -----------------------------------------------------------------------------------------


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(COLUMNS), st.lists(any_cell, max_size=30))
def test_the_code_of_a_cell_never_depends_on_the_others(column, cells):
    together = codes(column, *cells)
    assert together == [codes(column, cell)[0] for cell in cells]
    assert all(0 <= code < column.codes for code in together)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), any_cell), max_size=20), st.integers(0, 5))
def test_how_text_is_stored_does_not_matter(cells, skip):
    plain = pa.array(cells, pa.binary())
    for column in COLUMNS[1::4]:
        expected = encode_bytes(plain, column)[skip:].tolist()
        for stored in (plain, plain.cast(pa.large_binary()), plain.dictionary_encode()):
            assert encode_arrow(stored[skip:], column).tolist() == expected


def takes(kernel: Kernel, cell: bytes) -> bool:
    try:
        kernel.read(pa.array([cell]).view(pa.string()))
    except pa.ArrowInvalid:
        return False
    return True


def check_kernels(cell: bytes, kernels: tuple[Kernel, ...]) -> None:
    """A kernel takes a cell if it fits its pattern, and else at most as what is no number."""
    array = pa.array([cell], pa.binary())
    for kernel in kernels:
        fits = pc.match_substring_regex(array, kernel.pattern)[0].as_py()
        if fits:
            assert takes(kernel, cell), cell
            assert kernel.one(cell) == kernel.values(array)[0] or cell.startswith(b"0000")
        elif takes(kernel, cell):
            assert np.isnan(kernel.values(array)[0]), cell


@settings(max_examples=800, deadline=None)
@given(
    st.one_of(
        numeric_text,
        st.floats().map(lambda x: repr(x).encode()),
        st.text("09.e-+", max_size=40).map(str.encode),
        st.sampled_from(MARKS).map(str.encode),
        st.binary(max_size=4),
    )
)
@example(b"9" * 800 + b"e-700")
@example(b"0." + b"0" * 400 + b"123e200")
@example(b"nan(7)")
@example(b"1e" + b"9" * 30)
@example(b"+INFINITY")
def test_a_kernel_takes_exactly_the_numbers_that_fit_its_pattern(cell):
    check_kernels(cell, NUMBERS)


@settings(max_examples=800, deadline=None)
@given(st.one_of(time_text, st.sampled_from(MARKS).map(str.encode), st.binary(max_size=12)))
@example(b"2020-01-01 1234")
@example(b"2020-01-01 12:34:56 Z")
@example(b"-2020-01-01")
def test_a_kernel_takes_exactly_the_times_that_fit_its_pattern(cell):
    check_kernels(cell, MOMENTS)


def test_a_kernel_takes_exactly_the_short_texts_that_fit_its_pattern():
    """All of up to six signs that numbers are made of, and all days near the ends of months."""
    for size in range(1, 7):
        for signs in itertools.product(b"07.e-", repeat=size):
            cell = bytes(signs)
            fits = bool(re.fullmatch(grammar.NUMBER.encode(), cell))
            assert takes(NUMBERS[0], cell) == fits, cell
    for year, month, day in itertools.product(
        (1999, 2000, 2004, 1900, 2100), range(14), (0, 1, 28, 29, 30, 31, 32)
    ):
        cell = b"%04d-%02d-%02d" % (year, month, day)
        fits = bool(re.fullmatch(grammar.DAY.encode(), cell))
        assert takes(MOMENTS[0], cell) == fits == (grammar.day(cell.decode()) is not None), cell


@settings(max_examples=400, deadline=None)
@given(st.one_of(numeric_text, time_text, any_cell))
@example(b"1e299")
@example(b"2020-01-01T12:00:00.1234567891234+01")
def test_cells_are_read_by_the_grammar_of_specs(cell):
    """What `dpsynth_cli.numbers` reads, cells say too; what it does not is no value of a cell, but for
    infinities, numbers beyond 1e±300 and the year 0, which a spec cannot have."""
    array, text = pa.array([cell], pa.binary()), cell.strip(b" \t\n\v\f\r").decode("latin-1")
    value, exact = numbers(array)[0], grammar.decimal(text)
    if exact is not None:
        assert value == float(exact)
    else:
        assert np.isnan(value) or np.isinf(value) or value == 0 or not 1e-300 <= abs(value) <= 1e300
    at = grammar.moment(text)
    if at is None and grammar.day(text) is not None:
        at = grammar.day(text) * DAY
    found = instants(array)[0]
    if at is not None:
        assert found == at
    else:
        edge = re.match("0000|0001-01-01|9999-12-31", text)  # a zone leads out of the calendar
        assert found == NAT or edge


@given(st.lists(st.one_of(numeric_text, time_text, st.sampled_from(MARKS).map(str.encode)), max_size=20))
@settings(max_examples=80, deadline=None)
def test_many_cells_at_once_are_read_as_one_by_one(cells):
    array = pa.array(cells, pa.binary())
    for read in (numbers, instants, days_of):
        one = [read(pa.array([cell], pa.binary()))[0] for cell in cells]
        np.testing.assert_array_equal(read(array), one)


@pytest.mark.parametrize("kernels", [NUMBERS, MOMENTS], ids=["numbers", "times"])
def test_another_arrow_that_refuses_a_form_changes_no_value(kernels):
    def refuse(array):
        raise pa.ArrowInvalid("not this form")

    for kernel in kernels:
        cells = [b"+1", b"1e400", b"-inf"] if kernels is NUMBERS else [b"2020-03-01 12"]
        cells = [cell + b"+01" for cell in cells] if kernel is MOMENTS[1] else cells
        array = pa.array(cells, pa.binary())
        assert replace(kernel, read=refuse).values(array).tolist() == kernel.values(array).tolist()


def test_marks_of_missing_are_neither_numbers_nor_times():
    marks = from_texts(MARKS, pa.binary())
    assert np.isnan(numbers(marks)).all()
    assert (instants(marks) == NAT).all()


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: f"{column.type}{column.nullable}")
@pytest.mark.parametrize("around", [LONGEST - 1, LONGEST, LONGEST + 1, 2**20])
def test_a_cell_that_is_too_long_says_nothing_and_takes_no_time(column, around):
    """A million digits and an x took hours; now they take about as long as they take to copy."""
    cells = [
        b"9" * (around - 1) + b"x",
        b"." * around,
        b" " * around,
        b"-" * around,
        b"1e" + b"9" * (around - 2),
    ]
    cells += [
        b"2020-01-01 00:00:00." + b"0" * (around - 20),
        b"+" * around,
        b"e" * around,
        b"0:" * (around // 2),
    ]
    begin = time.process_time()
    found = codes(column, *cells)
    assert time.process_time() - begin < 0.5
    unlisted = codes(column, b"no such label")[0]
    if around > LONGEST:
        assert found == [unlisted] * len(cells)
    else:
        assert found[:2] + found[3:4] + found[6:] == [unlisted] * 6
        assert found[2] == codes(column, b"")[0]


def test_a_label_of_any_length_is_found_by_its_very_bytes():
    label = "x" * (LONGEST + 5)
    column = Column("c", "nominal", categories=("a", label), nullable=True)
    assert codes(column, label.encode(), b" " + label.encode(), b"x" * LONGEST, b"a ") == [1, 2, 2, 0]


# --- numbers -------------------------------------------------------------------------------------------


def test_numbers_as_text():
    x = by_name("x")
    assert codes(x, b"-1.5", b"0.5", b" 0.5\t", b"+.5e0", b"2.5", b"2.499999") == [
        0, 2**29, 2**29, 2**29, GRID - 1, math.floor(3.999999 / 4 * 2**30)
    ]  # fmt: skip
    assert codes(x, b"-9", b"-inf", b"9", b"1e999", b"Infinity") == [0, 0, GRID - 1, GRID - 1, GRID - 1]
    assert codes(x, b"", b" ", b"nan", b"1,5", b"0x1", b"\xff", b"1 2", b"1_0") == [GRID] * 8
    assert codes(by_name("x", nullable=False), b"", b"nan", b"what") == [0, 0, 0]
    assert codes(Column("x", "continuous", lower=3.0, upper=3.0, nullable=True), b"9", b"") == [0, 1]


def test_whole_numbers_as_text():
    n = by_name("n")
    assert codes(n, b"-5", b"0", b"7.0", b"0.5", b"1.5", b"2.5", b"120") == [0, 5, 12, 5, 7, 7, 125]
    assert codes(n, b"-6", b"121", b"9" * 30, b"-inf", b"1e300") == [0, 125, 125, 0, 125]
    assert codes(n, b"", b"seven", b"NaN") == [126, 126, 126]
    wide = Column("n", "integer", lower=-(2**53), upper=2**53)
    assert wide.unit == 2**24 * 2
    assert codes(wide, str(-(2**53)).encode(), b"0", str(2**53).encode()) == [
        0,
        2**53 // wide.unit,
        2**54 // wide.unit,
    ]


@settings(max_examples=300, deadline=None)
@given(st.floats(-1e308, 1e308), st.floats(-1e308, 1e308), st.lists(st.floats(allow_nan=False), min_size=2))
def test_larger_numbers_never_have_smaller_codes(lower, upper, values):
    lower, upper = min(lower, upper), max(lower, upper)
    column = Column("x", "continuous", lower=lower, upper=upper)
    found = encode_arrow(pa.array([lower, *sorted(values), upper]), column)
    assert found[0] == 0
    assert found[-1] == column.size - 1
    inside = found[1:-1]
    assert (np.diff(inside) >= 0).all()


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False), st.integers(-140, 140))
@example(2.0**128, 0)
@example(-(2.0**-128), 0)
@example(2.0**-129, 0)
@example(0.0, 0)
def test_an_octave_is_the_power_of_two_at_or_below_a_number(x, power):
    column = Column("x", "continuous", lower=-(2.0**128), upper=2.0**128, nullable=True, octaves=True)
    for value in (x, math.ldexp(1.0, power), math.nextafter(math.ldexp(1.0, power), 0)):
        code = codes(column, repr(value).encode())[0] - 256
        least = 2.0 ** (abs(code) - 1 - 128) if code else 0.0
        most = 2.0 ** (abs(code) - 128) if abs(code) < 256 else math.inf
        assert least <= abs(value) < most or (value in (math.inf, -math.inf) and abs(code) == 256)
        assert code == 0 or math.copysign(1, value) == math.copysign(1, code)


def test_integers_have_octaves_from_one_up_and_unreadable_cells_have_none():
    column = Column("n", "integer", lower=-(2**53 - 1), upper=2**53 - 1, nullable=True, octaves=True)
    cells = [b"0", b"1", b"-1", b"2", b"3", b"4", b"2047", b"2048", b"9007199254740993", b"", b"old"]
    assert [code - 53 for code in codes(column, *cells)] == [0, 1, -1, 2, 2, 3, 11, 12, 53, 54, 54]
    whole = encode_arrow(pa.array([0, 5, -5, 2**62, -(2**63)]), column)
    assert (whole - 53).tolist() == [0, 3, -3, 53, -53]


def test_a_continuous_code_is_the_floor_of_its_exact_place():
    column = Column("x", "continuous", lower=0.0, upper=float(2**30))
    values = np.random.default_rng(3).uniform(0, 2**30, 1000)
    assert encode_arrow(pa.array(values), column).tolist() == np.floor(values).tolist()


@pytest.mark.parametrize(
    "type",
    [
        pa.int8(),
        pa.int64(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(9, 2),
        pa.string(),
    ],
    ids=str,
)
def test_arrow_numbers_of_every_type_have_the_codes_of_their_text(type):
    values = [7, 0, 120, None]
    make = Decimal if pa.types.is_decimal(type) else np.float16 if type == pa.float16() else int
    made = [None if v is None else make(v) for v in values]
    array = pa.array(values).cast(type) if type == pa.string() else pa.array(made, type)
    assert readable(type, by_name("n"))
    assert encode_arrow(array, by_name("n")).tolist() == [12, 5, 125, 126]
    assert encode_arrow(array, Column("c", "nominal", categories=("120", "7", "0"))).tolist() == (
        [1, 2, 0, 0] if not pa.types.is_decimal(type) else [0, 0, 0, 0]
    )


def test_extreme_arrow_integers_are_clamped():
    n = by_name("n")
    assert encode_arrow(pa.array([2**63 - 1, -(2**63), None]), n).tolist() == [125, 0, 126]
    assert encode_arrow(pa.array([2**64 - 1], pa.uint64()), n).tolist() == [125]
    assert encode_arrow(pa.array([math.nan, math.inf, -math.inf]), n).tolist() == [126, 125, 0]
    assert encode_arrow(pa.array([True, False, None]), n).tolist() == [6, 5, 126]


# --- categories ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", [pa.int8(), pa.uint32(), pa.int64(), pa.uint64()])
@pytest.mark.parametrize("bounds", [(-100, 100), (1, 2**40), (-(2**62), 2**62), (2**53, 2**53 + 5)])
@pytest.mark.parametrize("nullable", [False, True])
def test_a_null_beside_integers_does_not_change_how_they_are_read(type, bounds, nullable):
    """Without a null they are not read as floats."""
    column = Column("i", "integer", lower=bounds[0], upper=bounds[1], nullable=nullable)
    low, high = (0 if str(type)[0] == "u" else -(2 ** (type.bit_width - 1))), 2**7
    if type.bit_width > 8:
        high = 2 ** (type.bit_width - (str(type)[0] == "i"))
    whole = [low, low + 1, 0, 1, 99, 127, high - 1, *(v for v in (2**31, 2**53 + 3) if v < high)]
    whole = [v for v in whole if low <= v < high]
    alone, beside = (encode_arrow(pa.array(cells, type), column) for cells in (whole, [*whole, None]))
    assert alone.tolist() == beside[:-1].tolist()


def test_labels_match_by_their_bytes_then_without_blanks():
    c = by_name("c")
    assert codes(c, b"a", b"\ta ", b" c ", b"c", "é".encode(), b"A") == [0, 0, 2, c.size, 5, c.size]


def test_missing_and_unlisted_categories_go_where_the_spec_says():
    cells = (b"b", b"zz", b"", b"  ", b"\xff")
    labels = ("a", "b", "c")
    assert codes(Column("c", "nominal", categories=labels), *cells) == [1, 0, 0, 0, 0]
    assert codes(Column("c", "nominal", categories=labels, nullable=True), *cells) == [1, 3, 3, 3, 3]
    assert codes(Column("c", "nominal", categories=labels, other="c"), *cells) == [1, 2, 2, 2, 2]
    both = Column("c", "nominal", categories=labels, other="c", nullable=True)
    assert codes(both, *cells) == [1, 2, 3, 3, 2]


def test_an_empty_cell_is_missing_even_where_a_label_is_empty():
    assert codes(Column("c", "nominal", categories=("", "a"), nullable=True), b"", b"a") == [2, 1]


def test_booleans():
    yes = [b"true", b"T", b"YES", b"y", b"1", b" True "]
    no = [b"false", b"F", b"No", b"n", b"0", b"FALSE"]
    b = by_name("b")
    assert codes(b, *yes, *no) == [1] * 6 + [0] * 6
    assert codes(b, b"", b"2", b"maybe", b"truee") == [2, 2, 2, 2]
    assert codes(by_name("b", nullable=False), b"") == [0]
    assert encode_arrow(pa.array([True, False, None]), b).tolist() == [1, 0, 2]
    assert encode_arrow(pa.array([1, 0, 5, None]), b).tolist() == [1, 0, 2, 2]
    assert encode_arrow(pa.array([1.0, 0.0, 0.5, math.nan]), b).tolist() == [1, 0, 2, 2]


def test_arrow_values_are_formatted_to_match_labels():
    c = by_name("c")
    assert encode_arrow(pa.array([7.0, 2.5, 7.5, math.nan, math.inf, None]), c).tolist() == [3, 4, 7, 7, 7, 7]
    assert encode_arrow(pa.array([True, False]), c).tolist() == [6, 7]
    day = Column("c", "nominal", categories=("2020-03-01",), nullable=True)
    assert encode_arrow(pa.array([date(2020, 3, 1), date(2020, 3, 2)]), day).tolist() == [0, 1]


def test_dictionaries_with_nulls_unused_and_repeated_values():
    c = by_name("c")
    indices = pa.array([0, 1, 2, None, 3, 0])
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "zz", None, " a"]), safe=False)
    assert encode_arrow(array, c).tolist() == [0, 7, 7, 7, 0, 0]
    empty = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([], pa.string()))
    assert encode_arrow(empty, c).tolist() == [7, 7]
    assert encode_arrow(pa.nulls(2), c).tolist() == [7, 7]


# --- dates and times -----------------------------------------------------------------------------------


def test_dates():
    d = by_name("d")
    first_of_march = days("2020-03-01") - days("2020-01-01")
    cells = (
        b"2020-03-01",
        b" 2020-03-01 ",
        b"2020-03-01 23:59:59",
        b"2020-03-01T10Z",
        b"2020-03-01 23:00-05:00",
    )
    assert codes(d, *cells) == [first_of_march] * 4 + [first_of_march + 1]
    assert codes(d, b"1999-01-01", b"2021-01-01", b"0000-01-01", b"9999-12-31") == [0, 365, 0, 365]
    assert codes(d, b"", b"2020-02-30", b"01/03/2020", b"2020-3-1", b"20200301", b"10000-01-01") == [366] * 6
    assert codes(by_name("d", nullable=False), b"soon") == [0]


def test_times():
    t = by_name("t")
    assert t.unit == SECOND
    at = 60 * 86400 + 45296
    cells = (
        b"2020-03-01 12:34:56", b"2020-03-01T12:34:56", b"2020-03-01 12:34:56.999",
        b"2020-03-01T12:34:56.123456789",
        b"2020-03-01T12:34:56Z", b"2020-03-01 14:34:56+02:00", b"2020-03-01 07:04:56.999999999-0530",
    )  # fmt: skip
    assert codes(t, *cells) == [at] * 7
    for cell in cells:
        assert codes(t, *[cell] * 3) == [at] * 3
    assert codes(t, b"2020-03-01", b"2020-03-01 12", b"2020-03-01 12:34") == [at - 45296, at - 2096, at - 56]
    assert codes(t, b"2020-03-01 24:00", b"2020-03-01 12:60", b"noon", b"2020-03-01Z", b"") == [t.size] * 5
    assert codes(t, b"2020-03-01 12+24", b"2020-03-01 12+02:60", b"2020-03-01 12:30:60") == [t.size] * 3
    far = (b"9999-12-31 00:00:00.123456789", b"0001-01-01 00:00:00.1234567Z")
    assert codes(t, *far, b"soon") == [t.size - 1, 0, t.size]
    fine = Column("t", "datetime", lower=0, upper=1000)
    assert codes(fine, b"1970-01-01 00:00:00.000123", b"1970-01-01 00:00:00.0001239", b"1971-01-01") == [
        123,
        123,
        1000,
    ]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_arrow_times_of_every_unit_are_utc_and_rounded_down(unit, zone):
    array = pa.array([datetime(2020, 3, 1, 12, 34, 56), None]).cast(pa.timestamp(unit)).cast(pa.int64())
    array = array.cast(pa.timestamp(unit, zone))
    t, d = by_name("t"), by_name("d")
    assert encode_arrow(array, t).tolist() == [60 * 86400 + 45296, t.size]
    assert encode_arrow(array, d).tolist() == [60, 366]
    extremes = pa.array([2**63 - 1, -(2**63), -(2**63) + 1]).cast(pa.timestamp(unit, zone))
    assert encode_arrow(extremes, t).tolist() == [t.size - 1, 0, 0]
    assert encode_arrow(
        pa.array([-1]).cast(pa.timestamp(unit)), Column("d", "date", lower=-9, upper=9)
    ).tolist() == [8]


def test_arrow_dates():
    for type in (pa.date32(), pa.date64()):
        array = pa.array([date(2020, 3, 1), None], type)
        assert encode_arrow(array, by_name("d")).tolist() == [60, 366]
        assert encode_arrow(array, by_name("t")).tolist() == [60 * 86400, by_name("t").size]
    assert encode_arrow(
        pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32()), by_name("d")
    ).tolist() == [365, 0]


def test_instant_knows_the_calendar():
    def instant(cell: bytes) -> int:
        return int(instants(pa.array([cell], pa.binary()))[0])

    assert instant(b"2000-02-29") == micros("2000-02-29")
    assert instant(b"1900-02-29") == NAT
    assert instant(b"0000-02-29") == -719_469 * DAY
    assert instant(b"0001-01-01") == -719_162 * DAY


# --- the schema ----------------------------------------------------------------------------------------


def test_which_arrow_types_can_be_read_as_which_columns():
    nested = [
        pa.list_(pa.int8()),
        pa.struct([("a", pa.int8())]),
        pa.map_(pa.string(), pa.int8()),
        pa.duration("s"),
    ]
    for column in COLUMNS:
        assert readable(pa.string(), column)
        assert readable(pa.null(), column)
        assert readable(pa.dictionary(pa.int8(), pa.large_string()), column)
        assert not any(readable(type, column) for type in nested)
        assert readable(pa.int32(), column) == (column.type not in ("date", "datetime"))
        assert readable(pa.timestamp("ns"), column) == (
            column.type in ("date", "datetime", "nominal", "ordinal")
        )


@pytest.mark.parametrize("bits", [0x7FF0000000000001, 0xFFF0000000000001, 0x7FF8000000000000])
@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("type", ["continuous", "integer"])
def test_every_nan_is_missing_wherever_it_stands_in_the_batch(bits, nullable, type):
    column = Column("x", type, lower=0, upper=8, nullable=nullable)
    rest = encode_arrow(pa.array([4.0]), column)[0]
    for rows in range(1, 18):
        for place in range(rows):
            values = np.full(rows, 4.0).view(np.uint64)
            values[place] = bits
            codes = encode_arrow(pa.array(values.view(np.float64), from_pandas=False), column)
            assert codes[place] == (column.size if nullable else 0)
            assert (np.delete(codes, place) == rest).all()


def test_numpy_makes_the_same_of_every_nan_wherever_it_stands():
    """Of a signalling one it does not: in a register of eight it is passed over, after the last it stays."""
    for rows in range(1, 18):
        cells = pa.array(np.full(rows, 0x7FF0000000000001, np.uint64)).view(pa.float64())
        assert np.fmax(to_floats(cells), 0.0).tolist() == [0.0] * rows


@settings(max_examples=300, deadline=None)
@given(st.integers(-(10**6), 10**6), st.integers(-3, 8), st.floats(allow_nan=False))
@example(0, 0, 0.1 + 0.2)
def test_a_number_has_the_largest_step_that_its_decimal_is_a_multiple_of(many, decimals, x):
    column = Column("x", "continuous", lower=-1e9, upper=1e9, rounding=True)
    for value in (
        Fraction(many) / Fraction(10) ** decimals,
        Fraction(repr(x)) if abs(x) < 1e9 else Fraction(1),
    ):
        code = codes(column, repr(float(value)).encode())[0]
        fits = [i for i, step in enumerate(STEPS) if (value / step).denominator == 1]
        assert code == (len(STEPS) + 1 if value == 0 else fits[0] if fits else len(STEPS))
    assert 0 <= codes(column, repr(x).encode())[0] <= len(STEPS) + 1
    assert codes(column, b"?")[0] == len(STEPS)


INTEGERS = [5, 250, 1000, -3, 96, 30_000, 2**40, -(2**40), 97, 98, 0, -1, 2**62, 100_000, 123_456]
ARROWS = [
    pa.array(INTEGERS, pa.int64()),
    pa.array([abs(i) for i in INTEGERS], pa.uint64()),
    pa.array([float(i) for i in INTEGERS]),
    pa.array([i % 100 for i in INTEGERS], pa.int8()),
    pa.array([i % 30_000 for i in INTEGERS], pa.int16()),
    pa.array([i % 2**31 for i in INTEGERS], pa.int32()),
    pa.array([Decimal(i) / 10 for i in INTEGERS], pa.decimal128(38, 2)),
    pa.array([str(i) for i in INTEGERS]),
    pa.array(INTEGERS, pa.int64()).dictionary_encode(),
]


@pytest.mark.parametrize("kind", [{}, {"rounding": True}, {"octaves": True}, {"step": Fraction(5)}])
@pytest.mark.parametrize("bounds", [(0, 95), (-1000, 100_000), (-(2**52), 2**52)])
@pytest.mark.parametrize("type", ["integer", "continuous"])
def test_what_other_rows_are_never_decides_a_code(type, bounds, kind):
    """Cells beyond the bounds too, and beside a missing one: Arrow has other ways for a batch without any."""
    if "step" in kind and bounds[1] > 2**50:
        pytest.skip("2^50 steps at most")
    lower, upper = bounds if type == "integer" else map(float, bounds)
    for nullable in (False, True):
        column = Column("x", type, lower=lower, upper=upper, nullable=nullable, **kind)
        for array in ARROWS:
            alone = [int(encode_arrow(array.slice(i, 1), column)[0]) for i in range(len(array))]
            beside = pa.array([*array.to_pylist(), None], getattr(array.type, "value_type", array.type))
            if pa.types.is_dictionary(array.type):
                beside = beside.dictionary_encode()
            assert encode_arrow(array, column).tolist() == alone
            assert encode_arrow(beside, column)[:-1].tolist() == alone
