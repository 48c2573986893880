"""Estimates of tables: which cells are taken to be empty."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.joint.estimates import Counted, estimated, independent
from dpsynth_cli.mechanisms.joint.frame import Frame
from dpsynth_cli.mechanisms.joint.ladder import ladder
from dpsynth_cli.mechanisms.shared.oneway import Marginal


def frame_of(table: np.ndarray, nullable: bool, nominal: bool = False) -> Frame:
    """Two integer or nominal columns of these rows, every code a cell."""
    ladders, masses = [], []
    for axis, size in enumerate(table.shape):
        column = Column(f"x{axis}", "integer", lower=0, upper=size - 1 - nullable, nullable=nullable)
        if nominal:
            column = Column(f"x{axis}", "nominal", categories=tuple("abcdefgh"[:size]))
        own = table.sum(axis=1 - axis)
        ladders.append(ladder(column, Marginal(np.arange(size), np.ones(size, np.int64), [own]), 64))
        masses.append(own[None])
    return Frame(ladders, masses, [0, 0])


def found(noisy: np.ndarray, real: np.ndarray, nullable: bool) -> np.ndarray:
    frame = frame_of(real, nullable)
    scope = ((0, 1), tuple(own.top for own in frame.ladders))
    assert frame.shape(scope) == [1, *real.shape]
    return estimated(frame, Counted(scope, noisy[None], 81.0), independent(frame, scope)).counts[0]


def test_rows_that_miss_one_of_two_numbers_of_few_values_are_kept():
    """All cells of two values are neighbours: that few rows are near says nothing of a law."""
    real = np.array([[500.0, 300, 12], [300, 240, 12], [12, 12, 90]])
    noisy = real + np.array([[4.0, -6, 3], [-5, 2, -1], [-2, -1, 3]])
    counts = found(noisy, real, nullable=True)
    assert counts[2, :2].sum() == pytest.approx(24, abs=15)
    assert counts[:2, 2].sum() == pytest.approx(24, abs=15)
    assert counts[2].sum() == pytest.approx(real[2].sum(), abs=2)


def test_cells_far_from_a_law_of_two_numbers_are_empty():
    real = np.diag(np.full(8, 400.0))
    noisy = real.copy()
    noisy[0, 6] = 40.0  # noise, beyond four standard deviations
    counts = found(noisy, real, nullable=False)
    assert counts[0, 6] == 0
    assert counts.trace() > 3000


@pytest.mark.parametrize("together", [False, True])
def test_a_weak_law_that_no_cell_shows_is_kept(together):
    """Each cell is drawn to independence, but all cells together say how far both go together."""
    values = np.arange(16) - 7.5
    law = np.exp(-(values[:, None] ** 2 - values[:, None] * values + values**2) / 60)
    real, rng = law * (5_000 / law.sum()), np.random.default_rng(5)
    frame = frame_of(real, nullable=False)
    if together:  # two classes, counted as one
        frame = Frame(frame.ladders, [np.concatenate([own / 2, own / 2]) for own in frame.masses], [0, 0])
    scope = ((0, 1), tuple(own.top for own in frame.ladders))
    errors = []
    for _ in range(8):
        noisy = real + np.rint(rng.normal(0, 12, real.shape))
        table = estimated(frame, Counted(scope, noisy[None], 144.0), independent(frame, scope))
        errors.append(correlation(table.counts.sum(axis=0), values) - correlation(real, values))
    assert abs(np.mean(errors)) < 0.04
    assert np.abs(errors).max() < 0.15


def correlation(table, values):
    p = table / table.sum()
    spreads = [float((p.sum(axis=axis) * values**2).sum()) for axis in (0, 1)]
    return float((p * np.outer(values, values)).sum()) / np.sqrt(spreads[0] * spreads[1])


def test_noise_in_the_margins_of_a_table_does_not_get_into_its_cells():
    """The columns are known: of eight numbers only three are learnt, with less noise."""
    rng = np.random.default_rng(1)
    real = np.array([[270.0, 230, 260, 240], [230, 270, 240, 260]])
    errors = []
    for _ in range(200):
        shown = real + rng.normal(0, 9.0, real.shape)
        errors.append(np.abs(found(shown, real, nullable=False) - real).mean())
    assert np.mean(errors) < 4.7  # 7.2 is what noise makes, 5.3 where cells are learnt one by one


def test_a_quiet_table_is_learnt_as_it_is_where_its_sums_were_expected_to_be_others():
    """Else what its sums differ by would be spread over its empty cells."""
    real = np.array([[300.0, 40, 0, 0], [0, 200, 90, 100], [60, 0, 400, 0]])
    frame = frame_of(real, nullable=False, nominal=True)
    scope = ((0, 1), tuple(own.top for own in frame.ladders))
    expected = independent(frame, scope) * (1 + np.array([0.04, -0.05, 0.02, 0.03]))
    counts = estimated(frame, Counted(scope, real[None], 0.01), expected).counts[0]
    assert np.allclose(counts, real, atol=0.5)
    assert not counts[real == 0].any()
