"""What a record contains cannot raise, print, or change another record; files fail in plain words."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import sys
import threading
import tracemalloc
from collections import Counter
from functools import cache
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, CsvOptions
from dpsynth_cli.errors import DpsynthError, FileError, UsageError
from dpsynth_cli.trusted.rows import csv as read_csv
from dpsynth_cli.trusted.rows import csv_lines as lines
from dpsynth_cli.trusted.rows import parquet as read_parquet
from dpsynth_cli.trusted.rows.csv_stream import line_blocks
from dpsynth_cli.trusted.rows.problems import count_problems
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.unit_marks import unit_column

AGE = Column("age", "integer", lower=0, upper=120, nullable=True)
NAME = Column("name", "nominal", categories=("a", "b,c", 'say "hi"', "5"), other="5", nullable=True)
X = Column("x", "continuous", lower=0.0, upper=1.0, nullable=True)
COLUMNS = (NAME, AGE, X)
HEADER = b"age,free text,name,x\n"
INPUTS = "Input can be .csv, .csv.gz, .parquet, a folder of Parquet files, or - for CSV on standard input."
NOTHING = "Nothing was read and nothing was spent."
JUNK = [
    b"41,hello,a,0.5",
    b'41,"hello, there",a,0.5',
    b'"41","","b,c","0.5"',
    b'41,,"say ""hi""",0.5\r',
    b'41,5" pipe,a,0.5',
    b'41,"stray,a,0.5',
    b'41,hello,"a"b,0.5',
    b"41,two\rlines,a,0.5",
    b"41,unit\x1fseparator,a\x1f,0.5",
    b"\xef\xbb\xbf41,bom,a,0.5",
    b"41,\xff\xfe invalid,\xc3,0.5",
    b"nan,,zz,inf",
    b"old,,,-inf",
    b"123456789012345678901234567890,,b,1e400",
    b"",
    b"\r",
    b",,,",
    b"1,2",
    b"1,2,3,4,5",
    b'"""",","",a,1',
    b"\0,\0,\0,\0",
    b"41," + b"x" * 60 + b",a,0.5",
]


def rows_of(path, columns=COLUMNS, csv=None, **private) -> Counter:
    """How often each tuple of codes is in a file: order does not matter, because only sums leave."""
    scan = open_scan(str(path), columns, csv, **private)
    found: Counter = Counter()
    for piece in scan.pieces():
        codes = scan.encode(piece)
        assert list(codes) == [column.name for column in columns]
        assert all(array.dtype == np.int32 for array in codes.values())
        found.update(zip(*(array.tolist() for array in codes.values()), strict=True))
    scan.close()
    return found


def written(folder, body: bytes, head: bytes = HEADER, name: str = "t.csv"):
    path = folder / name
    path.write_bytes(head + body)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("read")


@cache
def alone(folder, line: bytes, max_line: int = read_csv.MAX_LINE) -> Counter:
    return rows_of(written(folder, line + b"\n", name="alone.csv"), _max_line=max_line)


# --- one line, one row ---------------------------------------------------------------------------------

some_bytes = st.lists(
    st.sampled_from(
        [b'"', b",", b"\r", b"\x1f", b" ", b"a", b"b,c", b"5", b".", b"-", b"e", b"nan", b"\xff"]
    ),
    max_size=12,
).map(b"".join)
cell = st.sampled_from(
    [
        b"41",
        b" 41",
        b"4e1",
        b"+41",
        b"1e400",
        b"0.25",
        b".5",
        b"nan",
        b"x",
        b"",
        b'"41"',
        b'"b,c"',
        b'"a""b"',
        b'"',
    ]
)
a_line = st.one_of(
    st.sampled_from(JUNK),
    some_bytes,
    st.lists(cell, min_size=4, max_size=4).map(b",".join),
    st.binary(max_size=20),
).filter(lambda line: b"\n" not in line)


@settings(max_examples=150, deadline=None)
@given(st.lists(a_line, max_size=7), st.integers(1, 90), st.sampled_from([12, 30, 70]))
@example(JUNK, 7, 50)
@example([b"", b"\xef\xbb\xbf1,,a,1", b""], 1, 50)
def test_a_line_is_read_the_same_alone_and_among_any_others(folder, table, block, max_line):
    expected: Counter = Counter()
    for line in table:
        expected += alone(folder, line, max_line)
    path = written(folder, b"".join(line + b"\n" for line in table))
    assert rows_of(path, _block=block, _max_line=max_line) == expected
    assert expected.total() == len(table)


