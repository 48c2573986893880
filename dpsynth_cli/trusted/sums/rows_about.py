"""Rows as integer vectors about a centre: of each row its own codes, and those of its class, decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Centres, Ints
from dpsynth_cli.trusted.sums.cells import coordinates

CHUNK = 2**19  # numbers that are worked on together: they stay in the processor's cache


def rows_about(
    codes: Mapping[str, np.ndarray],
    rows: int,
    omega: Domain,
    columns: tuple[str, ...],
    bits: int,
    about: Centres | None,
    most: int | None = None,
) -> Iterator[tuple[slice, Ints]]:
    """z, or z - c, of a few rows at a time (at most `most`): a row of numbers for each coordinate."""
    width = sum(omega[name].width for name in columns)
    step = max(1, min(max(256, CHUNK // max(1, width)), most or rows))
    points = None if about is None else np.asarray(about.points, dtype=np.int64)
    for start in range(0, rows, step):
        here = slice(start, min(rows, start + step))
        parts: list[Ints] = []
        for name in columns:
            u, column = codes[name][here], omega[name]
            for z in coordinates(u, column, bits):
                if points is not None:
                    own = points[:, len(parts)]
                    assert about is not None
                    c = own[0] if about.of is None else own.take(codes[about.of][here])
                    missing = column.nullable and column.type != "nominal"
                    z = np.where(u == column.size, 0, z - c) if missing else z - c
                parts.append(z)
        yield here, np.stack(parts)
