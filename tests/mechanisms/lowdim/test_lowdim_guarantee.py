"""The bound of Theorem 4.2 from private numbers: never exceeded on average, and saying something."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.lowdim import guarantee, lowdim, tail
from dpsynth_cli.mechanisms.lowdim.classes import Sums
from dpsynth_cli.mechanisms.lowdim.inside import Box
from dpsynth_cli.mechanisms.lowdim.lowdim import Params
from dpsynth_cli.trusted.core.accountant import cube_sd
from dpsynth_cli.trusted.noise.samplers import discrete_cube
from dpsynth_cli.trusted.noise.words import system_source
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
            tails.append(outside(counted)[0])
        if epsilon > 1e3:
            assert tails[0] == pytest.approx(true[0], rel=1e-3)
        else:
            assert np.mean(true) < np.mean(tails) < 4 * np.mean(true)


def outside(counted: guarantee.Counted) -> tuple[float, float]:
    shapes = [(len(v), v.shape[1]) for _, v, _ in guarantee._groups(counted)]
    return guarantee._outside(counted, tail.noise_of(counted.sums, counted.noises, shapes))


def codes_matrix(codes: dict[str, np.ndarray]) -> np.ndarray:
    return np.stack([codes[c.name] for c in COLUMNS], axis=1) / (GRID - 1) - 0.5


# --- what noise can hide: proved, and from both sides -------------------------------------------------------


def hostile_axes(A: np.ndarray, k: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Axes chosen by the noise, or by chance; some of them far from orthonormal."""
    V = np.linalg.eigh(A)[1][:, ::-1][:, :k]
    if kind == "any":
        V = np.linalg.qr(rng.normal(size=(len(A), k)))[0]
    if kind == "skewed":
        V = V @ (np.eye(k) + 0.2 * rng.normal(size=(k, k)) / k)
        V /= max(1.0, np.linalg.norm(V, 2) / 1.4)  # so that |V^T V - I| is at most 1
    return V


@pytest.mark.parametrize("kind", ["of the noise", "any", "skewed"])
def test_no_axes_hide_more_of_the_rows_than_is_said_of_the_noise(kind):
    """For given noise nothing is left to chance: also where axes and means are made of it."""
    rng = np.random.default_rng(0)
    tight = 0.0
    for _ in range(300):
        d, K = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        k, scale = int(rng.integers(1, d + 1)), 10.0 ** rng.uniform(-1, 3)
        rows = [rng.uniform(-0.5, 0.5, (int(rng.integers(0, 30)), d)) for _ in range(K)]
        upper = np.triu(rng.normal(0, scale, (d, d)))
        A, a, e = upper + np.triu(upper, 1).T, rng.normal(0, scale, (K, d)), rng.normal(0, scale, K)
        sizes = np.maximum(1.0, [len(x) for x in rows] + e)
        first = np.array([x.sum(axis=0) for x in rows]) + a
        second = sum(x.T @ x for x in rows) + A
        told = Sums(sizes, 1.0, first, 1.0, second, 1.0)
        means = np.clip(first / sizes[:, None], -0.5, 0.5)
        V = hostile_axes(A, k, kind, rng)
        box = Box(V, np.full(k, -1.0), np.full(k, 1.0))
        eigenvalues = np.linalg.eigvalsh(A)
        noise = tail.Noise(
            np.maximum(eigenvalues[d - k :], 0).sum() - eigenvalues.sum(), max(0.0, -eigenvalues[0]),
            float(np.linalg.norm(a)), float(np.linalg.norm(e)), K, 0.0,
        )  # fmt: skip
        known = guarantee.Counted(
            Domain(COLUMNS), told, True, tail.Noises("", "", ""), means, [box] * K, [], []
        )
        P = np.eye(d) - V @ V.T
        true = sum(float((((x - m) @ P) ** 2).sum()) for x, m in zip(rows, means, strict=True))
        found = guarantee._outside(known, noise)[0]
        assert true <= found + 1e-6 * (1 + abs(found))
        tight = max(tight, true / found)
    assert tight > 0.5
    assert sum(len(x) for x in rows) <= sizes.sum() + noise.of_rows


@pytest.mark.parametrize("strata", [None, "k"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_noise_of_a_release_is_within_what_was_simulated_and_not_far_below(delta, strata):
    """The real noise of 30 releases, which is above it with probability 1/101 each: 6 of them with 6e-7."""
    omega = Domain(COLUMNS + ((CLASS,) if strata else ()), "add_remove", strata=strata)
    codes = codes_of(points("everywhere"))
    exact, above, parts = None, 0, []
    for _ in range(30):
        ask, *_ = asking(codes, omega, 2.0, delta)
        model = lowdim.run(ask, omega, Params(inside="pmm", dimension=1), lowdim.MECHANISM.stages)
        counted = model.bound.args[0]
        if exact is None:
            ask, *_ = asking(codes, omega, 1e7, delta)
            exact = lowdim.run(ask, omega, Params(inside="pmm", dimension=1), lowdim.MECHANISM.stages)
            exact = exact.bound.args[0].sums
        A = counted.sums.second - exact.second
        values = np.linalg.eigvalsh(A)
        real = [
            max(0.0, values[-1]) - values.sum(), max(0.0, -values[0]),
            np.linalg.norm(counted.sums.first - exact.first),
            np.linalg.norm(counted.sums.sizes - exact.sizes),
        ]  # fmt: skip
        said = tail.noise_of(counted.sums, counted.noises, [(D, 1)])
        most = [said.tail, said.largest, said.first, said.sizes]
        above += any(one > other for one, other in zip(real, most, strict=True))
        parts.append(np.array(real) / most)
    assert above < 6
    assert (np.max(parts, axis=0) > 0.1).all()  # of one Laplace number not so in one of 10^9 tests
    assert said.chance == pytest.approx(1 / 101)


def test_noise_from_a_cube_is_that_of_the_sampler():
    rng = np.random.default_rng(0)
    for size in (1, 10, 200):
        found = np.array([tail.drawn("discrete_cube", 3.0, size, rng) for _ in range(4000)])
        scale = Fraction(2000)
        real = np.array([discrete_cube(scale, size, system_source()) for _ in range(400)])
        sd = cube_sd(scale, size)
        assert found.std() == pytest.approx(3.0, rel=0.1)
        largest = [np.abs(x).max(axis=1).mean() / y for x, y in ((found, 3.0), (real, sd))]
        assert largest[0] == pytest.approx(largest[1], rel=0.25)


def test_the_largest_eigenvalues_of_noise_are_about_those_of_the_semicircle():
    sums = Sums(np.ones(1), 0.0, np.zeros((1, 60)), 0.0, np.zeros((60, 60)), 0.25)
    for kind in ("discrete_laplace", "discrete_cube", "rounded_gaussian"):
        found = tail.noise_of(sums, tail.Noises(kind, kind, "none"), [(60, 1)])
        assert 2 * 0.5 * 60**0.5 < found.largest < 1.4 * 2 * 0.5 * 60**0.5
        assert (found.first, found.sizes, found.of_rows) == (0, 0, 0)


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