@settings(max_examples=100, deadline=None)
@given(st.lists(a_line, max_size=7), a_line, st.data())
def test_inserting_a_row_never_changes_another_rows_codes(folder, table, extra, data):
    before = rows_of(written(folder, b"".join(line + b"\n" for line in table)), _block=32)
    at = data.draw(st.integers(0, len(table)))
    grown = [*table[:at], extra, *table[at:]]
    after = rows_of(written(folder, b"".join(line + b"\n" for line in grown)), _block=32)
    assert before <= after
    assert (after - before).total() == 1


def test_block_borders_at_every_position_change_nothing(tmp_path):
    path = written(tmp_path, b"\n".join(JUNK))
    expected = rows_of(path, _max_line=50)
    assert expected.total() == len(JUNK)
    for block in range(1, len(path.read_bytes()) + 2):
        assert rows_of(path, _max_line=50, _block=block) == expected, block


@settings(max_examples=200, deadline=None)
@given(st.lists(a_line, min_size=1, max_size=8), st.integers(1, 5), st.sampled_from([b",", b";", b"\t"]))
@example(JUNK, 4, b",")
@example([b'""', b"", b'"a"'], 1, b",")
def test_cells_are_those_of_split_line(table, fields, delimiter):
    table = [line.replace(b",", delimiter) for line in table]
    rows = [
        lines.split_line(line, delimiter) if line.removesuffix(b"\r") else [b""] * fields for line in table
    ]
    whole = [row for row in rows if len(row) == fields]
    block = b"".join(line + b"\n" for line in table)
    arrays, ruined = lines.cells(block, delimiter, fields, range(fields))
    found = list(zip(*(array.to_pylist() for array in arrays), strict=True))
    assert [tuple(cell or None for cell in row) for row in whole] == found
    assert ruined == len(table) - len(whole)


def test_split_line_reads_well_formed_quotes_and_takes_others_as_they_are():
    assert lines.split_line(b'a,"b,c","d""e",', b",") == [b"a", b"b,c", b'd"e', b""]
    assert lines.split_line(b'a,"b,c"x', b",") == [b"a", b'"b', b'c"x']
    assert lines.split_line(b'5",6"', b",") == [b'5"', b'6"']
    assert lines.split_line(b'""', b",") == [b""]
    assert lines.split_line(b"a\rb\r", b",") == [b"a b"]


def test_the_codes_of_bad_rows_are_those_the_spec_says(folder):
    missing = (NAME.size, AGE.size, X.size)
    assert alone(folder, b"41,hello,a,0.5") == {(0, 41, 2**29): 1}
    assert alone(folder, b"1,2") == alone(folder, b"1,2,3,4,5") == alone(folder, b"") == {missing: 1}
    assert alone(folder, b'41,"stray,a,0.5') == {(0, 41, 2**29): 1}
    assert alone(folder, b'41,"a, b","b,c",0.5') == {(1, 41, 2**29): 1}
    assert alone(folder, b"41,\xff,\xff,0.5") == {(3, 41, 2**29): 1}
    assert alone(folder, b"nan,,zz,inf") == {(3, 121, 2**30 - 1): 1}
    assert alone(folder, b"123456789012345678901234567890,,zz,-inf") == {(3, 120, 0): 1}
    assert alone(folder, b"old,,,text") == {missing: 1}


def test_junk_prints_nothing_and_warns_of_nothing(tmp_path, capfd):
    rows_of(written(tmp_path, b"\n".join(JUNK * 3)))
    assert capfd.readouterr() == ("", "")


def test_a_block_that_arrow_refuses_is_read_line_by_line(folder, monkeypatch):
    path = written(folder, b"".join(line + b"\n" for line in JUNK))
    expected = rows_of(path)
    monkeypatch.setattr(lines, "_parse", lambda *args: None)
    assert rows_of(path) == expected


def test_a_line_of_ten_megabytes_is_one_row_of_missing_values(tmp_path):
    path = written(tmp_path, b"41,hello,a,0.5\n41," + b"y" * 10_000_000 + b",a,0.5\n41,hello,a,0.5\n")
    expected = {(0, 41, 2**29): 2, (NAME.size, AGE.size, X.size): 1}
    assert rows_of(path) == rows_of(path, _block=2**16) == expected


