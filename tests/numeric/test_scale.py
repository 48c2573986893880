"""Scales: every code is in one cell, cells are nested, and what is drawn for a cell is in it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_cli.numeric.partition import code_ranges
from dpsynth_cli.numeric.scale import HEIGHT, Scale


@st.composite
def scales(draw):
    size = draw(st.integers(2, 2**30))
    begin = draw(st.integers(0, size - 1))
    end = draw(st.integers(begin + 1, size))
    return Scale.focused(size, draw(st.booleans()), begin, end)


@given(scales(), st.integers(1, 12))
def test_cells_cover_every_code_once_and_those_of_a_level_are_pairs_of_the_next(scale, bits):
    edges = np.array(scale.edges(bits))
    assert len(edges) == 2**bits + 1
    assert (edges[0], edges[-1]) == (0, scale.size + scale.nullable)
    assert (np.diff(edges) >= 0).all()
    assert np.array_equal(edges[::2], scale.edges(bits - 1)) or bits == scale.nullable


@given(scales(), st.integers(1, 12), st.randoms(use_true_random=False))
def test_a_code_that_is_drawn_for_a_cell_is_in_it(scale, bits, random):
    first, width = scale.ranges(bits)
    cells = np.flatnonzero(width)
    codes = scale.draw(cells, bits, np.random.default_rng(random.getrandbits(32)))
    assert (codes >= first[cells]).all()
    assert (codes < (first + width)[cells]).all()


@given(scales(), st.integers(1, 10))
def test_cells_cut_at_the_knots_keep_their_codes_and_their_height(scale, bits):
    first, width = scale.ranges(bits)
    there = width > 0
    pieces, widths, run, part = scale.cut(first[there], width[there])
    assert np.array_equal(np.cumsum(widths)[:-1] + pieces[0], pieces[1:])
    assert np.array_equal(np.bincount(run, widths), width[there])
    assert np.allclose(np.bincount(run, part), 1)


@given(st.integers(1, 2**30), st.booleans(), st.integers(1, 12))
def test_without_a_focus_cells_are_halves_of_codes(size, nullable, bits):
    own = Scale.even(size, nullable).ranges(bits)
    first, width = code_ranges((size, nullable), bits)
    assert np.array_equal(own[1], width)
    assert np.array_equal(own[0][width > 0], first[width > 0])


def test_the_focus_has_half_of_the_height_and_the_nearest_codes_outside_more_than_those_far_away():
    scale = Scale.focused(2**30, False, 2**20, 2**20 + 1024)
    width = scale.ranges(6)[1]
    assert (width == 1024 // 32).sum() == 32
    assert (np.diff(width[48:]) >= 0).all()
    assert scale.heights[0] == 0
    assert scale.heights[-1] == HEIGHT


def test_far_cells_that_together_are_no_more_than_noise_are_taken_to_be_empty():
    scale = Scale.focused(2**30, False, 2**20, 2**21)
    first, width = scale.ranges(5)
    counts = np.where((first >= 2**20) & (first < 2**21), 100.0, 0.0)
    outside = (first + width <= 2**20) | (first >= 2**21)
    assert np.array_equal(scale.tails(5, counts, 1.0), outside & (width > 0))
    counts[-3] = 5.0  # it takes more standard deviations, so far out; the two cells beyond it go
    assert scale.tails(5, counts, 1.0)[-3:].tolist() == [True, True, True]
    counts[-3] = 7.0
    assert scale.tails(5, counts, 1.0)[-3:].tolist() == [False, True, True]
    assert not Scale.even(100, False).tails(3, np.zeros(8), 1.0).any()


def test_rows_far_outside_are_nearer_to_the_focus_than_to_the_bound():
    scale = Scale.focused(2**30, False, 0, 2**10)
    for cell in (4, 5, 6, 7):
        begin = scale.edges(3)[cell]
        codes = scale.draw(np.full(20_000, cell), 3, np.random.default_rng(0))
        assert codes.min() >= begin >= 2**10
        assert codes.mean() < 6 * begin


def test_a_long_tail_keeps_its_form():
    """Ranges that double in length are equally high: with halved heights the tail was one cell."""
    edges = np.array(Scale.focused(2**20, False, 0, 2**7).edges(8))
    outside = edges[edges >= 2**8]
    assert len(outside) > 50
    assert (outside[1:] <= 1.5 * outside[:-1]).all()
