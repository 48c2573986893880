"""Engines give the same integers to the last bit, whatever the parts, the workers and their deaths."""

from __future__ import annotations

import gzip
import io
import logging
import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth_cli.domain import Column, CsvOptions, Domain
from dpsynth_cli.errors import DpsynthError, FileError
from dpsynth_cli.questions import CellCounts, Cells, Halves, Question
from dpsynth_cli.release.files.write import decode, write_table
from dpsynth_cli.trusted.engines import dask, dask_shuffle, local, summed
from dpsynth_cli.trusted.rows.label_counts import Labelled, LabelShelves
from dpsynth_cli.trusted.rows.problems import Problems, count_problems
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.rows.unit_marks import Units, unit_column
from dpsynth_cli.trusted.rows.unit_rows import Marked, Truncation
from dpsynth_cli.trusted.sums.tally import Tally
from tests.trusted.rows.test_read import COLUMNS, HEADER, JUNK
from tests.trusted.sums.test_tally import MISFITS, OMEGA, misfit, some_rows, sums
from tests.trusted.sums.test_tally import QUESTIONS as SUMS

ROWS = 5_000
QUESTIONS = [*SUMS, *MISFITS]
KINDS = ["csv", "parquet", "folder"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> dict[str, Path]:
    """The same rows as CSV, as Parquet in many row groups, and as a folder of Parquet files."""
    folder = tmp_path_factory.mktemp("tables")
    codes = some_rows(np.random.default_rng(8), ROWS)
    write_table(str(folder / "rows.csv"), OMEGA.columns, [codes], ROWS).publish()
    table = pa.table({c.name: decode(codes[c.name], c) for c in OMEGA})
    pq.write_table(table, folder / "rows.parquet", row_group_size=300)
    (folder / "many").mkdir()
    for number, start in enumerate(range(0, ROWS, 700)):
        pq.write_table(table.slice(start, 700), folder / "many" / f"{number}.parquet", row_group_size=400)
    return {"csv": folder / "rows.csv", "parquet": folder / "rows.parquet", "folder": folder / "many"}


def assert_same(found, expected) -> None:
    assert found[1] == expected[1]
    assert [s.dtype for s in found[0]] == [s.dtype for s in expected[0]]
    assert all(map(np.array_equal, found[0], expected[0]))


# --- parts ----------------------------------------------------------------------------------------


def codes_of(scan: Scan) -> np.ndarray:
    blocks = [scan.encode(piece) for piece in scan.pieces()]
    return np.concatenate([np.stack(list(block.values())) for block in blocks], axis=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [3_000, 20_000, 2**40])
def test_parts_share_the_rows_of_a_table_in_their_order(tables, kind, size):
    scan = open_scan(str(tables[kind]), OMEGA.columns)
    parts = list(scan.parts(size))
    assert (len(parts) > 2) == (kind == "folder" or size < 2**40)
    assert np.array_equal(np.concatenate([codes_of(part) for part in parts], axis=1), codes_of(scan))
    assert sum(part.count_rows() for part in parts) == ROWS


@pytest.mark.parametrize("size", range(1, 60, 7))
def test_a_part_of_csv_ends_where_a_line_ends_whatever_is_in_it(tmp_path, size):
    path = tmp_path / "junk.csv"
    path.write_bytes(HEADER + b"\n".join([*JUNK, b"x" * 90, *JUNK]))  # and no newline at the end
    scan = open_scan(str(path), COLUMNS, _block=64, _max_line=50)
    parts = list(scan.parts(size))
    assert len(parts) > 3
    found = np.concatenate([codes_of(part) for part in parts if part.count_rows()], axis=1)
    # Lines that are ruined come last in a block: compare the rows, not their order.
    assert sorted(map(tuple, found.T)) == sorted(map(tuple, codes_of(scan).T))
    assert sum(part.size for part in parts) == path.stat().st_size - len(HEADER)


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_the_local_engine_gives_the_same_sums_with_any_number_of_workers(tables, kind, workers):
    scan = open_scan(str(tables[kind]), OMEGA.columns, _block=3_000)
    codes = dict(zip((c.name for c in OMEGA), codes_of(scan), strict=True))
    assert_same(local.sum_over(scan, OMEGA, QUESTIONS, workers=workers), (sums(codes, QUESTIONS), ROWS))


def test_a_signal_while_workers_finish_leaves_none_of_them_behind(tables, monkeypatch):
    """SIGTERM raises in the main thread, which waits for them; Python would crash under one that goes on."""
    scan = open_scan(str(tables["csv"]), OMEGA.columns, CsvOptions())
    encode, ended = scan.encode, []

    def slow(piece, counted):
        time.sleep(0.3)  # until the reader is at its end and waits
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.3)
        ended.append(encode(piece))
        return ended[-1]

    monkeypatch.setattr(scan, "encode", slow)
    before = signal.signal(signal.SIGUSR1, lambda *_: sys.exit(143))
    try:
        with pytest.raises(SystemExit):
            local.sum_over(scan, OMEGA, QUESTIONS)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(ended) == 1