def test_the_limit_of_a_line_is_exact(folder):
    for size, ruined in ((30, 0), (31, 1)):
        body = b"41,,a," + b"0" * (size - 6)
        for block in (1, 7, 30, 31, 32, 1000):
            path = written(folder, b"1,,a,1\n" + body + b"\n1,,a,1\n")
            found = rows_of(path, _block=block, _max_line=30)
            assert found[(NAME.size, AGE.size, X.size)] == ruined, (size, block)
            assert found.total() == 3


def test_a_long_line_is_never_held_in_memory():
    class Endless(io.RawIOBase):
        left = 30_000_000

        def readable(self):
            return True

        def readinto(self, buffer):
            size = min(len(buffer), self.left)
            buffer[:size] = b"z" * size
            self.left -= size
            return size

    tracemalloc.start()
    found = list(line_blocks(io.BufferedReader(Endless()), 2**16, 2**14))
    assert found == [(bytearray(), 1)]
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_windows_line_ends_a_mark_and_a_last_line_without_end(tmp_path):
    body = b"41,hello,a,0.5\r\n7,,a,0.5"
    plain = rows_of(written(tmp_path, body))
    assert plain == {(0, 41, 2**29): 1, (0, 7, 2**29): 1}
    marked = lines.BOM + HEADER.replace(b"\n", b"\r\n")
    assert rows_of(written(tmp_path, body + b"\r\n", marked)) == plain


def test_a_header_without_rows_is_an_empty_table(tmp_path):
    for head in (HEADER, HEADER.strip()):
        assert rows_of(written(tmp_path, b"", head)) == {}


def test_one_column_has_a_row_for_each_line_even_a_blank_one(tmp_path):
    path = written(tmp_path, b'1\n\n""\n"2"\n', b"age\n")
    assert rows_of(path, [AGE]) == {(1,): 1, (2,): 1, (121,): 2}


def test_other_delimiters(tmp_path):
    body = b'41;free, text;"b,c";0.5\n1;";";a;0\n'
    path = written(tmp_path, body, HEADER.replace(b",", b";"))
    assert rows_of(path, csv=CsvOptions(delimiter=";")) == {(1, 41, 2**29): 1, (0, 1, 0): 1}


# --- declared multiline --------------------------------------------------------------------------------

MULTI = CsvOptions(multiline=True)


def test_multiline_reads_line_breaks_in_quotes(tmp_path):
    body = b'1,"two\nlines, ""quoted""\r\n",a,0.5\n2,5" pipe,a,0.5\n3,"",a,0.5\n4,"x\n\n",b,0.5'
    path = written(tmp_path, body)
    expected = {(0, 1, 2**29): 1, (0, 2, 2**29): 1, (0, 3, 2**29): 1, (3, 4, 2**29): 1}
    for block in range(1, len(body) + 2):
        assert rows_of(path, csv=MULTI, _block=block) == expected, block
    assert rows_of(path).total() == 8


def test_a_quote_that_is_never_closed_costs_its_own_line_only(tmp_path):
    path = written(tmp_path, b'1,"stray,a,0.5\n' + b"2,,a,0.5\n" * 20)
    expected = {(0, 1, 2**29): 1, (0, 2, 2**29): 20}
    for block in (1, 5, 50, 1000):
        assert rows_of(path, csv=MULTI, _block=block) == expected
        assert rows_of(path, csv=MULTI, _block=block, _max_line=40) == expected


def test_a_quote_closed_too_late_costs_its_own_line_only(tmp_path):
    path = written(tmp_path, b'1,"stray,a,0.5\n' + b"2,,a,0.5\n" * 20 + b'3,x",a,0.5\n')
    expected = {(0, 1, 2**29): 1, (0, 2, 2**29): 20, (0, 3, 2**29): 1}
    for block in (1, 5, 50, 1000):
        assert rows_of(path, csv=MULTI, _block=block, _max_line=40) == expected
    assert rows_of(path, csv=MULTI).total() == 1


@settings(max_examples=150, deadline=None)
@given(st.lists(a_line, max_size=8), st.integers(1, 60), st.integers(8, 60))
def test_multiline_never_raises_and_does_not_depend_on_blocks(folder, table, block, max_line):
    path = written(folder, b"\n".join(table))
    private = {"csv": MULTI, "_max_line": max_line}
    assert rows_of(path, _block=block, **private) == rows_of(path, **private)


