"""Columns in their units: cells without combs, tails that are counted, words for all of it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.evaluate.report import columns, markup, pairs
from dpsynth_cli.evaluate.report.units import cell_words, ends, even_cut, quantile_cut, said, values
from dpsynth_cli.evaluate.tables import Table
from tests.evaluate.test_report import Strict


@pytest.mark.parametrize("high", [4, 73, 119, 260, 999, 70_000])
def test_whole_numbers_make_no_comb(high):
    """As many of each: every cell but the last, which may be cut off, has the same share."""
    column = Column("n", "integer", lower=0, upper=high)
    own = values(np.arange(high + 1), column)
    cut = even_cut([own], column)
    shares, below, above = cut.shares(own, len(own))
    assert below == above == 0
    assert shares.sum() == pytest.approx(1)
    assert np.ptp(shares[:-1]) < 1e-12
    assert 2 <= len(shares) <= 121


def test_rounded_numbers_make_no_comb_whatever_the_bounds():
    """Cells are as wide as 0.1 or more: values with one decimal lie in all of them alike."""
    column = Column("x", "continuous", lower=-3.21, upper=17.777)
    values_of = np.arange(0, 101) / 10
    codes = np.floor((values_of - column.lower) / (column.upper - column.lower) * GRID).astype(np.int64)
    own = values(codes, column)
    shares, _, _ = even_cut([own], column).shares(own, len(own))
    assert np.ptp(shares[:-1]) < 1e-12


def test_a_tail_that_is_far_out_is_cut_off_and_counted():
    column = Column("n", "integer", lower=0, upper=10**9)
    own = np.append(np.arange(1000.0), 10**9 - 1)
    cut = even_cut([own], column)
    shares, below, above = cut.shares(own, len(own))
    assert cut.edges[-1] <= 1000
    assert above > 0
    assert shares.sum() + below + above == pytest.approx(1)


def test_years_begin_in_january():
    column = Column("seen", "date", lower=-20000, upper=20000)
    cut = even_cut([np.array([-10000.0, 12000.0])], column)
    assert cut.width == "2 years"
    assert {said(edge, column)[4:] for edge in cut.edges} == {"-01-01"}
    assert ends(cut, column)[0].endswith("-01-01")


def test_words_of_cells_name_every_value_once():
    column = Column("n", "integer", lower=0, upper=99)
    own = np.repeat([0.0, 10, 11, 50, 99], [60, 10, 10, 10, 10])
    starts = quantile_cut(own, 5)
    assert starts.tolist() == [0, 10, 11]  # 60 % are 0: a cell of its own
    assert cell_words(starts, column) == ["up to 9", "10", "11 or more"]
    price = Column("p", "continuous", lower=0, upper=99)
    assert cell_words(np.array([0.0, 2.5, 7.0]), price) == ["below 2.5", "2.5 to 7", "7 or more"]


def test_a_bar_never_leaves_its_track():
    page = markup.bars(["a", "b"], np.array([0.2, 0.8]), np.array([1.0, 0.0]))
    assert re.findall(r"(?:width|left):([\d.]+)%", page) == ["20.00", "100.00", "80.00", "0.00"]


ENDS = {
    "continuous": (0.0, 1.0, -1e308, 1e308, 1e-300, -5e-324, 12345.678, 1e15),
    "integer": (0, 1, -5, 10**18, -(10**18), 120, 2**40),
    "date": (0, 1, -719162, 2932896, 18000),
    "datetime": (0, 1, -62135596800 * 10**6, 253402300799 * 10**6, 17 * 10**14),
}


@st.composite
def tables(draw):
    """Some columns with bounds or labels of any size, and tables of them: even, constant, missing, empty."""
    own = []
    for i in range(draw(st.integers(1, 3))):
        type = draw(st.sampled_from([*ENDS, "nominal", "ordinal"]))
        nullable = draw(st.booleans())
        if type in ENDS:
            low, high = sorted(draw(st.sampled_from(ENDS[type])) for _ in range(2))
            own.append(Column(f"c{i}", type, lower=low, upper=high, nullable=nullable))
        else:
            labels = tuple(f"l{k}" for k in range(draw(st.sampled_from([1, 2, 40, 300]))))
            own.append(Column(f"c{i}", type, categories=labels, nullable=nullable))

    def table():
        rows, rng = draw(st.sampled_from([0, 1, 2, 50])), np.random.default_rng(draw(st.integers(0, 9)))
        kinds = {
            "even": lambda c: rng.integers(c.codes, size=rows),
            "constant": lambda c: np.full(rows, rng.integers(c.codes)),
            "last": lambda c: np.full(rows, c.codes - 1),
            "skewed": lambda c: np.minimum(rng.geometric(0.3, rows), c.codes - 1),
        }
        codes = {c.name: kinds[draw(st.sampled_from([*kinds]))](c).astype(np.int64) for c in own}
        return Table(codes, rows)

    return Domain(tuple(own)), table(), table() if draw(st.booleans()) else None


@settings(max_examples=150, deadline=None)
@given(tables())
def test_whatever_a_table_holds_it_can_be_shown(made):
    domain, synthetic, real = made
    page = columns.columns(domain, synthetic, real, "", {})
    page += pairs.pairs(domain, {"publishable": real is None}, synthetic, real)
    parsed = Strict(page)
    assert not re.search(r"\bnan\b|\binf\b|∞", parsed.text)
    for part in re.findall(r"([\d.]+)\s% of the (?:synthetic )?rows", parsed.text):
        assert 0 <= float(part) <= 100
