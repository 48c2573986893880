"""Parquet: what a row contains decides neither whether a file can be read nor in how much memory."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth_cli.domain import Column
from dpsynth_cli.errors import FileError, MemoryShort
from dpsynth_cli.trusted.rows.problems import count_problems
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.text import LONGEST, shortened

NOTHING = "Nothing was read and nothing was spent."
LABELS = Column("s", "nominal", categories=("a", "b"), other="b", nullable=True)
NUMBER = Column("s", "continuous", lower=0.0, upper=1.0, nullable=True)


def codes(path, column: Column) -> list[int]:
    scan = open_scan(str(path), (column,))
    return np.concatenate([scan.encode(piece)[column.name] for piece in scan.pieces()]).tolist()


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32()], ids=str)
@pytest.mark.parametrize("more", [-1, 0, 1, 2])
def test_labels_at_and_past_what_the_stored_index_type_holds(tmp_path, index, more):
    """What pandas categories become: one label more in a row group made reading fail, for good."""
    most = min(2 ** (index.bit_width - (str(index)[0] == "i")), 2**16)
    names = [f"l{i}" for i in range(most + more)]
    parts = [names[: most // 2], names[most // 2 :]]
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(range(len(own)), index), pa.array(own)) for own in parts
    ]
    table = pa.table({"s": pa.chunked_array(chunks)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=len(table))
    assert pq.ParquetFile(tmp_path / "t.parquet").num_row_groups == 1
    column = Column("s", "nominal", categories=(*names[::-1], "other"), other="other")
    assert codes(tmp_path / "t.parquet", column) == list(range(len(names)))[::-1]


def test_what_a_writer_means_beside_the_parquet_types_still_counts(tmp_path):
    """Durations are no integers, and times are compared with categories in their own zone."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": pa.array([1, 2], pa.duration("us"))}), path)
    with pytest.raises(
        FileError, match=r"column 's' of .* is duration\[us\], which cannot be read as integer"
    ):
        open_scan(str(path), (Column("s", "integer", lower=0, upper=9),))
    for times in (pa.array([0, None], pa.timestamp("ms", "Europe/Berlin")),) * 2:
        pq.write_table(pa.table({"s": times}), path)
        local = Column("s", "nominal", categories=("x", "1970-01-01 01:00:00.000+0100"), nullable=True)
        assert codes(path, local) == [1, 2]


