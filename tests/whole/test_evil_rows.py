"""One evil row in an ordinary table shows in nothing: not in the integers of another row, the exit code, the
words, the files, and, within bounds, not in time and memory. Most of it on scans; all of it on whole releases
in the slow suite."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth_cli.errors import FileError
from dpsynth_cli.trusted.rows.read import open_scan
from tests.conftest import ROOT
from tests.whole.evil import (
    COLUMNS,
    LINES,
    PARQUET,
    REFUSED,
    SPEC,
    as_csv,
    csv_lines,
    ordinary,
    rows_of,
    with_rows,
    with_type,
)

ROWS = 400
SECONDS, SLOW = 1.0, 3.0  # of CPU time that a row may cost, in this process and in one of its own
MEGABYTES = 160  # of memory
LONG = 11_900_000  # bytes of a cell in each column: in pages of text, a row's may be about six times 12 MB
PATIENCE = 3.0  # seconds until a signal is obeyed: one, and two for a busy machine

TABLE = ordinary(ROWS)
PLAIN = csv_lines(TABLE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("evil")


@pytest.fixture(scope="module")
def known(folder):
    """The rows of the ordinary table, and how long they take to read."""
    path = as_csv(folder / "plain.csv", PLAIN)
    rows_of(path)
    begin = time.process_time()
    return rows_of(path), time.process_time() - begin


# --- the integers of other rows --------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINES)
def test_an_evil_line_changes_no_other_row(folder, known, capfd, name):
    plain, usual = known
    begin = time.process_time()
    alone = rows_of(as_csv(folder / "t.csv", [LINES[name]]))
    for at in (0, ROWS // 2, ROWS):
        path = as_csv(folder / "t.csv", [*PLAIN[:at], LINES[name], *PLAIN[at:]])
        assert rows_of(path) == plain + alone
    assert alone.total() == LINES[name].count(b"\n") + 1
    assert time.process_time() - begin < 4 * usual + SECONDS
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("block", [2**16, 2**21])
def test_all_evil_lines_together_change_no_other_row(folder, known, block):
    alone = sum((rows_of(as_csv(folder / "t.csv", [line])) for line in LINES.values()), known[0])
    mixed = [*LINES.values(), *PLAIN]
    order = np.random.default_rng(0).permutation(len(mixed))
    path = as_csv(folder / "t.csv", [mixed[i] for i in order])
    assert rows_of(path, _block=block) == alone


@pytest.mark.parametrize("name", PARQUET)
def test_evil_cells_of_parquet_change_no_other_row(folder, capfd, name):
    column, evil = PARQUET[name]
    table, path = with_type(TABLE, column, evil.type), folder / "t.parquet"
    begin = time.process_time()
    pq.write_table(pa.table(table), path)
    plain = rows_of(path)
    pq.write_table(pa.table(with_rows({n: array[:0] for n, array in table.items()}, column, evil, 0)), path)
    alone = rows_of(path)
    for at in (0, ROWS // 2, ROWS):
        pq.write_table(pa.table(with_rows(table, column, evil, at)), path)
        assert rows_of(path) == plain + alone
    assert (plain.total(), alone.total()) == (ROWS, len(evil))
    assert time.process_time() - begin < 5 * SECONDS
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", REFUSED)
def test_types_that_cannot_be_read_are_refused_with_and_without_evil_cells(folder, name):
    column, evil = REFUSED[name]
    said = set()
    for cells in (evil, evil[:0], pa.nulls(2, evil.type)):
        table = {each.name: pa.nulls(len(cells)) for each in COLUMNS} | {column: cells}
        pq.write_table(pa.table(table), folder / "t.parquet")
        with pytest.raises(FileError) as caught:
            open_scan(str(folder / "t.parquet"), COLUMNS)
        said.add(str(caught.value))
    assert len(said) == 1
    assert "Nothing was read and nothing was spent." in said.pop()


# --- time and memory --------------------------------------------------------------------------------------


def cost(path: Path) -> tuple[float, float, int]:
    """CPU seconds, peak megabytes and rows of a process that reads the table and counts its problems."""
    words = [sys.executable, "-m", "tests.whole.evil", str(path)]
    ran = subprocess.run(words, capture_output=True, cwd=ROOT, timeout=120)
    assert ran.returncode == 0, ran.stderr.decode()
    return tuple(json.loads(ran.stdout))


def check_cost(
    usual: tuple[float, float, int], evil: tuple[float, float, int], megabytes: float = MEGABYTES
) -> None:
    assert evil[2] > usual[2]
    assert evil[0] < usual[0] + SLOW, (usual, evil)
    assert evil[1] < usual[1] + megabytes, (usual, evil)


WORST = ["digits and an x", "a line of ten megabytes", "doubled quotes"]


def test_the_worst_lines_take_little_time_and_memory(folder):
    usual = cost(as_csv(folder / "plain.csv", PLAIN * 10))
    check_cost(usual, cost(as_csv(folder / "t.csv", PLAIN * 10 + [LINES[name] for name in WORST])))


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_row_of_long_cells_takes_six_times_its_bytes_at_most(folder, dictionary):
    """All its pages are at the limit: 64 MiB together, and 1 MiB for each column."""
    plain = {name: array.cast(pa.string()) for name, array in TABLE.items()}
    evil = {name: pa.array([*array.to_pylist(), "x" * LONG]) for name, array in plain.items()}
    for name, table in (("plain", plain), ("t", evil)):
        path = folder / f"{name}.parquet"
        pq.write_table(pa.table(table), path, compression="zstd", use_dictionary=dictionary)
    bytes_ = LONG * len(COLUMNS)
    check_cost(cost(folder / "plain.parquet"), cost(folder / "t.parquet"), 6 * bytes_ / 10**6)
    pq.write_table(pa.table({n: pa.array(["x" * (LONG + 500_000)]) for n in plain}), folder / "more.parquet")
    with pytest.raises(FileError, match="64 MiB together"):
        open_scan(str(folder / "more.parquet"), COLUMNS)


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_every_evil_line_takes_little_time_and_memory(folder, name):
    usual = cost(as_csv(folder / "plain.csv", PLAIN * 50))
    check_cost(usual, cost(as_csv(folder / "t.csv", [*PLAIN * 25, LINES[name], *PLAIN * 25])))


@pytest.mark.slow
@pytest.mark.parametrize("name", PARQUET)
def test_all_evil_cells_of_parquet_take_little_time_and_memory(folder, name):
    column, evil = PARQUET[name]
    table = with_type(TABLE, column, evil.type)
    pq.write_table(pa.table(table), folder / "plain.parquet")
    pq.write_table(pa.table(with_rows(table, column, evil, 7)), folder / "t.parquet")
    check_cost(cost(folder / "plain.parquet"), cost(folder / "t.parquet"))


@pytest.mark.slow
def test_a_long_text_told_as_differences_to_itself_takes_little_memory(folder):
    """A file of some kilobytes whose cells are a gigabyte together."""
    table, cells = with_type(TABLE, "group", pa.string()), pa.array(["z" * 300_000] * 3000)
    encoding = {"use_dictionary": False, "column_encoding": {"group": "DELTA_BYTE_ARRAY"}}
    pq.write_table(pa.table(table), folder / "plain.parquet", **encoding)
    pq.write_table(pa.table(with_rows(table, "group", cells, 9)), folder / "t.parquet", **encoding)
    usual, evil = cost(folder / "plain.parquet"), cost(folder / "t.parquet")
    assert evil[1] < usual[1] + 4 * MEGABYTES


@pytest.mark.slow
def test_long_cells_that_lie_together_can_be_read(folder):
    """Together they are more than the 2^31 bytes that pyarrow can hold of labels."""
    table, column = with_type(TABLE, "group", pa.large_string()), "group"
    cells = pa.array([f"{i}" + "q" * 30_000_000 for i in range(75)], pa.large_string())
    options = {"use_dictionary": False, "compression": "zstd", "write_batch_size": 1}
    pq.write_table(pa.table(table), folder / "plain.parquet", **options)
    pq.write_table(pa.table(with_rows(table, column, cells, 9)), folder / "t.parquet", **options)
    del cells
    usual, evil = cost(folder / "plain.parquet"), cost(folder / "t.parquet")
    assert evil[1] < usual[1] + 3 * MEGABYTES
    assert evil[2] == usual[2] + 75


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("column", ["group", "age"])
def test_a_million_different_labels_take_little_more_than_a_million_equal_ones(folder, kind, column):
    table, labels = ordinary(10**6), np.arange(10**6).astype("U")
    usual, evil = (table | {column: pa.array(cells)} for cells in (np.full(10**6, "label"), labels))
    costs = []
    for cells in (usual, evil):
        path = folder / f"t.{kind}"
        if kind == "csv":
            as_csv(path, csv_lines(cells))
        else:
            pq.write_table(pa.table(cells), path)
        costs.append(cost(path))
    (seconds, megabytes, _), (more, larger, _) = costs
    assert more < 3 * seconds + SLOW
    assert larger < megabytes + 2.5 * MEGABYTES


# --- whole releases ---------------------------------------------------------------------------------------


def released(folder: Path, path: Path) -> tuple[int, str, list[str]]:
    """The exit code, the words without their numbers, and the names of the files."""
    (folder / "spec.yaml").write_text(SPEC.format(input=path))
    words = [
        sys.executable,
        "-c",
        "from dpsynth_cli.cli.main import run; run()",
        "release",
        "spec.yaml",
        "--replace",
    ]
    ran = subprocess.run(words, capture_output=True, cwd=folder, env=environment(folder), timeout=120)
    told = b"" if ran.stderr.startswith(b"confidential, for the steward only: ") else ran.stderr
    said = re.sub(r"[0-9][0-9.,e-]*", "N", (ran.stdout + told).decode())
    return ran.returncode, said, sorted(each.name for each in (folder / "out").iterdir())


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"DPSYNTH_LEDGER": str(folder / "ledger.sqlite"), "PYTHONPATH": str(ROOT)}


def check_release(folder: Path, plain: Path, evil: Path) -> None:
    plainly, evilly = (folder / "plainly", folder / "evilly")
    for each in (plainly, evilly):
        each.mkdir()
    usual = released(plainly, plain)
    assert usual[0] == 0, usual[1]
    assert released(evilly, evil) == usual


def test_a_release_with_the_worst_lines_is_like_any_other(tmp_path):
    evil = as_csv(tmp_path / "evil.csv", [*(LINES[name] for name in WORST), *PLAIN])
    check_release(tmp_path, as_csv(tmp_path / "plain.csv", PLAIN), evil)


def test_a_release_with_the_worst_cells_of_parquet_is_like_any_other(tmp_path):
    table = with_type(TABLE, "group", pa.dictionary(pa.int8(), pa.string()))
    pq.write_table(pa.table(table), tmp_path / "plain.parquet")
    evil = pa.DictionaryArray.from_arrays(
        pa.array(range(127), pa.int8()), [f"l{i}" for i in range(126)] + ["z" * 10**6]
    )
    pq.write_table(pa.table(with_rows(table, "group", evil, 3)), tmp_path / "evil.parquet")
    check_release(tmp_path, tmp_path / "plain.parquet", tmp_path / "evil.parquet")


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_a_release_with_any_evil_line_is_like_any_other(tmp_path, name):
    evil = as_csv(tmp_path / "evil.csv", [*PLAIN[:9], LINES[name], *PLAIN[9:]])
    check_release(tmp_path, as_csv(tmp_path / "plain.csv", PLAIN), evil)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARQUET)
def test_a_release_with_any_evil_cell_of_parquet_is_like_any_other(tmp_path, name):
    column, evil = PARQUET[name]
    table = with_type(TABLE, column, evil.type)
    pq.write_table(pa.table(table), tmp_path / "plain.parquet")
    pq.write_table(pa.table(with_rows(table, column, evil, 3)), tmp_path / "evil.parquet")
    check_release(tmp_path, tmp_path / "plain.parquet", tmp_path / "evil.parquet")


# --- signals ----------------------------------------------------------------------------------------------


def check_stops(folder: Path, path: Path, after: float) -> None:
    """A release that has begun to read ends soon after SIGTERM."""
    (folder / "spec.yaml").write_text(SPEC.format(input=path))
    words = [
        sys.executable,
        "-c",
        "from dpsynth_cli.cli.main import run; run()",
        "release",
        "spec.yaml",
        "--replace",
    ]
    with subprocess.Popen(words, cwd=folder, env=environment(folder), stderr=subprocess.PIPE) as running:
        deadline = time.monotonic() + 60
        while running.poll() is None and not list(folder.glob("out/.*.partial")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(after)
        begin = time.monotonic()
        running.send_signal(signal.SIGTERM)
        try:
            running.communicate(timeout=20)
        finally:
            running.kill()
        assert time.monotonic() - begin < PATIENCE
        assert running.returncode in (0, 143)


@pytest.mark.parametrize("after", [0.0, 0.2])
def test_a_release_with_the_worst_lines_stops_when_told(tmp_path, after):
    lines = [LINES[name] for name in WORST] * 5
    check_stops(tmp_path, as_csv(tmp_path / "t.csv", [*lines, *PLAIN * 250]), after)


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_a_release_with_any_evil_line_stops_when_told(tmp_path, name):
    check_stops(tmp_path, as_csv(tmp_path / "t.csv", [LINES[name]] * 5 + PLAIN * 250), 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARQUET)
def test_a_release_with_any_evil_cell_of_parquet_stops_when_told(tmp_path, name):
    column, evil = PARQUET[name]
    table = {each: pa.concat_arrays([array] * 250) for each, array in TABLE.items()}
    table = with_rows(with_type(table, column, evil.type), column, evil, 3)
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    check_stops(tmp_path, tmp_path / "t.parquet", 0.1)