# --- where tables come from ----------------------------------------------------------------------------

BODY = b"41,hello,a,0.5\n7,,,\n"
CODES = {(0, 41, 2**29): 1, (NAME.size, 7, X.size): 1}


def test_compressed_csv(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(HEADER + BODY * 100))
    for block in (13, 1000, read_csv.BLOCK):
        scan = open_scan(str(path), COLUMNS, _block=block)
        assert sum(piece.size for piece in scan.pieces()) == scan.size == path.stat().st_size
        assert rows_of(path, _block=block) == dict.fromkeys(CODES, 100)


def test_pieces_say_how_far_the_file_was_read(tmp_path):
    path = written(tmp_path, BODY * 500)
    scan = open_scan(str(path), COLUMNS, _block=1000)
    sizes = [piece.size for piece in scan.pieces()]
    assert len(sizes) > 3
    assert sum(sizes) == scan.size == path.stat().st_size


def test_standard_input_is_copied_to_a_private_file_when_rows_are_first_asked_for(monkeypatch):
    stream = io.BytesIO(HEADER + BODY)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    scan = open_scan("-", COLUMNS)
    assert stream.tell() == len(HEADER)
    assert scan.size is None
    for _ in range(3):
        rows = Counter(
            row
            for piece in scan.pieces()
            for row in zip(*(array.tolist() for array in scan.encode(piece).values()), strict=True)
        )
        assert rows == CODES
    assert scan.size == len(BODY)
    about = os.fstat(scan._copy.fileno())
    assert (about.st_mode & 0o777, about.st_nlink) == (0o600, 0)
    scan.close()
    assert scan._copy.closed


def test_a_named_pipe_is_read_like_standard_input(tmp_path):
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(HEADER + BODY,))
    writer.start()
    assert rows_of(path) == CODES
    writer.join()


def parquet(path, **changes):
    table = {"age": [41, 7], "name": ["a", None], "x": [0.5, None], "other": [[1], [2]]} | changes
    pq.write_table(pa.table({name: values for name, values in table.items() if values is not None}), path)
    return path


def test_parquet_and_folders_of_it_give_the_codes_of_the_same_csv(tmp_path):
    assert rows_of(parquet(tmp_path / "t.parquet")) == CODES
    (tmp_path / "part").mkdir()
    parquet(tmp_path / "part" / "u.parquet", name=pa.array(["a", None]).dictionary_encode())
    parquet(tmp_path / "_ignored.parquet", age=None)
    assert rows_of(tmp_path) == dict.fromkeys(CODES, 2)
    scan = open_scan(str(tmp_path), COLUMNS)
    assert sum(piece.size for piece in scan.pieces()) == scan.size


def test_parquet_comes_in_batches_of_whole_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(read_parquet, "BATCH", 10)
    path = tmp_path / "t.parquet"
    table = pa.table({"age": np.arange(95), "name": ["a"] * 95, "x": np.linspace(0, 1, 95)})
    pq.write_table(table, path, row_group_size=33)
    scan = open_scan(str(path), COLUMNS)
    pieces = list(scan.pieces())
    assert max(len(piece.data) for piece in pieces) == 10
    assert sorted(code for piece in pieces for code in scan.encode(piece)["age"]) == list(range(95))


def test_a_scan_can_be_sent_to_another_process(tmp_path):
    for path in (written(tmp_path, BODY), parquet(tmp_path / "t.parquet")):
        scan = open_scan(str(path), COLUMNS)
        sent = pickle.loads(pickle.dumps(scan))
        for piece, same in zip(scan.pieces(), sent.pieces(), strict=True):
            ours, theirs = scan.encode(piece), sent.encode(pickle.loads(pickle.dumps(same)))
            assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_encoding_a_piece_twice_gives_the_same_codes(tmp_path):
    scan = open_scan(str(written(tmp_path, b"\n".join([*JUNK, b""]))), COLUMNS)
    (piece,) = scan.pieces()
    first, second = scan.encode(piece), scan.encode(piece)
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_problems_are_counted_by_column(tmp_path):
    body = b"120.4,,a,0.5\n,,,\nold,,zz,2\n 200 ,,a,nan\n1,2\n9,,a,-1\n"
    found = count_problems(open_scan(str(written(tmp_path, body)), COLUMNS)).as_json()
    assert (found["rows"], found["ruined"]) == (6, 1)
    none = dict.fromkeys(("missing", "unparseable", "out of bounds", "unlisted", "lowest", "highest"), 0)
    none["forms"] = {}
    assert found["columns"] == {
        "name": none | {"missing": 1, "unlisted": 1, "forms": {"other": 1}},
        "age": none
        | {"missing": 1, "unparseable": 1, "out of bounds": 1, "highest": 2, "forms": {"other": 1}},
        "x": none | {"missing": 2, "out of bounds": 2, "lowest": 1, "highest": 1},
    }
    path = parquet(tmp_path / "t.parquet", age=[500, None], x=[float("nan"), 7.0])
    found = count_problems(open_scan(str(path), COLUMNS)).as_json()["columns"]
    assert found["age"] == none | {"missing": 1, "out of bounds": 1, "highest": 1}
    assert found["x"] == none | {"missing": 1, "out of bounds": 1, "highest": 1}
    assert found["name"] == none | {"missing": 1}


