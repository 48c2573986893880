"""Written and read again, codes are the same; files are in place at once or not at all."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import resource
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import GRID, SECOND, Column
from dpsynth_cli.errors import FileError
from dpsynth_cli.release.files import write
from dpsynth_cli.release.files.write import decode, write_table
from dpsynth_cli.trusted.rows.encode import encode_arrow
from dpsynth_cli.trusted.rows.read import open_scan

NASTY = ("a", "b,c", ' d"', '"', '""', "e'f;g", " ", "  é ", "NA", "1.0", "\ufeffx", "=1+1", "h\ti")
DAYS = (18262, 18627)
COLUMNS = (
    Column("lon", "continuous", lower=-74.3, upper=-73.7),
    Column("big", "continuous", lower=-1.7e308, upper=1.7e308, nullable=True),
    Column("one", "continuous", lower=3.0, upper=3.0, nullable=True),
    Column("age", "integer", lower=-5, upper=120, nullable=True),
    Column("wide", "integer", lower=-(2**53), upper=2**53, nullable=True),
    Column("label", "nominal", categories=NASTY, nullable=True),
    Column("stage", "ordinal", categories=("low", "mid", "high")),
    Column("smoker", "boolean", categories=("false", "true"), nullable=True),
    Column("seen", "date", lower=DAYS[0], upper=DAYS[1], nullable=True),
    Column("at", "datetime", lower=DAYS[0] * 86400 * SECOND, upper=DAYS[1] * 86400 * SECOND, nullable=True),
    Column("fine", "datetime", lower=5, upper=999_999, nullable=True),
    Column("milli", "datetime", lower=0, upper=(GRID - 1) * 1000),
    Column("ever", "datetime", lower=-62135596800 * SECOND, upper=253402214400 * SECOND),
    Column("half", "datetime", lower=SECOND // 2, upper=400 * 86400 * SECOND),
    Column('odd, "name"', "integer", lower=0, upper=1),
)
ALL_NULLABLE = [column for column in COLUMNS if column.nullable]


def draw(columns, rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Codes with both ends of every column and missing among them."""
    rng = np.random.default_rng(seed)
    codes = {column.name: rng.integers(0, column.codes, rows) for column in columns}
    for column in columns:
        ends = np.array([0, column.size - 1, column.codes - 1])[:rows]
        codes[column.name][: len(ends)] = ends
    return codes


def blocks(codes, size: int):
    rows = len(next(iter(codes.values())))
    for start in range(0, rows, size):
        yield {name: array[start : start + size] for name, array in codes.items()}


def read_back(path, columns) -> dict[str, np.ndarray]:
    scan = open_scan(str(path), columns)
    parts = [scan.encode(piece) for piece in scan.pieces()]
    return {c.name: np.concatenate([part[c.name] for part in parts] or [[]]) for c in columns}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_is_written_is_read_back_as_the_same_codes(tmp_path, ending):
    codes = draw(COLUMNS, 5000)
    path = tmp_path / f"t.{ending}"
    write_table(str(path), COLUMNS, blocks(codes, 999), 5000).publish()
    found = read_back(path, COLUMNS)
    for column in COLUMNS:
        np.testing.assert_array_equal(found[column.name], codes[column.name], column.name)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=["C"])), min_size=1, max_size=5, unique=True),
    st.sampled_from(["csv", "parquet"]),
    st.booleans(),
)
def test_any_labels_are_read_back(tmp_path_factory, labels, ending, alone):
    labels = [label for label in labels if label]
    columns = [Column("c", "nominal", categories=tuple(labels), nullable=True)]
    columns += [] if alone else [Column("n", "integer", lower=0, upper=9)]
    codes = draw(columns, len(labels) + 4)
    codes["c"] = np.arange(len(labels) + 4) % (len(labels) + 1)
    path = tmp_path_factory.mktemp("labels") / f"t.{ending}"
    write_table(str(path), columns, blocks(codes, 100), len(codes["c"])).publish()
    found = read_back(path, columns)
    assert found["c"].tolist() == codes["c"].tolist()


def test_blanks_and_marks_at_an_edge_are_quoted(tmp_path):
    column = Column("\ufeffx", "nominal", categories=(" d", "e ", "f g"))
    path = tmp_path / "t.csv"
    write_table(str(path), [column], [{column.name: np.arange(3)}], 3).publish()
    assert path.read_text() == '"\ufeffx"\n" d"\n"e "\nf g\n'
    assert read_back(path, [column])[column.name].tolist() == [0, 1, 2]


