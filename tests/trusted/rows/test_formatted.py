"""Cells in a declared format: what they say, that nothing raises, and that no cell changes another."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_cli.cell_format import CellFormat, NotADateFormat, date_format
from dpsynth_cli.domain import Column
from dpsynth_cli.trusted.rows.encode import encode_arrow, encode_bytes
from dpsynth_cli.trusted.rows.formatted import formatted_instants, formatted_numbers
from dpsynth_cli.trusted.rows.text import NAT

GERMAN = CellFormat(decimal=",", thousands=".")
FORMATS = {
    "german": GERMAN,
    "swiss": CellFormat(thousands="'", currency="CHF 1"),
    "french": CellFormat(decimal=",", thousands=" ", currency="1 €"),
    "us": CellFormat(thousands=",", currency="$"),
    "percent": CellFormat(percent=True),
    "comma": CellFormat(decimal=","),
}
NUMBERS = {
    "german": {"1.234,56": 1234.56, "-3": -3, "1.234": 1234, "1234,5": 1234.5, ",5": 0.5, "1,5E+03": 1500},
    "swiss": {"CHF 1'234.50": 1234.5, "1'234.50 CHF": 1234.5, "CHF -5": -5, "-CHF 5": -5, "1’000": 1000},
    "french": {"1 234,5 €": 1234.5, "1\u00a0234,5\u00a0€": 1234.5, "1\u202f234": 1234, "€5": 5, "-7€": -7},
    "us": {"$13,520": 13520, "($1,234.50)": -1234.5, "-$5": -5, "$ 5": 5, "13520": 13520, "(5)": -5},
    "percent": {"89.3%": 89.3, "89.3 %": 89.3, "89.3": 89.3, "-1%": -1, " 5% ": 5},
    "comma": {"1,5": 1.5, "15": 15, "1,": 1},
}
NOT_NUMBERS = {
    "german": [
        "1.5",
        "1.23,4",
        "12.34",
        "1,234.5",
        "1..234",
        "1.2345",
        "",
        "NA",
        "1,2,3",
        "- 5",
        "1,5%",
        "€5",
    ],
    "swiss": ["$5", "CHF", "1'23", "CHF CHF 5", "1e5 CHF", "EUR 5"],
    "french": ["1.5", "1 23", "€", "5 $", "€5€", "- 5"],
    "us": ["$1,23", "€5", "$", "1,5", "$(5)", "((5))", "(-5)", "$-", "5$$", "$5%", "1,234,5"],
    "percent": ["%", "89,3%", "5%%", "% 5", "$5", "five"],
    "comma": ["1.5", "1.234,5", "1 234", ",", "1,5,"],
}


def read(cells: list[str], form: CellFormat) -> list[float]:
    return formatted_numbers(pa.array([cell.encode() for cell in cells], pa.binary()), form).tolist()


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_of_each_format_and_nothing_else(name):
    expected = NUMBERS[name]
    assert read(list(expected), FORMATS[name]) == list(expected.values())
    assert np.isnan(read(NOT_NUMBERS[name], FORMATS[name])).all(), name


strange = st.one_of(
    st.text("0123456789.,'  €$%()-+eECHF\u00a0\u202f", max_size=12).map(str.encode),
    st.binary(max_size=8),
    st.sampled_from([cell.encode() for cells in NUMBERS.values() for cell in cells]),
)


@given(st.sampled_from(sorted(FORMATS)), st.lists(strange, max_size=8), st.integers(0, 8))
def test_what_a_cell_is_depends_on_it_alone(name, cells, cut):
    form = FORMATS[name]
    alone = [formatted_numbers(pa.array([cell], pa.binary()), form)[0] for cell in cells]
    together = formatted_numbers(pa.array(cells, pa.binary()), form)
    assert np.array_equal(alone, together, equal_nan=True)
    rest = formatted_numbers(pa.array(cells, pa.binary())[cut:], form)
    assert np.array_equal(alone[cut:], rest, equal_nan=True)


@given(st.integers(-(10**9), 10**9), st.integers(0, 3), st.sampled_from(["german", "us", "swiss", "french"]))
def test_a_number_that_is_written_is_read_back(number, decimals, name):
    form, value = FORMATS[name], number / 10**decimals
    whole, _, rest = f"{abs(value):,.{decimals}f}".partition(".")
    text = whole.replace(",", form.thousands) + (form.decimal + rest if rest else "")
    before, after = form.currency_signs
    assert read(["-" * (value < 0) + before + text + after], form) == [value]


# --- dates ----------------------------------------------------------------------------------------------

DATES = ("%d/%m/%Y", "%m/%d/%y", "%Y%m%d", "%d %B %Y", "%d-%b-%y", "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M:%S %p",
         "%Y/%m/%d %H:%M:%S.%f", "%d/%m/%Y %H:%M:%S %z", "%Y年%m月%d日")  # fmt: skip


@given(
    st.sampled_from(DATES), st.datetimes(datetime(1969, 1, 1), datetime(2068, 12, 31)), st.integers(-720, 720)
)
def test_dates_are_what_strptime_says(form, moment, ahead):
    text = moment.strftime(form)
    zone = f"{'-' if ahead < 0 else '+'}{abs(ahead) // 60:02}{abs(ahead) % 60:02}"
    text = text + zone if form.endswith("%z") else text
    expected = datetime.strptime(text, form)
    if expected.tzinfo:
        expected = expected.replace(tzinfo=None) - timedelta(minutes=ahead)
    found = formatted_instants(pa.array([text.encode()]), date_format(form))[0]
    assert timedelta(microseconds=int(found)) + datetime(1970, 1, 1) == expected


@given(st.sampled_from(DATES[:7]), st.text("0123456789/. -:AMPjulyJUN", max_size=20))
def test_a_cell_is_a_date_where_strptime_says_so(form, text):
    """strptime also takes what nobody wrote: 2019 1 5 under %Y%m%d, blanks for no blank; we are not wider."""
    found = formatted_instants(pa.array([text.encode()]), date_format(form))[0]
    try:
        expected = datetime.strptime(text.strip(), form)
    except ValueError:
        expected = None
    if found != NAT:
        assert expected == timedelta(microseconds=int(found)) + datetime(1970, 1, 1)


def test_numbers_beside_each_other_have_all_their_digits():
    cells = pa.array([b"20190723", b"2019723", b"201972"])
    assert (formatted_instants(cells, date_format("%Y%m%d")) == NAT).tolist() == [False, True, True]


def test_days_that_are_none_are_missing():
    days = {
        b"23/07/2019": 18_100, b"7/3/2019": 17_962, b"31/04/2019": None, b"29/02/2019": None,
        b"29/02/2020": 18_321, b"07/23/2019": None, b"0/1/2019": None, b"23/07/19": None, b"2019-07-23": None,
        b"23/07/2019x": None, b"": None, None: None, b"\xff": None, b"1" * 5000: None,
    }  # fmt: skip
    column = Column("d", "date", lower=0, upper=40_000, nullable=True, format=CellFormat(date="%d/%m/%Y"))
    codes = encode_bytes(pa.array(list(days), pa.binary()), column)
    assert codes.tolist() == [column.size if day is None else day for day in days.values()]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("%d/%m", "it must have a year (%Y or %y), once"),
        ("%d/%m/%Y %d", "it has a directive twice"),
        ("%Q", "%Q is not one of"),
        ("%d/%m/%Y %I", "an hour is %H, or %I with %p"),
        ("%d/%m/%Y %M", "minutes need hours"),
        ("%d %m %b %Y", "it must have a month"),
        ("%d/%m/%Y%", "% is not one of"),
    ],
)
def test_a_format_without_one_meaning_is_refused(text, why):
    with pytest.raises(NotADateFormat, match=re.escape(why)):
        date_format(text)


# --- marks, truth, grids ----------------------------------------------------------------------------------


def test_marks_of_missing_cells_are_missing_in_every_type():
    form = CellFormat(missing=("", "NA", "-9", "01/01/1900"))
    number = Column("x", "integer", lower=-20, upper=20, nullable=True, format=form)
    assert encode_bytes(pa.array([b"-9", b"-9.0", b" NA ", b"9"]), number).tolist() == [41, 41, 41, 29]
    for type in (pa.int64(), pa.float32(), pa.decimal128(20, 1)):
        assert encode_arrow(pa.array([-9, 9], pa.int64()).cast(type), number).tolist() == [41, 29]
    label = Column("s", "nominal", categories=("9", "x"), other="x", nullable=True, format=form)
    assert encode_bytes(pa.array([b"-9", b"9", b"NA", b"y"]), label).tolist() == [2, 0, 2, 1]
    assert encode_arrow(pa.array([-9, 9]), label).tolist() == [2, 0]
    days = CellFormat(missing=form.missing, date="%d/%m/%Y")
    date = Column("d", "date", lower=-30_000, upper=30_000, nullable=True, format=days)
    assert encode_bytes(pa.array([b"1/1/1900", b"1/1/1970"]), date).tolist() == [date.size, 30_000]


def test_only_declared_words_are_true_or_false():
    form = CellFormat(true=("Ja", "J"), false=("Nein",), missing=("-",))
    column = Column("b", "boolean", categories=("false", "true"), nullable=True, format=form)
    cells = [b"Ja", b"JA", b"j", b" nein ", b"Nein", b"-", b"yes", b"1", b""]
    assert encode_bytes(pa.array(cells), column).tolist() == [1, 1, 1, 0, 0, 2, 2, 2, 2]
