"""Codes of small tables are kept, exactly, and of large ones nothing is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Bins, CellCounts, Cells, Question
from dpsynth_cli.trusted.engines.local import sum_over
from dpsynth_cli.trusted.sums import memory
from dpsynth_cli.trusted.sums.memory import Memory

OMEGA = Domain(
    (
        Column("s", "nominal", categories=tuple("abcd"), nullable=True),
        Column("n", "integer", lower=0, upper=255, nullable=True),  # 257 codes: one more than a byte holds
        Column("x", "continuous", lower=0.0, upper=1.0),
    )
)
ROWS = 1000


def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {c.name: rng.integers(c.codes, size=ROWS).astype(np.int32) for c in OMEGA} | {
        "n": np.append(np.full(10, 256), rng.integers(257, size=ROWS - 10)).astype(np.int32)
    }


def kept(most: int = 2**20) -> Memory:
    """All rows, in four pieces that come in another order."""
    found = Memory(OMEGA, most)
    for number in (2, 0, 3, 1):
        found.keep({name: u[250 * number : 250 * (number + 1)] for name, u in table().items()}, number)
    return found


def test_what_is_kept_is_passed_over_in_its_order():
    found = kept()
    assert found.has(ROWS)
    assert not found.has(ROWS + 1)
    for names in (["s", "n", "x"], ["n"]):
        part = found.only(names)
        pieces = [part.encode(piece) for piece in part.pieces()]
        assert [list(piece) for piece in pieces] == [names] * 4
        for name in names:
            assert np.concatenate([piece[name] for piece in pieces]).tolist() == table()[name].tolist()
    assert found.count_rows() == ROWS


@pytest.mark.parametrize("workers", [1, 3])
def test_sums_over_what_is_kept_are_those_over_the_rows(workers):
    asked = [Question("n", CellCounts(Cells((Bins("n", (0, 128, 256, 257)),))), Fraction(1))]
    (found,), rows = sum_over(kept(), OMEGA, asked, workers=workers)
    n = table()["n"]
    assert rows == ROWS
    assert found.tolist() == [(n < 128).sum(), ((n >= 128) & (n < 256)).sum(), (n == 256).sum()]


def test_of_a_table_that_takes_more_room_nothing_is_kept():
    bytes_a_row = 1 + 2 + 4
    assert kept(ROWS * bytes_a_row).has(ROWS)
    large = kept(ROWS * bytes_a_row - 1)
    assert not large.has(ROWS)
    assert list(large.pieces()) == []
    most = memory.MOST // bytes_a_row
    assert memory.fits(OMEGA, most)
    assert not memory.fits(OMEGA, most + 1)