@settings(max_examples=100, deadline=None)
@given(
    st.floats(-1e6, 1e6), st.floats(1e-3, 1e9), st.lists(st.integers(0, GRID - 1), min_size=1, max_size=20)
)
def test_any_continuous_code_is_read_back(lower, span, codes):
    assume(abs(lower) < span * 2**19)  # beyond that, float64 cannot tell neighbouring codes apart
    column = Column("x", "continuous", lower=lower, upper=lower + span)
    values = decode(np.array(codes), column)
    assert encode_arrow(values, column).tolist() == codes
    assert all(lower <= value <= lower + span for value in values.to_pylist())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_bytes_depend_on_the_codes_alone(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(write, "GROUP", 100)
    codes = draw(COLUMNS, 777)
    hashes = set()
    for size in (1, 7, 99, 100, 101, 333, 776, 777, 5000):
        pending = write_table(str(tmp_path / f"t.{ending}"), COLUMNS, blocks(codes, size), 777)
        pending.publish()
        hashes.add(pending.sha256)
    assert hashes == {hashlib.sha256((tmp_path / f"t.{ending}").read_bytes()).hexdigest()}
    codes["age"][400] = (codes["age"][400] + 1) % 126
    assert write_table(str(tmp_path / f"u.{ending}"), COLUMNS, blocks(codes, 7), 777).sha256 not in hashes
    assert pq.ParquetFile(tmp_path / "t.parquet").num_row_groups == 8 if ending == "parquet" else True


def test_csv_as_people_see_it(tmp_path):
    codes = {
        "lon": [0, GRID - 1], "big": [2**29, GRID], "one": [0, 1], "age": [0, 126], "wide": [0, 2**28 + 1],
        "label": [1, 13], "stage": [0, 2], "smoker": [1, 2], "seen": [60, 366],
        "at": [45296, 365 * 86400 + 1], "fine": [118, 999_995], "milli": [1, 2], "ever": [0, 1],
        "half": [0, 1], 'odd, "name"': [0, 1],
    }  # fmt: skip
    path = tmp_path / "t.csv"
    pending = write_table(str(path), COLUMNS, [{name: np.array(c) for name, c in codes.items()}], 2)
    pending.publish()
    assert path.read_text() == (
        'lon,big,one,age,wide,label,stage,smoker,seen,at,fine,milli,ever,half,"odd, ""name"""\n'
        '-74.3,1.5832484252898763e+299,3,-5,-9007199254740992,"b,c",low,true,2020-03-01,'
        "2020-01-01 12:34:56,1970-01-01 00:00:00.000123,1970-01-01 00:00:00.001,0001-01-01 00:00:00,"
        "1970-01-01 00:00:00.500,0\n"
        "-73.7,,,,33554432,,high,,,,,1970-01-01 00:00:00.002,0001-01-01 00:08:32,"
        "1970-01-01 00:00:01.500,1\n"
    )
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_parquet_has_the_declared_types(tmp_path):
    path = tmp_path / "t.parquet"
    write_table(str(path), COLUMNS, blocks(draw(COLUMNS, 50), 50), 50).publish()
    types = {field.name: field.type for field in pq.read_schema(path)}
    label = pa.dictionary(pa.int32(), pa.string())
    assert [types[name] for name in ("lon", "age", "label", "smoker", "seen", "at", "ever")] == [
        pa.float64(), pa.int64(), label, pa.bool_(), pa.date32(), pa.timestamp("us"), pa.timestamp("us")
    ]  # fmt: skip
    assert types["stage"] == pa.dictionary(pa.int32(), pa.string(), ordered=True)
    assert set(pq.read_table(path)["stage"].to_pylist()) == {"low", "mid", "high"}


def test_parquet_is_packed_where_that_saves_something(tmp_path):
    columns = [Column(name, "continuous", lower=0.0, upper=1.0) for name in ("digits", "mostly_0")]
    columns.append(Column("n", "integer", lower=0, upper=10**6))
    rng = np.random.default_rng(0)
    codes = {"digits": rng.integers(GRID, size=9000), "n": rng.integers(10**6, size=9000)}
    codes["mostly_0"] = np.where(rng.random(9000) < 0.9, 0, codes["digits"])
    write_table(str(tmp_path / "t.parquet"), columns, blocks(codes, 999), 9000).publish()
    group = pq.ParquetFile(tmp_path / "t.parquet").metadata.row_group(0)
    packing = {group.column(i).path_in_schema: group.column(i).compression for i in range(3)}
    assert packing == {"digits": "UNCOMPRESSED", "mostly_0": "SNAPPY", "n": "SNAPPY"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_empty_table_has_its_columns(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    write_table(str(path), COLUMNS, [], 0).publish()
    assert all(len(codes) == 0 for codes in read_back(path, COLUMNS).values())


def test_a_single_column_keeps_its_missing_values_in_csv(tmp_path):
    path = tmp_path / "t.csv"
    write_table(str(path), [COLUMNS[3]], [{"age": np.array([126, 5, 126])}], 3).publish()
    assert path.read_text() == 'age\n""\n0\n""\n'
    assert read_back(path, [COLUMNS[3]])["age"].tolist() == [126, 5, 126]


ELSEWHERE = "Make room there."

# --- in place at once or not at all --------------------------------------------------------------------

AGE = [COLUMNS[3]]


def table(path, rows: int = 3):
    return write_table(str(path), AGE, [{"age": np.arange(rows) % 126}], rows)


def test_nothing_has_the_final_name_before_it_is_published(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")
    pending = table(path)
    assert path.read_text() == "old"
    pending.publish()
    assert path.read_text() == "age\n-5\n-4\n-3\n"
    assert os.listdir(tmp_path) == ["t.csv"]


def test_what_is_published_is_on_the_disk_before_and_after(tmp_path, monkeypatch):
    seen = []
    sync, replace = os.fsync, os.replace

    def name(handle):
        found = os.readlink(f"/proc/self/fd/{handle}")
        return "folder" if found == str(tmp_path) else "file"

    monkeypatch.setattr(write.os, "fsync", lambda handle: (seen.append(name(handle)), sync(handle)))
    monkeypatch.setattr(write.os, "replace", lambda *paths: (seen.append("rename"), replace(*paths)))
    table(tmp_path / "t.csv").publish()
    assert seen == ["file", "rename", "folder"]


def test_what_is_discarded_leaves_nothing(tmp_path):
    pending = table(tmp_path / "t.csv")
    pending.discard()
    pending.discard()
    assert os.listdir(tmp_path) == []


def test_a_model_that_draws_another_number_of_rows_is_a_bug(tmp_path):
    with pytest.raises(ValueError, match="the model drew 3 rows instead of 4"):
        write_table(str(tmp_path / "t.csv"), AGE, [{"age": np.arange(3)}], 4)
    assert os.listdir(tmp_path) == []


def test_an_interrupted_model_leaves_nothing(tmp_path):
    def interrupted():
        yield {"age": np.arange(5)}
        raise KeyboardInterrupt

    for ending in ("csv", "parquet"):
        with pytest.raises(KeyboardInterrupt):
            write_table(str(tmp_path / f"t.{ending}"), AGE, interrupted(), 5)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_that_may_not_grow_is_an_error_and_leaves_nothing(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    codes = draw(COLUMNS, 50_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(FileError) as caught:
            write_table(str(path), COLUMNS, blocks(codes, 1000), 50_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(caught.value) == (f"cannot write {path}: file too large.\n{ELSEWHERE}")
    assert caught.value.cost == ""
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path, monkeypatch, ending):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(write.os, "fsync", full)
    path = tmp_path / f"t.{ending}"
    with pytest.raises(FileError) as caught:
        table(path)
    assert str(caught.value) == (f"cannot write {path}: no space left on device.\n{ELSEWHERE}")
    assert os.listdir(tmp_path) == []


def test_a_name_that_cannot_be_taken_is_an_error_and_leaves_nothing(tmp_path):
    path = tmp_path / "t.csv"
    pending = table(path)
    path.mkdir()
    with pytest.raises(FileError) as caught:
        pending.publish()
    assert str(caught.value) == (f"cannot write {path}: is a directory.\n{ELSEWHERE}")
    assert os.listdir(tmp_path) == ["t.csv"]


def test_no_folder(tmp_path):
    path = tmp_path / "no" / "t.csv"
    with pytest.raises(FileError) as caught:
        table(path)
    assert str(caught.value) == (f"cannot write {path}: no such file or directory.\n{ELSEWHERE}")


# --- standard output -----------------------------------------------------------------------------------


def test_standard_output_gets_the_table_when_it_is_published(monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=out))
    pending = table("-")
    assert out.getvalue() == b""
    pending.publish()
    assert out.getvalue() == b"age\n-5\n-4\n-3\n"
    assert pending.sha256 == hashlib.sha256(out.getvalue()).hexdigest()
    table("-").discard()
    assert out.getvalue() == b"age\n-5\n-4\n-3\n"


@pytest.mark.parametrize("rows", [10, 10**6])
def test_a_reader_that_has_seen_enough_is_no_error(rows):
    program = (
        "import numpy as np\nfrom dpsynth_cli.domain import Column\n"
        "from dpsynth_cli.release.files.write import write_table\n"
        "age = Column('age', 'integer', lower=0, upper=120)\n"
        f"write_table('-', [age], [{{'age': np.zeros({rows}, int)}}], {rows}).publish()"
    )
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], env=buffered, **pipes) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
