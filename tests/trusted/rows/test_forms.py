"""Claims about the forms of cells: types leave, values do not, and no cell is slow."""

from __future__ import annotations

import time
import warnings
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_cli.cell_format import CellFormat
from dpsynth_cli.trusted.rows.forms import FORMS, OTHERS, Look, look
from dpsynth_cli.trusted.rows.look import FIRST_BYTES, glance


def form(*cells: str | None, times: int = 10) -> str:
    return look(pa.array([cell and cell.encode() for cell in cells] * times, pa.binary())).form


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["0", "1", "1"], "zero_one"),
        (["0.0", "1.0"], "zero_one"),
        (["yes", "No"], "boolean"),
        (["TRUE", "false"], "boolean"),
        (["0", "1", "2"], "integer"),
        (["-4", "+5", "60000"], "integer"),
        (["3.0", "17.0"], "integer"),
        (["3.5", "17", ".25"], "number"),
        (["1e-3", "2E5"], "number"),
        (["02134", "10001"], "label"),  # a code with leading zeros is no number
        (["2020-02-29", "1999-12-31"], "day"),
        (["2021-02-29", "2021-02-30"], "label"),  # no such day
        (["2020-02-29 10:30", "2020-02-29"], "moment"),
        (["2020-02-29T10:30:00Z"], "moment"),
        (["31/12/2020", "1/2/2020"], "day"),
        (["31.12.2020 10:30"], "moment"),
        (["12.5%", "3 %"], "number"),
        (["$1,200", "$3"], "integer"),
        (["Ja", "Nein"], "boolean"),
        (["a", "b"], "label"),
        (["", " ", None, "NA"], "empty"),
    ],
)
def test_a_column_has_the_form_of_its_cells(cells: list[str | None], expected: str) -> None:
    assert form(*cells) == expected
    assert form(*[cell and f" {cell} " for cell in cells]) == expected


@pytest.mark.parametrize(
    ("cells", "keys"),
    [
        (["31/12/2020", "1/2/2020"], {"date": "%d/%m/%Y"}),
        (["12/31/2020", "1/2/2020"], {"date": "%m/%d/%Y"}),
        (["31.12.2020 10:30", "1.1.2021 9:05"], {"date": "%d.%m.%Y %H:%M"}),
        (["Jan 1 2000", "Dec 31 2009"], {"date": "%b %d %Y"}),
        (["no"] * 149 + ["yes"], {"true": ("yes",), "false": ("no",)}),  # a rare word is written as it was
        (["3-Jul-19", "14-Dec-20"], {"date": "%d-%b-%y"}),
        (["12.5%", "3 %"], {"percent": True}),
        (["12,5 %"], {"percent": True, "decimal": ","}),
        (["$1,200.50", "$3"], {"currency": "$", "thousands": ","}),
        (["1.200,50 €", "3 €", "-5,00 €"], {"currency": "1 €", "thousands": ".", "decimal": ","}),
        (["CHF 1'200", "CHF 3"], {"currency": "CHF 1", "thousands": "'"}),
        (["1,200", "35", "1,000,000.25"], {"thousands": ","}),
        (["1.200,5", "35,25", "7"], {"decimal": ",", "thousands": "."}),
        (["1 200,5", "35,25"], {"decimal": ",", "thousands": " "}),
        (["35,25", "7"], {"decimal": ","}),
        (["JA", "NEIN"], {"true": ("JA",), "false": ("NEIN",)}),
        (["yes", "no"], {"true": ("yes",), "false": ("no",)}),
        (["true", "false"], {}),
        (["1.5", "2"], {}),
    ],
)
def test_a_column_has_the_format_of_its_cells(cells: list[str], keys: dict) -> None:
    assert look(pa.array([cell.encode() for cell in cells] * 10)).format == CellFormat(**keys)


def test_one_cell_in_a_hundred_does_not_decide() -> None:
    assert form(*["2020-01-02"] * 199, "soon", times=1) == "day"
    assert form(*["2020-01-02"] * 90, *["soon"] * 10, times=1) == "label"
    assert form(*map(str, range(1500)), "2.5", times=1) == "integer"
    assert form(*map(str, range(150)), "2.5", times=1) == "number"  # rounding one in 150 would lose something


def test_labels_of_which_hardly_two_are_alike_are_text() -> None:
    assert form(*(f"name {i}" for i in range(100)), times=1) == "text"
    assert form(*(f"name {i % 40}" for i in range(100)), times=1) == "label"


