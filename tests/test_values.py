"""Codes as numbers: the roundest that has the code, and read back as the same code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import GRID, Column
from dpsynth_cli.trusted.rows.encode import codes
from dpsynth_cli.values import numbers_of

BOUNDS = [
    (0.0, 1.0), (-6.0, 6.0), (0.0, 300.0), (-50.0, 900.0), (0.0, 1e9), (-1e-8, 1e-8), (40.5, 41.1),
    (-74.2, -73.6), (1e6, 1e6 + 1), (0.0, 1e20), (0.0, 1e300), (-1.7e308, 1.7e308), (0.1, 0.7), (0.0, 1 / 3),
]  # fmt: skip


def column(lower: float, upper: float) -> Column:
    return Column("x", "continuous", lower=lower, upper=upper)


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_numbers_are_in_bounds_and_are_read_as_the_code_that_they_are_of(lower, upper):
    every = np.append(np.random.default_rng(0).integers(0, GRID, 20_000), [0, 1, GRID - 2, GRID - 1])
    found = numbers_of(every, column(lower, upper))
    assert (found >= lower).all()
    assert (found <= upper).all()
    assert not np.signbit(found[found == 0]).any()
    assert np.array_equal(codes(found.copy(), column(lower, upper)), every)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([bounds for bounds in BOUNDS if bounds[1] < 1e3]), st.integers(0, 4), st.floats(0, 1))
@example((40.5, 41.1), 1, 0.5)
@example((0.0, 300.0), 0, 1.0)
@example((0.0, 300.0), 0, 0.0)
def test_a_rounded_number_comes_out_as_it_went_in(bounds, decimals, part):
    lower, upper = bounds
    x = round(lower + part * (upper - lower), decimals)
    if lower <= x <= upper and upper - lower > 1e-6:
        made = numbers_of(codes(np.array([x]), column(*bounds)).astype(np.int64), column(*bounds))
        assert made.tolist() == [x]


def test_other_numbers_have_few_digits():
    found = numbers_of(np.random.default_rng(1).integers(0, GRID, 1000), column(0.0, 100.0))
    assert max(len(repr(x)) for x in found.tolist()) <= 12
