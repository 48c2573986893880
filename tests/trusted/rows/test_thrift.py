"""Thrift's compact protocol: footers without statistics, and structures that are none."""

from __future__ import annotations

import struct
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth_cli.domain import Column
from dpsynth_cli.trusted.rows import thrift
from dpsynth_cli.trusted.rows.header import parquet_schema
from dpsynth_cli.trusted.rows.parquet_form import footer, stored_schema
from dpsynth_cli.trusted.rows.read import open_scan

COLUMN, STATISTICS = (4, 1, 3), (12, 16, 17)
# Field 16, sizes: nine levels of repetition and nine of definition where the column has one and two.
MISFIT = bytes([0x0C, 32, 0x29, 0x96, *[2] * 9, 0x19, 0x96, *[2] * 9, thrift.STOP, thrift.STOP])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.parquet"
    rows = {"s": ["a", None, "ccc"] * 100, "age": [1, 2, None] * 100, "on": [True, False, None] * 100}
    pq.write_table(pa.table(rows), path, row_group_size=70)
    return path


def about(path) -> tuple[bytes, bytes]:
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    return data[: -8 - length], data[-8 - length : -8]


def test_a_footer_without_statistics_says_all_else(table):
    whole, bare = pq.read_metadata(table), footer(table, arrow_schema=True)
    assert bare.schema.equals(whole.schema)
    assert stored_schema(table).equals(pq.read_schema(table))
    assert (bare.num_rows, bare.num_row_groups) == (whole.num_rows, whole.num_row_groups) == (300, 5)
    for group in range(5):
        for column in range(3):
            one, other = (each.row_group(group).column(column).to_dict() for each in (whole, bare))
            assert one.pop("statistics") is not None
            assert other.pop("statistics") is None
            assert one | {"is_stats_set": False} == other


def test_what_is_dropped_is_dropped_and_nothing_else(table):
    _, words = about(table)
    assert thrift.without(words, COLUMN, ()) == words
    bare = thrift.without(words, COLUMN, STATISTICS)
    assert len(bare) < len(words)
    assert thrift.without(bare, COLUMN, STATISTICS) == bare
    assert b"ccc" in words
    assert b"ccc" not in bare  # the largest value


def test_sizes_that_do_not_fit_their_column_do_not_end_the_process(table, monkeypatch):
    rows, words = about(table)
    copied = thrift._copied

    def doctored(file, data, way, dropped):
        copy = copied(file, data, way, dropped)
        return copy if way else copy[:-1] + MISFIT

    monkeypatch.setattr(thrift, "_copied", doctored)
    words = thrift.without(words, COLUMN, STATISTICS)
    monkeypatch.undo()
    table.write_bytes(rows + words + struct.pack("<I", len(words)) + b"PAR1")
    chunk = footer(table).row_group(0).column(0)  # with those sizes pyarrow ends the process here
    assert chunk.num_values == 70
    assert parquet_schema(str(table)).names == ["s", "age", "on"]
    scan = open_scan(str(table), [Column("age", "integer", lower=0, upper=9, nullable=True)])
    assert sum(len(piece.data) for piece in scan.pieces()) == 300
    scan.close()
    assert pq.read_metadata(table).row_group(0).num_rows == 70  # and they are still in the file


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\x15",
        b"\x19\xf3" + b"\xff" * 8 + b"\x7f",
        b"\x1c" * 40,
        b"\x1d\0",
        b"\x18\xff\xff\xff\x7f\0",
        b"\x18" + b"\xff" * 9 + b"\x01\0",
    ],
    ids=[
        "empty",
        "cut",
        "a list of too many",
        "too deep",
        "no such kind",
        "a text beyond the end",
        "a text beyond any",
    ],
)
def test_structures_that_are_none_are_refused_at_once(damaged):
    with pytest.raises(pa.ArrowInvalid):
        thrift.without(damaged, COLUMN, STATISTICS)
    with pytest.raises(pa.ArrowInvalid):
        thrift.numbers(BytesIO(damaged), ())


def test_row_groups_that_are_no_structures_are_refused():
    with pytest.raises(pa.ArrowInvalid):
        thrift.without(bytes([0x49, 0x15, 2, 0]), COLUMN, STATISTICS)


def test_fields_far_apart_and_out_of_order_are_copied():
    data = bytes([0x05, 60, 2, 0x05, 4, 2, 0x11, 0x32, 0])  # fields 30, 2, 3 (true), 6 (false)
    assert thrift.without(data, (), (99,)) == data
    assert thrift.without(data, (), (2,)) == bytes([0x05, 60, 2, 0x01, 6, 0x32, 0])
