"""Memory is bounded by cells and one batch, never by the file; folders, pipes and many row groups."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

SPEC = """\
dpsynth: 1
name: large
input: large.csv
output: made.csv
privacy: {epsilon: 1.0}
mechanism: {name: marginals}
columns:
  age:   {type: integer, bounds: [0, 99]}
  score: {type: continuous, bounds: [0, 1]}
  group: {type: nominal, categories: [a, b, c]}
"""

# After one small release (which imports and allocates all that does not depend on the rows) the process may
# have only so much more address space for a second one.
LIMITED = """
import resource, sys, threading
from dpsynth_cli.release.files import write
from dpsynth_cli.cli.main import run
from dpsynth_cli.mechanisms.shared import drawing
from dpsynth_cli.trusted.rows import read
from dpsynth_cli.trusted.rows import parquet as read_parquet
from dpsynth_cli.trusted.sums import memory
room, pieces, small, large = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
threading.stack_size(2**18)
if pieces == "small":
    read.open_scan.__kwdefaults__["_block"] = 2**16
    read_parquet.BATCH = write.GROUP = drawing.BLOCK_ROWS = memory.MOST_BYTES = 2**12

def release(table):
    sys.argv = ["dpsynth", "release", "spec.yaml", "-i", table, "-q", "--replace"]
    try:
        run()
    except SystemExit as stop:
        if stop.code:
            raise

