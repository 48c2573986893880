"""The encodings that a CSV file may have.

Each is decoded by a total function: bytes that mean nothing become U+FFFD and nothing is refused. In all but
UTF-16 a line break is the byte 10, and no byte before it can take it away, so that damage stays in its line
(tested for every pair of bytes). UTF-16 is cut into units of two bytes by their place in the file: half a
pair, or a last odd byte, is one U+FFFD, and takes no neighbour with it.
"""

from __future__ import annotations

ONE_BYTE = (
    "latin-1", "cp1252", "iso-8859-15", "iso-8859-2", "cp1250", "iso-8859-5", "cp1251", "koi8-r",
    "iso-8859-7", "cp1253", "iso-8859-9", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp437", "cp850",
    "cp852", "cp858", "cp866", "mac-roman",
)  # fmt: skip
MORE_BYTES = ("shift_jis", "cp932", "euc-jp", "gb18030", "big5", "cp949")
UTF_16 = ("utf-16", "utf-16-le", "utf-16-be")
ENCODINGS = ("utf-8", "utf-8-sig", *UTF_16, *ONE_BYTE, *MORE_BYTES)


def as_utf8(encoding: str) -> bool:
    """Whether bytes are UTF-8 as they stand."""
    return encoding in ("utf-8", "utf-8-sig")


def beginning(encoding: str) -> tuple[bytes, str]:
    """What a new file begins with, and the codec of what follows: Excel knows UTF-8 and UTF-16 by their mark.

    >>> beginning("utf-16"), beginning("latin-1")
    ((b'\\xff\\xfe', 'utf-16-le'), (b'', 'latin-1'))
    """
    if encoding == "utf-8-sig":
        return b"\xef\xbb\xbf", "utf-8"
    return (b"\xff\xfe", "utf-16-le") if encoding == "utf-16" else (b"", encoding)
