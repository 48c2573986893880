"""Sums of larger tables and what was counted of a pair: averaged as well as can be."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.joint import facts_of
from dpsynth_cli.mechanisms.joint.estimates import Counted, coarser
from dpsynth_cli.mechanisms.joint.frame import Frame
from dpsynth_cli.mechanisms.joint.ladder import ladder
from dpsynth_cli.mechanisms.joint.model import Evidence
from dpsynth_cli.mechanisms.joint.parts import pair_sums, together
from dpsynth_cli.mechanisms.joint.siblings import Siblings
from dpsynth_cli.mechanisms.shared.oneway import Marginal


def frame_of(*sizes: int) -> Frame:
    ladders, masses = [], []
    for at, size in enumerate(sizes):
        column = Column(f"x{at}", "ordinal", categories=tuple("abcdefgh"[:size]))
        ladders.append(
            ladder(column, Marginal(np.arange(size), np.ones(size, np.int64), [np.ones(size)]), 512)
        )
        masses.append(np.full((1, size), 100.0))
    return Frame(ladders, masses, [own.top for own in ladders])


def at_level(frame: Frame, columns: tuple[int, ...], most: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return columns, tuple(frame.ladders[j].level(most) for j in columns)


def test_cells_and_coarser_sums_are_averaged_as_by_least_squares():
    frame, rng = frame_of(8, 6), np.random.default_rng(0)
    fine, coarse = at_level(frame, (0, 1), 8), at_level(frame, (0, 1), 3)
    cells, sums = rng.normal(0, 9, (1, 8, 6)), rng.normal(0, 9, (1, 3, 3))
    found = together(frame, Counted(fine, cells, 4.0), [Counted(coarse, sums, 9.0)])
    unit = np.eye(48).reshape(48, 8, 6)
    to_sums = coarser(frame, unit, fine, coarse[1]).reshape(48, 9).T
    design = np.vstack([np.eye(48) / 2, to_sums / 3])
    due, *_ = np.linalg.lstsq(design, np.append(cells.ravel() / 2, sums.ravel() / 3), rcond=None)
    assert np.allclose(found.noisy.ravel(), due, atol=1e-5)
    variances = np.diag(np.linalg.inv(design.T @ design))
    assert found.variance == pytest.approx(variances.mean(), rel=1e-6)


def test_sums_at_several_levels_make_all_of_them_better():
    frame, rng = frame_of(8, 6), np.random.default_rng(1)
    real = rng.integers(0, 50, (1, 8, 6)).astype(float)
    scopes = [at_level(frame, (0, 1), most) for most in (8, 4, 3, 2)]
    tables = [coarser(frame, real, scopes[0], levels) for _, levels in scopes]
    before, after = np.zeros((2, 4))
    for _ in range(300):
        first, *others = (
            Counted(scope, table + rng.normal(0, 3, table.shape), 9.0)
            for scope, table in zip(scopes, tables, strict=True)
        )
        found = together(frame, first, others)
        for errors, own in ((before, first), (after, found)):
            errors += [
                ((coarser(frame, own.noisy, scopes[0], levels) - table) ** 2).mean() / 300
                for (_, levels), table in zip(scopes, tables, strict=True)
            ]
    assert (after[1:] < 9.5).all()  # no more than those that were counted themselves
    assert (after < 0.8 * before).all()
    assert found.variance == pytest.approx(after[0], rel=0.1)


def test_sums_of_larger_tables_have_the_noise_of_their_cells():
    frame = frame_of(4, 3, 2)
    table = np.arange(24.0).reshape(1, 4, 3, 2)
    sums = pair_sums([Counted(at_level(frame, (0, 1, 2), 8), table, 2.0)])
    assert sorted(sums) == [(0, 1), (0, 2), (1, 2)]
    ((found,), variance) = sums[0, 2], 3 * 2.0
    assert np.array_equal(found.noisy, table.sum(axis=2))
    assert found.scope == at_level(frame, (0, 2), 8)
    assert found.variance == variance


def test_a_character_learns_from_tables_of_both_columns():
    frame = frame_of(2, 2)
    scope = at_level(frame, (0, 1), 8)
    table = Counted(scope, np.array([[[5.0, 1.0], [2.0, 8.0]]]), 1.0)  # 10 with a variance of 4
    found = together(frame, Counted(scope, np.array([20.0]), 4.0), [table])
    assert found.noisy == pytest.approx([15.0])
    assert found.variance == pytest.approx(2.0)


@pytest.mark.parametrize("given", [(), (0, 1)])
def test_pairs_that_were_not_counted_are_known_by_larger_tables(given):
    """Not pairs of which rows have both columns already."""
    frame, none = frame_of(4, 3, 3), np.zeros(0, np.int64)
    triple = Counted(at_level(frame, (0, 1, 2), 8), np.ones((1, 4, 3, 3)), 1.0)
    link = Counted(at_level(frame, (1, 2), 8), np.ones((1, 3, 3)), 1.0)
    siblings = Siblings(dict.fromkeys(given, none), {}, none, none) if given else None
    known = Evidence(frame, [1.0] * 3, links=[link], more=[[triple]], siblings=siblings)
    known.learn_pairs()
    assert [one.scope[0] for one in known.told] == [pair for pair in [(0, 1), (0, 2)] if pair != given]
    if not given:  # the audit names tables that were counted
        assert facts_of(known, known.fit()[0])["pairs"] == []
    assert known.links[0].noisy == pytest.approx(np.full((1, 3, 3), 1 + 3 / 5))  # by 1 and 4
