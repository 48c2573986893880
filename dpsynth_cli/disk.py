"""Durable files: what a crash or a power cut must not undo, and what two processes must not do at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

from dpsynth_cli.errors import UsageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a file's own sync does not."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def lock(file: int | IO[Any], wait: bool = True, shared: bool = False) -> bool:
    """Lock a file or folder until it is closed or the process ends; False if another process has it.

    With `shared`, others who only want to share it may have it at the same time.
    """
    if fcntl is None:
        raise UsageError(
            "this system has no POSIX file locks, which keep two releases apart.",
            next_step="On Windows, run dpsynth in the Windows Subsystem for Linux.",
        )
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
