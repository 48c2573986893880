"""What is copied of a stream is what counts, and the rows are those of the same file."""

from __future__ import annotations

import gzip
import io
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, CsvOptions
from dpsynth_cli.trusted.rows.csv import MAX_LINE
from dpsynth_cli.trusted.rows.csv_stream import cut_lines
from dpsynth_cli.trusted.rows.read import open_scan

COLUMNS = (Column("s", "nominal", categories=("a", "b c", "\0"), nullable=True), Column("x", "integer", 0, 9))
MULTI, SINGLE = CsvOptions(multiline=True), CsvOptions()


def rows_of(scan) -> Counter:
    found: Counter = Counter()
    for piece in scan.pieces():
        found.update(zip(*(codes.tolist() for codes in scan.encode(piece).values()), strict=True))
    return found


def from_stream(monkeypatch, data: bytes, csv: CsvOptions = SINGLE, **private):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(data))))
    return open_scan("-", COLUMNS, csv, **private)


@pytest.mark.parametrize("csv", [SINGLE, MULTI], ids=["lines", "multiline"])
@pytest.mark.parametrize("rest", [b"z", b",", b'"', b'""z', b"z,"])
def test_the_rest_of_a_long_line_is_not_copied(monkeypatch, csv, rest):
    """A line of some gigabytes in a small stream would fill the temporary disk after the charge."""
    long = b"a," + rest * (20_000_000 // len(rest))
    data = gzip.compress(b"s,x\na,1\n" + long + b"\na,2\n" + long, 1)
    scan = from_stream(monkeypatch, data, csv)
    assert rows_of(scan) == {(0, 1): 1, (0, 2): 1, (3, 0): 2}
    assert scan.size < 2 * MAX_LINE + 100
    scan.close()


piece = st.sampled_from([b"a", b"b\nc", b'"', b",", b"\n", b"1", b"long " * 5, b"\r\n", b'"b\nc"', b'""'])


@settings(max_examples=300, deadline=None)
@given(st.lists(piece, max_size=20).map(b"".join), st.booleans(), st.integers(1, 30))
@example(b'a,"' + b"z\n" * 30 + b'",1\na,2\n', True, 20)
def test_a_stream_has_the_rows_of_the_same_file(tmp_path_factory, body, multiline, max_line):
    csv, private = CsvOptions(multiline=multiline), {"_max_line": max_line, "_block": 7}
    path = tmp_path_factory.getbasetemp() / "same.csv"
    path.write_bytes(b"s,x\n" + body)
    with pytest.MonkeyPatch.context() as monkeypatch:
        scan = from_stream(monkeypatch, path.read_bytes(), csv, **private)
        found = rows_of(scan)
        assert found == rows_of(scan) == rows_of(open_scan(str(path), COLUMNS, csv, **private))
        assert scan.size <= found.total() * (max_line + 2)
        scan.close()


@given(st.lists(piece, max_size=20).map(b"".join), st.integers(1, 9), st.integers(1, 40))
def test_a_cut_line_has_its_first_bytes(data, max_line, at_once):
    cut = b"\n".join(line[: max_line + 1] for line in data.split(b"\n"))
    assert b"".join(cut_lines(io.BytesIO(data), max_line, at_once)) == cut
