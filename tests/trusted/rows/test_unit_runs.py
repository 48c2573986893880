"""Rows of a unit that follow one another: which are kept, which are pairs, how far a unit moves them."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from fractions import Fraction
from itertools import combinations_with_replacement, product
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.changes import change_zero
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Bins, Question, UnitPairs, UnitSizes
from dpsynth_cli.trusted.core.checks import check_question
from dpsynth_cli.trusted.core.sensitivity import Sensitivity, sensitivity
from dpsynth_cli.trusted.engines.local import sum_over
from dpsynth_cli.trusted.rows import unit_rows, unit_runs
from dpsynth_cli.trusted.rows.unit_marks import Units, fresh_key
from dpsynth_cli.trusted.rows.unit_rows import MARK, Marked, Truncation
from dpsynth_cli.trusted.sums.unit_sums import KeptUnits
from tests.trusted.core.test_sensitivity import RELATIONS

WHO = Column("who", "integer", lower=0, upper=5000)
TIME = Column("t", "integer", lower=0, upper=99)
X = Column("x", "integer", lower=0, upper=9, nullable=True)
COLUMNS = (WHO, TIME, X)
KEY = "5a" * 32
Row = tuple[int, int, int]


def kept_of(rows: list[Row], k: int, key: str = KEY, pieces: int = 1) -> KeptUnits:
    """What is kept of rows (whose, time, value), as an engine would gather them."""
    units = Units("id", k, key, TIME.name)
    own = SimpleNamespace(columns=COLUMNS, units=units, time=COLUMNS.index(TIME))
    truncation = Truncation(own)
    for part in np.array_split(np.array(rows, np.int32).reshape(-1, 3), pieces):
        codes = {column.name: part[:, i] for i, column in enumerate(COLUMNS)}
        codes[MARK] = units.of_cells(pa.array([f"p{who}" for who in part[:, 0]], pa.string()))
        truncation.put(Marked.records(own, codes))
    kept = KeptUnits(*truncation.kept())
    truncation.close()
    return kept


def table(kept, names: list[str]) -> list[tuple[int, ...]]:
    blocks = [np.stack([kept.encode(piece)[name] for name in names], axis=1) for piece in kept.pieces()]
    return [tuple(row) for block in blocks for row in block.tolist()]


def rows_and_pairs(rows: list[Row], k: int, key: str = KEY, pieces: int = 1):
    """Kept rows; pairs as (row before, row, first of its run, rank, far rank)."""
    names = [column.name for column in COLUMNS]
    with closing(kept_of(rows, k, key, pieces)) as kept:
        earlier = [[prefix + name for name in names] for prefix in (unit_runs.BEFORE, unit_runs.FIRST)]
        wanted = [*earlier[0], *names, *earlier[1], unit_runs.RANK, unit_runs.FAR_RANK]
        pairs = [(one[:3], one[3:6], one[6:9], one[9], one[10]) for one in table(kept.pairs, wanted)]
        return Counter(table(kept.rows, names)), pairs, table(kept.each, [*names, unit_rows.SIZE])


some = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 2)), max_size=25)


@settings(max_examples=80, deadline=None)
@given(rows=some, k=st.integers(2, 5))
def test_pairs_are_neighbours_in_time_and_no_unit_has_more_than_k_rows(rows, k):
    found, pairs, units = rows_and_pairs(rows, k)
    had = Counter(rows)
    assert all(times <= had[row] for row, times in found.items())
    for who in range(4):
        own = sorted(row for row in rows if row[0] == who)
        assert sum(times for row, times in found.items() if row[0] == who) == min(k, len(own))
        together = [one for one in pairs if one[1][0] == who]
        # All rows in one run have one pair fewer than rows; a run that went on with the earliest, two.
        assert len(together) in ((len(own) - 1,) if 0 < len(own) <= k else (k - 1, k - 2) if own else (0,))
        times = [row[1] for row in own]
        for before, after, first, _, _ in together:
            assert before[0] == after[0] == first[0] == who
            assert first[1] <= before[1] <= after[1]
            assert not any(before[1] < t < after[1] for t in times)  # nothing lies between them
        ranks = sorted(one[3] for one in together)
        assert ranks == list(range(len(together)))
        far = sorted(one[4] for one in together if one[4] != unit_runs.NONE)
        assert far == list(range(len(far)))
        assert len(far) <= max(0, k - 2)
        (unit,) = [one for one in units if one[0] == who] or [(who, None, None, -1)]
        assert unit[3] + 1 == min(k, len(own))
        if 0 < len(own) <= k:
            assert unit[1] == times[0]  # it begins with the earliest


@settings(max_examples=60, deadline=None)
@given(rows=some, others=some, order=st.randoms(use_true_random=False), pieces=st.integers(1, 4))
def test_another_units_rows_never_change_which_rows_and_pairs_are_kept(rows, others, order, pieces):
    before = rows_and_pairs(rows, 3)
    again = [row for row in rows if row[0] == 0] + [row for row in others if row[0] != 0]
    order.shuffle(again)
    after = rows_and_pairs(again, 3, pieces=pieces)
    assert own(before) == own(after)


def own(found) -> tuple:
    rows, pairs, units = found
    return (
        {row: times for row, times in rows.items() if row[0] == 0},
        sorted(one for one in pairs if one[1][0] == 0),
        [unit for unit in units if unit[0] == 0],
    )


def test_a_choice_by_the_order_of_the_file_would_be_seen(monkeypatch):
    """The broken twin: of rows that are first in the file the run goes on."""
    rows = [(who, t, 0) for who in range(20) for t in range(6)]
    assert own(rows_and_pairs(rows, 3)) == own(rows_and_pairs(rows[::-1], 3))
    count = iter(range(10**6))

    def places(self, units, codes):
        return np.array([(next(count), 0) for _ in range(len(codes))], np.uint64)

    monkeypatch.setattr(Units, "of_rows", places)
    monkeypatch.setattr(Units, "order", lambda self, marks, number: marks)
    assert rows_and_pairs(rows, 3)[0] != rows_and_pairs(rows[::-1], 3)[0]


def test_every_row_and_every_pair_of_a_unit_is_kept_equally_often():
    """Six rows of 4000 units, three kept: each 2000 times, and each of five pairs (k - 1)/m, 1333 times, with
    standard deviations 32 and 30. Six of them leave a false alarm below 1e-7."""
    rows = [(who, t, 0) for who in range(4000) for t in range(6)]
    found, pairs, units = rows_and_pairs(rows, 3, fresh_key())
    kept = Counter[int]()
    for row, times in found.items():
        kept[row[1]] += times
    assert all(abs(kept[t] - 2000) < 190 for t in range(6))
    together = Counter((before[1], after[1]) for before, after, *_ in pairs)
    assert set(together) == {(t, t + 1) for t in range(5)}
    assert all(abs(times - 4000 / 3) < 180 for times in together.values())
    begins = Counter(unit[1] for unit in units)
    assert set(begins) == {0, 1, 2, 3}  # three rows could follow from there


def test_a_unit_with_very_many_rows_keeps_k_of_those_that_are_chosen_first(monkeypatch):
    monkeypatch.setattr(unit_rows, "chosen", lambda k, time: 20)
    rows = [(0, t % 100, 1) for t in range(500)] + [(1, 5, 0)]
    found, pairs, _ = rows_and_pairs(rows, 4)
    assert sum(found.values()) == 5
    assert len(pairs) in (2, 3)
    assert rows_and_pairs(rows[::-1], 4, pieces=7) == (found, pairs, rows_and_pairs(rows, 4)[2])


# --- how far one unit moves a question about pairs ----------------------------------------------------

SMALL_TIME, SMALL = (0, 50, 99), (0, 4, 9, 10)
K = 3


def asked(most: int, far: bool) -> Question:
    cut = Bins("x", (0, 5, 10, 11))
    zero = change_zero(TIME)
    gap = Bins("t", (0, zero, zero + 1, 2 * zero + 1))
    return Question("s", UnitPairs((cut,), (cut,), (gap,), most, far), Fraction(1))


def sums_of(rows: list[Row], k: int, questions: list[Question]) -> list[np.ndarray]:
    omega = Domain(COLUMNS, unit_rows=k, unit_order="t")
    with closing(kept_of(rows, k)) as kept:
        return kept.sums(lambda *given: sum_over(*given, workers=1), omega, questions)


@pytest.fixture(scope="module")
def every_unit() -> list[list[np.ndarray]]:
    """The sums of every unit of up to four rows, where three are kept."""
    rows = [(0, t, x) for t, x in product(SMALL_TIME, SMALL[:2])] + [(0, 0, 10)]
    units = [list(unit) for n in range(5) for unit in combinations_with_replacement(rows, n)]
    questions = [asked(2, False), asked(1, False), asked(1, True)]
    return [sums_of(unit, K, questions) for unit in units]


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(("number", "most", "far"), [(0, 2, False), (1, 1, False), (2, 1, True)])
def test_no_unit_moves_pairs_further_than_declared_and_a_worst_case_reaches_it(
    every_unit, number, most, far, neighbours
):
    """Each unit alone: others are not changed by it (`test_another_units_rows_never_change...`)."""
    omega = Domain(COLUMNS, neighbours, unit_rows=K, unit_order="t")
    declared = sensitivity(asked(most, far), omega)
    each = np.unique(np.array([found[number] for found in every_unit]), axis=0)
    moved = each if neighbours == "add_remove" else (each[:, None] - each[None]).reshape(-1, each.shape[1])
    assert np.abs(moved).sum(axis=1).max() == declared.l1
    assert (moved**2).sum(axis=1).max() == declared.l2_squared


def test_a_pair_more_than_is_priced_would_be_seen(every_unit):
    """The broken twin counts all pairs of a unit at the price of one."""
    one = sensitivity(asked(1, False), Domain(COLUMNS, unit_rows=K, unit_order="t"))
    assert one == Sensitivity(1, 1)
    assert max(int(np.abs(found[0]).sum()) for found in every_unit) > one.l1


def test_sums_of_pairs_follow_the_definition():
    rng = np.random.default_rng(4)
    rows = [(int(w), int(t), int(x)) for w, t, x in rng.integers((0, 0, 0), (40, 100, 11), (300, 3))]
    for most, far in ((4, False), (2, False), (3, True)):
        question = asked(most, far)
        _, pairs, _ = rows_and_pairs(rows, 5)
        expected = np.zeros((3, 3, 3), np.int64)
        for before, after, first, rank, far_rank in pairs:
            if (far_rank if far else rank) < most:
                earlier = first if far else before
                x = [min(value // 5, 2) if value < 10 else 2 for value in (earlier[2], after[2])]
                gap = after[1] - earlier[1]
                expected[x[0], x[1], 0 if gap < 0 else 1 if gap == 0 else 2] += 1
        (found,) = sums_of(rows, 5, [question])
        assert np.array_equal(found, expected.ravel())
        assert found.sum() > 0


def test_pairs_are_asked_of_units_with_an_order_only():
    omega = Domain(COLUMNS, unit_rows=K, unit_order="t")
    check_question(asked(2, False), omega)
    for wrong in (Domain(COLUMNS, unit_rows=K), Domain(COLUMNS)):
        with pytest.raises(ValueError, match="rows of a unit that have an order"):
            check_question(asked(1, False), wrong)
    for most, far in ((3, False), (0, False), (2, True)):
        with pytest.raises(ValueError, match="fewer pairs than rows"):
            check_question(asked(most, far), omega)
    for cells in ((0, 5, 9), (0, 6, 5, 11)):
        with pytest.raises(ValueError, match="edges must"):
            check_question(Question("s", UnitPairs((Bins("x", cells),), (), (), 1), Fraction(1)), omega)
        with pytest.raises(ValueError, match="edges must"):
            check_question(Question("s", UnitPairs((), (), (Bins("x", cells),), 1), Fraction(1)), omega)


def test_the_question_of_sizes_is_about_the_row_that_a_run_begins_with():
    rows = [(who, t, who % 2) for who in range(30) for t in (3, 60, 80)]
    question = Question("s", UnitSizes(_cells(), (0, 1, 3)), Fraction(1))
    (found,) = sums_of(rows, 3, [question])
    assert found.reshape(2, 2).tolist() == [[0, 30], [0, 0]]  # all begin early, with three rows


def _cells():
    from dpsynth_cli.questions import Cells

    return Cells((Bins("t", (0, 50, 100)),))
