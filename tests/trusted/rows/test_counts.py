"""Cells that are not as declared: counted as they are encoded, by their form, never kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_cli.domain import Column
from dpsynth_cli.trusted.rows import counts
from dpsynth_cli.trusted.rows.encode import encode_arrow
from dpsynth_cli.trusted.rows.problems import Problems, count_piece

NUMBER = Column("n", "continuous", lower=0, upper=100)
WHOLE = Column("n", "integer", lower=0, upper=100, nullable=True)
DAY = Column("n", "date", lower=0, upper=20_000)
LABEL = Column("n", "nominal", categories=("café", "1", "Red"))


def counted(cells, column: Column, type: pa.DataType | None = None) -> dict:
    """What encoding these cells counts; zeros left out."""
    found = Problems.of(["n"])
    text = [cell.encode() if isinstance(cell, str) else cell for cell in cells]
    encode_arrow(pa.array(text, type or pa.binary()), column, found)
    said = found.as_json()["columns"]["n"]
    return {kind: count for kind, count in said.items() if count}


@pytest.mark.parametrize(
    ("form", "cells"),
    [
        ("currency sign", ["$13,520", "-$5", "USD 12", "12 €", "£5", b"\xa35", "1 200 kr"]),
        ("percent sign", ["89.3%", "89,3 %"]),
        ("thousands separators", ["1,234", "1,234,567.8", "1 234 567", "1'234", "1\u202f234"]),
        ("decimal comma", ["12,5", "1.234,50", "-0,5"]),
        ("points between thousands", ["1.234.567"]),
        ("other", ["abc", "12x", "--", "9" * 5000]),
    ],
)
def test_numbers_are_told_by_their_form(form, cells):
    assert counted(cells, NUMBER) == {"unparseable": len(cells), "forms": {form: len(cells)}}


@pytest.mark.parametrize(
    ("form", "cell"),
    [
        ("day first", "23/07/2019"),
        ("day first", "23.7.19 10:00"),
        ("month first", "07/23/2019"),
        ("day or month first", "07/08/2019"),
        ("not YYYY-MM-DD", "2019/07/23"),
        ("not YYYY-MM-DD", "2019-7-3"),
        ("digits only", "20190723"),
        ("month by name", "23 Jul 2019"),
        ("other", "soon"),
    ],
)
def test_dates_are_told_by_their_form(form, cell):
    assert counted([cell, "2019-07-23"], DAY) == {"unparseable": 1, "forms": {form: 1}}


def test_labels_are_told_by_their_form():
    cells = ["café", "café".encode("latin-1"), "red", "1.0", "zebra", "NA", "", None, " 1 "]
    assert counted(cells, LABEL) == {
        "missing": 3,
        "unlisted": 4,
        "forms": {"encoding": 1, "other case": 1, "decimals": 1, "other": 1},
    }


def test_marks_and_blanks_are_missing_and_bounds_are_counted():
    cells = ["NA", "", " ", "0", "-3", "100.4", "101", "1e999", "50", "n/a"]
    assert counted(cells, WHOLE) == {"missing": 4, "out of bounds": 3, "lowest": 2, "highest": 3}
    assert counted([2**62, -1, 0, 50, 100], WHOLE, pa.int64()) == {
        "out of bounds": 2,
        "lowest": 2,
        "highest": 2,
    }
    assert counted([None, 5.0, float("nan"), 500.0], WHOLE, pa.float64()) == {
        "missing": 2,
        "out of bounds": 1,
        "highest": 1,
    }


CELLS = st.lists(
    st.one_of(
        st.none(),
        st.binary(max_size=8),
        st.sampled_from(
            [b"$1,234", b"5%", b"12,5", b"NA", b"7", b"-7", b"1e5", b"23/07/2019", b"2001-01-01"]
        ),
        st.sampled_from(["café".encode(), "café".encode("latin-1"), b"red", b"Red", b"1.0"]),
    ),
    max_size=30,
)


@given(CELLS, st.sampled_from([NUMBER, WHOLE, DAY, LABEL]), st.integers(0, 30))
def test_counts_depend_on_no_cut_and_change_no_code(cells, column, at):
    """One array, two pieces, labels with indices, or without encoding: the same counts and the same codes."""
    whole = pa.array(cells, pa.binary())
    at = min(at, len(cells))
    plain, again = encode_arrow(whole, column), Problems.of(["n"])
    assert np.array_equal(encode_arrow(whole, column, again), plain)
    pieces, labels, looked_at = Problems.of(["n"]), Problems.of(["n"]), Problems.of(["n"])
    for part in (whole[:at], whole[at:]):
        other = pieces.empty()
        encode_arrow(part, column, other)
        pieces.merge(other)
    encode_arrow(whole.dictionary_encode(), column, labels)
    count_piece([column], {"n": whole.dictionary_encode()}, 0, looked_at)
    assert looked_at.rows == len(cells)
    looked_at.rows = 0
    for found in (pieces, labels, looked_at):
        assert found.as_json() == again.as_json()
    said = again.as_json()["columns"]["n"]
    assert sum(said["forms"].values()) == said["unparseable"] + said["unlisted"]
    assert Problems.of_json(again.as_json()).as_json() == again.as_json()


@pytest.mark.parametrize("error", [MemoryError, pa.ArrowInvalid, UnicodeDecodeError("utf-8", b"", 0, 1, "")])
def test_counting_that_fails_costs_no_code(monkeypatch, error):
    """Whatever is in a cell: that a release fails after its charge would tell of it."""

    def short(*words):
        raise error

    monkeypatch.setattr(counts, "forms", short)
    found, cells = Problems.of(["n"]), pa.array([b"$5", b"7"])
    assert np.array_equal(encode_arrow(cells, NUMBER, found), encode_arrow(cells, NUMBER))
    assert found.lost == {"n"}
    assert found.as_json()["columns"] == {}
