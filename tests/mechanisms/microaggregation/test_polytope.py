"""Projection on linear constraints: nearest, inside, and points inside unmoved."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dpsynth_cli.mechanisms.microaggregation.polytope import Polytope

NONE = np.zeros((0, 3)), np.zeros(0)


def polytope(seed: int, equal: bool) -> Polytope:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(4, 3))
    inside = rng.uniform(0.3, 0.7, 3)
    E = rng.normal(size=(1, 3)) if equal else np.zeros((0, 3))
    return Polytope(A, A @ inside + rng.uniform(0.02, 0.2, 4), E, E @ inside)


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_nearest_point_that_another_solver_finds(seed, equal):
    space = polytope(seed, equal)
    centre = space.centre()
    x = np.random.default_rng(seed + 100).uniform(0, 1, (6, 3))
    made = space.nearest(x, centre)
    for point, ours in zip(x, made, strict=True):
        wanted = minimize(
            lambda y, point=point: ((y - point) ** 2).sum(),
            centre,
            bounds=[(0, 1)] * 3,
            constraints=[
                {"type": "ineq", "fun": lambda y: space.b - space.A @ y},
                {"type": "eq", "fun": lambda y: space.E @ y - space.f}
                if equal
                else {"type": "ineq", "fun": np.sum},
            ],
        )
        assert ((ours - point) ** 2).sum() <= wanted.fun + 1e-4
    assert space.excess(made).max() <= 1e-9
    assert np.abs(made @ space.E.T - space.f).max(initial=0.0) < 1e-9
    assert made.min() >= 0
    assert made.max() <= 1


def test_points_inside_stay_where_they_are():
    space = Polytope(np.array([[1.0, -1.0, 0.0]]), np.array([0.0]), *NONE)
    x = np.array([[0.2, 0.5, 0.9], [0.3, 0.3, 0.0]])
    assert (space.nearest(x, space.centre()) == x).all()
    assert space.nearest(np.array([[0.8, 0.2, 0.4]]), space.centre())[0] == pytest.approx([0.5, 0.5, 0.4])


def test_an_empty_set_has_no_centre():
    assert Polytope(np.array([[1.0, 1.0, 1.0]]), np.array([-0.1]), *NONE).centre() is None
    assert Polytope(*NONE, np.array([[1.0, 1.0, 1.0]]), np.array([3.5])).centre() is None
