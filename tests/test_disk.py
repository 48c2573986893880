"""Locks and syncs."""

from __future__ import annotations

import pytest

from dpsynth_cli import disk


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


def test_a_folder_that_is_not_there_cannot_be_synced(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        disk.sync_folder(tmp_path / "nowhere")
