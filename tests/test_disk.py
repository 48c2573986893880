"""Locks and syncs."""

from __future__ import annotations

import pytest

from dpsynth_cli import disk
from dpsynth_cli.trusted.ledger.ledger import Ledger


def test_a_lock_keeps_others_out_until_it_is_closed(tmp_path):
    path = tmp_path / "file"
    with open(path, "w") as one:
        assert disk.lock(one)
        with open(path) as other:
            assert not disk.lock(other, wait=False)
    with open(path) as other:
        assert disk.lock(other, wait=False)


def test_a_system_without_locks_is_told_what_to_do(dpsynth, people, monkeypatch):
    monkeypatch.setattr(disk, "fcntl", None)
    ran = dpsynth("release", people())
    assert ran.code == 2
    assert "this system has no POSIX file locks" in ran.err
    assert "Nothing was read and nothing was spent." in ran.err
    assert "Windows Subsystem for Linux" in ran.err
    assert "reserve" not in dpsynth("budget", "log", "--json").out


def test_a_new_folder_is_durable_before_anything_is_in_it(tmp_path, monkeypatch):
    """Each one above it is synced before the next is made; one that is there already may be as new."""
    seen, sync, add = [], disk.sync_folder, disk.add_folder
    monkeypatch.setattr(disk, "sync_folder", lambda folder: (seen.append(("sync", folder)), sync(folder)))
    monkeypatch.setattr(disk, "add_folder", lambda *words: (seen.append(("make", words[0])), add(*words)))
    path = tmp_path / "a" / "b" / "ledger.sqlite"
    Ledger(path).create()
    assert seen == [
        ("sync", tmp_path.parent),
        ("make", tmp_path / "a"),
        ("sync", tmp_path),
        ("make", tmp_path / "a/b"),
        ("sync", tmp_path / "a"),
    ]
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_is_not_there_cannot_be_synced(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        disk.sync_folder(tmp_path / "nowhere")