@pytest.mark.parametrize(
    ("empty", "rows", "missing"), [(0, 10, False), (1, 10, False), (2, 10, True), (5, 9000, False)]
)
def test_cells_are_missing_where_more_than_one_in_a_thousand_is(empty: int, rows: int, missing: bool) -> None:
    for array in (
        pa.array([b"x"] * (rows - empty) + [b"NA"] * empty),
        pa.array([1.5] * (rows - empty) + [None] * empty),
        pa.array([1] * (rows - empty) + [None] * empty),
    ):
        assert look(array).missing is missing


def test_decimals_are_counted() -> None:
    assert look(pa.array([b"1.25", b"3.5", b"7"])).decimals == 2
    assert look(pa.array([1.25, 3.5, 7.0])).decimals == 2
    assert look(pa.array([b"0.123456789"])).decimals is None
    assert look(pa.array([1], pa.decimal128(9, 2))) == Look("number", False, 2)
    assert look(pa.array([4.0, None, None])) == Look("integer", True, 0)


@pytest.mark.parametrize(
    ("step", "cells"),
    [
        ("1d", ["2020-01-01 00:00:00", "2020-01-02T00:00Z", "2020-01-03"]),
        ("1h", ["2020-01-01 10:00:00", "2020-01-02T11:00Z", "2020-01-03"]),
        ("1min", ["2020-01-01 10:30", "2020-01-01 10:00:00+01:00"]),
        ("1s", ["2020-01-01 10:30:05", "2020-01-01 10:30:06.000"]),
        (None, ["2020-01-01 10:30:05.500"]),
    ],
)
def test_the_step_of_moments_is_seen(step: str | None, cells: list[str]) -> None:
    assert look(pa.array([cell.encode() for cell in cells])) == Look("moment", False, step=step)
    moments = [datetime.fromisoformat(cell.replace("Z", "+00:00")).replace(tzinfo=None) for cell in cells]
    for unit in ("us", "ns"):
        assert look(pa.array(moments, pa.timestamp(unit))).step == step


@given(st.lists(st.binary(max_size=30), max_size=30))
def test_any_cells_have_a_form(cells: list[bytes]) -> None:
    assert look(pa.array(cells, pa.binary())).form in (*FORMS, *OTHERS)


def test_a_long_cell_takes_no_longer_than_its_bytes() -> None:
    started = time.process_time()
    for cell in (b"1" * 2**20, b"1.111" * 2**18, b"1,111" * 2**18, b"2020-" * 2**18, b" " * 2**20):
        look(pa.array([cell] * 4, pa.binary()))
    assert time.process_time() - started < 5


def test_a_look_reads_the_first_megabytes_only(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a\n" + b"1234567\n" * (FIRST_BYTES // 8 + 10) + b"x\n" * 2_000_000)
    assert glance(str(path), rows=True).columns[0].look == Look("integer", False)


def test_numbers_near_the_largest_float_are_looked_at_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert look(pa.array([1.5e308, 0.1234567, -1.7e308])).form == "number"


@pytest.mark.parametrize(
    ("cells", "step"),
    [
        (["31.12.2020 10:00", "01.01.2021 23:00"], "1h"),
        (["31.12.2020 10:05", "01.01.2021 23:00"], "1min"),
        (["31.12.2020 10:05:07", "01.01.2021 23:00:00"], "1s"),
    ],
)
def test_the_step_of_moments_is_seen_in_any_format(cells: list[str], step: str) -> None:
    found = look(pa.array([cell.encode() for cell in cells] * 10, pa.binary()))
    assert (found.form, found.step) == ("moment", step)


@pytest.mark.parametrize(
    ("rows", "encoding"),
    [
        ([b"Paris"] * 500 + [b"K\xf6ln"], "utf-8"),
        (["Köln".encode()] * 500 + [b"K\xf6ln"], "utf-8"),
        (["Köln".encode()] * 500 + [b"caf\xe9"] * 20, "utf-8"),
        ([b"Paris"] * 500 + [b"caf\xe9"] * 2, "cp1252"),
        ([b"K\xf6ln"] * 500 + ["Köln".encode()], "cp1252"),
    ],
)
def test_no_single_row_decides_the_encoding_of_a_draft(tmp_path, rows, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes(b"city\n" + b"\n".join(rows) + b"\n")
    assert glance(str(path), rows=True).csv.encoding == encoding
    assert glance(str(path), rows=False).csv.encoding == "utf-8"


def test_no_single_amount_decides_which_sign_is_between_thousands():
    amounts = [f"{i % 9 + 1}.{i:03} €".encode() for i in range(500)]
    many = look(pa.array(amounts, pa.binary()))
    assert many.format == CellFormat(currency="1 €", thousands=".", decimal=",")
    assert look(pa.array([*amounts, "1.5 €".encode()], pa.binary())) == many
