"""lowdim: what it asks and spends, what it keeps of a table, and that no table or budget makes it fail."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.lowdim import pieces
from dpsynth_cli.mechanisms.lowdim.inside import box
from dpsynth_cli.mechanisms.lowdim.lowdim import MECHANISM, Params, fits
from dpsynth_cli.numeric.spectrum import axes
from dpsynth_cli.questions import Answer, Asking, Moments, Question, Total
from tests.asking import asking, drawn

RELATIONS = ("add_remove", "replace_one")
NOTHING = 2000  # an epsilon at which noise is nearly gone


def wide(d: int, neighbours: str = "add_remove", **more) -> Domain:
    columns = tuple(Column(f"x{j}", "continuous", lower=0.0, upper=1.0) for j in range(d))
    return Domain(columns, neighbours, **more)


def mixed(neighbours: str = "add_remove", **more) -> Domain:
    columns = (
        Column("x", "continuous", lower=-3.0, upper=5.0, nullable=True),
        Column("n", "integer", lower=-2, upper=9),
        Column("o", "ordinal", categories=("low", "mid", "high"), nullable=True),
        Column("b", "boolean", categories=("false", "true")),
        Column("day", "date", lower=18262, upper=18262 + 365, nullable=True),
        Column("at", "datetime", lower=0, upper=10**13),
        Column("one", "integer", lower=4, upper=4),
        Column("label", "nominal", categories=("p", "q", "r"), nullable=True),
    )
    return Domain(columns, neighbours, strata="label", **more)


def uniform(omega: Domain, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {column.name: rng.integers(column.codes, size=n) for column in omega}


def codes_of(x: np.ndarray) -> dict[str, np.ndarray]:
    """Rows in the unit cube as codes."""
    return {f"x{j}": np.rint(x[:, j] * (GRID - 1)).astype(np.int64) for j in range(x.shape[1])}


def values_of(table: dict[str, np.ndarray], d: int) -> np.ndarray:
    return np.column_stack([table[f"x{j}"] for j in range(d)]) / (GRID - 1)


def on_a_plane(n: int, d: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a k-dimensional affine subspace of the cube, two clusters, and its orthonormal basis."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, k)))[0]
    t = rng.beta(2, 5, (n, k))
    t = np.where(rng.random((n, 1)) < 0.5, t, 1 - t / 2) - 0.5
    return 0.5 + 0.99 * t @ basis.T / np.abs(basis).sum(axis=1).max(), basis


def released(omega, codes, epsilon=1.0, delta=None, params=None, split=None):
    """A model over the real border, with what it asked."""
    ask, accountant, bill, recorded = asking(codes, omega, epsilon, delta)
    model = MECHANISM.run(ask, omega, params or Params(), split or MECHANISM.stages)
    assert accountant.spent == accountant.total
    return model, bill, recorded


def one_row(charge) -> Fraction:
    """What one row can change in the logarithm of the noise's density: pure epsilon."""
    if charge.price.noise == "none":
        return Fraction(0)
    norm = {"discrete_laplace": "l1", "discrete_cube": "largest"}[charge.price.noise]
    return Fraction(getattr(charge.sensitivity, norm)) / charge.price.parameter


def check_valid(model, omega, rows):
    table = drawn(model, rows)
    assert set(table) == ({column.name for column in omega} if rows else set())
    for column in omega.columns if rows else ():
        assert len(table[column.name]) == rows
        assert table[column.name].min() >= 0
        assert table[column.name].max() < column.codes
    return table


# --- the budget -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [
    Params(), Params(dimension=0), Params(dimension=2), Params(basis="per_class"), Params(clip=1.5),
    Params(inside="pmm"), Params(inside="pmm", dimension=3), Params(inside="psmm"),
    Params(inside="psmm", basis="per_class", dimension=1), Params(inside="pmm", dimension=0),
])  # fmt: skip
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_spends_exactly_its_budget_and_releases_valid_rows(neighbours, delta, params):
    for omega in (mixed(neighbours), wide(5, neighbours), wide(5, neighbours, rows_hint=300)):
        for epsilon in (0.3, 50):
            model, _, _ = released(omega, uniform(omega, 300), epsilon, delta, params)
            check_valid(model, omega, 400)
            assert neighbours == "add_remove" or model.total == 300