def test_the_kernel_is_the_local_engine_on_one_thread(tables):
    scan = open_scan(str(tables["parquet"]), OMEGA.columns)
    for questions in (QUESTIONS, QUESTIONS[:1]):
        tally = Tally(questions, OMEGA)
        tally.merge(summed(scan, OMEGA, questions))
        assert_same((tally.sums(), tally.rows), local.sum_over(scan, OMEGA, questions))


# --- Dask, on a cluster of processes ---------------------------------------------------------------


@pytest.fixture(scope="module")
def engine():
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'dpsynth-cli[dask]'")
    with dask.dask_engine(workers=2) as engine:
        yield engine


@pytest.mark.parametrize("kind", KINDS)
def test_dask_gives_the_sums_of_the_local_engine_to_the_last_bit(tables, engine, kind):
    scan = open_scan(str(tables[kind]), OMEGA.columns)
    seen: list[int] = []
    for questions in (QUESTIONS, QUESTIONS[:1]):  # the second needs no column
        found = engine.sum_over(scan, OMEGA, questions, seen.append, part_size=20_000)
        assert_same(found, local.sum_over(scan, OMEGA, questions))
    assert len(seen) > 2 * 3
    assert sum(seen) == pytest.approx(2 * scan.size, rel=0.01)


@pytest.mark.parametrize(("kind", "readings"), [*((kind, 1) for kind in KINDS), (KINDS[0], 3)])
def test_dask_keeps_the_same_rows_of_each_unit_as_the_local_engine(
    tables, engine, kind, readings, monkeypatch
):
    """The first column says whose a row is: most of its values have more than two rows. Also where not all
    rows would fit in the workers' memory."""
    monkeypatch.setattr(dask_shuffle, "_readings", lambda client, size: readings)
    unit, *others = OMEGA.columns
    omega = Domain(tuple(others), unit_rows=3)
    scan = open_scan(str(tables[kind]), (*others, unit_column(unit.name)))
    marked = Marked(scan, omega.columns, Units(unit.name, 3, "c3" * 32, others[0].name))
    found = []
    for gather, options in ((local.gather, {}), (engine.gather, {"part_size": 20_000})):
        with closing(Truncation(marked, keeps=True)) as truncation:
            gather(truncation, **options)
            tables = truncation.kept()
            with closing(tables[0]), closing(tables[1]), closing(tables[2]):
                found.append((truncation.rows, *map(sorted_codes, tables)))
    assert found[0][0] == found[1][0] == ROWS > found[0][1].shape[1] > found[0][2].shape[1]
    assert all(np.array_equal(*pair) for pair in zip(found[0][1:], found[1][1:], strict=True))


def sorted_codes(kept) -> np.ndarray:
    codes = np.concatenate([np.stack(list(kept.encode(piece).values())) for piece in kept.pieces()], axis=1)
    return codes[:, np.lexsort(codes)]


@pytest.mark.parametrize("kind", KINDS)
def test_dask_counts_the_same_labels_as_the_local_engine(tables, engine, kind):
    """Of rows, and of units, each at one of its labels."""
    unit, *others = OMEGA.columns
    columns = [Column(column.name, "nominal") for column in others if column.categorical]
    scan = open_scan(str(tables[kind]), (*columns, unit_column(unit.name)))
    for units in (None, Units(unit.name, 2, "c3" * 32)):
        found = []
        for gather, options in ((local.gather, {}), (engine.gather, {"part_size": 20_000})):
            with closing(LabelShelves(Labelled(scan, columns, units))) as shelves:
                gather(shelves, **options)
                found.append(
                    {
                        (place, label): count
                        for place, labels, counts in shelves.counts()
                        for label, count in zip(labels.tolist(), counts.tolist(), strict=True)
                    }
                )
        assert found[0] == found[1]
        assert {place for place, _ in found[0]} == set(range(len(columns)))


