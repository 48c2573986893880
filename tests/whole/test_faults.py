"""Accidents at any point of a release: nothing half-written under a final name, the ledger right, and a
message that says what to do."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import tempfile
import warnings
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

import dpsynth_cli.release.table as releases
from dpsynth_cli import disk
from dpsynth_cli.hashing import sha256
from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.rows import parquet as form
from tests.whole.stricken import STRUCK, struck

FINAL = ("people.csv", "people.transcript.arrow", "people.audit.json", "people.audit.public.json")
RELEASE = ["release", "spec.yaml"]


def copies(tmp_path: Path, count: int) -> list[Path]:
    """The test's folder so many times."""
    made = []
    for i in range(count):
        folder = tmp_path / f"copy{i}"
        folder.mkdir()
        for name in ("people.csv", "spec.yaml", "ledger.sqlite"):
            if (tmp_path / name).exists():
                shutil.copy(tmp_path / name, folder / name)
        made.append(folder)
    return made


def job(folder: Path, fault: str, at: int, words: list[str] = RELEASE) -> dict:
    return {"folder": str(folder), "words": words, "fault": fault, "at": at}


def charges(folder: Path) -> int:
    """Releases that the ledger holds as spent, after its chain has been checked."""
    path = folder / "ledger.sqlite"
    if not path.exists() or not path.stat().st_size:  # stopped before there was one
        return 0
    with Ledger(path) as ledger:
        assert ledger.verify() == []
        kinds = [entry.kind for entry in ledger.log()]
    return kinds.count("reserve") - kinds.count("abort")


def check_whole(folder: Path) -> None:
    """What stands under a final name is whole; table and transcript are those of the audit."""
    out = folder / "out"
    if (out / "people.transcript.arrow").exists():
        _, digest = load(out / "people.transcript.arrow")
        if (out / "people.audit.public.json").exists():
            audit = json.loads((out / "people.audit.public.json").read_text())
            assert audit["transcript"]["sha256"] == digest
            if (out / "people.csv").exists():
                assert audit["output"]["sha256"] == sha256((out / "people.csv").read_bytes())
    else:
        assert not (out / "people.csv").exists()


def check_mended(dpsynth, monkeypatch, folder: Path) -> None:
    """The release can be finished, or done again; then everything fits."""
    before = charges(folder)
    assert before <= 1
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DPSYNTH_LEDGER", str(folder / "ledger.sqlite"))
    unfinished = list((folder / "out").glob(".people.*.partial"))
    whole = all((folder / "out" / name).exists() for name in FINAL)
    if unfinished:
        ran = dpsynth("release", "spec.yaml", "--resume")
        assert ran.code == 0, ran.err
        assert charges(folder) == 1, "resuming charged again"
    elif not whole:
        assert dpsynth("release", "spec.yaml").code == 0
    ran = dpsynth("verify", "out/people.audit.json")
    assert ran.code == 0, ran.err
    assert dpsynth("budget", "verify").code == 0
    left = [path.name for path in (folder / "out").iterdir() if path.name not in FINAL]
    assert all(name.endswith(".tmp") or ".people." in name for name in left), left


def struck_anywhere(dpsynth, people, tmp_path, monkeypatch, fault: str, count: int, mechanism: str) -> None:
    people(mechanism, rows=40)
    (first,) = copies(tmp_path, 1)
    ((code, said),) = struck([job(first, "count", 0)])
    assert code == 0, said
    calls = int(said.rsplit("calls: ")[1])
    assert calls > 1000
    shutil.rmtree(first)
    rng = random.Random()
    points = [rng.randrange(1, calls) for _ in range(count)]
    folders = copies(tmp_path, count)
    ends = struck([job(folder, fault, at) for folder, at in zip(folders, points, strict=True)])
    for folder, (code, said), at in zip(folders, ends, points, strict=True):
        where = f"{fault} at call {at} of {calls}: {code} {said}"
        # A run has more or fewer calls by its noise: one that was over before is a whole release.
        over = code == 0 and STRUCK not in said
        assert over or code == (-signal.SIGKILL if fault == "kill" else 143), where
        assert "Traceback" not in said, where
        assert code != 143 or "nterrupted." in said, where
        if (
            fault == "term"
            and charges(folder)
            and not all((folder / "out" / name).exists() for name in FINAL)
        ):
            assert "was spent" in said, where
        check_whole(folder)
        check_mended(dpsynth, monkeypatch, folder)


