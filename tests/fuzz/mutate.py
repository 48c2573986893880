"""Bytes with a few things wrong."""

from __future__ import annotations

import random

WORDS = (
    b"", b"0", b"-1", b"9" * 40, b"1e400", b"nan", b"null", b'"', b"'", b",", b"\n", b"\r\n", b"\x00",
    b"\xff", b"\xef\xbb\xbf", b"{", b"[" * 50, b"}", b"true", b"\\u0000", b"ARROW1", b"PAR1", b"epsilon",
    b": ", b"- ",
)  # fmt: skip


def mutated(data: bytes, luck: random.Random) -> bytes:
    """A bit flipped, a word put in, a piece cut out, doubled, moved or overwritten; a few times."""
    made = bytearray(data)
    for _ in range(luck.choice((1, 1, 2, 4))):
        at = luck.randrange(len(made) + 1)
        size = min(len(made) - at, luck.choice((1, 1, 2, 4, 8, 64)))
        kind = luck.randrange(6)
        if kind == 0 and size:
            made[at] ^= 1 << luck.randrange(8)
        elif kind == 1:
            made[at:at] = luck.choice(WORDS)
        elif kind == 2:
            del made[at : at + size]
        elif kind == 3:
            made[at:at] = made[at : at + size]
        elif kind == 4:
            made[at : at + size] = luck.randbytes(size)
        else:
            del made[at:]
    return bytes(made)
