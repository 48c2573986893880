"""A file on a simulated disk: what processes see, what a power cut leaves, and who has it locked."""

from __future__ import annotations

import errno
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulator.machine import Machine

Write = tuple[int, bytes]  # at this place


class Node:
    """A file's content, under any names."""

    def __init__(self, data: bytes = b"", modified: int = 0) -> None:
        self.data, self.durable = bytearray(data), data
        self.since: list[Write] = []  # what was written since the last sync
        self.modified = modified
        self.holders: dict[File, bool] = {}  # who has it locked, and whether others may share it

    def write(self, at: int, data: bytes) -> None:
        _put(self.data, at, data)
        self.since.append((at, data))

    def after_a_power_cut(self, luck: random.Random) -> bytes:
        """What is found: the synced bytes, and of later writes none, the first ones, all, or any, torn."""
        kept = bytearray(self.durable)
        how = luck.randrange(4)
        some = luck.randrange(len(self.since) + 1)
        for i, (at, data) in enumerate(self.since):
            if how == 0 or (how == 1 and i >= some) or (how == 3 and luck.random() < 0.4):
                continue
            torn = how == 3 and luck.random() < 0.4
            _put(kept, at, data[: luck.randrange(len(data) + 1)] if torn else data)
        return bytes(kept)


def _put(data: bytearray, at: int, more: bytes) -> None:
    if len(data) < at:
        data.extend(bytes(at - len(data)))
    data[at : at + len(more)] = more


class File:
    """An open file of one process; what is written waits in its memory until it is flushed."""

    def __init__(self, machine: Machine, path: str, node: Node, at: int = 0, appends: bool = False) -> None:
        self.machine, self.path, self.node = machine, path, node
        self.at, self.appends, self.closed, self._buffer = at, appends, False, bytearray()
        self.owner = machine.scheduler.current
        if self.owner is not None:
            self.owner.files.append(self)

    def write(self, data: object) -> int:
        data = bytes(data)  # type: ignore[call-overload]
        self._buffer += data
        return len(data)

    def flush(self) -> None:
        if not self._buffer:
            return
        data, self._buffer = bytes(self._buffer), bytearray()
        self.machine.step("write", self.path)
        at = len(self.node.data) if self.appends else self.at
        room = self.machine.room()
        self.node.write(at, data if room else data[: len(data) // 2])
        self.node.modified = self.machine.tick()
        self.at = at + len(data)
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device", self.path)

    def read(self, size: int = -1) -> bytes:
        self.machine.step("read", self.path)
        data = bytes(self.node.data[self.at :] if size < 0 else self.node.data[self.at : self.at + size])
        self.at += len(data)
        return data

    def seek(self, at: int, whence: int = 0) -> int:
        self.at = at
        return at

    def tell(self) -> int:
        return self.at + len(self._buffer)

    def truncate(self, size: int) -> int:
        self.machine.step("truncate", self.path)
        del self.node.data[size:]
        self.node.durable = self.node.durable[:size]  # a cut that a power cut does not undo: the worse case
        self.node.since = [(at, data[: max(0, size - at)]) for at, data in self.node.since]
        return size

    def close(self) -> None:
        if not self.closed:
            try:
                self.flush()
            finally:
                self.closed = True
                self.unlock()

    def unlock(self) -> None:
        self.node.holders.pop(self, None)

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def __enter__(self) -> File:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
