"""Raw counts of a stream, and the counters of sparse counting."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.online.online import partition
from dpsynth_cli.mechanisms.pmm.levels import deepest
from dpsynth_cli.questions import CellCounts, Question
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.stream.dynamic_partition import DynamicPartition
from dpsynth_cli.trusted.stream.leaves import Gathered, Leaves
from dpsynth_cli.trusted.sums.tally import Tally

COLUMNS = (
    Column("x", "continuous", lower=0.0, upper=1.0),
    Column("age", "integer", lower=0, upper=99, nullable=True),
    Column("kind", "nominal", categories=("a", "b", "c")),
)
OMEGA = Domain(COLUMNS)
DEPTH = deepest(COLUMNS)
TREE = partition(COLUMNS, DEPTH)
FULL = TREE.cells(COLUMNS, DEPTH)
EXACT = Fraction(10**6)


def some_codes(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {column.name: rng.integers(column.codes, size=rows) for column in COLUMNS}


def gathered(codes: dict[str, np.ndarray]) -> Leaves:
    tally = Gathered(FULL, OMEGA)
    tally.add(codes, len(codes["x"]))
    return tally.leaves()


def test_every_level_has_the_counts_that_a_release_would_have():
    codes = some_codes(5000)
    leaves = gathered(codes)
    questions = [Question("n", CellCounts(TREE.cells(COLUMNS, j)), Fraction(1)) for j in range(DEPTH + 1)]
    for j in (0, 1, 2, 3, 7, 11):
        tally = Tally([questions[j]], OMEGA)
        tally.add(codes, 5000)
        assert (leaves.level(DEPTH, j) == tally.sums()[0]).all()


def test_pieces_add_up_in_any_order_and_keep_the_larger_payment():
    whole = gathered(some_codes(900))
    parts = [gathered({k: v[i::3] for k, v in some_codes(900).items()}) for i in range(3)]
    parts[1] = Leaves(parts[1].codes, parts[1].counts, Fraction(1, 3))
    added = parts[2] + parts[1] + parts[0]
    assert (added.codes == whole.codes).all()
    assert (added.counts == whole.counts).all()
    assert added.paid == Fraction(1, 3)


# --- Algorithm 12's counters -------------------------------------------------------------------------


def leaves_of(codes: list[int]) -> Leaves:
    found, counts = np.unique(np.array(codes, np.int64), return_counts=True)
    return Leaves(found, counts.astype(np.int64))


@pytest.mark.parametrize("history", [True, False])
def test_counters_count_what_their_level_is_there_for(history):
    """At level ends every node is exact: of all rows with a history, else of those since it was there."""
    source, third = system_source(), Fraction(1, 3)
    counters = DynamicPartition(2, EXACT, history)
    counters.enter(0, 3, {0: third}, source)
    counters.step(leaves_of([0, 1, 3, 3]), source)
    counters.enter(1, 3, {0: third, 1: third}, source)
    counters.step(leaves_of([2, 2, 2]), source)
    counters.enter(2, 3, {0: third, 1: third, 2: third}, source)
    root, halves, leaves = counters.output().values()
    assert root.tolist() == [7]
    assert halves.tolist() == ([2, 5] if history else [0, 3])
    assert leaves.tolist() == ([1, 1, 3, 2] if history else [0, 0, 0, 0])


def test_counters_refuse_shares_that_make_a_row_pay_too_much():
    source, half = system_source(), Fraction(1, 2)
    counters = DynamicPartition(2, EXACT, True)
    with pytest.raises(ValueError, match="more than the whole"):
        counters.enter(0, 3, {0: half, 1: half + Fraction(1, 10**9)}, source)
    counters.enter(0, 3, {0: half, 1: half}, source)
    counters.step(leaves_of([0]), source)
    with pytest.raises(
        ValueError, match="more than the whole"
    ):  # the row of before would pay for level 2 too
        counters.enter(1, 3, {0: half, 1: Fraction(1, 4), 2: Fraction(1, 8)}, source)
    without = DynamicPartition(2, EXACT, False)
    without.enter(0, 3, {0: half, 1: half}, source)
    without.step(leaves_of([0]), source)
    without.enter(1, 3, {0: half, 1: Fraction(1, 4), 2: Fraction(1, 8)}, source)


def test_the_state_of_the_counters_is_whole():
    source = system_source()
    counters = DynamicPartition(2, Fraction(1), True)
    counters.enter(1, 3, {0: Fraction(1, 2), 1: Fraction(1, 4)}, source)
    counters.step(leaves_of([0, 1, 3, 3]), source)
    again = DynamicPartition(2, Fraction(1), True)
    again.restore(*counters.as_parts())
    assert again.as_parts()[0] == counters.as_parts()[0]
    for mine, theirs in zip(counters.as_parts()[1], again.as_parts()[1], strict=True):
        assert (mine == theirs).all()
    assert {j: n.tolist() for j, n in again.output().items()} == {
        j: n.tolist() for j, n in counters.output().items()
    }
