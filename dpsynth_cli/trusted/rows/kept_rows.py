"""Rows that are kept in a private temporary file, which has no name and goes with this process: raw data."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.errors import FileError
from dpsynth_cli.trusted.rows.encode import Codes
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import Piece, reason

IN_MEMORY = 2**24  # bytes, before a file is made
BLOCK = 2**17  # rows


def written(file: Any, data: bytes) -> None:
    """To a temporary file; what is said where that fails does not depend on rows."""
    try:
        file.write(data)
    except OSError as error:
        raise FileError(
            f"cannot write a temporary file in {tempfile.gettempdir()}: {reason(error)}.",
            "",
            "Set TMPDIR to a private folder with more room.",
        ) from None


class Kept:
    """Rows that were kept, as a table that can be passed over again and again; raw data."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._wanted = list(names), list(names)
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (closed by close)
        self._blocks: list[int] = []
        self.rows = 0

    def add(self, codes: NDArray[np.int32]) -> None:
        for first in range(0, len(codes), BLOCK):
            part = codes[first : first + BLOCK]
            written(self._file, np.ascontiguousarray(part.T).tobytes())
            self._blocks.append(len(part))
        self.rows += len(codes)

    def only(self, names: Collection[str]) -> Kept:
        part = copy(self)
        part._wanted = [name for name in self._names if name in names]
        return part

    def count_rows(self) -> int:
        return self.rows

    def pieces(self) -> Iterator[Piece]:
        self._file.seek(0)
        for rows in self._blocks:
            data = self._file.read(4 * rows * len(self._names))
            yield Piece(np.frombuffer(data, np.int32).reshape(-1, rows), 0)

    def encode(self, piece: Piece, counted: Problems | None = None) -> dict[str, Codes]:
        return {name: piece.data[self._names.index(name)] for name in self._wanted}

    def close(self) -> None:
        self._file.close()