def test_dask_counts_the_same_cells_that_are_not_as_declared(tmp_path, engine):
    """A ragged record, a label that is not listed, a word for a number: in parts, on workers, as here."""
    path = tmp_path / "junk.csv"
    path.write_bytes(HEADER + b"\n".join([*JUNK * 200, b'"$1,234",,a,89%', b""]))
    scan = open_scan(str(path), COLUMNS)
    omega = Domain(COLUMNS)
    asked = [Question("a", CellCounts(Cells((Halves(c.name, 1),))), Fraction(1, 9)) for c in COLUMNS]
    here, there = (Problems.of(column.name for column in COLUMNS) for _ in range(2))
    expected = local.sum_over(scan, omega, asked, counted=here)
    assert_same(engine.sum_over(scan, omega, asked, counted=there, part_size=2_000), expected)
    assert there.as_json() == here.as_json() == count_problems(scan).as_json()
    assert there.ruined > 100
    assert there.columns["age"].forms["currency sign"] == 1


def test_workers_are_not_sent_what_was_expected(tables, engine):
    """They only count: it would be sent with every part."""
    client, sent = engine.sum_over.args[0], []

    class Watching:
        nthreads = client.nthreads

        def submit(self, work, part, **more):
            sent.append(len(pickle.dumps(work)))
            return client.submit(work, part, **more)

    question = misfit((Cells((Halves("t", 12), Halves("x", 4))),) * 2)
    scan = open_scan(str(tables["parquet"]), OMEGA.columns)
    found = dask.sum_over(Watching(), scan, OMEGA, [question])
    assert_same(found, local.sum_over(scan, OMEGA, [question]))
    assert len(pickle.dumps(question)) > 200_000
    assert 0 < max(sent) < 10_000


def test_dask_reads_an_empty_table(tmp_path, engine):
    path = tmp_path / "none.csv"
    path.write_text(",".join(column.name for column in OMEGA) + "\n")
    scan = open_scan(str(path), OMEGA.columns)
    assert_same(engine.sum_over(scan, OMEGA, QUESTIONS), local.sum_over(scan, OMEGA, QUESTIONS))


@dataclass
class Changed:
    """A scan whose parts do something of their own on the worker."""

    scan: Scan
    what: str
    mark: Path

    def __getattr__(self, name: str):
        if name.startswith("__") or "scan" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.scan, name)

    def parts(self, size: int) -> Iterator[Scan]:
        for number, part in enumerate(self.scan.parts(size)):
            yield Changed(part, self.what if number == 1 else "", self.mark)

    def only(self, names) -> Scan:
        return Changed(self.scan.only(names), self.what, self.mark)

    def pieces(self):
        for piece in self.scan.pieces():
            yield piece
            if self.what == "die" and not self.mark.exists():  # once, with rows already counted
                self.mark.write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)
            if self.what == "raise":
                raise ValueError("private-cell")


def test_a_part_whose_worker_is_killed_is_read_again_and_nothing_is_counted_twice(tables, engine, tmp_path):
    scan = open_scan(str(tables["parquet"]), OMEGA.columns)
    deadly = Changed(scan, "die", tmp_path / "killed")
    found = engine.sum_over(deadly, OMEGA, QUESTIONS, part_size=10_000)
    assert int((tmp_path / "killed").read_text()) != os.getpid()
    assert_same(found, local.sum_over(scan, OMEGA, QUESTIONS))


def test_an_error_on_a_worker_tells_its_place_and_never_its_text(tables, engine, tmp_path):
    scan = Changed(open_scan(str(tables["parquet"]), OMEGA.columns), "raise", tmp_path)
    with pytest.raises(DpsynthError) as caught:
        engine.sum_over(scan, OMEGA, QUESTIONS, part_size=10_000)
    assert "a worker failed: ValueError in test_engines.py, line " in str(caught.value)
    assert "private-cell" not in str(caught.value)


