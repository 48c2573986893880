"""Levels of a column: nested, as questions name them, with missing and ruled values alone."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.joint.estimates import Counted, with_margins
from dpsynth_cli.mechanisms.joint.frame import Frame
from dpsynth_cli.mechanisms.joint.ladder import Ladder, ladder
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from dpsynth_cli.questions import Bins, Scored

AGE = Column("age", "integer", lower=0, upper=999, nullable=True)
TOWN = Column("town", "nominal", categories=tuple(map(str, range(40))), nullable=True)

HALVES = (np.arange(2), np.ones(2, np.int64), [np.full(2, 500.0)])


def made(column: Column, finest: int = 64, cuts: tuple[int, ...] = ()) -> Ladder:
    rng = np.random.default_rng(0)
    mass = rng.exponential(1.0, column.codes) ** 3 * 100
    whole = np.arange(column.codes)
    return ladder(column, Marginal(whole, np.ones(column.codes, np.int64), [mass]), finest, cuts)


def place(own: Ladder, level: int, codes: np.ndarray) -> np.ndarray:
    """The cell of codes by the axis that a question gets."""
    axis = own.axis(level)
    if isinstance(axis, Bins):
        return np.searchsorted(axis.edges, codes, side="right") - 1
    assert isinstance(axis, Scored)
    inner = axis.attributes[0]
    assert isinstance(inner, Bins)
    return np.array(axis.scores[0])[np.searchsorted(inner.edges, codes, side="right") - 1]


@pytest.mark.parametrize("column", [AGE, TOWN])
def test_levels_are_nested_and_questions_name_them(column):
    own = made(column)
    codes = np.arange(column.codes)
    finest = place(own, own.top, codes)
    for level in range(len(own.levels)):
        cells = place(own, level, codes)
        assert (cells == own.levels[level][finest]).all()
        assert set(cells) == set(range(own.size(level)))
        for coarse in range(level + 1):
            assert (own.between(level, coarse)[cells] == place(own, coarse, codes)).all()


@pytest.mark.parametrize("column", [AGE, TOWN])
def test_missing_is_alone_at_every_level(column):
    own = made(column)
    for level in range(len(own.levels)):
        cells = place(own, level, np.arange(column.codes))
        assert (cells == cells[column.size]).sum() == 1


def test_values_of_rules_are_apart_at_every_level():
    own = made(AGE, cuts=(21, 65))
    for level in range(len(own.levels)):
        cells = place(own, level, np.arange(AGE.codes))
        assert cells[20] < cells[21]
        assert cells[64] < cells[65]
    own = made(TOWN, cuts=(7, 8))
    for level in range(len(own.levels)):
        cells = place(own, level, np.arange(TOWN.codes))
        assert (cells == cells[7]).sum() == 1


def test_masses_add_up_and_the_heaviest_categories_are_alone():
    own = made(TOWN)
    mass = own.finest.masses(0)
    for level in range(len(own.levels)):
        found = np.bincount(own.levels[level], mass)
        assert np.allclose(own.masses(level, mass), found)
    four = own.levels[own.level(3)]
    assert (four == four[int(np.argmax(mass[: TOWN.size]))]).sum() == 1


def test_far_and_rare_values_have_cells_of_their_own():
    column = Column("delay", "integer", lower=0, upper=9999)
    mass = np.zeros(10_000)
    mass[:100], mass[100:] = 1000.0, 0.5
    runs = np.arange(0, 10_000, 10)
    own = ladder(column, Marginal(runs, np.full(1000, 10), [np.add.reduceat(mass, runs)]), 64)
    edges = np.array(own.axis(own.level(64)).edges)
    assert (edges > 100).sum() >= 10


def test_sums_of_counted_runs_stay_and_rows_inside_them_go_where_tables_have_them():
    column = Column("x", "integer", lower=0, upper=19)
    pieces = Marginal(np.arange(20), np.ones(20, np.int64), [np.full(20, 50.0)], np.array([0, 10]))
    own = ladder(column, pieces, 64)
    assert own.counted().tolist() == [0] * 10 + [1] * 10
    other = ladder(Column("y", "integer", lower=0, upper=1), Marginal(*HALVES), 64)
    frame = Frame([own, other], [np.full((1, 20), 50.0), np.full((1, 2), 500.0)], [0, 0])
    level = own.level(4)
    cells = own.size(level)
    uneven = np.zeros((1, cells, 2))
    uneven[0, 0] = 240.0  # nearly all rows of the first run are in its first cell
    uneven[0, cells - 1] = 240.0
    counted = Counted(((0, 1), (level, other.top)), uneven, 1.0)
    after, _ = with_margins(frame, [0.5, 0.5], [counted])
    runs = np.add.reduceat(after.masses[0][0], [0, 10])
    np.testing.assert_allclose(runs, [500, 500], atol=1)
    there = own.masses(level, after.masses[0])[0]
    assert there[0] > 450
    assert there[-1] > 450


@pytest.mark.parametrize("nullable", [False, True])
def test_a_tail_is_one_cell_with_the_last_that_stands(nullable):
    column = Column("x", "integer", lower=0, upper=31, nullable=nullable)
    mass = np.append(np.append([0.1] * 4, np.append([40.0] * 20, [0.2] * 8)), [9.0] * nullable)
    width = np.ones(len(mass), np.int64)
    own = ladder(column, Marginal(np.arange(len(mass)), width, [mass], None, (4, 24)), 512)
    ends = [32] if nullable else []
    assert own.codes_of(own.top).tolist() == [0, *range(5, 24), *ends]
    assert np.isclose(own.finest.masses(0)[[0, 19]], [40.4, 41.6]).all()
