"""The cells of keys and constants: from the number of a row and the seed of sampling, from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from dpsynth_cli.arrow import from_numpy, from_texts
from dpsynth_cli.domain import Column
from dpsynth_cli.fillers import SEQUENCE, UUID, Filler, all_columns, placed

_DASHES = (8, 13, 18, 23)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def with_fillers(
    columns: Sequence[Column], groups: Iterator[list[pa.Array]], fillers: Sequence[Filler], seed: int
) -> tuple[list[Column], Iterator[list[pa.Array]]]:
    """The columns of a file and its groups of rows, with keys and constants among them."""

    def filled() -> Iterator[list[pa.Array]]:
        rng, first = np.random.default_rng([seed, 1]), 1
        for arrays in groups:
            rows = len(arrays[0])
            own = [(filler, cells_of(filler, first, rows, rng)) for filler in fillers]
            yield list(placed(arrays, own))
            first += rows

    return all_columns(columns, fillers), filled()


def cells_of(filler: Filler, first: int, rows: int, rng: np.random.Generator) -> pa.Array:
    """The cells of so many rows from the first of them on.

    >>> cells_of(Filler("id", 0, key=SEQUENCE), 5, 2, np.random.default_rng()).to_pylist()
    [5, 6]
    """
    if filler.key == SEQUENCE:
        return from_numpy(np.arange(first, first + rows))
    if filler.key == UUID:
        return _uuids(rng.integers(0, 256, (rows, 16), np.uint8))
    number = filler.number
    if number is not None:
        return from_numpy(np.full(rows, number))
    labels = from_texts((filler.constant,), pa.string())
    return pa.DictionaryArray.from_arrays(from_numpy(np.zeros(rows, np.int32)), labels)


def _uuids(octets: np.ndarray) -> pa.Array:
    """Random UUIDs, version 4, as text."""
    octets[:, 6] = octets[:, 6] & 0x0F | 0x40
    octets[:, 8] = octets[:, 8] & 0x3F | 0x80
    text = np.full((len(octets), 36), ord("-"), np.uint8)
    digits = np.stack([_HEX[octets >> 4], _HEX[octets & 15]], axis=2).reshape(len(octets), 32)
    text[:, np.delete(np.arange(36), _DASHES)] = digits
    ends = np.arange(len(octets) + 1, dtype=np.int32) * 36
    return pa.Array.from_buffers(
        pa.string(), len(octets), [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(text))]
    )