@pytest.mark.parametrize("fault", ["kill", "term"])
def test_stopped_at_random_points(dpsynth, people, tmp_path, monkeypatch, fault):
    struck_anywhere(dpsynth, people, tmp_path, monkeypatch, fault, 5, "pmm")


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["marginals", "psmm"])
@pytest.mark.parametrize("fault", ["kill", "term"])
def test_stopped_at_many_random_points(dpsynth, people, tmp_path, monkeypatch, fault, mechanism):
    struck_anywhere(dpsynth, people, tmp_path, monkeypatch, fault, 150, mechanism)


def test_a_full_disk_at_any_file(dpsynth, people, tmp_path, monkeypatch):
    """No file may grow beyond a limit: from the first page of the ledger to the last byte of the table."""
    people("marginals", rows=40)
    limits = [0, 4096, 33_000, 60_000]
    folders = copies(tmp_path, len(limits))
    more = [*RELEASE, "--rows", "5000"]
    ends = struck([job(folder, "disk", at, more) for folder, at in zip(folders, limits, strict=True)])
    for folder, (code, said), at in zip(folders, ends, limits, strict=True):
        where = f"limit {at}: {code} {said}"
        assert code == 5, where
        assert "Traceback" not in said, where
        assert "spent" in said, where
        check_whole(folder)
        assert not (folder / "out/people.csv").exists(), where
        monkeypatch.chdir(folder)
        monkeypatch.setenv("DPSYNTH_LEDGER", str(folder / "ledger.sqlite"))
        unfinished = list((folder / "out").glob(".people.*.partial")) if (folder / "out").exists() else []
        ran = dpsynth(*more, *(["--resume"] if unfinished else []))
        assert ran.code == 0, (where, ran.err)
        assert dpsynth("verify", "out/people.audit.json").code == 0


def test_too_little_memory(dpsynth, people, tmp_path):
    """The tree of counts does not fit: what it cost is said, and a finish costs nothing more."""
    people("pmm", rows=40)
    deep = [*RELEASE, "--set", "mechanism.depth=22"]
    ((code, said),) = struck([job(tmp_path, "memory", 150 << 20, deep)])
    assert code == 5, said
    assert said == (
        "Error: there is not enough memory.\nepsilon = 1 of people was spent. Free some, or release "
        "fewer columns, cells or rows. Then finish it with the same command and --resume: that costs nothing "
        "more.\n"
    )
    check_whole(tmp_path)
    assert dpsynth(*deep, "--resume").code == 0
    assert charges(tmp_path) == 1


