"""Values that many rows share come out as they are; others stay between them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms import joint
from dpsynth_cli.mechanisms.joint.repeated import ask_repeated
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from tests.asking import asking, drawn

ROWS = 20_000
VALUES = np.array([12_345_678, 12_345_679 + 2**17, 600_000_001, 600_900_007, 1_000_000_000])
COLUMN = Column("x", "continuous", lower=0.0, upper=1.0)


def rows(seed: int = 0, free: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    fixed = rng.choice(VALUES, ROWS, p=[0.3, 0.1, 0.25, 0.15, 0.2])
    return np.where(rng.random(ROWS) < free, rng.integers(0, GRID, ROWS), fixed)


def test_each_is_found_to_the_code_and_masses_stay():
    codes, omega = {"x": rows(free=0.1)}, Domain((COLUMN,))
    ask, _, charges, _ = asking(codes, omega, 100.0)
    edges = np.arange(0, GRID + 1, GRID // 2**10)
    mass = np.histogram(codes["x"], edges)[0].astype(float)
    before = Marginal(edges[:-1], np.diff(edges), [mass])
    found, spent = ask_repeated(ask, omega, {"x": before}, Fraction(1, 2))
    after = found["x"]
    alone = after.first[(after.width == 1) & (after.masses[0] > 100)]
    assert alone.tolist() == VALUES.tolist()
    assert np.isclose(after.masses[0].sum(), ROWS)
    assert (np.diff(after.first) == after.width[:-1]).all()
    assert after.width.sum() == GRID
    assert len(after.first) < 5000
    assert np.isin(edges[:-1], after.first).all()  # no run is lost
    assert 0 < spent == sum(charge.question.share for charge in charges) <= Fraction(1, 2)


def test_nothing_is_asked_where_nothing_stands_out():
    codes, omega = {"x": rows(free=1.0)}, Domain((COLUMN,))
    ask, _, charges, _ = asking(codes, omega, 100.0)
    edges = np.arange(0, GRID + 1, GRID // 2**10)
    mass = np.histogram(codes["x"], edges)[0].astype(float)
    found, spent = ask_repeated(
        ask, omega, {"x": Marginal(edges[:-1], np.diff(edges), [mass])}, Fraction(1, 2)
    )
    assert spent == 0
    assert not charges
    assert found["x"].first.tolist() == edges[:-1].tolist()


def test_the_first_and_the_last_run_do_not_stand_out_because_nothing_is_beside_them():
    codes, omega = {"x": np.random.default_rng(1).integers(0, GRID, ROWS)}, Domain((COLUMN,))
    ask, _, charges, _ = asking(codes, omega, 100.0)
    edges = np.arange(0, GRID + 1, GRID // 16)
    mass = np.histogram(codes["x"], edges)[0].astype(float)
    ask_repeated(ask, omega, {"x": Marginal(edges[:-1], np.diff(edges), [mass])}, Fraction(1, 2))
    assert not charges


def test_joint_gives_them_back():
    rng = np.random.default_rng(2)
    x = rows()
    codes = {"x": x, "g": (x > GRID // 2).astype(np.int64) ^ (rng.random(ROWS) < 0.1)}
    omega = Domain((COLUMN, Column("g", "nominal", categories=("a", "b"))))
    ask, accountant, _, _ = asking(codes, omega, 100.0)
    model = joint.run(ask, omega, joint.Params(), dict(joint.MECHANISM.stages))
    assert accountant.spent == accountant.total
    made = drawn(model, ROWS)["x"]
    assert np.isin(made, VALUES).mean() > 0.98
    for value in VALUES:
        assert abs((made == value).mean() - (x == value).mean()) < 0.02
