"""Dyadic geometry: against the definition of `Halves`, code by code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.numeric.partition import along, code_ranges, halvings, turns, volumes
from dpsynth_cli.questions import CellCounts, Cells, Halves, Question
from tests.mechanisms.plain_ask import PlainAsk

SIZES = st.tuples(st.integers(1, 40), st.booleans())


@settings(deadline=None)
@given(SIZES, st.data())
def test_every_code_lies_in_its_cell_and_cells_have_no_other(column, data):
    size, nullable = column
    bits = data.draw(st.integers(0, halvings(column)))
    first, width = code_ranges(column, bits)
    assert len(first) == len(width) == 2**bits
    assert width.sum() == size + nullable
    cell = np.repeat(np.arange(2**bits), width)
    codes = np.concatenate([np.arange(a, a + w) for a, w in zip(first, width, strict=True)])
    assert codes.tolist() == list(range(size + nullable))
    for code, where in zip(codes.tolist(), cell.tolist(), strict=True):
        if nullable and bits:
            due = 2 ** (bits - 1) if code == size else code * 2 ** (bits - 1) // size
        else:
            due = code * 2**bits // (size + nullable)
        assert where == due


@settings(deadline=None)
@given(SIZES)
def test_at_the_last_halving_every_code_is_alone(column):
    _, width = code_ranges(column, halvings(column))
    assert width.max() == 1
    assert halvings(column) == Column("c", "integer", lower=0, upper=column[0] - 1, nullable=column[1]).bits


def test_the_upper_bound_of_the_largest_grid_is_in_the_last_cell():
    first, width = code_ranges((2**30, False), 20)
    assert first[-1] + width[-1] == 2**30
    assert set(width) == {2**10}


def test_columns_take_turns_until_their_codes_are_alone():
    assert turns([(4, False), (2, True), (1, False)], 9) == (0, 1, 0, 1)
    assert turns([(2**30, False)] * 3, 5) == (0, 1, 2, 0, 1)
    assert turns([(1, False)], 5) == ()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=3), st.integers(0, 7))
def test_volumes_and_paths_are_the_counts_of_a_table_with_every_combination_of_codes_once(columns, depth):
    order = turns(columns, depth)
    omega = Domain(
        tuple(
            Column(f"c{i}", "integer", lower=0, upper=size - 1, nullable=nullable)
            for i, (size, nullable) in enumerate(columns)
        )
    )
    grids = np.meshgrid(*[np.arange(column.codes) for column in omega], indexing="ij")
    codes = {column.name: grid.ravel() for column, grid in zip(omega, grids, strict=True)}
    ask = PlainAsk(omega, codes, exact=True)
    axes = tuple(Halves(column.name, order.count(a)) for a, column in enumerate(omega))
    (answer,) = ask([Question("counts", CellCounts(Cells(axes, order)), 1)])
    assert volumes(columns, order).tolist() == answer.values.tolist()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_paths_put_the_first_split_in_the_highest_bit(axis):
    order = (2, 0, 1, 0)
    place = along(order, axis)
    for path in range(16):
        bits = [path >> (3 - level) & 1 for level in range(4) if order[level] == axis]
        assert place[path] == int("".join(map(str, bits)) or "0", 2)
