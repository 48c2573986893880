"""Whose a row is, and in which order a unit's rows are kept: marks under a secret key.

A unit is all rows with the same cell in the declared column: the same text once spaces around it are left
out; numbers and times of Parquet as text, without zeros at the end of a fraction, so that 7, 7.0 and 7.00
are one unit however a file stores them. Rows without one, and ruined records, are one unit together:
whoever they belong to is protected, whatever the number of them.

The claim: **a row's mark depends on the key, the row's own cells and its unit's; a place in the order of a
unit besides on how many of the unit's rows are equal to it.** Nothing else enters: no other unit, no order
of rows. The key is fresh for each release and in no published file. Marks have 128 bits, so that two units
of a table of 2^34 rows share one with probability below 2^-60, and nobody who does not know the key can
make them.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.domain import UNIT_KEY, Column
from dpsynth_cli.trusted.rows.text import as_binary, trimmed
from dpsynth_cli.trusted.rows.values import texts

Marks = NDArray[np.uint64]  # two words a row


def fresh_key() -> str:
    """A new secret for one release."""
    return secrets.token_hex(32)


def unit_column(name: str) -> Column:
    """The column of units as a scan reads it: cells of any kind that have a text."""
    return Column(name, "nominal", origin=UNIT_KEY)


@dataclass(frozen=True)
class Units:
    """The column that says whose a row is, how many rows of a unit are kept, and the secret of the
    release. With `time`, a column, those that are kept follow one another."""

    column: str
    rows: int
    key: str = field(repr=False)
    time: str | None = None

    def of_cells(self, cells: pa.Array, ruined: int = 0) -> Marks:
        """The mark of each row's unit; ruined records come last, and have no unit of their own."""
        text = as_binary(trimmed(_id_texts(cells))).cast(pa.large_binary()).fill_null(b"")
        ends = np.frombuffer(text.buffers()[1], np.int64, len(text) + 1, 8 * text.offset)
        data = np.frombuffer(text.buffers()[2] or b"", np.uint8)
        length = np.diff(ends)
        short = np.flatnonzero(length < 16)
        blocks = np.zeros((len(text) + ruined, 16), np.uint8)
        blocks[short, 15] = length[short] + 1
        for place in range(15):
            there = short[length[short] > place]
            blocks[there, place] = data[ends[there] + place]
        blocks[len(text) :, 15] = 1
        marks: Marks = self._scrambled(blocks.view(np.uint64), b"dpsynth unit").copy()
        for long in np.flatnonzero(length >= 16).tolist():
            marks[long] = self._of_long(data[ends[long] : ends[long + 1]].tobytes())
        return marks

    def of_rows(self, units: Marks, codes: NDArray[np.int32]) -> Marks:
        """The mark of each row: of its unit and its codes. The same for rows of a unit that are equal."""
        rows, width = codes.shape
        mark = self._scrambled(units)
        for first in range(0, width, 4):
            block = np.zeros((rows, 4), np.int32)
            block[:, : min(4, width - first)] = codes[:, first : first + 4]
            mark = self._scrambled(mark ^ block.view(np.uint64))
        return mark

    def order(self, marks: Marks, number: NDArray[np.int64]) -> Marks:
        """Where in the order of its unit each row is, the `number`th of those that are equal: random to
        whoever does not know the key."""
        turned = marks.copy()
        turned[:, 0] ^= number.astype(np.uint64) + np.uint64(1)
        return self._scrambled(turned)

    def _of_long(self, cell: bytes) -> NDArray[np.uint64]:
        own = self._hash.copy()
        own.update(cell)
        return np.frombuffer(own.digest(), np.uint64)

    @cached_property
    def _hash(self) -> Any:
        return hashlib.blake2b(key=bytes.fromhex(self.key), digest_size=16, person=b"dpsynth unit")

    def _scrambled(self, words: Marks, purpose: bytes = b"dpsynth rows") -> Marks:
        """AES-256 of each row's two words, under a key for the purpose: a secret permutation. Chained over
        blocks of a fixed number it is a message authentication code (CBC-MAC)."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        key = hashlib.blake2b(bytes.fromhex(self.key), digest_size=32, person=purpose).digest()
        stream = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        return np.frombuffer(stream.update(np.ascontiguousarray(words).tobytes()), np.uint64).reshape(-1, 2)

    def __getstate__(self) -> dict[str, Any]:
        # All but the hash, which cannot be pickled.
        return {"column": self.column, "rows": self.rows, "key": self.key, "time": self.time}


def _id_texts(cells: pa.Array) -> pa.Array:
    """Ids as bytes: the same for the same number or time, whatever decimals or unit of time it has.

    >>> from decimal import Decimal
    >>> cells = pa.array([Decimal("7.00"), Decimal("7.50"), Decimal("70.00"), None])
    >>> _id_texts(cells).to_pylist()
    [b'7', b'7.5', b'70', None]
    """
    from pyarrow import compute as pc

    kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
    text = texts(cells)
    if not (pa.types.is_decimal(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind)):
        return text
    shorter = pc.replace_substring_regex(text.cast(pa.string()), r"(\.\d*[1-9])0+(Z?)$", r"\1\2")
    return pc.replace_substring_regex(shorter, r"\.0+(Z?)$", r"\1").cast(pa.binary())