def test_a_file_that_changes_is_told_like_on_one_machine(tables, engine, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(tables["csv"].read_bytes())
    scan = open_scan(str(path), OMEGA.columns)
    path.write_bytes(tables["csv"].read_bytes() + b"1,2,3,r,true\n")
    with pytest.raises(FileError) as caught:
        engine.sum_over(scan, OMEGA, QUESTIONS)
    assert str(caught.value) == (
        f"{path} changed while it was read.\nRelease from a copy that nothing writes to."
    )


# --- the command line -----------------------------------------------------------------------------


def test_without_dask_one_line_says_what_to_install(dpsynth, people, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    ran = dpsynth("release", people(), "--engine", "dask")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "Error: --engine dask needs Dask, which is not installed.\n"
        "Nothing was read and nothing was spent. Install it: pip install 'dpsynth-cli[dask]'\n"
    )


def test_an_engine_that_is_not_there_and_an_address_for_one_machine(dpsynth, people):
    spec = people()
    ran = dpsynth("release", spec, "--engine", "spark")
    assert (ran.code, ran.err) == (
        2,
        "Error: there is no engine 'spark'.\n"
        "Nothing was read and nothing was spent. Engines are local and dask.\n",
    )
    ran = dpsynth("release", spec, "--engine-address", "tcp://host:8786")
    assert (ran.code, "is for --engine dask" in ran.err) == (2, True)


@pytest.fixture
def cluster():
    """Starts a cluster as somebody else would, in threads of this process; returns its address."""
    distributed = pytest.importorskip("distributed")
    import dask as dask_itself

    started: dict[bool, Any] = {}

    def start(spilling: bool = False) -> str:
        if spilling in started:
            return started[spilling].scheduler_address
        settings = {f"distributed.worker.memory.{what}": 0.7 if spilling else False for what in dask.SPILLING}
        with dask_itself.config.set(settings):
            started[spilling] = distributed.LocalCluster(
                n_workers=1,
                processes=False,
                protocol="tcp",
                memory_limit="2GiB",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
        return started[spilling].scheduler_address

    yield start
    for one in started.values():
        one.close()


def test_release_on_a_cluster_at_an_address(dpsynth, people, tmp_path, cluster):
    ran = dpsynth("release", people(), "--engine", "dask", "--engine-address", cluster(), "--json")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    assert dpsynth("verify", "out/people.audit.public.json").code == 0
    address = cluster(spilling=True)
    ran = dpsynth("release", "spec.yaml", "--engine", "dask", "--engine-address", address)
    assert ran.code == 2
    assert ran.err == (
        f"Error: the cluster at {address} may write results to its disk, and partial sums are raw data.\n"
        "Nothing was read and nothing was spent. Start its workers with "
        "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET=False DASK_DISTRIBUTED__WORKER__MEMORY__SPILL=False\n"
    )
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress((tmp_path / "people.csv").read_bytes()))
    before = dpsynth("budget", "log", "--json").json
    for more in (["-i", "people.csv.gz"], ["--set", "csv.multiline=true"]):
        ran = dpsynth(
            "release", "spec.yaml", "--engine", "dask", "--engine-address", cluster(), "--replace", *more
        )
        assert (ran.code, "--engine dask cannot cut " in ran.err) == (2, True)
    assert dpsynth("budget", "log", "--json").json == before


def test_no_scheduler_at_the_address(dpsynth, people, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask, "CONNECT", 1)
    ran = dpsynth("release", people(), "--engine", "dask", "--engine-address", "tcp://127.0.0.1:1")
    assert ran.code == 2
    assert "there is no Dask scheduler at tcp://127.0.0.1:1 that answers.\nNothing was read" in ran.err


def test_what_has_no_parts(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text(",".join(column.name for column in OMEGA) + "\n")
    assert open_scan(str(path), OMEGA.columns).whole == ""
    assert open_scan(str(path), OMEGA.columns, CsvOptions(multiline=True)).whole == "CSV with csv.multiline"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    assert open_scan("-", OMEGA.columns).whole == "standard input or a pipe"