def test_integers_out_of_bounds_are_counted_in_a_column_without_nulls(tmp_path):
    path = parquet(tmp_path / "t.parquet", age=[500, -(2**40)], x=[0.5, 0.5])
    found = count_problems(open_scan(str(path), COLUMNS)).as_json()["columns"]
    assert found["age"]["out of bounds"] == 2


# --- what can fail, in full ----------------------------------------------------------------------------


def refusal(path, columns=COLUMNS, csv=None, error: type[DpsynthError] = FileError) -> str:
    with pytest.raises(error) as caught:
        open_scan(str(path), columns, csv)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_no_such_file(tmp_path):
    for name in ("t.csv", "t.parquet", "t"):
        path = tmp_path / name
        assert refusal(path) == f"there is no file {path}.\n{NOTHING} Check `input` in the spec, or --input."


def test_an_ending_that_says_nothing(tmp_path):
    path = written(tmp_path, BODY, name="t.xlsx")
    assert refusal(path) == f"{path} has no ending that says its format.\n{NOTHING} {INPUTS}"


def test_a_folder_without_parquet_files(tmp_path):
    written(tmp_path, BODY)
    assert refusal(tmp_path) == f"{tmp_path} is a folder without Parquet files.\n{NOTHING} {INPUTS}"


def test_an_empty_file(tmp_path):
    first = f"{NOTHING} The first line of a CSV file must name its columns."
    path = written(tmp_path, b"", b"")
    assert refusal(path) == f"{path} is empty: it does not even have a header.\n{first}"
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b""))
    assert refusal(path) == f"{path} is empty: it does not even have a header.\n{first}"


def test_a_first_line_that_is_no_header(tmp_path, monkeypatch):
    monkeypatch.setattr(read_csv, "MAX_HEADER", 2**20)
    path = written(tmp_path, b"x" * (2**20 + 1), b"")
    assert refusal(path) == (
        f"the first line of {path} is longer than 1 MiB: not a header.\n"
        f"{NOTHING} The first line of a CSV file must name its columns."
    )


def test_missing_columns_are_named_but_of_a_csv_header_nothing_is_quoted(tmp_path):
    # The first line of a file without a header is somebody's row.
    wanted = [Column("Age", "integer"), Column("zip", "integer"), AGE]
    path = written(tmp_path, BODY)
    fix = f"{NOTHING} Correct `columns` in the spec, or the header of the file."
    assert refusal(path, wanted) == f"{path} has no columns 'Age', 'zip'.\n{fix}"
    path = parquet(tmp_path / "t.parquet", name=None)
    assert refusal(path) == f"{path} has no column 'name'.\n{fix}"


def test_a_missing_column_of_units_is_mended_where_it_is_named(tmp_path):
    path, unit = written(tmp_path, BODY), unit_column("person")
    key = "`privacy.unit` (of tables that belong together: `key` or `foreign_key`)"
    after = "in the spec, or the header of the file."
    assert refusal(path, [AGE, unit]) == f"{path} has no column 'person'.\n{NOTHING} Correct {key} {after}"
    both = refusal(path, [Column("zip", "integer"), unit])
    assert both == f"{path} has no columns 'zip', 'person'.\n{NOTHING} Correct `columns` and {key} {after}"


def test_another_delimiter_is_recognised(tmp_path):
    path = written(tmp_path, b"", HEADER.replace(b",", b"\t"))
    assert refusal(path).splitlines()[1] == (
        rf"""{NOTHING} Its fields seem to be separated by '\t': set csv: {{delimiter: "\t"}}."""
    )


