"""A stream of CSV bytes to whole lines: never more of a line is held, or kept, than can count.

A line longer than the limit is a row of missing values whatever is in it (`csv_lines.py`), so its rest is
passed over. That takes time, linear in the bytes of the line, decompressed, and nothing else.
"""

from __future__ import annotations

import io
import re
from abc import abstractmethod
from collections.abc import Iterator
from typing import BinaryIO


def line_blocks(stream: BinaryIO, block: int, max_line: int) -> Iterator[tuple[bytearray, int]]:
    """Whole lines, about `block` bytes at a time, each ended by a newline, and the number left out.

    Left out, never held in memory and counted are the lines longer than `max_line` bytes.
    """
    carry = b""
    while True:
        data = bytearray(len(carry) + block)
        data[: len(carry)] = carry
        with memoryview(data) as room:
            read = stream.readinto(room[len(carry) :])  # type: ignore[attr-defined]
        del data[len(carry) + read :]
        if not read:
            data += b"\n" if carry else b""
        end = data.rfind(b"\n") + 1
        carry = bytes(data[end:])
        del data[end:]
        data, too_long = without_long_lines(data, max_line)
        if len(carry) > max_line:
            too_long += 1
            carry = b""
            skip_line(stream, max_line)
        if data or too_long:
            yield data, too_long
        if not read:
            return


def skip_line(stream: BinaryIO, at_once: int) -> None:
    """Go to the start of the next line, and hold no more than so many bytes of this one."""
    while (rest := stream.readline(at_once + 1)) and not rest.endswith(b"\n"):
        pass


def cut_lines(stream: BinaryIO, max_line: int, at_once: int = 2**20) -> Iterator[bytes]:
    """The bytes of a stream, but for what follows the first `max_line` + 1 of a line: it is too long anyway.

    >>> b"".join(cut_lines(io.BytesIO(b"long enough\\n\\nfour\\nfives\\nsix"), 4, 3))
    b'long \\n\\nfour\\nfives\\nsix'
    """
    most, held = max_line + 1, 0  # of a line, at most and so far
    while chunk := stream.read(at_once):
        kept, at = [], 0
        while at < len(chunk):
            room = most - held
            last = chunk.rfind(b"\n", at, at + room + 1)
            if last >= 0:  # lines that all end in time
                kept.append(chunk[at : last + 1])
                at, held = last + 1, 0
                continue
            kept.append(chunk[at : at + room])
            held += len(kept[-1])
            end = chunk.find(b"\n", at + room)
            if end < 0:
                break
            at = end
        yield b"".join(kept)


class Until(io.RawIOBase):
    """A file as if it ended earlier."""

    def __init__(self, raw: io.FileIO, end: int) -> None:
        self._raw, self._end = raw, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int | None:  # type: ignore[no-untyped-def]
        return self._raw.readinto(memoryview(buffer)[: max(0, self._end - self._raw.tell())])


def without_long_lines(data: bytearray, max_line: int) -> tuple[bytearray, int]:
    """The lines of at most `max_line` bytes, and how many longer ones there were."""
    at, kept, too_long = 0, 0, 0
    short = bytearray()
    while len(data) - at > max_line:
        last = data.rfind(b"\n", at, at + max_line + 1)
        if last < 0:
            short += data[kept:at]
            at = kept = data.find(b"\n", at) + 1
            too_long += 1
        else:
            at = last + 1
    return (short + data[kept:], too_long) if too_long else (data, 0)


class Changed(io.RawIOBase):
    """A stream that is made of another one piece by piece: `_next` gives the next bytes, and sets `_ended`
    with the last."""

    def __init__(self) -> None:
        self._ready = memoryview(b"")
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        while not self._ready and not self._ended:
            self._ready = memoryview(self._next())
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    @abstractmethod
    def _next(self) -> bytes: ...


class Joined(Changed):
    """A stream in which a line break inside a quoted field is a space: for files declared multiline.

    Here damage can spread: a quote at the start of a field that should not be there takes the lines
    up to the next closing quote into its own record. One that is not closed within `limit` bytes is
    an ordinary character.
    """

    def __init__(self, stream: BinaryIO, delimiter: bytes, block: int, limit: int) -> None:
        super().__init__()
        self._stream, self._block, self._limit = stream, block, limit
        self._opening = re.compile(rb"(?<=[\n" + re.escape(delimiter) + rb'])"')
        self._held = bytearray(b"\n")  # what is undecided, after the byte before it

    def _next(self) -> bytes:
        chunk = self._stream.read(self._block)
        self._ended = not chunk
        data, at = self._held + chunk, 1
        while opening := self._opening.search(data, at):
            start = opening.start()
            end = self._closing(data, start)
            if end is None:
                at = start
                break
            if end > 0:
                data[start:end] = data[start:end].replace(b"\n", b" ")
            at = end or start + 1
        else:
            at = len(data)
        self._held = data[at - 1 :]
        return bytes(data[1:at])

    def _closing(self, data: bytearray, start: int) -> int | None:
        """One past the quote that closes the one at `start`; 0 if there is none, None if not yet known."""
        at, limit = start + 1, start + self._limit
        while (quote := data.find(b'"', at, limit)) >= 0:
            if quote + 1 == len(data) and not self._ended:
                return None
            if data[quote + 1 : quote + 2] != b'"':
                return quote + 1
            at = quote + 2
        return 0 if self._ended or len(data) >= limit else None
