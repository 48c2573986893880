"""Attributes: few cells, spikes alone, codes as the marginal says."""

import numpy as np
import pytest

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.shared.attributes import attribute, joined
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from dpsynth_cli.numeric.pairs import pair_tables

GAIN = Column("gain", "integer", lower=0, upper=999, nullable=True)


def marginal(*classes):
    """Runs of 10 codes, but the first code alone, and missing at the end."""
    first = np.array([0, 1, *range(10, 1000, 10), 1000])
    width = np.diff(np.append(first, 1001))
    return Marginal(first, width, [np.asarray(mass(first), float) for mass in classes])


def spiky(first):
    return np.where(first == 0, 5000, np.where(first == 1000, 7, 1000 // (first + 10)))


def test_a_spike_and_missing_are_cells_of_their_own():
    found = attribute(GAIN, marginal(spiky), 16)
    assert found.axis.edges[:2] == (0, 1)
    assert found.axis.edges[-2:] == (1000, 1001)
    assert found.cells <= 17
    assert found.masses(0)[[0, -1]].tolist() == [5000, 7]
    assert found.masses(0).sum() == spiky(marginal(spiky).first).sum()


@pytest.mark.parametrize("most", [1, 2, 3, 7, 16, 50])
def test_cells_are_never_more_than_asked_for_and_begin_with_the_first(most):
    rng = np.random.default_rng(most)
    for _ in range(200):
        mass = rng.pareto(0.5, rng.integers(1, 80)) * rng.integers(0, 2)
        start = joined(mass, most)
        assert start[0] == 0
        assert (np.diff(start) > 0).all()
        assert len(start) <= max(1, most)


def test_cells_are_finer_where_rows_are():
    start = joined(np.where(np.arange(1000) < 100, 90.0, 1.0), 20)
    assert (start < 100).sum() > 0.8 * len(start)


def test_codes_of_a_cell_follow_the_marginal_of_their_class():
    found = attribute(GAIN, marginal(spiky, lambda first: first == 500), 8)
    cells = np.random.default_rng(1).integers(found.cells, size=20_000)
    codes = found.codes(np.zeros(20_000, int), cells, np.random.default_rng(0))
    edges = np.array(found.axis.edges)
    assert (np.searchsorted(edges, codes, side="right") - 1 == cells).all()
    holds = int(np.searchsorted(edges, 500, side="right") - 1)
    own = found.codes(np.ones(1000, int), np.full(1000, holds), np.random.default_rng(0))
    assert own.min() >= 500
    assert own.max() < 510
    nobody = np.ones(1000, int)  # there in this class: even
    empty = found.codes(nobody, np.full(1000, 1), np.random.default_rng(0))
    assert len(np.unique(empty)) > 1 or edges[2] - edges[1] == 1


def test_categories_are_never_joined():
    column = Column("job", "nominal", categories=tuple("abcdefgh"), nullable=True)
    runs = Marginal(np.arange(9), np.ones(9, np.int64), [np.arange(9.0)])
    assert attribute(column, runs, 3).axis.edges == tuple(range(10))


def test_pair_tables_are_in_the_order_of_the_question():
    tables = pair_tables(np.arange(2 * 3 + 2 * 4 + 3 * 4), [2, 3, 4])
    assert list(tables) == [(0, 1), (0, 2), (1, 2)]
    assert tables[1, 2][2, 3] == 2 * 3 + 2 * 4 + 3 * 4 - 1


def test_a_last_bit_does_not_decide_where_cells_begin():
    """Runs of nothing at the end have all before them: a whole number of parts, but for rounding."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        mass = np.append(rng.random(30) ** 3, np.zeros(3))
        moved = mass * (1 + rng.choice([-1, 0, 1], 33) * 2.0**-52)
        assert joined(mass, 11).tolist() == joined(moved, 11).tolist()
