"""The codes of a small table, kept from one pass so that the next ones need not read and parse it again.

What is kept is raw data: it is in the memory of this process alone, and goes with it. There is a bound on its
size, and of a table that takes more nothing is kept: memory never depends on the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.trusted.rows.encode import Codes
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import Piece

MOST_BYTES = 2**25  # bytes


def fits(omega: Domain, rows: int) -> bool:
    """Whether so many rows would be kept."""
    return rows * sum(kind.itemsize for kind in _kinds(omega).values()) <= MOST_BYTES


def _kinds(omega: Domain) -> dict[str, np.dtype[Any]]:
    return {column.name: np.min_scalar_type(column.codes - 1) for column in omega}


class BestEffort:
    """A watch of an engine that may fail without a loss to the sums: `whole` says whether it never did."""

    def __init__(self, watch: Callable[[Mapping[str, NDArray[Any]], int], None]) -> None:
        self._watch, self.whole = watch, True

    def __call__(self, codes: Mapping[str, NDArray[Any]], number: int) -> None:
        if self.whole:
            try:
                self._watch(codes, number)
            except Exception:  # memory that is short, most of all
                self.whole = False


class Memory:
    """Pieces of codes by their numbers. When all are there, it can be passed over as a scan can."""

    def __init__(self, omega: Domain, most: int | None = None) -> None:
        self._kinds = _kinds(omega)
        self._room, self._rows = MOST_BYTES if most is None else most, 0
        self._pieces: dict[int, dict[str, NDArray[Any]]] = {}
        self._one_at_a_time = Lock()

    def keep(self, codes: Mapping[str, NDArray[Any]], number: int) -> None:
        """A piece; too many, and all are forgotten."""
        if self._room < 0:
            return
        small = {name: codes[name].astype(kind) for name, kind in self._kinds.items()}
        with self._one_at_a_time:
            self._room -= sum(values.nbytes for values in small.values())
            if self._room >= 0:
                self._pieces[number] = small
                self._rows += len(next(iter(small.values())))
            else:
                self._pieces.clear()

    def has(self, rows: int) -> bool:
        """Whether it holds a table of so many rows."""
        return self._room >= 0 and self._rows == rows

    def only(self, names: Collection[str]) -> Memory:
        part = copy(self)
        part._kinds = {name: self._kinds[name] for name in names}
        return part

    def count_rows(self) -> int:
        return self._rows

    def pieces(self) -> Iterator[Piece]:
        for number in sorted(self._pieces):
            yield Piece(self._pieces[number], 0)

    def encode(self, piece: Piece, counted: Problems | None = None) -> dict[str, Codes]:
        return {name: piece.data[name].astype(np.int32) for name in self._kinds}
