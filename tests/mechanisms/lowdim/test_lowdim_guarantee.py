"""The bound of Theorem 4.2 from private numbers: never exceeded on average, and saying something."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.lowdim import guarantee, lowdim
from dpsynth_cli.mechanisms.lowdim.inside import Box
from dpsynth_cli.mechanisms.lowdim.lowdim import Params
from tests.asking import asking, drawn

D, N = 4, 400
COLUMNS = tuple(Column(f"x{i}", "continuous", lower=0.0, upper=1.0) for i in range(D))
CLASS = Column("k", "nominal", categories=("a", "b"))


def points(kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if kind == "plane":
        axes = np.linalg.qr(rng.normal(size=(D, 2)))[0]
        return 0.5 + (rng.random((N, 2)) - 0.5) @ axes.T * 0.8
    if kind == "two atoms":
        return np.where((np.arange(N) % 2)[:, None], 1.0, 0.0) * np.ones(D)
    if kind == "few far away":  # beyond the box of four standard deviations
        return np.where((np.arange(N) % 40)[:, None] == 0, 1.0, 0.5) * np.ones(D)
    return rng.random((N, D))


def codes_of(x: np.ndarray) -> dict[str, np.ndarray]:
    codes = {c.name: (np.clip(x[:, i], 0, 1) * (GRID - 1)).astype(np.int64) for i, c in enumerate(COLUMNS)}
    return codes | {"k": np.arange(len(x)) // 7 % 2}


def w1(omega: Domain, one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    cost = np.zeros((N, N))
    for column in omega:
        apart = np.abs(one[column.name][:, None] - other[column.name][None]) / (column.size - 1)
        np.maximum(cost, apart, out=cost)
    return float(cost[linear_sum_assignment(cost)].mean())


@pytest.mark.parametrize(("inside", "delta"), [("pmm", None), ("pmm", 1e-6), ("psmm", 1e-6)])
@pytest.mark.parametrize("strata", [None, "k"])
@pytest.mark.parametrize("kind", ["plane", "two atoms", "few far away", "everywhere"])
def test_no_release_is_on_average_further_than_its_moments_and_counts_say(kind, strata, inside, delta):
    """0.05 to 0.4 of it was seen."""
    for neighbours in ("add_remove", "replace_one"):
        omega = Domain(COLUMNS + ((CLASS,) if strata else ()), neighbours, strata=strata)
        codes, found, most = codes_of(points(kind)), [], []
        for seed in range(2):
            ask, *_ = asking(codes, omega, 10.0, delta)
            model = lowdim.run(ask, omega, Params(inside=inside), lowdim.MECHANISM.stages)
            bound = model.bound(N)
            if bound is not None:  # an axis was found
                found.append(w1(omega, codes, drawn(model, N, seed)))
                most.append(bound.w1)
        if kind != "few far away":
            assert len(found) == 2
        assert np.sum(found) <= np.sum(most)


def test_it_falls_with_rows_and_says_something():
    omega, told = Domain(COLUMNS, "replace_one"), []
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(D, 2)))[0]
    for n in (1000, 10_000, 100_000):
        codes = codes_of(0.5 + (rng.random((n, 2)) - 0.5) @ axes.T * 0.8)
        ask, *_ = asking(codes, omega, 2.0)
        bound = lowdim.run(ask, omega, Params(inside="pmm"), lowdim.MECHANISM.stages).bound(n)
        told.append(1.0 if bound is None else bound.w1)
    assert told[2] < 0.2 < told[1] < 0.5 < told[0]


def test_the_tail_is_that_of_the_rows_and_not_less_for_the_noise():
    """At a large epsilon exactly; else on average no less, though axes were chosen by the noise."""
    x = points("everywhere")
    omega, codes = Domain(COLUMNS, "replace_one"), codes_of(x)
    for epsilon, runs in ((1e6, 1), (4.0, 12)):
        tails, true = [], []
        for _ in range(runs):
            ask, *_ = asking(codes, omega, epsilon)
            model = lowdim.run(ask, omega, Params(inside="pmm", dimension=2), lowdim.MECHANISM.stages)
            counted = model.bound.args[0]
            beside = np.eye(D) - counted.boxes[0].vectors @ counted.boxes[0].vectors.T
            away = (codes_matrix(codes) - counted.centres[0]) @ beside
            true.append(float((away**2).sum()))
            tails.append(guarantee._outside(counted)[0])
        if epsilon > 1e3:
            assert tails[0] == pytest.approx(true[0], rel=1e-3)
        else:
            assert np.mean(true) < np.mean(tails) < 4 * np.mean(true)


def codes_matrix(codes: dict[str, np.ndarray]) -> np.ndarray:
    return np.stack([codes[c.name] for c in COLUMNS], axis=1) / (GRID - 1) - 0.5


def test_the_largest_eigenvalues_of_noise_are_those_of_the_semicircle():
    for laplace in (False, True):
        found = guarantee._largest_eigenvalues(60, 2, 0.5, laplace)
        assert found[0] == pytest.approx(2 * 0.5 * 60**0.5, rel=0.15)
        assert found[0] > found[1]


def test_a_box_ends_where_its_own_sides_do_or_nowhere():
    box = Box(np.eye(3)[:, :2], np.array([-0.5, -0.2]), np.array([0.5, 0.3]))
    ends = guarantee._nearest_ends([box], np.zeros((1, 3)))
    assert ends.tolist() == [np.inf, 0.2]
    both = guarantee._nearest_ends([box, box], np.array([[0.0, 0.0, 0.0], [0.0, 0.25, 0.0]]))
    assert both[1] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("columns", "params"),
    [
        (COLUMNS, Params()),
        (COLUMNS, Params(inside="pmm", clip=1.5)),
        ((*COLUMNS, Column("n", "integer", lower=0, upper=5, nullable=True)), Params(inside="pmm")),
        ((*COLUMNS, CLASS), Params(inside="pmm")),
    ],
)
def test_what_has_no_bound_says_none(columns, params):
    omega = Domain(columns, "replace_one")
    codes = codes_of(points("plane")) | {"n": np.zeros(N, np.int64)}
    ask, *_ = asking({c.name: codes[c.name] for c in columns}, omega, 20.0)
    assert lowdim.run(ask, omega, params, lowdim.MECHANISM.stages).bound(N) is None


def test_rows_beyond_the_box_are_no_further_from_it_than_is_said():
    omega, codes = Domain(COLUMNS, "replace_one"), codes_of(points("few far away"))
    ask, *_ = asking(codes, omega, 1e5)
    bound = (model := lowdim.run(ask, omega, Params(inside="pmm"), lowdim.MECHANISM.stages)).bound(N)
    box = model.bound.args[0].boxes[0]
    u = codes_matrix(codes) @ box.vectors
    beyond = np.abs((u - np.clip(u, box.low, box.high)) @ box.vectors.T).max(axis=1).mean()
    assert 0.001 < beyond <= bound.terms["box"] < 20 * beyond


def test_what_is_drawn_normal_beside_the_counted_axes_is_in_the_bound():
    omega, codes = Domain(COLUMNS, "replace_one"), codes_of(points("everywhere"))
    ask, *_ = asking(codes, omega, 1e5)
    split = dict(lowdim.MECHANISM.stages) | {"counts": 1e-6}  # too little to count more than one axis
    bound = (model := lowdim.run(ask, omega, Params(inside="pmm"), split)).bound(N)
    piece = model.bound.args[0].pieces[0]
    normal = np.abs(piece.factor @ np.random.default_rng(0).normal(size=(piece.factor.shape[1], 4000)))
    assert piece.factor.shape[1] > 0
    assert 0 < normal.max(axis=0).mean() <= bound.terms["normal"] < 2 * normal.max(axis=0).mean()
