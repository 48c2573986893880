"""Linear constraints: what a text says, that rows keep them, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.microaggregation.cones import Cone
from dpsynth_cli.mechanisms.microaggregation.constraints import NotLinear, kept, parsed
from dpsynth_cli.mechanisms.microaggregation.microaggregation import MECHANISM, Params
from dpsynth_cli.release.files.write import decode
from tests.asking import asking, drawn

WHOLE = tuple(Column(name, "integer", lower=-3, upper=20, nullable=name == "c") for name in ("a", "b", "c"))
PARTS = tuple(Column(name, "continuous", lower=0.0, upper=2.0) for name in ("x", "y-z", "w"))
KIND = Column("kind", "nominal", categories=("r", "s"))
OMEGA = Domain((*WHOLE, *PARTS, KIND))


def rows(n: int = 4000, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {column.name: rng.integers(column.codes, size=n) for column in OMEGA}


def values(block: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        column.name: np.array(decode(block[column.name], column).to_numpy(zero_copy_only=False), dtype=float)
        for column in (*WHOLE, *PARTS)
    }


def test_texts_are_read_as_they_are_meant():
    names = ["a", "b", "y-z", "y", "total cost"]
    assert parsed("a <= b", names).weights == {"a": 1, "b": -1}
    assert parsed("2*a + .5 b - 3 >= -a + 1", names).weights == {"a": -3, "b": Fraction(-1, 2)}
    assert parsed("2*a + .5 b - 3 >= -a + 1", names).bound == -4
    assert parsed("y-z + total cost = 1", names).weights == {"y-z": 1, "total cost": 1}
    assert parsed("y - 2 <= a", names).weights == {"y": 1, "a": -1}
    assert parsed("a + b = 1e2", names).equal
    assert parsed("a = 1", names).bound == 1


@pytest.mark.parametrize(("text", "said"), [
    ("a < b", "it needs exactly one of <=, >= and ="),
    ("a <= b <= c", "it needs exactly one of <=, >= and ="),
    ("a * b <= 1", "there must be + or - before '* b'"),
    ("a <= ab", "'ab' is neither a number nor a declared column"),
    ("a - a <= 3", "it names no column"),
    ("a <=", "'' is neither a number nor a declared column"),
    ("kind <= 3", "kind <= 3: kind is not a continuous or integer column"),
    ("a + b = 3", "a + b = 3: a is an integer column, and an equation needs continuous ones"),
    ("norm(a, b) < 3", "a norm is written as norm(a, b) <= 5, or with one column in the place of 5"),
    ("norm(a, a) <= 3", "each part of a norm has one column, and each column one part"),
    ("norm(a + b, c) <= 3", "each part of a norm has one column, and each column one part"),
    ("norm(a, b) <= a", "a norm is at most a number, or a number and one other column"),
    ("norm(a - 30, b) <= 5", "no row within the bounds keeps all constraints"),
    ("norm(kind, a) <= 5", "norm(kind, a) <= 5: kind is not a continuous or integer column"),
    ("a >= 21", "no row within the bounds keeps all constraints"),
])  # fmt: skip
def test_what_cannot_be_kept_is_refused(text, said):
    with pytest.raises(NotLinear) as refused:
        kept([text], OMEGA)
    assert str(refused.value) == said


def test_whole_numbers_keep_inequalities_and_rows_that_keep_them_are_not_moved():
    block = rows()
    before = {name: codes.copy() for name, codes in block.items()}
    keep = kept(["a <= b", "a + b <= c", "2 a - b >= -20"], OMEGA)
    keep.apply(block)
    was, now = values(before), values(block)
    missing = np.isnan(was["c"])
    assert (np.isnan(now["c"]) == missing).all()
    assert (now["a"] <= now["b"]).all()
    assert (now["a"] + now["b"] <= now["c"])[~missing].all()
    assert (2 * now["a"] - now["b"] >= -20).all()
    good = (was["a"] <= was["b"]) & (2 * was["a"] - was["b"] >= -20)
    good &= missing | (was["a"] + was["b"] <= was["c"])
    assert good.sum() > 300
    assert all((now[name] == was[name])[good & ~missing].all() for name in "abc")
    assert all((block[name] == before[name]).all() for name in ("x", "w", "kind"))
    # Nearest: a row that breaks a <= b alone meets halfway.
    one = {name: codes[:1].copy() for name, codes in before.items()} | {
        "a": np.array([13]),
        "b": np.array([9]),
    }
    kept(["a <= b"], OMEGA).apply(one)
    assert one["a"][0] == one["b"][0] == 11


def test_balls_and_cones_hold_in_every_row_and_rows_inside_of_them_are_not_moved():
    block = rows()
    before = {name: codes.copy() for name, codes in block.items()}
    kept(["norm(a - 5, 2 b - 8) <= 9.5", "norm(x - 1, y-z) <= w", "x + w <= 3"], OMEGA).apply(block)
    was, now = values(before), values(block)

    def inside(v, off=0.0):
        ball = np.hypot(v["a"] - 5, 2 * v["b"] - 8) <= 9.5
        return ball, (np.hypot(v["x"] - 1, v["y-z"]) <= v["w"] + off) & (v["x"] + v["w"] <= 3 + off)

    # Written values lie in the cells of a continuous column's grid, not in their middle.
    assert all(good.all() for good in inside(now, 4 * 2 / GRID))
    good = np.logical_and(*inside(was))
    assert good.sum() > 20
    assert all((block[name] == before[name])[good].all() for name in block)
    assert (block["kind"] == before["kind"]).all()


@pytest.mark.parametrize("cone", [
    Cone(np.array([1.0, 0.5, 0.0]), np.array([0.4, 0.5, 0.0]), np.zeros(3), 0.2),
    Cone(np.array([1.0, 0.7, 0.0]), np.array([0.4, 0.5, 0.0]), np.array([0.0, 0.0, 0.8]), -0.2),
    Cone(np.array([1.0, 0.7, 0.0]), np.array([0.4, 0.5, 0.0]), np.array([0.0, 0.0, -0.8]), 0.3),
])  # fmt: skip
def test_no_point_of_a_cone_is_nearer_than_the_one_that_is_found(cone):
    """The projection of a point p on a convex set is x where no y of the set has (p - x)(y - x) > 0."""
    rng = np.random.default_rng(0)
    p, y = rng.uniform(-2, 3, (200, 3)), rng.uniform(-2, 3, (20_000, 3))
    y = y[cone.excess(y) <= 0]
    x = cone.nearest(p)
    assert len(y) > 100
    assert cone.excess(x).max() < 1e-12
    assert (x == p).all(axis=1).sum() == (cone.excess(p) <= 0).sum()
    assert ((p - x) @ y.T - ((p - x) * x).sum(axis=1)[:, None]).max() < 1e-9


def test_continuous_columns_keep_equations_as_finely_as_their_grid():
    block = rows()
    kept(["x + y-z + w = 1", "x <= w"], OMEGA).apply(block)
    now = values(block)
    assert np.abs(now["x"] + now["y-z"] + now["w"] - 1).max() < 6 / GRID * 2
    assert (now["x"] <= now["w"] + 1e-15).all()


def test_a_released_table_keeps_its_constraints():
    omega = Domain((*WHOLE, KIND))
    codes = {name: own for name, own in rows().items() if name in "abckind"}
    for axes in (2, None):  # cells, and the fallback
        ask, *_ = asking(codes, omega, 0.5)
        model = MECHANISM.run(ask, omega, Params(axes=axes, convex=("a <= b",)), MECHANISM.stages)
        made = drawn(model, 3000)
        assert (made["a"] <= made["b"]).all()
        assert (made["a"] < made["b"]).any()
