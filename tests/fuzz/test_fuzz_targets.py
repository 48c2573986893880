"""Every reader: real files are read, and files with a few things wrong are read or refused in words."""

from __future__ import annotations

import random

import pytest

from dpsynth_cli.errors import FileError
from dpsynth_cli.trusted.ledger.ledger import Ledger
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import TARGETS, examples, tried


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    return folder, examples(folder)


@pytest.mark.parametrize("name", TARGETS)
def test_files_are_read_and_what_is_cut_off_is_refused(name, real):
    folder, files = real
    assert all(tried(name, data, folder) for data in files[name])
    pieces = [data[: len(data) * part // 8] for data in files[name] for part in range(8)]
    read = [tried(name, data, folder) for data in pieces]
    if name not in ("partial", "state"):  # which are None where they cannot be read
        assert False in read


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in TARGETS if name != "parquet"]
)  # pyarrow may end the process
def test_files_with_a_few_things_wrong_are_read_or_refused(name, real):
    folder, files = real
    luck = random.Random(7)
    read = [tried(name, mutated(luck.choice(files[name]), luck), folder) for _ in range(2000)]
    if name not in ("partial", "state"):  # which are None where they cannot be read
        assert False in read


def test_a_reader_that_fails_is_found(real, monkeypatch):
    folder, files = real
    monkeypatch.setattr("dpsynth_cli.release.record.transcript._answer", lambda *words: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tried("transcript", files["transcript"][0], folder)


def test_a_ledger_whose_damage_is_no_text_is_told(real):
    """SQLite quotes it in its own words, which Python then cannot read."""
    folder, files = real
    broken = files["ledger"][0].replace(b"entries_by_release", b"\xf2ntries_by_release", 1)
    path = folder / "broken.sqlite"
    path.write_bytes(broken)
    with pytest.raises(FileError, match="it holds what is no text"):
        Ledger(path).verify()
