"""Columns that count more than others: cut finer by pmm and psmm, and nearer in the distance meant."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.mechanisms.pmm import pmm
from dpsynth_cli.mechanisms.psmm import psmm
from dpsynth_cli.mechanisms.shared import weights
from dpsynth_cli.numeric.lattice import Scale, divided
from dpsynth_cli.spec.spec import from_document
from tests.asking import asking, drawn

X, Y = (Column(name, "continuous", lower=0.0, upper=1.0) for name in "xy")
PLACE = Domain((X, Y), "replace_one")
HEAVY = {"x": 8.0}


def released(module, omega, codes, epsilon=2.0, **params):
    ask, accountant, *_ = asking(codes, omega, epsilon)
    model = module.run(ask, omega, module.Params(**params), module.MECHANISM.stages)
    assert accountant.spent == accountant.total
    return model


def w1(codes: dict[str, np.ndarray], made: dict[str, np.ndarray], long: tuple[float, float]) -> float:
    from scipy.optimize import linear_sum_assignment

    apart = [
        length * np.abs(codes[c.name][:, None] - made[c.name]) / (c.size - 1)
        for c, length in zip(PLACE, long, strict=True)
    ]
    cost = np.max(apart, axis=0)
    return float(cost[linear_sum_assignment(cost)].mean())


def test_a_lattice_of_the_weighted_distance_is_nearer_in_it():
    n, rng = 400, np.random.default_rng(0)
    atoms = rng.random((6, 2))[rng.integers(6, size=n)]
    codes = {c.name: (atoms[:, i] * (c.size - 1)).astype(np.int64) for i, c in enumerate(PLACE)}
    own, even = [], []
    for seed in range(6):
        for found, params in ((own, {"weights": HEAVY}), (even, {})):
            made = drawn(released(psmm, PLACE, codes, 10.0, **params), n, seed)
            found.append(w1(codes, made, weights.lengths(HEAVY, PLACE.columns)))
    assert np.mean(own) < 0.75 * np.mean(even)  # 0.46 was seen


def test_a_tree_halves_the_heavier_column_first_and_more_often():
    codes = {c.name: np.random.default_rng(0).integers(c.codes, size=400) for c in PLACE}
    orders = [
        released(pmm, PLACE, codes, **params).bound.args[0][0].order
        for params in ({"weights": HEAVY}, {"weights": {"x": 1.0, "y": 8.0}}, {})
    ]
    assert [order[:5] for order in orders] == [(0, 0, 0, 0, 1), (1, 1, 1, 0, 1), (0, 1, 0, 1, 0)]


@pytest.mark.parametrize("module", [pmm, psmm])
def test_the_bound_is_of_the_weighted_distance_and_holds(module):
    n, long = 400, weights.lengths(HEAVY, PLACE.columns)
    for codes in (
        {c.name: np.where(np.arange(n) % 2, c.codes - 1, 0) for c in PLACE},
        {c.name: np.random.default_rng(1).integers(c.codes, size=n) for c in PLACE},
    ):
        apart, most, plain = [], [], []
        for seed in range(3):
            model = released(module, PLACE, codes, weights=HEAVY)
            apart.append(w1(codes, drawn(model, n, seed), long))
            most.append(model.bound(n).w1)
            plain.append(released(module, PLACE, codes).bound(n).w1)
        assert np.mean(apart) <= np.mean(most) < np.mean(plain)


def test_lattices_have_cells_that_are_as_long_as_they_are_wide_in_the_distance():
    lattice = divided([Scale(2**30), Scale(2**30, length=0.25)], 400)
    assert lattice.shape == (40, 10)
    assert [axis.step for axis in lattice.axes] == [1, 1]
    assert lattice.side == 40
    assert lattice.distances().max() == 39  # along the longer one
    few = divided([Scale(2**30), Scale(3, length=0.5)], 60)
    assert few.axes[1].cells == 3
    assert few.axes[1].step * 2 <= few.side // 2  # three values are half of the other's length


@pytest.mark.parametrize("name", ["pmm", "psmm"])
def test_what_they_may_be_is_said(name):
    def read(value):
        columns = [{"name": "x", "type": "continuous", "bounds": [0, 1]}, {"name": "k", "type": "boolean"}]
        mechanism = {"name": name, "weights": value}
        return from_document(
            {"dpsynth": 1, "name": "s", "input": "a.csv", "output": "-", "privacy": {"epsilon": "1"},
             "mechanism": mechanism, "columns": columns}
        )  # fmt: skip

    assert read({"x": 0.5}).params.weights == {"x": 0.5}
    assert from_document(read({"x": 1}).effective).params.weights == {"x": 1.0}
    for wrong in ("x", {"x": 0}, {"x": "much"}, {"x": 2000}, {"x": -1}):
        with pytest.raises(UsageError, match=r"a positive number, at most 1000 times the others"):
            read(wrong)
    with pytest.raises(UsageError, match=r"mechanism\.weights names z, which is no column of the model"):
        read({"z": 2})
    if name == "psmm":
        with pytest.raises(
            UsageError, match="k has categories without an order or missing values; no column may be heavier"
        ):
            read({"x": 2})
    else:
        assert read({"x": 2}).params.weights == {"x": 2.0}
