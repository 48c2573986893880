"""Random words for noise: AES-256 in counter mode under a key from the operating system.

There is no seed. The words are uniform and independent for everybody who cannot break AES, so the privacy
guarantee that rests on them is computational.
"""

from __future__ import annotations

import os
import threading
import weakref
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 16  # words drawn together: they stay in the processor's cache


class Words(Protocol):
    """Independent uniform random words."""

    def words16(self, n: int) -> NDArray[np.uint16]: ...

    def words64(self, n: int) -> NDArray[np.uint64]: ...


class SystemSource:
    """Random words from AES-256-CTR under a key of the operating system; safe to share among threads.

    The key lives in memory only: it cannot be set, read, copied or pickled. A forked child gets a new
    one at the fork, so that parent and child never share noise.
    """

    _ZEROS = memoryview(bytes(2 * CHUNK))  # encrypting zeros gives the key stream
    _SMALL = 1 << 13  # bytes kept for small requests; large ones are encrypted to measure

    def __init__(self) -> None:
        self._key()
        _sources.add(self)

    def _key(self) -> None:
        # Imported here: start-up time of the commands that draw no noise.
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._lock = threading.Lock()  # a new one: at the fork another thread may have held the old one
        self._stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
        self._kept = memoryview(b"")

    def _bytes(self, n: int) -> memoryview:
        """n bytes that nobody else gets."""
        with self._lock:
            if n > len(self._ZEROS):
                return memoryview(self._stream.update(bytes(n)))
            if n > self._SMALL:
                return memoryview(self._stream.update(self._ZEROS[:n]))
            if n > len(self._kept):
                self._kept = memoryview(self._stream.update(self._ZEROS[: self._SMALL]))
            taken, self._kept = self._kept[:n], self._kept[-(-n // 8) * 8 :]  # what is left stays aligned
            return taken

    def words16(self, n: int) -> NDArray[np.uint16]:
        return np.frombuffer(self._bytes(2 * n), np.uint16)

    def words64(self, n: int) -> NDArray[np.uint64]:
        return np.frombuffer(self._bytes(8 * n), np.uint64)

    def __reduce__(self) -> Any:
        raise TypeError("a source of noise cannot be copied or pickled: the copy would repeat its noise")


_sources: weakref.WeakSet[SystemSource] = weakref.WeakSet()


def _new_keys() -> None:
    for source in _sources:
        source._key()


if hasattr(os, "register_at_fork"):  # where there is no fork there is nothing to do
    os.register_at_fork(after_in_child=_new_keys)


@cache
def system_source() -> SystemSource:
    """The process's source of noise. A release checks `type(source) is SystemSource`."""
    return SystemSource()
