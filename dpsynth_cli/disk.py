"""The disk, the locks and the clock: every step of a release or a stream that a crash can come between.

Releases, streams and copies of ledgers touch files by these functions alone, always as `disk.NAME(...)`, so
that a test can put a simulated machine in their place (`tests/simulator`): one that loses what was not
synced, is full, stops anywhere, or has a clock that jumps. A ledger is the one thing beside it: its
transactions are a seam of their own (`trusted/ledger/chain.py`, `Place`).

What a power cut keeps: a file's bytes after `sync`, its name after `sync_folder`. `replace` is one step.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from glob import glob
from pathlib import Path
from typing import IO, Any, BinaryIO

from dpsynth_cli.errors import UsageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


# --- files -------------------------------------------------------------------------------------------


def create(path: Path, mode: int = 0o666, new: bool = False) -> BinaryIO:
    """An empty file, to be written and read; with `new` it is an error if there is one already."""
    flags = os.O_RDWR | os.O_CREAT | (os.O_EXCL if new else os.O_TRUNC)
    return os.fdopen(os.open(path, flags, mode), "w+b")


def reopen(path: Path) -> BinaryIO:
    """A file that is there, to be read and written, from its start."""
    return open(path, "r+b")


def append(path: Path, mode: int = 0o666) -> BinaryIO:
    """A file to be read, and written at its end; made if there is none."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode), "a+b")


def open_to_read(path: Path) -> BinaryIO:
    """A file, to be read piece by piece."""
    return open(path, "rb")


def read(path: Path) -> bytes:
    """All of a file."""
    return path.read_bytes()


def sync(file: BinaryIO) -> None:
    """Make the bytes of a file durable; its name is the folder's."""
    file.flush()
    os.fsync(file.fileno())


def is_at(file: BinaryIO, path: Path) -> bool:
    """Whether an open file is the one that has this name now."""
    return path.exists() and os.fstat(file.fileno()).st_ino == path.stat().st_ino


# --- names -------------------------------------------------------------------------------------------


def replace(path: Path, target: Path) -> None:
    """Give a file another name in one step; what had that name is gone."""
    os.replace(path, target)


def link(path: Path, target: Path) -> None:
    """A second name for a file; OSError where there are no hard links."""
    os.link(path, target)


def copy(path: Path, target: Path) -> None:
    """The same bytes, rights and time under another name, durable."""
    import shutil  # few need it: start-up time

    shutil.copy2(path, target)
    with reopen(target) as file:
        sync(file)


def remove(path: Path) -> None:
    """Take a name away, if it is there."""
    path.unlink(missing_ok=True)


def exists(path: Path) -> bool:
    return path.exists()


def is_folder(path: Path) -> bool:
    return path.is_dir()


def names(folder: Path) -> list[str]:
    """The names in a folder, in order; none if there is no such folder."""
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def add_folder(folder: Path, mode: int = 0o777) -> None:
    """A folder inside one that is there; another process may have made it."""
    folder.mkdir(exist_ok=True, mode=mode)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """A folder and those above it, durable: else a power cut could take it away with all that is in it.

    Each is synced before the next is made; of those that are there, the last may be as new: whoever made it
    was stopped before the sync.
    """
    if not exists(folder):
        make_folder(folder.parent)
        add_folder(folder, mode)
    with suppress(PermissionError):  # what only others may write to is theirs, and not new
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a file's own sync does not."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def matching(pattern: str) -> list[str]:
    """The names that a pattern with * ? [abc] has."""
    return sorted(glob(pattern))


def modified(path: Path) -> int:
    """When a file was last written to, in nanoseconds since 1970."""
    return path.stat().st_mtime_ns


def newest(path: Path) -> int:
    """The same of a file or of anything in a folder: folders too, as a file that is moved into one keeps its
    own time; 0 if there is nothing."""
    inside = path.rglob("*") if path.is_dir() else ()
    return max((one.stat().st_mtime_ns for one in (path, *inside) if one.exists()), default=0)


def set_modified(path: Path, seconds: float) -> None:
    os.utime(path, (seconds, seconds))


# --- locks -------------------------------------------------------------------------------------------


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """A folder for one process at a time; the others wait."""
    number = os.open(folder, os.O_RDONLY)
    try:
        lock(number)
        yield
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


# --- the clock and the process -----------------------------------------------------------------------


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(timezone.utc)


def today() -> str:
    """The day, in UTC, as documents say it."""
    return now().date().isoformat()


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def process() -> int:
    """A number that no other process of this machine has now."""
    return os.getpid()
