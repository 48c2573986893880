"""A stream of bytes in a declared encoding as one in UTF-8: never fails, whatever the bytes are.

The claim: **what a line of text becomes depends on its own bytes** (`dpsynth_cli.encodings` says why), and
not on how the stream is read. UTF-8 itself is not decoded at all: bytes that are none stay as they are.
"""

from __future__ import annotations

import codecs
import io
import re
from typing import Any, BinaryIO

from dpsynth_cli.encodings import as_utf8
from dpsynth_cli.trusted.rows.csv_lines import BOM
from dpsynth_cli.trusted.rows.csv_stream import Changed

AT_ONCE = 2**20
_SEP = re.compile(rb'"?sep=([^\r\n"])"?\r?\n?', re.IGNORECASE)


class Decoded(Changed):
    """The UTF-8 of a stream; the mark at its start, if any, says which of two UTF-16 it is, and goes."""

    def __init__(self, stream: BinaryIO, encoding: str, at_once: int = AT_ONCE) -> None:
        super().__init__()
        self._stream, self._encoding, self._at_once = stream, encoding, at_once
        self._decoder: Any = None

    def _next(self) -> bytes:
        chunk = self._stream.read(self._at_once)
        if self._decoder is None:
            chunk, encoding = _without_mark(chunk, self._stream, self._encoding)
            self._decoder = codecs.getincrementaldecoder(encoding)("replace")
            self._ended = False
        else:
            self._ended = not chunk
        text = self._decoder.decode(chunk, self._ended)
        # A decoder makes no half of a pair, but "surrogatepass" is what keeps this line from ever raising.
        return text.encode("utf-8", "surrogatepass")  # type: ignore[no-any-return]


def _without_mark(chunk: bytes, stream: BinaryIO, encoding: str) -> tuple[bytes, str]:
    while len(chunk) < 2 and (more := stream.read(2 - len(chunk))):
        chunk += more
    if encoding == "utf-16":
        if chunk[:2] == b"\xfe\xff":
            return chunk[2:], "utf-16-be"
        return chunk.removeprefix(b"\xff\xfe"), "utf-16-le"
    marks = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
    return chunk.removeprefix(marks.get(encoding, b"")), encoding


def decoded(stream: Any, encoding: str) -> Any:
    """A stream whose bytes are UTF-8, as it stands if they are."""
    return stream if as_utf8(encoding) else io.BufferedReader(Decoded(stream, encoding))


def separator_line(line: bytes) -> bytes | None:
    """The sign that a first line such as `sep=;` names: Excel reads it, and it is no header.

    >>> separator_line(b"sep=;\\r\\n"), separator_line(b"sep;x\\n")
    (b';', None)
    """
    found = _SEP.fullmatch(line.removeprefix(BOM))
    return found[1] if found else None
