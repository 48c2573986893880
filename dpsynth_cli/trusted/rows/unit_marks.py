"""Whose a row is, and in which order a unit's rows are kept: marks under a secret key.

A unit is all rows with the same cell in the declared column: the same text once spaces around it are left
out; numbers and times of Parquet as text. Rows without one, and ruined records, are one unit together:
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

from dpsynth_cli.arrow import to_numpy
from dpsynth_cli.domain import Column
from dpsynth_cli.trusted.rows.values import texts

Marks = NDArray[np.uint64]  # two words a row


def fresh_key() -> str:
    """A new secret for one release."""
    return secrets.token_hex(32)


def unit_column(name: str) -> Column:
    """The column of units as a scan reads it: cells of any kind that have a text."""
    return Column(name, "nominal")


@dataclass(frozen=True)
class Units:
    """The column that says whose a row is, how many rows of a unit are kept, and the secret of the
    release."""

    column: str
    rows: int
    key: str = field(repr=False)

    def of_cells(self, cells: pa.Array, ruined: int = 0) -> Marks:
        """The mark of each row's unit; ruined records come last, and have no unit of their own."""
        text = texts(cells).dictionary_encode()
        places = to_numpy(text.indices.cast(pa.int64()), len(text.dictionary))
        known = np.empty((len(text.dictionary) + 1, 2), np.uint64)
        known[-1] = self._of_id(b"")
        for place, cell in enumerate(text.dictionary.to_pylist()):
            known[place] = self._of_id(cell or b"")
        return known.take(np.append(places, np.full(ruined, len(known) - 1)), axis=0)

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

    def _of_id(self, cell: bytes) -> NDArray[np.uint64]:
        own = self._hash.copy()
        own.update(cell.strip())
        return np.frombuffer(own.digest(), np.uint64)

    @cached_property
    def _hash(self) -> Any:
        return hashlib.blake2b(key=bytes.fromhex(self.key), digest_size=16, person=b"dpsynth unit")

    def _scrambled(self, words: Marks) -> Marks:
        """AES-256 of each row's two words: a secret permutation. Chained over blocks of a fixed number it is
        a message authentication code (CBC-MAC)."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        key = hashlib.blake2b(bytes.fromhex(self.key), digest_size=32, person=b"dpsynth rows").digest()
        stream = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        return np.frombuffer(stream.update(np.ascontiguousarray(words).tobytes()), np.uint64).reshape(-1, 2)

    def __getstate__(self) -> dict[str, Any]:
        return {"column": self.column, "rows": self.rows, "key": self.key}  # a hash cannot be pickled