def test_a_column_that_is_there_twice(tmp_path):
    path = written(tmp_path, b"", b"age,name,x,age,y,y\n")
    assert refusal(path) == (
        f"{path} has more than one column named 'age'.\n{NOTHING} Rename all but one of them."
    )
    assert open_scan(str(path), [X])


def test_a_delimiter_that_cannot_be():
    for one in ("", ",,", '"', "a", "5", "\n", "é", "\x1f"):
        assert refusal("-", csv=CsvOptions(delimiter=one), error=UsageError) == (
            "csv.delimiter must be a tab or one ASCII character that is not a letter, a digit or a quote; "
            f"it is {one!r}.\n{NOTHING}"
        )


def test_a_type_that_cannot_be_read(tmp_path):
    path = parquet(tmp_path / "t.parquet", x=[[0.5], [1.0]])
    assert refusal(path) == (
        f"column 'x' of {path} is list<element: double>, which cannot be read as continuous.\n"
        f"{NOTHING} Convert the column, or leave it out of `columns` in the spec."
    )


def test_not_parquet_and_cut_off_parquet(tmp_path):
    fix = f"{NOTHING} Make it again, or check the name's ending."
    path = written(tmp_path, BODY, name="t.parquet")
    assert refusal(path) == f"{path} is damaged or not a Parquet file.\n{fix}"
    whole = parquet(tmp_path / "u.parquet").read_bytes()
    for size in (0, 3, 20, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert refusal(path) == f"{path} is damaged or not a Parquet file.\n{fix}"


def test_a_time_zone_that_does_not_exist_is_refused(tmp_path):
    """As categories, times are compared as text, which needs the zone; dates are moments, which do not."""
    times = pa.array([0, 1], pa.timestamp("us", tz="`TC"))
    pq.write_table(pa.table({"t": times}), tmp_path / "t.parquet")
    with pytest.raises(FileError, match="cannot be read as nominal"):
        open_scan(str(tmp_path / "t.parquet"), (Column("t", "nominal", categories=("a",)),), None)
    day = Column("t", "date", lower=0, upper=9)
    scan = open_scan(str(tmp_path / "t.parquet"), (day,), None)
    assert [codes["t"].tolist() for codes in map(scan.encode, scan.pieces())] == [[0, 0]]


@pytest.mark.parametrize("labels", [127, 128, 300])
def test_labels_of_small_files_that_are_too_many_together(tmp_path, labels):
    """Files number their own labels in one byte: one label more, in one row, must not make reading fail."""
    names = [f"l{i}" for i in range(labels)]
    for part, own in enumerate((names[:64], names[64:128], names[128:192], names[192:])):
        numbers = pa.array(range(len(own)), pa.uint8() if labels > 128 else pa.int8())
        cells = pa.DictionaryArray.from_arrays(numbers, pa.array(own, pa.string()))
        pq.write_table(pa.table({"s": cells}), tmp_path / f"{part}.parquet")
    scan = open_scan(str(tmp_path), (Column("s", "nominal", categories=tuple(names)),))
    found = np.concatenate([scan.encode(piece)["s"] for piece in scan.pieces()])
    assert found.tolist() == list(range(labels))


def test_parquet_damaged_inside_says_nothing_about_rows_or_cost(tmp_path):
    path = parquet(tmp_path / "t.parquet")
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    path.write_bytes(data)
    scan = open_scan(str(path), COLUMNS)
    with pytest.raises(FileError) as caught:
        list(scan.pieces())
    assert str(caught.value) == (
        f"{path} is damaged or not a Parquet file.\nMake it again, or check the name's ending."
    )
    assert caught.value.cost == ""


def test_damaged_gzip(tmp_path):
    path = written(tmp_path, BODY, name="t.csv.gz")
    fix = "Check it with `gzip -t`, and make it again."
    assert refusal(path) == f"{path} is damaged: it is not a whole gzip file.\n{NOTHING} {fix}"
    whole = gzip.compress(HEADER + os.urandom(100_000))
    for damaged in (whole[:-20], whole[:50_000] + b"\0" * 50_000, whole[:-8] + b"\1" * 8):
        path.write_bytes(damaged)
        scan = open_scan(str(path), COLUMNS)
        with pytest.raises(FileError) as caught:
            list(scan.pieces())
        assert str(caught.value) == f"{path} is damaged: it is not a whole gzip file.\n{fix}"


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = written(tmp_path, BODY)

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert refusal(path) == f"cannot read {path}: permission denied.\n{NOTHING}"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_that_changes_between_passes(tmp_path, ending):
    path = written(tmp_path, BODY) if ending == "csv" else parquet(tmp_path / "t.parquet")
    scan = open_scan(str(path), COLUMNS)
    assert len(list(scan.pieces())) == len(list(scan.pieces())) == 1
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    with pytest.raises(FileError) as caught:
        list(scan.pieces())
    copy = "Release from a copy that nothing writes to."
    assert str(caught.value) == f"{path} changed while it was read.\n{copy}"
    path.unlink()
    with pytest.raises(FileError) as caught:
        list(scan.pieces())
    assert str(caught.value) == f"there is no file {path}.\nCheck `input` in the spec, or --input."


def test_no_room_for_the_copy_of_standard_input(monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(HEADER + BODY)))
    monkeypatch.setattr(read_csv.tempfile, "TemporaryFile", Full)
    scan = open_scan("-", COLUMNS)
    with pytest.raises(FileError) as caught:
        list(scan.pieces())
    assert str(caught.value) == (
        "cannot copy standard input to a temporary file: no space left on device.\n"
        "Set TMPDIR to a private folder with more room."
    )