def as_decimals(path) -> None:
    """Say in a footer that the column `s` of bytes has decimals, with two places behind the point."""
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    pages, about = data[: -8 - length], data[-8 - length : -8]
    before, name, after = about.partition(b"\x18\x01s\0")
    assert name
    about = before + name[:-1] + b"\x25\x0a\x15\x04\x15\x12\0" + after
    path.write_bytes(pages + about + len(about).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("evil", [b"\1", b"", b"\1" * 40])
def test_decimals_of_varying_length_are_refused_whatever_is_in_them(tmp_path, evil):
    """pyarrow fails at a cell of no bytes, or of more than it holds: after the charge."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": pa.array([b"\1\2", evil], pa.binary())}), path, store_schema=False)
    as_decimals(path)
    assert pq.read_schema(path).field("s").type == pa.decimal128(9, 2)
    for column in (NUMBER, LABELS):
        with pytest.raises(FileError) as caught:
            open_scan(str(path), (column,))
        assert str(caught.value) == (
            f"column 's' of {path} is decimal128(9, 2) in cells that differ in length (BYTE_ARRAY), which "
            f"cannot be read.\n{NOTHING} Write the column with cells of one length, as pyarrow does, or "
            "leave it out of `columns` in the spec."
        )


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("type", [pa.decimal128(5, 2), pa.decimal128(15, 2), pa.decimal128(38, 2)], ids=str)
def test_other_decimals_are_read(tmp_path, integers, type):
    table = pa.table({"s": pa.array(["0.25", "9.00", None]).cast(type)})
    pq.write_table(table, tmp_path / "t.parquet", store_decimal_as_integer=integers)
    assert codes(tmp_path / "t.parquet", NUMBER) == [2**28, 2**30 - 1, 2**30]


# --- long cells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("column", [LABELS, NUMBER], ids=lambda column: column.type)
def test_long_cells_say_nothing_and_are_cut_when_they_are_read(tmp_path, dictionary, column):
    long = ["1" * LONGEST, "1" * (LONGEST + 1), "x" * 10**6, " " * 10**6]
    table = pa.table({"s": ["a", "0.5", "", None, *long] * 3})
    pq.write_table(table, tmp_path / "t.parquet", use_dictionary=dictionary)
    scan = open_scan(str(tmp_path / "t.parquet"), (column,))
    (piece,) = scan.pieces()
    assert piece.data.nbytes < 4 * LONGEST
    if column is LABELS:
        assert scan.encode(piece)["s"].tolist() == [0, 1, 2, 2, 1, 1, 1, 1] * 3
        missing = {"missing": 6, "unparseable": 0, "out of bounds": 0, "unlisted": 15}
    else:
        half, top, none = 2**29, 2**30 - 1, 2**30
        assert scan.encode(piece)["s"].tolist() == [none, half, none, none, top, none, none, none] * 3
        missing = {"missing": 6, "unparseable": 12, "out of bounds": 3, "unlisted": 0}
    found = count_problems(scan).as_json()["columns"]["s"]
    assert {kind: found[kind] for kind in missing} == missing


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
@pytest.mark.parametrize("column", [LABELS, NUMBER], ids=lambda column: column.type)
def test_text_as_differences_is_read_as_any_text(tmp_path, encoding, column):
    """Writers turn to it when a dictionary is full: then pyarrow could not read the file by its labels."""
    table = pa.table(
        {"s": ["a", "0.5", "b", None, "x" * 100_000, "x" * 100_000, "1e9"] * 100, "more": range(700)}
    )
    pq.write_table(table, tmp_path / "plain.parquet")
    expected = codes(tmp_path / "plain.parquet", column)
    as_text = {"use_dictionary": False, "column_encoding": {"s": encoding, "more": "PLAIN"}}
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=300, **as_text)
    assert codes(tmp_path / "t.parquet", column) == expected
    (tmp_path / "many").mkdir()
    for name, more in (("1", {}), ("2", as_text), ("3", {})):
        pq.write_table(table, tmp_path / "many" / f"{name}.parquet", **more)
    assert codes(tmp_path / "many", column) == expected * 3
    scan = open_scan(str(tmp_path / "t.parquet"), (column,))
    parts = [part.encode(piece)["s"] for part in scan.parts(1) for piece in part.pieces()]
    assert np.concatenate(parts).tolist() == expected


def test_a_declared_label_that_is_long_is_kept(tmp_path):
    label = "x" * (LONGEST + 10)
    pq.write_table(pa.table({"s": ["a", label, label + "x"]}), tmp_path / "t.parquet")
    assert codes(tmp_path / "t.parquet", Column("s", "nominal", categories=("a", label), nullable=True)) == [
        0,
        1,
        2,
    ]


def test_a_dictionary_larger_than_its_rows_is_read_as_its_rows_are():
    """Only what is used of it is looked at."""
    labels = pa.array([f"l{i}" for i in range(50)] + [None])
    column = Column("s", "nominal", categories=tuple(f"l{i}" for i in range(0, 50, 2)), nullable=True)
    from dpsynth_cli.trusted.rows.encode import encode_arrow

    for cells in ([4, None, 6, 50, 4, 1], [None, None], [0], []):
        array = pa.DictionaryArray.from_arrays(pa.array(cells, pa.int32()), labels)
        assert (
            encode_arrow(array, column).tolist() == encode_arrow(array.dictionary_decode(), column).tolist()
        )


def test_memory_that_is_short_is_called_that(tmp_path, monkeypatch):
    pq.write_table(pa.table({"s": ["a"]}), tmp_path / "t.parquet")
    scan = open_scan(str(tmp_path / "t.parquet"), (LABELS,))

    for error in (
        pa.ArrowMemoryError("malloc of size 300000000 failed"),
        MemoryError(),
        OSError(12, "no memory"),
    ):

        def short(*args, error=error, **kwargs):
            raise error

        monkeypatch.setattr(pq.ParquetFile, "iter_batches", short)
        with pytest.raises(MemoryShort) as caught:
            list(scan.pieces())
        assert str(caught.value) == (
            "there is not enough memory.\nFree some, or release fewer columns, cells or rows."
        )


def test_a_name_like_the_stored_schemas_is_a_name(tmp_path):
    name = "ARROW:schema"
    for table in (
        pa.table({name: ["a", "ARROW:schema", "\x18\x0cARROW:schema"]}),
        pa.table({name: ["a", "b", "b"]}),
    ):
        for stored in (True, False):
            pq.write_table(table, tmp_path / "t.parquet", store_schema=stored)
            column = Column(name, "nominal", categories=("a", "b"), other="b")
            assert Counter(codes(tmp_path / "t.parquet", column)) == {0: 1, 1: 2}


def test_a_label_that_its_dictionary_does_not_have_is_missing():
    for places in ([0, 84, 1, None, -1], [7, 7], [None, None], []):
        damaged = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), ["a", "b"], safe=False)
        cells = shortened(damaged, 100)
        cells.validate(full=True)
        assert cells.to_pylist() == [["a", "b"][i] if i in (0, 1) else None for i in places]