@pytest.fixture
def open_folder(people, tmp_path):
    """A folder that every user may enter, with a table and a spec."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        people("marginals", rows=40)
        for file in ("people.csv", "spec.yaml"):
            shutil.copy(tmp_path / file, folder / file)
            (folder / file).chmod(0o644)
        yield folder
        folder.chmod(0o700)


def test_folders_files_and_ledgers_without_rights(open_folder):
    def tried() -> tuple[int, str]:
        ((code, said),) = struck([job(open_folder, "rights", 0)])
        assert "Traceback" not in said
        return code, said

    (open_folder / "out").mkdir()
    code, words = tried()
    assert code == 5
    assert "cannot write to" in words
    assert "Nothing was read and nothing was spent." in words
    (open_folder / "out").chmod(0o777)
    (open_folder / "people.csv").chmod(0o600)
    if os.geteuid() == 0:  # else the owner still reads it
        code, words = tried()
        assert code == 5
        assert "people.csv" in words
        assert "Nothing was read and nothing was spent." in words
    (open_folder / "people.csv").chmod(0o644)
    with Ledger(open_folder / "ledger.sqlite") as ledger:
        ledger.grant("people", "1", "add_remove")
    (open_folder / "ledger.sqlite").chmod(0o444)
    open_folder.chmod(0o555)
    code, words = tried()
    assert code == 5
    assert "cannot be written by this user" in words
    assert "Nothing was read and nothing was spent." in words
    assert not any((open_folder / "out").iterdir())


def test_the_input_vanishes_after_the_charge(dpsynth, people, tmp_path, monkeypatch):
    people("marginals")
    sum_over = releases.sum_over

    def gone(*words):
        (tmp_path / "people.csv").unlink(missing_ok=True)
        return sum_over(*words)

    with monkeypatch.context() as patched:
        patched.setattr(releases, "sum_over", gone)
        ran = dpsynth("release", "spec.yaml")
    assert ran.code == 5
    assert "people.csv" in ran.err
    assert "epsilon = 1 of people was spent" in ran.err
    people("marginals")
    assert dpsynth("release", "spec.yaml", "--resume").code == 0
    assert charges(tmp_path) == 1


def test_a_parquet_footer_that_ends_the_process_costs_nothing(dpsynth, people, tmp_path, monkeypatch):
    """As pyarrow can, where a doctored one does not fit its columns. It is read before the charge."""
    spec = people("marginals")
    parquet.write_table(csv.read_csv(tmp_path / "people.csv"), tmp_path / "people.parquet")
    spec.write_text(spec.read_text().replace("input: people.csv", "input: people.parquet"))
    before = sorted(path.name for path in tmp_path.iterdir())
    with monkeypatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patched.setattr(form, "footer", lambda *words: os.kill(os.getpid(), signal.SIGKILL))
        child = os.fork()
        if child == 0:
            dpsynth("release", "spec.yaml")
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert charges(tmp_path) == 0
    assert {path.name for path in tmp_path.iterdir()} <= {*before, "ledger.sqlite", "out"}
    assert dpsynth("release", "spec.yaml").code == 0
    assert charges(tmp_path) == 1


def test_clocks_that_disagree(dpsynth, people, tmp_path, monkeypatch):
    """Machines that share a ledger may be years apart: order is by entry, never by time."""
    spec = people("marginals", "0.5")
    assert dpsynth("budget", "grant", "people", "1").code == 0

    class Elsewhere(datetime):
        days = 0

        @classmethod
        def now(cls, zone=None):
            return datetime.now(timezone.utc) + timedelta(days=cls.days)

    monkeypatch.setattr(disk, "datetime", Elsewhere)
    for days in (-4000, 4000):
        Elsewhere.days = days
        assert dpsynth("release", spec, "--replace").code == 0
        assert dpsynth("verify", "out/people.audit.json").code == 0
    ran = dpsynth("release", spec, "--replace")
    assert ran.code == 3
    assert dpsynth("budget", "verify").code == 0


def damaged(data: bytes, count: int, rng: random.Random) -> list[bytes]:
    """Bytes flipped, cut off, doubled, removed."""
    made = []
    for i in range(count):
        at = rng.randrange(1, len(data))
        flipped = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        made.append((flipped, data[:at], data[:at] + data, data[:at] + data[at + 16 :])[i % 4])
    return made


def damaged_transcripts(dpsynth, people, tmp_path, count: int) -> None:
    assert dpsynth("release", people("marginals", rows=40)).code == 0
    path = tmp_path / "out/people.transcript.arrow"
    for data in damaged(path.read_bytes(), count, random.Random(5)):
        path.write_bytes(data)
        ran = dpsynth("verify", "out/people.audit.json")
        assert (ran.code, "Traceback" in ran.err) == (4, False), ran.err
        # `sample` has no audit to compare with: it draws from what it can read, or says that it cannot.
        ran = dpsynth("sample", path, "-n", 5, "-o", tmp_path / "more.csv")
        assert ran.code in (0, 4, 5), ran.err
        (tmp_path / "more.csv").unlink(missing_ok=True)


def test_a_damaged_transcript_is_told(dpsynth, people, tmp_path):
    damaged_transcripts(dpsynth, people, tmp_path, 32)


@pytest.mark.parametrize("column", [None, pa.array(["a", "b"]), pa.array([1.5, 2.5])])
def test_answers_that_are_no_whole_numbers_are_told(dpsynth, people, tmp_path, column):
    """Found by fuzzing: a schema without its column is still a file of Arrow."""
    assert dpsynth("release", people("marginals", rows=40)).code == 0
    path = tmp_path / "out/people.transcript.arrow"
    with pa.ipc.open_file(path.read_bytes()) as reader:
        metadata, count = reader.schema.metadata, reader.num_record_batches
    fields = [] if column is None else [pa.field("value", column.type)]
    batch = pa.RecordBatch.from_arrays([] if column is None else [column], schema=pa.schema(fields, metadata))
    with pa.ipc.new_file(path, batch.schema) as writer:
        for _ in range(count):
            writer.write_batch(batch)
    ran = dpsynth("sample", path, "-n", 5, "-o", "more.csv")
    assert (ran.code, "is not a whole dpsynth transcript" in ran.err) == (4, True), ran.err


@pytest.mark.slow
def test_many_damaged_transcripts_are_told(dpsynth, people, tmp_path):
    damaged_transcripts(dpsynth, people, tmp_path, 3000)


def test_a_damaged_audit_or_unfinished_release_is_told(dpsynth, people, tmp_path):
    assert dpsynth("release", people("marginals", rows=40)).code == 0
    path = tmp_path / "out/people.audit.json"
    whole = path.read_bytes()
    for data in [b"", b"{", b"[]", b"null", whole[: len(whole) // 2], b"\xff" * 100, b'{"dpsynth_audit": 1}']:
        path.write_bytes(data)
        ran = dpsynth("verify", path)
        assert ran.code in (4, 5), ran.err
        assert "bug" not in ran.err