def test_no_subspace_found_spends_the_counts_on_the_means():
    omega = wide(6)
    codes = {column.name: np.full(2000, GRID // 3) for column in omega}
    asked = [
        [charge.question.step for charge in released(omega, codes, 1, None, Params(inside="pmm"))[1]]
        for _ in range(12)
    ]
    assert ["total", "moments", "mean", "mean again"] in asked


def test_stages_of_the_split_are_what_the_questions_get():
    omega = wide(4)
    split = {"total": 1, "mean": 2, "moments": 3, "counts": 4}
    _, bill, _ = released(omega, uniform(omega, 5000), 1, None, Params(inside="psmm", dimension=2), split)
    shares = {charge.question.step: float(charge.question.share) for charge in bill}
    assert shares == pytest.approx({"total": 0.1, "mean": 0.2, "moments": 0.3, "counts": 0.4})
    _, bill, _ = released(omega, uniform(omega, 5000), 1, None, Params(dimension=2), split)
    shares = {charge.question.step: float(charge.question.share) for charge in bill}
    assert shares == pytest.approx({"total": 0.1, "mean": 0.36, "moments": 0.54})


@pytest.mark.parametrize("strata", [None, "label"])
def test_moments_are_left_out_by_a_public_rule_where_noise_would_drown_them(strata):
    omega = Domain((*wide(40).columns, Column("label", "nominal", categories=tuple("abcd"))), strata=strata)
    omega = omega if strata else wide(40)
    for n, epsilon, asked in ((1000, 0.01, False), (50_000, 400, True)):
        codes = {column.name: np.zeros(n, np.int64) for column in omega}
        model, bill, _ = released(omega, codes, epsilon)
        steps = {charge.question.step for charge in bill}
        assert ("moments" in steps) == asked
        assert ("share was spent on the means" in " ".join(model.notes)) != asked


# --- the errata -------------------------------------------------------------------------------------------


def test_one_relation_pays_for_everything_unlike_the_printed_algorithm():
    """E10 (with E1): printed for "epsilon 4", n = 380, d' = 4, its parts cost over 13 under replace_one."""
    n, epsilon, k = 380, 4.0, 4
    part = epsilon / 3
    r = math.ceil(math.log2(part * n))
    levels = [part / 2 ** (0.5 * (1 - 1 / k) * (r - j)) for j in range(r + 1)]
    printed = part + part + 2 * sum(levels[1:])
    assert printed > 13
    for neighbours in RELATIONS:
        omega = wide(6, neighbours)
        _, bill, _ = released(omega, uniform(omega, n), epsilon, None, Params(inside="pmm", dimension=4))
        assert sum(charge.price.cost for charge in bill) == 4
        assert all(one_row(charge) <= charge.price.cost for charge in bill)


@pytest.mark.parametrize("d", [4, 20, 64])
def test_the_covariance_has_24_times_less_noise_than_printed(d):
    """E11: Laplace noise of 3 d^2 / (epsilon n) an entry is printed; d (d+1) / (8 epsilon n) would do, the
    cube's is smaller still."""
    omega, n = wide(d, "replace_one"), 1000
    corners = {name: code % 2 * (GRID - 1) for name, code in uniform(omega, n).items()}  # far from any mean
    _, bill, _ = released(omega, corners, 1.0, None, Params(dimension=1))
    (charge,) = [c for c in bill if c.question.step == "moments"]
    unit = 2 * (2**charge.question.statistic.bits - 1)
    assert charge.sensitivity.l1 / unit**2 == d * (d + 1) / 8
    printed = math.sqrt(2) * 3 * d**2 / float(charge.question.share) / n
    assert 24 * d / (d + 1) <= printed / (charge.price.sd / unit**2 / n) < 36
    assert one_row(charge) == charge.price.cost


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_the_mean_has_the_noise_of_all_columns_and_not_of_one(epsilon, neighbours):
    """E13: Lap(1 / (epsilon n)) is printed; two rows at opposite corners would cost d times the share."""
    d = 20
    omega = wide(d, neighbours)
    _, bill, _ = released(omega, uniform(omega, 1000), epsilon, None, Params(dimension=0))
    (charge,) = [c for c in bill if c.question.step == "mean"]
    corner = (2**charge.question.statistic.bits - 1) * (1 if neighbours == "add_remove" else 2)
    assert charge.sensitivity.l1 == d * corner
    assert one_row(charge) == charge.price.cost
    printed = math.sqrt(2) * corner / float(charge.price.cost)
    assert charge.price.sd > 0.4 * d * printed


def test_pure_noise_of_means_and_products_is_below_half_of_what_laplace_noise_would_be():
    omega = wide(20)
    _, bill, _ = released(omega, uniform(omega, 1000), 1.0, None, Params(dimension=1, inside="pmm"))
    for charge in bill:
        if isinstance(charge.question.statistic, Moments):
            laplace = math.sqrt(2) * charge.sensitivity.l1 / float(charge.price.cost)
            assert charge.price.sd < 0.44 * laplace


def test_the_release_is_made_of_answers_and_of_no_row():
    """E12: X'' = X' + mean. The same answers, given to a mechanism over other rows, give the same table."""
    omega = wide(5, strata=None)
    for params in (Params(), Params(inside="pmm", dimension=2)):
        model, _, recorded = released(omega, uniform(omega, 500), 5, None, params)
        left = [answer for _, answer in recorded]
        sd = asking(uniform(omega, 3), omega, 5)[0].sd

        def again(questions: list[Question], left: list[Answer] = left) -> list[Answer]:
            return [left.pop(0) for _ in questions]

        other = MECHANISM.run(Asking(again, sd), omega, params, MECHANISM.stages)
        first, second = drawn(model, 1000), drawn(other, 1000)
        assert all((first[name] == second[name]).all() for name in first)
        truth = {tuple(row) for row in zip(*uniform(omega, 500).values(), strict=True)}
        assert not truth & {tuple(row) for row in zip(*first.values(), strict=True)}


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_sizes_of_classes_are_paid_for(neighbours):
    """E14: "each image is used once" is not enough; class sizes are never free."""
    omega = mixed(neighbours)
    _, bill, _ = released(omega, uniform(omega, 300))
    (sizes,) = [c for c in bill if isinstance(c.question.statistic, Total) and c.question.by == "label"]
    assert sizes.price.cost > 0
    assert sizes.sensitivity.l1 == (1 if neighbours == "add_remove" else 2)
    by_class = next(c for c in bill if c.question.step == "mean")
    d, q = len(omega.modelled), 2**by_class.question.statistic.bits - 1
    assert by_class.sensitivity.l1 == d * q * (1 if neighbours == "add_remove" else 2)


def test_the_box_is_far_smaller_than_the_ball_and_inside_the_image_of_the_cube():
    """E16: R = sqrt(d) + |mean|."""
    rng = np.random.default_rng(0)
    d = 20
    x, _ = on_a_plane(1000, d, 2)
    y = x - 0.5
    found = axes(np.cov(y.T), 1e-3, keep=2)
    mean = y.mean(axis=0)
    own = box(found, mean, 2)
    radius = math.sqrt(d) + np.linalg.norm(x.mean(axis=0))
    assert np.prod(own.widths) < (2 * radius) ** 2 / 30
    inside = y @ own.vectors
    assert ((inside >= own.low) & (inside <= own.high)).mean() > 0.999
    corners = rng.choice([-0.5, 0.5], (4000, d)) @ own.vectors
    far = np.abs(own.vectors).sum(axis=0) / 2
    assert (own.high <= far + 1e-5).all()
    assert (own.low >= -far - 1e-5).all()
    assert np.abs(corners).max() <= far.max()


# --- what it keeps ----------------------------------------------------------------------------------------


def test_without_noise_mean_and_covariance_come_back():
    omega = wide(6)
    rng = np.random.default_rng(1)
    x = 0.5 + rng.normal(size=(50_000, 2)) @ rng.normal(0, 0.04, (2, 6)) + rng.normal(0, 0.02, (50_000, 6))
    model, _, _ = released(omega, codes_of(x), NOTHING)
    z = values_of(drawn(model, 50_000), 6)
    assert z.mean(axis=0) == pytest.approx(x.mean(axis=0), abs=0.002)
    assert np.cov(z.T) == pytest.approx(np.cov(x.T), abs=2e-4)
    assert model.total == 50_000
    assert model.facts["explained_variance"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("inside", ["pmm", "psmm"])
@pytest.mark.parametrize("k", [1, 2])
def test_rows_of_a_subspace_are_released_near_it_and_keep_their_shape(inside, k):
    d, n = 12, 60_000
    x, basis = on_a_plane(n, d, k)
    model, _, _ = released(wide(d), codes_of(x), 2.0, 1e-6, Params(inside=inside))
    assert model.facts["dimension"] >= k
    z = values_of(drawn(model, n), d)
    beside = (z - 0.5) - (z - 0.5) @ basis @ basis.T
    assert np.linalg.norm(beside, axis=1).mean() < 0.06
    for axis in range(k):
        real, made = (np.sort((part - 0.5) @ basis[:, axis]) for part in (x, z))
        assert np.abs(real - made).mean() < 0.01 * k  # exact W1 along the axis; a normal fit has 0.03
    normal, _, _ = released(wide(d), codes_of(x), 2.0, 1e-6)
    made = np.sort((values_of(drawn(normal, n), d) - 0.5) @ basis[:, 0])
    assert np.abs(np.sort((x - 0.5) @ basis[:, 0]) - made).mean() > 0.015


@pytest.mark.parametrize("basis", ["pooled", "per_class"])
def test_classes_keep_their_sizes_means_and_directions(basis):
    rng = np.random.default_rng(2)
    d, sizes = 8, [30_000, 10_000, 20_000]
    means = rng.uniform(0.3, 0.7, (3, d))
    lines = np.linalg.qr(rng.normal(size=(d, 3)))[0].T
    label = np.repeat(np.arange(3), sizes)
    x = np.clip(means[label] + rng.normal(0, 0.15, (len(label), 1)) * lines[label], 0, 1)
    omega = Domain((*wide(d).columns, Column("c", "nominal", categories=tuple("pqr"))), strata="c")
    model, _, _ = released(omega, codes_of(x) | {"c": label}, 4.0, 1e-6, Params(basis=basis))
    table = drawn(model, 60_000)
    assert np.bincount(table["c"]) == pytest.approx(sizes, rel=0.02)
    z = values_of(table, d)
    for k in range(3):
        assert z[table["c"] == k].mean(axis=0) == pytest.approx(x[label == k].mean(axis=0), abs=0.02)
        along = np.linalg.eigh(np.cov(z[table["c"] == k].T))[1][:, -1]
        assert abs(along @ lines[k]) > 0.95


def test_means_alone_are_the_release_when_the_dimension_is_zero():
    rng = np.random.default_rng(3)
    x = np.clip(rng.normal(0.3, 0.1, (20_000, 4)), 0, 1)
    model, bill, _ = released(wide(4), codes_of(x), 5.0, None, Params(dimension=0))
    assert [charge.question.step for charge in bill] == ["total", "mean"]
    z = values_of(drawn(model, 1000), 4)
    assert np.ptp(z, axis=0).max() < 1e-6
    assert z[0] == pytest.approx(x.mean(axis=0), abs=0.005)
    assert model.facts["dimension"] == 0


def test_missing_values_come_out_at_their_rate_and_do_not_pull_the_mean_to_the_centre():
    rng = np.random.default_rng(4)
    n = 50_000
    columns = tuple(Column(f"x{j}", "continuous", lower=0.0, upper=1.0, nullable=True) for j in range(4))
    omega = Domain(columns)
    x = np.clip(0.2 + rng.normal(0, 0.05, (n, 1)) * [1, 1, 1, -1] + rng.normal(0, 0.01, (n, 4)), 0, 1)
    codes = codes_of(x)
    rates = [0.0, 0.1, 0.5, 1.0]
    for j, rate in enumerate(rates):
        codes[f"x{j}"][rng.random(n) < rate] = GRID
    model, _, _ = released(omega, codes, 10.0, 1e-6)
    table = check_valid(model, omega, n)
    for j, rate in enumerate(rates):
        missing = table[f"x{j}"] == GRID
        assert missing.mean() == pytest.approx(rate, abs=0.02)
        if rate < 1:
            assert (table[f"x{j}"][~missing] / GRID).mean() == pytest.approx(0.2, abs=0.02)
    both = (table["x0"] < GRID) & (table["x1"] < GRID)
    assert np.corrcoef(table["x0"][both], table["x1"][both])[0, 1] > 0.8


def test_coarse_columns_keep_their_means():
    omega = Domain(
        (Column("b", "boolean", categories=("false", "true")), Column("n", "integer", lower=0, upper=3))
    )
    rng = np.random.default_rng(5)
    codes = {"b": (rng.random(20_000) < 0.3).astype(np.int64), "n": rng.integers(0, 2, 20_000)}
    table = drawn(released(omega, codes, NOTHING, None, Params(dimension=0))[0], 20_000)
    assert table["b"].mean() == pytest.approx(0.3, abs=0.02)
    assert table["n"].mean() == pytest.approx(0.5, abs=0.02)


def test_a_clip_lowers_the_noise_of_rows_that_lie_near_the_centre():
    omega = wide(16)
    x = np.clip(np.random.default_rng(6).normal(0.5, 0.05, (3000, 16)), 0, 1)
    plain = released(omega, codes_of(x), 1, 1e-6, Params(dimension=1, inside="pmm"))[1]
    bound = released(omega, codes_of(x), 1, 1e-6, Params(dimension=1, inside="pmm", clip=1.0))[1]
    noise = [noise_of(bill) for bill in (plain, bound)]
    assert noise[1]["moments"] < 0.1 * noise[0]["moments"]
    assert noise[1]["mean"] < 0.35 * noise[0]["mean"]


def noise_of(bill) -> dict[str, float]:
    """The noise of each sum, in units of y."""
    sums = [c for c in bill if isinstance(c.question.statistic, Moments)]
    return {
        c.question.step: c.price.sd / (2 * (2**c.question.statistic.bits - 1)) ** c.question.statistic.degree
        for c in sums
    }


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_rows_are_added_up_about_their_means_and_pulled_in_to_where_few_of_them_are(delta):
    """Classes far from each other, each narrow: noise is that of rows which are near their class's mean."""
    d = 24
    omega = wide(d, strata="label")
    omega = replace(omega, columns=(*omega.columns, Column("label", "nominal", categories=("u", "v"))))
    rng = np.random.default_rng(3)
    label = rng.integers(2, size=40_000)
    axis = rng.normal(size=d) / 2
    middle = np.where(label == 1, 0.8, 0.2)[:, None]
    x = np.clip(middle + 0.15 * np.outer(rng.normal(size=40_000), axis), 0, 1)
    codes = codes_of(x) | {"label": label}
    model, bill, _ = released(omega, codes, 4.0, delta)
    plain = noise_of(released(omega, codes, 4.0, delta, Params(inside="pmm"))[1])
    furthest = 2 * np.abs(x - middle)
    sizes = furthest.sum(axis=1) if delta is None else np.sqrt((furthest**2).sum(axis=1))
    clip = model.facts["clip"]["moments"]
    assert np.quantile(sizes, 0.5) < clip < 1.5 * np.quantile(sizes, 0.99)
    assert noise_of(bill)["moments"] < (0.7 if delta is None else 0.5) * plain["moments"]
    moments = model.exports["moments"]()
    for k, one in enumerate(moments["classes"][:2]):
        mean, covariance = x[label == k].mean(axis=0), np.cov(x[label == k].T)
        assert np.abs(np.array(one["mean"]) - mean).max() < 0.02
        assert np.linalg.norm(one["covariance"] - covariance) < 0.3 * np.linalg.norm(covariance)


@pytest.mark.parametrize(
    ("clip", "delta", "part"), [(None, None, 1), (None, 1e-6, 0.5), (2.0, None, 1), (2.0, 1e-6, 0.5)]
)
def test_the_edge_is_that_of_the_noise_that_was_drawn(clip, delta, part):
    """Under a clip Gaussian noise above the diagonal has half the variance of that on it; what is made longer
    for what was cut off has longer noise."""
    d, n = 16, 40_000
    x = np.clip(np.random.default_rng(7).normal(0.5, 0.05, (n, d)), 0, 1)
    model, bill, _ = released(wide(d), codes_of(x), 5.0, delta, Params(clip=clip))
    charge = next(c for c in bill if c.question.step == "moments")
    unit = 2 * (2**charge.question.statistic.bits - 1)
    tau = charge.price.sd / unit**2 / n * math.sqrt(part)
    longer = model.facts["noise_edge"] / (2 * tau * math.sqrt(d))
    assert 0.95 < longer < (1.05 if clip else 1.3)


def test_drawing_repeats_itself_and_comes_in_blocks():
    omega = mixed()
    model, _, _ = released(omega, uniform(omega, 2000), 20)
    first, second, other = drawn(model, 5000, 7), drawn(model, 5000, 7), drawn(model, 5000, 8)
    assert all((first[name] == second[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)
    sizes = [len(block["b"]) for block in model.draw(300_000, np.random.default_rng(0))]
    assert sum(sizes) == 300_000
    assert max(sizes) <= pieces.BLOCK_ROWS + 100


# --- tables and budgets that could break it ---------------------------------------------------------------


@pytest.mark.parametrize(
    "params", [Params(), Params(inside="pmm"), Params(inside="psmm"), Params(basis="per_class")]
)
@pytest.mark.parametrize("epsilon", [0.001, 1, 2000])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_tiny_tables_release(n, epsilon, params):
    for neighbours in RELATIONS:
        for omega in (mixed(neighbours), wide(1, neighbours), wide(7, neighbours)):
            model, _, _ = released(omega, uniform(omega, n), epsilon, None, params)
            check_valid(model, omega, 1)
            check_valid(model, omega, 50)
            check_valid(model, omega, 0)


@pytest.mark.parametrize("inside", ["gaussian", "pmm", "psmm"])
@pytest.mark.parametrize("delta", [None, 1e-9])
def test_constant_columns_equal_rows_and_empty_classes_release(delta, inside):
    for neighbours in RELATIONS:
        omega = mixed(neighbours)
        equal = {column.name: np.zeros(500, np.int64) for column in omega}  # one class, all rows the same
        gone = {column.name: np.full(500, column.codes - 1) for column in omega}  # missing wherever it can be
        for codes in (equal, gone):
            model, _, _ = released(omega, codes, 2, delta, Params(inside=inside))
            check_valid(model, omega, 300)


def test_all_rows_equal_come_out_nearly_equal():
    omega = wide(5)
    codes = {column.name: np.full(50_000, GRID // 4) for column in omega}
    z = values_of(drawn(released(omega, codes, 1.0, 1e-6)[0], 1000), 5)
    assert z == pytest.approx(0.25, abs=0.2)
    assert z.mean(axis=0) == pytest.approx(0.25, abs=0.02)


def test_fewer_rows_than_columns_and_hundreds_of_columns_release():
    omega = wide(500)
    for delta, params in ((None, Params(dimension=2)), (1e-6, Params(inside="pmm", dimension=2))):
        model, bill, _ = released(omega, uniform(omega, 100), 1, delta, params)
        check_valid(model, omega, 60)
        for charge in bill:
            if isinstance(charge.question.statistic, Moments):
                assert charge.question.statistic.bits <= 14


def test_what_cannot_be_released_so_is_refused_with_a_way_out():
    assert fits(mixed(), Params()) == []
    assert fits(Domain(mixed().columns), Params()) == []
    assert fits(wide(3), Params(dimension=4)) == [
        "mechanism.dimension is 4; there are only 3 columns in the model"
    ]
    assert fits(Domain(mixed().columns), Params(dimension=12)) == [
        "mechanism.dimension is 12; there are only 8 columns (11 coordinates) in the model"
    ]
    many = Domain(
        (*wide(500).columns, Column("c", "nominal", categories=tuple(map(str, range(2000))))), strata="c"
    )
    (problem,) = fits(many, Params())
    assert problem == (
        "lowdim would need 125,250 products in each of 2000 classes; release fewer columns or categories, "
        "or set mechanism.dimension to 0"
    )
    assert fits(many, Params(dimension=0)) == []


def test_notes_say_what_was_chosen_and_why():
    x, _ = on_a_plane(60_000, 10, 1)
    codes = codes_of(x)
    model, _, _ = released(wide(10), codes, 5.0, 1e-6, Params(dimension=2))
    facts = model.facts
    part = f"By private estimates it has {100 * facts['explained_variance']:.0f} % of the variance."
    assert model.notes == (
        "The subspace has dimension 2: as the spec says; "
        f"{facts['above_noise']} of them above the noise. {part}",
    )
    assert facts["explained_variance"] > 0.9
    model, _, _ = released(wide(10), codes, 5.0, 1e-6)
    facts = model.facts
    part = f"By private estimates it has {100 * facts['explained_variance']:.0f} % of the variance."
    assert model.notes == (
        f"The subspace has dimension {facts['dimension']}: the axes whose variance is above "
        f"{facts['noise_edge']:.2g}, the most that noise alone gives. {part}",
    )
    assert 1 <= model.facts["dimension"] < 5
    named = {"dimension", "inside", "above_noise", "noise_edge", "noise_edge_expected", "explained_variance"}
    assert named == set(model.facts) - {"clip"}
    assert all(0 < bound < 2 * 10**0.5 for bound in model.facts["clip"].values())
    model, _, _ = released(wide(10), codes, 5.0, 1e-6, Params(dimension=0))
    assert model.notes == ("Means only, as the spec says: rows of a class differ by rounding alone.",)
    rng = np.random.default_rng(0)
    many = np.clip(0.5 + rng.normal(0, 0.1, (60_000, 5)) @ np.linalg.qr(rng.normal(size=(10, 5)))[0].T, 0, 1)
    model, _, _ = released(wide(10), codes_of(many), 20.0, 1e-6, Params(inside="pmm"))
    axes = model.facts["counted_axes"]
    assert 1 <= axes <= 6
    counted = f"Rows were counted along the first {axes} axes, and are normal along the others."
    assert model.notes[1:] == (() if axes == model.facts["dimension"] else (counted,))
    assert model.facts["dimension"] >= 5


# --- nominal columns inside -------------------------------------------------------------------------------


def with_a_nominal(n: int, seed: int = 0) -> tuple[Domain, dict[str, np.ndarray]]:
    """Six numbers of one cause, and a category that goes with it; rarely missing."""
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=n)
    x = np.clip(0.5 + 0.12 * cause[:, None] + rng.normal(0, 0.02, (n, 6)), 0, 1)
    site = np.where(cause + rng.normal(0, 0.5, n) > 0, 1, np.where(rng.random(n) < 0.4, 0, 2))
    site[rng.random(n) < 0.05] = 3
    columns = (*wide(6).columns, Column("site", "nominal", categories=tuple("abc"), nullable=True))
    return Domain(columns), codes_of(x) | {"site": site}


@pytest.mark.parametrize("inside", ["gaussian", "pmm", "psmm"])
def test_a_nominal_column_keeps_its_shares_and_goes_with_the_numbers(inside):
    omega, codes = with_a_nominal(40_000)
    model, bill, _ = released(omega, codes, 5.0, 1e-6, Params(inside=inside))
    assert "missing site" not in {charge.question.step for charge in bill}  # it is one of its categories
    table = check_valid(model, omega, 40_000)
    share = np.bincount(table["site"], minlength=4) / 40_000
    assert share == pytest.approx(np.bincount(codes["site"]) / 40_000, abs=0.02)

    def gap(made):
        return (made["x0"][made["site"] == 1].mean() - made["x0"][made["site"] == 2].mean()) / GRID

    assert gap(table) > 0.4 * gap(codes) > 0.05


def test_a_rare_category_stays_rare_beside_columns_that_vary_by_themselves():
    omega, codes = with_a_nominal(40_000)
    rng = np.random.default_rng(1)
    codes = uniform(wide(6), 40_000) | {"site": rng.choice(4, 40_000, p=[0.6, 0.35, 0.04, 0.01])}
    model, _, _ = released(omega, codes, 50.0, 1e-6, Params(dimension=1))
    share = np.bincount(drawn(model, 40_000)["site"], minlength=4) / 40_000
    assert share[:2] == pytest.approx([0.6, 0.35], abs=0.06)
    assert share[2:] == pytest.approx([0.04, 0.01], abs=0.015)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("strata", [None, "label"])
def test_means_alone_give_a_nominal_column_its_shares_class_by_class(strata, neighbours):
    columns = (*mixed().columns, Column("place", "nominal", categories=tuple("uvwx")))
    omega = Domain(columns, neighbours, strata=strata)
    codes = uniform(omega, 20_000)
    codes["place"] = np.where(codes["label"] == 0, 3, np.minimum(codes["place"], 1))
    model, _, _ = released(omega, codes, NOTHING, None, Params(dimension=0))
    table = check_valid(model, omega, 20_000)
    for k in range(4) if strata else ():
        real, made = (np.bincount(t["place"][t["label"] == k], minlength=4) for t in (codes, table))
        assert made / made.sum() == pytest.approx(real / real.sum(), abs=0.03)
    real, made = (np.bincount(t["place"], minlength=4) / 20_000 for t in (codes, table))
    assert made == pytest.approx(real, abs=0.03)