@pytest.mark.parametrize("kind", ["csv", "parquet", "pipe"])
def test_a_narrower_scan_and_a_count_see_the_same_rows(tmp_path, kind):
    import os
    import threading

    import pyarrow.csv

    columns = (
        Column("a", "integer", lower=0, upper=9, nullable=True),
        Column("b", "boolean", categories=("false", "true")),
    )
    text = b"b,a\n1,5\n0,\n1,2,3\n\n0,7"
    path = tmp_path / f"rows.{'parquet' if kind == 'parquet' else 'csv'}"
    if kind == "pipe":
        os.mkfifo(path)
        threading.Thread(target=lambda: path.write_bytes(text)).start()
    elif kind == "csv":
        path.write_bytes(text)
    else:
        import pyarrow.parquet

        pyarrow.parquet.write_table(
            pyarrow.table({"b": [True, False, None, None, False], "a": [5, None, None, None, 7]}), path
        )
    scan = open_scan(str(path), columns)
    narrow = scan.only({"a"})
    assert narrow.count_rows() == scan.count_rows() == 5
    parts = [narrow.encode(piece) for piece in narrow.pieces()]
    assert [list(part) for part in parts] == [["a"]] * len(parts)
    assert sorted(np.concatenate([part["a"] for part in parts]).tolist()) == [5, 7, 10, 10, 10]
    assert sum(len(scan.encode(piece)["b"]) for piece in scan.pieces()) == 5
    scan.close()
    narrow.close()


def test_small_files_are_joined_whatever_their_labels_and_types(tmp_path):
    """Each file has labels of its own, some a column of another type, some no rows: rows stay as they are."""
    rng = np.random.default_rng(0)
    columns = (
        Column("g", "nominal", categories=("a", "b", "c", "zz"), nullable=True),
        Column("x", "integer", lower=0, upper=99),
    )
    code = {"a": 0, "b": 1, "c": 2, "zz": 3, None: 4, "other": 4}
    due: dict[str, list[int]] = {"g": [], "x": []}
    for number in range(30):
        labels = [["a", "b", "zz"], ["zz", "c", None], ["b"], ["other", "a"]][number % 4]
        x = rng.integers(100, size=rng.integers(2000) if number % 5 else 0)
        g = [labels[i] for i in rng.integers(len(labels), size=len(x))]
        table = {"g": pa.array(g, pa.string()), "x": x.astype(float) if number % 7 == 3 else x}
        pq.write_table(pa.table(table), tmp_path / f"{number:03}.parquet")
        due["g"] += [code[label] for label in g]
        due["x"] += x.tolist()
    scan = open_scan(str(tmp_path), columns)
    pieces = list(scan.pieces())
    assert len(pieces) < 12
    codes = [scan.encode(piece) for piece in pieces]
    assert {name: np.concatenate([part[name] for part in codes]).tolist() for name in due} == due
    assert abs(sum(piece.size for piece in pieces) - (scan.size or 0)) < 100
