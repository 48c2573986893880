"""One grammar of numbers, days and moments, wherever a person writes one."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import date, datetime, timezone
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.microaggregation.constraints import NotLinear, kept, parsed
from dpsynth_cli.numbers import day, day_text, decimal, moment, moment_text, whole
from dpsynth_cli.relations.impossible import expression

NOT_NUMBERS = [
    "",
    " 1",
    "1 ",
    "1_000",
    "0x10",
    "nan",
    "inf",
    "1e",
    "1e+",
    "-",
    ".",
    "1,5",
    "٣",
    "1e5.0",
    "--1",
]
BEYOND = ["1e400", "1e301", "1e-301", "1e99999999", "1e-99999999", "9" * 301, "1e" + "9" * 298, "1" * 10**6]


@given(st.fractions(-(10**9), 10**9).filter(lambda x: x.denominator in (1, 2, 5, 10, 100)))
def test_a_decimal_is_read_exactly(x):
    assert decimal(f"{float(x):.6f}") == Fraction(f"{float(x):.6f}")
    assert decimal(f"{x.numerator}e-3") == Fraction(x.numerator, 1000)


@pytest.mark.parametrize("text", [*NOT_NUMBERS, *BEYOND], ids=lambda text: text[:12] or "empty")
def test_what_is_no_number_or_beyond_the_range_is_refused_at_once(text):
    begin = time.process_time()
    assert decimal(text) is None
    assert time.process_time() - begin < 0.1


@given(st.dates())
def test_days_are_those_of_the_calendar_and_come_back(when):
    assert day(when.isoformat()) == (when - date(1970, 1, 1)).days
    assert day_text(day(when.isoformat())) == when.isoformat()
    assert day(when.strftime("%Y%m%d")) is None


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), st.integers(-1439, 1439))
def test_moments_are_those_of_the_calendar_and_come_back(when, ahead):
    exact = when.replace(tzinfo=timezone.utc)
    micros = (exact - datetime(1970, 1, 1, tzinfo=timezone.utc)) // (datetime.resolution)
    assert moment(when.isoformat()) == moment(when.isoformat(" ") + "Z") == micros
    assert moment(moment_text(micros)) == micros
    sign, minutes = "-" if ahead < 0 else "+", abs(ahead)
    zone = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
    for written in (zone, zone.replace(":", "")):
        assert moment(when.isoformat() + written) == micros - ahead * 60_000_000


@pytest.mark.parametrize(
    "text", ["2020-02-30", "1900-02-29", "0000-01-01", "20080101", "2020-1-1", "2008-W01-1", "2020-01-01 "]
)
def test_what_is_no_day_is_refused_on_every_python(text):
    assert day(text) is None
    assert moment(text + "T00:00:00") is None


def test_whole_numbers():
    assert [whole(text) for text in ("7", "-7.0", "1e3", "7.5", "1_0", " 7", "٣")] == [
        7,
        -7,
        1000,
        None,
        None,
        None,
        None,
    ]


# --- in constraints and rules ---------------------------------------------------------------------------

OMEGA = Domain(
    (
        Column("a", "continuous", lower=0.0, upper=1e10),
        Column("b", "continuous", lower=0.0, upper=1.0),
        Column("day", "date", lower=day("2000-01-01"), upper=day("2010-01-01")),
        Column("n", "integer", lower=0, upper=99),
        Column("g", "nominal", categories=("x", "y")),
    )
)


@pytest.mark.parametrize("text", ["a <= 1e99999999 b", "1e400 a <= b", "a <= b + 1e-99999999"])
def test_a_constraint_with_a_number_beyond_the_range_is_refused_in_words_at_once(text):
    begin = time.process_time()
    with pytest.raises(NotLinear, match="does not begin with 0 or a number between 1e-300 and 1e300"):
        parsed(text, ["a", "b"])
    assert time.process_time() - begin < 0.1


@pytest.mark.parametrize(
    "text", ["1e300 a <= 1e300 b", "1e300 a <= 1e300", "1e-300 a <= 1e300", "1e-300 a + 1e300 b <= 1e290"]
)
def test_a_constraint_with_extreme_weights_is_kept_or_refused_in_words(text):
    with suppress(NotLinear):
        assert kept([text], OMEGA) is not None


def test_a_bound_beyond_all_rows_says_nothing_or_refuses_all():
    assert kept(["a <= 1e299"], OMEGA) is not None
    with pytest.raises(NotLinear, match="no row within the bounds"):
        kept(["a >= 1e299"], OMEGA)


@pytest.mark.parametrize("text", ["20080101", "2008-W01-2", "2008-1-1"])
def test_a_rule_takes_days_as_the_spec_does(text):
    columns = {column.name: column for column in OMEGA}
    with pytest.raises(ValueError, match=f"^day is date; {text} is not$"):
        expression({"day": text, "g": "x"}, columns)
    expression({"day": "2008-01-01", "g": "x"}, columns)


@pytest.mark.parametrize("text", ["1_0", " 7", "٣", "0x7", "7.5"])
def test_a_rule_takes_whole_numbers_as_the_spec_does(text):
    with pytest.raises(ValueError, match=f"^n is integer; {text} is not$"):
        expression({"n": text, "g": "x"}, {column.name: column for column in OMEGA})