release(small)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + room,) * 2)
release(large)
"""


def limited(folder: Path, room: int, pieces: str, small: str, large: str) -> subprocess.CompletedProcess:
    # Arrow's own allocators and glibc's arenas set address space aside that nothing uses: not what is tested.
    plain = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", LIMITED, str(room), pieces, small, large]
    ledger = {"DPSYNTH_LEDGER": str(folder / "ledger.sqlite")}
    return subprocess.run(
        command, cwd=folder, env=os.environ | plain | ledger, capture_output=True, text=True
    )


def lines(rows: int) -> str:
    rng = np.random.default_rng(0)
    age, score, group = rng.integers(100, size=rows), rng.random(rows), rng.integers(3, size=rows)
    return "".join(f"{a},{s:.15f},{'abc'[g]}\n" for a, s, g in zip(age, score, group, strict=True))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="address space is measured in /proc")
def test_a_file_ten_times_larger_than_the_memory_left_is_released(tmp_path):
    room = 18 * 2**20
    # As many cells for both, and no utility: its sample of rows is larger than a batch here.
    spec = SPEC.replace("marginals", "marginals, depth: 10") + "evaluate: {metrics: none}\n"
    (tmp_path / "spec.yaml").write_text(spec)
    block = lines(50_000)
    (tmp_path / "small.csv").write_text("age,score,group\n" + block)
    with open(tmp_path / "large.csv", "w") as file:
        file.write("age,score,group\n")
        while file.tell() < 10 * room:
            file.write(block)
    ran = limited(tmp_path, room, "small", "small.csv", "large.csv")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "made.csv").stat().st_size > 5 * room  # the synthetic file was streamed too


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_large_file_is_released_in_a_tenth_of_its_size(tmp_path, ending):
    """As released by default, with whole pieces: 128 MiB more than a small release for each 1.3 GB."""
    if shutil.disk_usage(tmp_path).free < 8 * 2**30:
        pytest.skip("needs 8 GiB of disk")
    room = 2**27
    (tmp_path / "spec.yaml").write_text(SPEC.replace("made.csv", "made.parquet"))
    large = tmp_path / f"large.{ending}"
    if ending == "csv":
        block = lines(400_000)
        with open(large, "w") as file:
            file.write("age,score,group\n")
            while file.tell() < 10 * room:
                file.write(block)
    else:
        rng, rows = np.random.default_rng(0), 2**17
        names = {"age": rng.integers(100, size=rows), "score": rng.random(rows)}
        table = pa.table(names | {"group": pa.array(rng.choice(["a", "b", "c"], rows))})
        with pq.ParquetWriter(large, table.schema, compression="none", use_dictionary=False) as writer:
            while large.stat().st_size < 10 * room:
                writer.write_table(table)
    (tmp_path / "small.csv").write_text("age,score,group\n" + lines(400_000))
    ran = limited(tmp_path, room, "whole", "small.csv", large.name)
    assert (ran.returncode, ran.stderr) == (0, "")
    large.unlink()


def test_a_folder_of_a_thousand_files_is_one_table(dpsynth, tmp_path):
    folder = tmp_path / "days"
    folder.mkdir()
    schema = pa.schema([("age", pa.int64()), ("score", pa.float64()), ("group", pa.string())])
    for day in range(1_000):
        table = pa.table({"age": [day % 100, 7], "score": [0.25, 0.75], "group": ["a", "b"]}, schema)
        pq.write_table(table, folder / f"{day:04}.parquet")
    (tmp_path / "spec.yaml").write_text(SPEC)
    ran = dpsynth("release", "spec.yaml", "-i", folder, "--set", "privacy.epsilon=1000", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["rows"] == 2_000


@pytest.mark.parametrize("unpacked_by", ["gzip", "dpsynth"])
def test_gzip_csv_from_a_pipe(tmp_path, unpacked_by):
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "day.csv.gz").write_bytes(gzip.compress(("age,score,group\n" + lines(1_000)).encode()))
    first = ["gzip", "-dc", "day.csv.gz"] if unpacked_by == "gzip" else ["cat", "day.csv.gz"]
    command = [sys.executable, "-m", "dpsynth_cli", "release", "spec.yaml", "-i", "-"]
    command += ["-o", "-", "--rows", "500", "--ledger", "ledger.sqlite"]
    with subprocess.Popen(first, cwd=tmp_path, stdout=subprocess.PIPE) as pipe:
        ran = subprocess.run(command, cwd=tmp_path, stdin=pipe.stdout, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith("500 synthetic rows on standard output\n")
    made = ran.stdout.splitlines()
    assert (made[0], len(made)) == ("age,score,group", 501)


def test_a_damaged_gzip_stream_is_said_and_quotes_nothing(tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    packed = gzip.compress(("age,score,group\n" + lines(20_000)).encode())
    command = [sys.executable, "-m", "dpsynth_cli", "release", "spec.yaml", "-i", "-", "-o", "-"]
    ran = subprocess.run(
        [*command, "--ledger", "ledger.sqlite"], cwd=tmp_path, input=packed[:-2_000], capture_output=True
    )
    assert ran.returncode == 5
    assert ran.stderr.startswith(b"Error: standard input is damaged: it is not a whole gzip file.\n")


def test_the_synthetic_file_is_written_in_row_groups(dpsynth, people, tmp_path):
    from dpsynth_cli.release.files import write

    rows = 3 * write.GROUP + 5
    assert dpsynth("release", people(), "-o", "out/made.parquet", "--rows", rows).code == 0
    about = pq.ParquetFile(tmp_path / "out/made.parquet").metadata
    groups = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
    assert groups == [write.GROUP] * 3 + [5]


@pytest.mark.parametrize("mechanism", ["marginals", "pmm"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_release_imports_neither_pandas_nor_scipy(tmp_path, mechanism, ending):
    """Both take longer to import than a small release takes: pyarrow would import pandas where it is."""
    for name in ("pandas", "scipy"):
        (tmp_path / "fake" / name).mkdir(parents=True)
        (tmp_path / "fake" / name / "__init__.py").write_text("print('imported', __name__)\n")
    (tmp_path / "spec.yaml").write_text(
        SPEC.replace("marginals", mechanism).replace("made.csv", f"made.{ending}")
    )
    rows = "age,score,group\n" + lines(500)
    (tmp_path / "large.csv").write_text(rows)
    pq.write_table(arrow_csv.read_csv(tmp_path / "large.csv"), tmp_path / "large.parquet")
    command = [sys.executable, "-m", "dpsynth_cli", "release", "spec.yaml", "-q", "-i", f"large.{ending}"]
    ran = subprocess.run(
        [*command, "--ledger", "ledger.sqlite"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "fake")},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
