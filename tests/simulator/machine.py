"""A simulated disk and clock: each function has the name and the meaning of the one in `dpsynth_cli.disk`.

A file has bytes that processes see and bytes that a power cut leaves: those of its last `sync`, and of what
was written since any part, torn or out of order. A name is durable when its folder was synced; of later
changes a power cut keeps the first ones, or any of them. A rename is one change. What a process has not
flushed dies with it.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from tests.simulator.files import File, Node
from tests.simulator.scheduler import Scheduler

NAMES = (
    "create", "reopen", "append", "open_to_read", "read", "sync", "is_at", "replace", "link", "copy",
    "remove", "exists", "is_folder", "names", "add_folder", "sync_folder", "matching", "modified",
    "newest", "set_modified", "locked_folder", "lock", "now", "sleep", "process",
)  # fmt: skip
Change = dict[str, Node | None]  # names that are given, or taken away
_folder_of = lru_cache(os.path.dirname)


class Machine:
    """The disk, its locks and the clock of one machine."""

    def __init__(self, scheduler: Scheduler, folders: list[str]) -> None:
        self.scheduler = scheduler
        self.folders: dict[str, Node] = {folder: Node() for folder in folders}
        self.found: dict[str, Node] = {}  # files, as processes see them
        self.durable: dict[str, Node] = dict(self.folders)  # folders and files
        self.changes: list[Change] = []  # of names, since their folders were synced
        self.hard_links = True
        self.full = self.failing = 0  # so many more writes find no room; so many more syncs fail
        self.clock = datetime(2026, 1, 31, 23, 50, tzinfo=timezone.utc)
        self.published: list[tuple[str, bytes]] = []  # all that had a public name

    def step(self, what: str, path: object = "") -> None:
        self.scheduler.step()

    def tick(self) -> int:
        self.clock += timedelta(milliseconds=1)
        return int(self.clock.timestamp() * 1e9)

    def room(self) -> bool:
        self.full, room = max(0, self.full - 1), not self.full
        return room

    def _need_room(self, path: object) -> None:
        if not self.room():
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

    def _node(self, path: object) -> Node:
        node = self.found.get(str(path))
        if node is None:
            kind = errno.EISDIR if str(path) in self.folders else errno.ENOENT
            raise OSError(kind, os.strerror(kind), str(path))
        return node

    def _change(self, change: Change) -> None:
        for path, node in change.items():
            if node is not None and _folder_of(path) not in self.folders:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        _apply(self.found, change)
        self.changes.append(change)

    # --- files ---------------------------------------------------------------------------------------

    def create(self, path: Path, mode: int = 0o666, new: bool = False) -> File:
        self.step("create", path)
        name = str(path)
        node = self.found.get(name)
        if node is not None and new:
            raise FileExistsError(errno.EEXIST, "File exists", name)
        self._need_room(path)
        if node is None:
            node = Node(modified=self.tick())
            self._change({name: node})
        else:
            node.data.clear()
            node.durable, node.since = b"", []
        return File(self, name, node)

    def reopen(self, path: Path) -> File:
        self.step("open", path)
        return File(self, str(path), self._node(path))

    open_to_read = reopen

    def append(self, path: Path, mode: int = 0o666) -> File:
        self.step("open", path)
        if str(path) not in self.found:
            self._need_room(path)
            self._change({str(path): Node(modified=self.tick())})
        return File(self, str(path), self._node(path), appends=True)

    def read(self, path: Path) -> bytes:
        self.step("read", path)
        return bytes(self._node(path).data)

    def sync(self, file: File) -> None:
        file.flush()
        self.step("sync", file.path)
        if self.failing:
            self.failing -= 1
            raise OSError(errno.EIO, "Input/output error", file.path)
        file.node.durable, file.node.since = bytes(file.node.data), []

    def is_at(self, file: File, path: Path) -> bool:
        self.step("stat", path)
        return self.found.get(str(path)) is file.node

    # --- names ---------------------------------------------------------------------------------------

    def replace(self, path: Path, target: Path) -> None:
        self.step("replace", target)
        node = self._node(path)
        if self.found.get(str(target)) is node:  # POSIX: two names of one file stay as they are
            return
        self._change({str(path): None, str(target): node})
        if not target.name.startswith("."):
            self.published.append((str(target), bytes(node.data)))

    def link(self, path: Path, target: Path) -> None:
        self.step("link", target)
        if not self.hard_links:
            raise OSError(errno.EPERM, "Operation not permitted", str(target))
        node = self._node(path)
        if str(target) in self.found:
            raise FileExistsError(errno.EEXIST, "File exists", str(target))
        self._need_room(target)
        self._change({str(target): node})

    def copy(self, path: Path, target: Path) -> None:
        data = self.read(path)
        with self.create(target) as file:
            file.write(data)
            self.sync(file)

    def remove(self, path: Path) -> None:
        self.step("remove", path)
        if str(path) in self.found:
            self._change({str(path): None})

    def exists(self, path: Path) -> bool:
        self.step("stat", path)
        return str(path) in self.found or str(path) in self.folders

    def is_folder(self, path: Path) -> bool:
        return str(path) in self.folders

    def names(self, folder: Path) -> list[str]:
        self.step("list", folder)
        return sorted(os.path.basename(path) for path in self.found if _folder_of(path) == str(folder))

    def add_folder(self, folder: Path, mode: int = 0o777) -> None:
        self.step("make folder", folder)
        if str(folder) not in self.folders:
            self._need_room(folder)
            self.folders[str(folder)] = Node()
            self.changes.append({str(folder): self.folders[str(folder)]})

    def sync_folder(self, folder: Path) -> None:
        self.step("sync folder", folder)
        if self.failing:
            self.failing -= 1
            raise OSError(errno.EIO, "Input/output error", str(folder))
        later = []
        for change in self.changes:
            if any(_folder_of(path) == str(folder) for path in change):
                _apply(self.durable, change)
            else:
                later.append(change)
        self.changes = later

    def matching(self, pattern: str) -> list[str]:
        self.step("list", pattern)
        return sorted(path for path in (*self.folders, *self.found) if fnmatchcase(path, pattern))

    def modified(self, path: Path) -> int:
        self.step("stat", path)
        return self._node(path).modified

    def newest(self, path: Path) -> int:
        node = self.found.get(str(path))
        return node.modified if node else 0

    def set_modified(self, path: Path, seconds: float) -> None:
        self.step("set time", path)
        self._node(path).modified = int(seconds * 1e9)

    # --- locks, clock, process -----------------------------------------------------------------------

    @contextmanager
    def locked_folder(self, folder: Path) -> Iterator[None]:
        with File(self, str(folder), self.folders[str(folder)]) as file:
            self.lock(file)
            yield

    def lock(self, file: File, wait: bool = True, shared: bool = False) -> bool:
        self.step("lock", file.path)

        def free() -> bool:
            return not any(
                other is not file and not (shared and own) for other, own in file.node.holders.items()
            )

        if not free():
            if not wait:
                return False
            self.scheduler.wait(free)
        file.node.holders[file] = shared
        return True

    def now(self) -> datetime:
        self.tick()
        return self.clock

    def sleep(self, seconds: float) -> None:
        self.clock += timedelta(seconds=seconds)
        self.step("sleep")
        self.scheduler.pause()

    def process(self) -> int:
        return 100 + (self.scheduler.current.number if self.scheduler.current else 0)

    # --- accidents -----------------------------------------------------------------------------------

    def power_cut(self, seed: int) -> None:
        """All processes are gone; of what was not synced some is left."""
        self.scheduler.kill_all()
        luck = random.Random(seed)
        how, some = luck.randrange(4), luck.randrange(len(self.changes) + 1)
        for i, change in enumerate(self.changes):
            if how == 2 or (how == 1 and i < some) or (how == 3 and luck.random() < 0.6):
                _apply(self.durable, change)
        self.changes, self.full, self.failing = [], 0, 0
        kept = self.durable
        self.folders = {path: node for path, node in self.folders.items() if kept.get(path) is node}
        self.found = {
            path: node
            for path, node in kept.items()
            if path not in self.folders and _folder_of(path) in self.folders
        }
        for node in {id(node): node for node in self.found.values()}.values():
            node.data = bytearray(node.after_a_power_cut(luck))
            node.durable, node.since, node.holders = bytes(node.data), [], {}
        self.durable = self.folders | self.found
        for node in self.folders.values():
            node.holders = {}


def _apply(names: dict[str, Node], change: Change) -> None:
    for path, node in change.items():
        if node is None:
            names.pop(path, None)
        else:
            names[path] = node
