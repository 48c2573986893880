"""pmm: shares, depth, consistency, the paper's rule and its errata, edge cases."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.pmm import levels, pmm
from dpsynth_cli.questions import Answer, Asking, CellCounts, Total
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.prices import charge_for
from dpsynth_cli.trusted.sums.tally import Tally
from tests.asking import asking, drawn

X = Column("x", "continuous", lower=0.0, upper=1.0)
Y = Column("y", "continuous", lower=0.0, upper=1.0)
AGE = Column("age", "integer", lower=0, upper=9, nullable=True)
KIND = Column("kind", "nominal", categories=("a", "b", "c"))
STAGES = dict(pmm.MECHANISM.stages)


def table(omega: Domain, rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {}
    for column in omega:
        values = np.clip(rng.normal(0.4, 0.1, rows), 0, 0.999) * column.size
        found[column.name] = np.where(rng.random(rows) < 0.2, column.codes - 1, values.astype(np.int64))
    return found


def quiet(codes: dict[str, np.ndarray], omega: Domain) -> Asking:
    """The exact sums, as if there were hardly any noise."""
    accountant = Accountant.pure(Fraction(10**6))

    def answer(questions):
        tally = Tally(questions, omega)
        tally.add(codes, len(next(iter(codes.values()))))
        charges = [charge_for(question, omega, accountant) for question in questions]
        return [
            Answer(exact, charge.lengths, charge.price.noise, charge.price.sd)
            for exact, charge in zip(tally.sums(), charges, strict=True)
        ]

    return Asking(answer, lambda question: charge_for(question, omega, accountant).price.sd)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("strata", [None, "kind"])
@pytest.mark.parametrize(
    "params",
    [pmm.Params(), pmm.Params(consistency="uniform", levels="all"), pmm.Params(transform="copula"),
     pmm.Params(depth=5, fanout=4, consistency="proportional")],
    ids=["default", "paper", "copula", "proportional"],
)  # fmt: skip
def test_every_variant_spends_exactly_its_budget_and_draws_what_was_asked(neighbours, delta, strata, params):
    omega = Domain((X, AGE, KIND), neighbours, strata=strata)
    codes = table(omega, 2000)
    ask, accountant, _, _ = asking(codes, omega, 0.5, delta)
    model = pmm.run(ask, omega, params, STAGES)
    assert accountant.spent == accountant.total
    for rows in (1, 777):
        made = drawn(model, rows)
        assert {name: len(values) for name, values in made.items()} == {"x": rows, "age": rows, "kind": rows}
        assert all(made[c.name].min() >= 0 and made[c.name].max() < c.codes for c in omega)
    assert abs(model.total - 2000) < 1200
    if neighbours == "replace_one" and strata is None:
        assert model.total == 2000


def test_without_noise_the_leaves_are_reproduced():
    omega = Domain((X, AGE))
    even = np.random.default_rng(0).integers(0, GRID, 5000)  # so that there is no focus
    codes = table(omega, 5000) | {"x": even, "age": np.minimum(even // (GRID // 10), 9)}
    model = pmm.run(quiet(codes, omega), omega, pmm.Params(depth=10), STAGES)
    made = drawn(model, 5000)
    assert model.total == 5000
    for name, cells in (("age", 1), ("x", GRID // 16)):
        real = np.bincount(codes[name] // cells, minlength=16)
        assert np.abs(real - np.bincount(made[name] // cells, minlength=16)).max() <= 3


def test_cells_that_can_hold_no_row_never_get_one():
    omega = Domain(
        (
            Column("a", "integer", lower=0, upper=4, nullable=True),
            Column("b", "boolean", categories=("f", "t")),
        )
    )
    codes = {"a": np.array([0, 4, 5, 5]), "b": np.array([0, 1, 1, 0])}
    ask, *_ = asking(codes, omega, 0.1)
    made = drawn(pmm.run(ask, omega, pmm.Params(depth=5), STAGES), 4000)
    assert set(made["a"]) <= set(range(6))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_e1_the_shares_of_the_papers_levels_follow_eq_3_7_and_add_up_to_the_whole(d):
    columns = tuple(Column(f"c{i}", "continuous", lower=0.0, upper=1.0) for i in range(d))
    omega = Domain(columns)
    ask, accountant, bill, _ = asking(table(omega, 1000), omega, 1.0)
    pmm.run(ask, omega, pmm.Params(depth=8, consistency="uniform", levels="all"), STAGES)
    counts = [charge for charge in bill if charge.question.step == "counts"]
    assert [len(c.question.statistic.cells.order) for c in counts] == list(range(9))
    sigma = np.array([float(c.price.parameter) for c in counts])
    # Delta_j = 2^j 2^-floor(j/d), Delta_-1 = 1
    due = np.array([1.0] + [2.0 ** -((j - j // d) / 2) for j in range(8)])
    assert np.allclose(sigma / sigma[0], due / due[0], rtol=1e-9)
    # The printed rule spends several times epsilon; ours exactly epsilon, the total's share included.
    assert sum(charge.price.cost for charge in bill) == 1
    printed = sum(1 / (2 ** ((1 - 1 / d) * (8 - j) / 2)) for j in range(9))
    assert printed > (2.5 if d > 1 else 8)
    assert accountant.spent == 1


def test_e2_under_replace_one_the_root_is_exact_and_every_level_has_twice_the_noise():
    bills = {}
    for neighbours in ("add_remove", "replace_one"):
        omega = Domain((X,), neighbours)
        ask, _, bills[neighbours], _ = asking(table(omega, 1000), omega, 1.0)
        pmm.run(ask, omega, pmm.Params(depth=6), STAGES)
    free, *rest = bills["replace_one"]
    assert (type(free.question.statistic), free.price.noise) == (Total, "none")
    for charge in rest:
        assert charge.price.parameter == 2 / charge.price.cost
    for charge in bills["add_remove"]:
        assert charge.price.parameter == 1 / charge.price.cost
    paper = levels.measured_levels((X,), (0,) * 6, "replace_one", every=True)[0]
    assert min(paper) > 0


def test_e4_the_depth_follows_the_noisy_number_of_rows_and_nothing_else():
    omega = Domain((X, Y))
    depths = []
    for n in (500, 64_000):
        ask = Asking(
            lambda questions, n=n: [
                Answer(np.full(sum(_lengths(q)), n), _lengths(q), "discrete_laplace", 1.0) for q in questions
            ],
            lambda question: math.sqrt(2),
        )
        depths.append(pmm.run(ask, omega, pmm.Params(), STAGES).facts["depth"][0])
    assert depths == [round(math.log2(500) - 1), round(math.log2(64_000) - 1)]


def _lengths(question) -> tuple[int, ...]:
    if isinstance(question.statistic, CellCounts):
        return (2 ** len(question.statistic.cells.order or ()),)
    return (1,)


def test_e9_the_upper_bound_is_kept():
    omega = Domain((X,))
    codes = {"x": np.full(3000, X.size - 1)}
    ask, *_ = asking(codes, omega, 5.0)
    made = drawn(pmm.run(ask, omega, pmm.Params(), STAGES), 1000)
    assert (made["x"] >= X.size * 0.99).mean() > 0.97


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_few_rows_one_value_and_all_missing_release(rows, neighbours):
    one = Column("one", "integer", lower=5, upper=5)
    omega = Domain((one, AGE, KIND), neighbours, strata="kind")
    codes = {"one": np.zeros(rows, int), "age": np.full(rows, AGE.size), "kind": np.zeros(rows, int)}
    for params in (
        pmm.Params(),
        pmm.Params(transform="copula"),
        pmm.Params(consistency="uniform", levels="all"),
    ):
        ask, accountant, _, _ = asking(codes, omega, 0.2)
        model = pmm.run(ask, omega, params, STAGES)
        assert accountant.spent == accountant.total
        assert model.total >= 0
        made = drawn(model, 5)
        assert set(made["one"]) == {0}


def test_only_one_value_in_all_releases():
    omega = Domain((Column("one", "integer", lower=5, upper=5),))
    ask, accountant, _, _ = asking({"one": np.zeros(9, int)}, omega, 1.0)
    assert drawn(pmm.run(ask, omega, pmm.Params(), STAGES), 3)["one"].tolist() == [0, 0, 0]
    assert accountant.spent == 1


def test_a_public_hint_replaces_the_paid_total():
    omega = Domain((X,), rows_hint=2000)
    ask, accountant, bill, _ = asking(table(omega, 2000), omega, 1.0)
    model = pmm.run(ask, omega, pmm.Params(), STAGES)
    assert [charge.question.step for charge in bill] == ["counts"] * len(bill)
    assert accountant.spent == 1
    assert abs(model.total - 2000) < 200


def test_the_same_answers_and_seed_give_the_same_rows_and_blocks_are_alike():
    omega = Domain((X, Y, KIND), strata="kind")
    ask, *_ = asking(table(omega, 3000), omega, 1.0)
    model = pmm.run(ask, omega, pmm.Params(), STAGES)
    one, other = drawn(model, 500, seed=3), drawn(model, 500, seed=3)
    assert all((one[name] == other[name]).all() for name in one)
    blocks = list(model.draw(3 * pmm.BLOCK_ROWS // 2, np.random.default_rng(0)))
    assert [len(block["x"]) for block in blocks] == [3 * pmm.BLOCK_ROWS // 4] * 2
    means = [block["x"].mean() / GRID for block in blocks]
    assert abs(means[0] - means[1]) < 0.01
    halves = blocks[0]["x"][:1000].mean() / blocks[0]["x"].mean()
    assert abs(halves - 1) < 0.2  # not in the order of the cells


def test_too_many_columns_and_odd_fanouts_are_refused():
    many = Domain(tuple(Column(f"c{i}", "boolean", categories=("f", "t")) for i in range(6)))
    assert pmm.fits(many, pmm.Params()) == [
        "pmm takes 1 to 5 columns besides the strata, not 6; for more, use another mechanism, or state wide: "
        "allowed to compare"
    ]
    assert pmm.fits(many, pmm.Params(wide="allowed")) == []
    codes = {c.name: np.tile([0, 1], 500) for c in many}
    ask, accountant, *_ = asking(codes, many, 5.0)
    made = drawn(pmm.run(ask, many, pmm.Params(wide="allowed"), STAGES), 1000)
    assert accountant.spent == accountant.total
    assert np.mean([made["c0"] == made[f"c{i}"] for i in range(6)]) > 0.95
    alone = Domain((Column("k", "nominal", categories=("a", "b")),), strata="k")
    assert pmm.fits(alone, pmm.Params(wide="allowed")) == [
        "pmm takes 1 to 5 columns besides the strata, not 0"
    ]
    assert pmm.fits(Domain((X,)), pmm.Params(fanout=12)) == [
        "mechanism.fanout is 12; it must be a power of two"
    ]


def test_the_default_is_closer_than_the_papers_rule():
    omega = Domain((X,))
    rng = np.random.default_rng(5)
    codes = {"x": (np.clip(rng.normal(0.3, 0.05, 20_000), 0, 0.999) * GRID).astype(np.int64)}

    def w1(params: pmm.Params) -> float:
        ask, *_ = asking(codes, omega, 1.0)
        made = drawn(pmm.run(ask, omega, params, STAGES), 20_000)
        return float(np.abs(np.sort(made["x"]) - np.sort(codes["x"])).mean() / GRID)

    ours = np.mean([w1(pmm.Params()) for _ in range(6)])
    paper = np.mean([w1(pmm.Params(consistency="uniform", levels="all")) for _ in range(6)])
    assert ours < 0.7 * paper


@pytest.mark.parametrize("params", [pmm.Params(), pmm.Params(consistency="uniform", levels="all")])
def test_rows_asked_of_nobody_are_still_possible_rows(params):
    omega = Domain((Column("five", "integer", lower=0, upper=4), KIND), "replace_one")
    codes = {"five": np.zeros(0, int), "kind": np.zeros(0, int)}
    model = pmm.run(quiet(codes, omega), omega, params, STAGES)
    assert model.total == 0
    made = drawn(model, 5000)
    assert set(made["five"]) == set(range(5))
    assert set(made["kind"]) == set(range(3))


@pytest.mark.parametrize(("d", "more"), [(1, -4), (2, -1), (3, 2), (4, 4), (5, 4)])
def test_the_depth_grows_with_the_columns(d, more):
    omega = Domain(
        tuple(Column(f"c{i}", "continuous", lower=0.0, upper=1.0) for i in range(d)), "replace_one"
    )
    codes = {column.name: np.arange(2048) * (GRID // 2048) for column in omega}  # all over, no focus
    ask = Asking(quiet(codes, omega).answer, lambda question: math.sqrt(2))  # as with epsilon 1
    assert pmm.run(ask, omega, pmm.Params(), STAGES).facts["depth"] == [11 + more]
    paper = pmm.Params(consistency="uniform", levels="all")
    assert pmm.run(ask, omega, paper, STAGES).facts["depth"] == [10 if d == 1 else 11]  # Corollary 3.11


def test_the_papers_bound_doubles_its_noise_under_replace_one():
    leaf = 2.0**-11
    noise = [
        levels.paper_bound((X,), 1.0, 4000, relation) - leaf for relation in ("add_remove", "replace_one")
    ]
    assert noise[1] / noise[0] == pytest.approx(2 * 11**2 / 12**2)


def far_apart(column: Column, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Distances between codes of one column, as the bound means them."""
    if column.type in ("nominal", "boolean"):
        return (one != other).astype(float)
    missing = [codes == column.size for codes in (one, other)]
    apart = np.abs(one - other) / (column.size - 1)
    return np.where(missing[0] != missing[1], 1.0, np.where(missing[0] & missing[1], 0.0, apart))


def w1(
    omega: Domain, one: dict[str, np.ndarray], other: dict[str, np.ndarray], metric: str = "linf"
) -> float:
    """Exact: an assignment of as many rows to as many."""
    parts = [far_apart(c, one[c.name][:, None], other[c.name][None, :]) for c in omega.columns]
    cost = np.linalg.norm(np.stack(parts), {"linf": np.inf, "l1": 1, "l2": 2}[metric], axis=0)
    return float(cost[linear_sum_assignment(cost)].mean())


MANY = tuple(f"c{i}" for i in range(512))
HOSTILE = {
    "nominal": (Column("a", "nominal", categories=MANY),),
    "ordinal": (Column("a", "ordinal", categories=MANY[:9]),),
    "boolean": (Column("a", "boolean", categories=("false", "true")), X),
    "nullable": (Column("a", "integer", lower=0, upper=9, nullable=True), X),
    "nominal and nullable": (Column("a", "nominal", categories=MANY[:40], nullable=True), X),
    "date": (Column("a", "date", lower=0, upper=400),),
    "continuous": (X,),
    "plane": (X, Y),
}


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_the_papers_bound_is_never_exceeded_by_any_type_of_column(kind, neighbours):
    omega, n, epsilon = Domain(HOSTILE[kind], neighbours), 300, 2.0
    rng = np.random.default_rng(3)
    point = {c.name: np.full(n, c.codes - 1) for c in omega}
    two = {c.name: np.where(np.arange(n) % 2, c.codes - 1, 0) for c in omega}
    even = {c.name: rng.integers(c.codes, size=n) for c in omega}
    bound = levels.paper_bound(omega.columns, epsilon, n, neighbours)
    paper = pmm.Params(consistency="uniform", levels="all")
    for codes in (point, two, even):
        found = []
        for seed in range(4):
            ask, *_ = asking(codes, omega, epsilon)
            found.append(w1(omega, codes, drawn(pmm.run(ask, omega, paper, STAGES), n, seed)))
        assert np.mean(found) <= bound


def test_the_papers_bound_says_something_where_it_can_and_nothing_of_many_far_categories():
    assert levels.paper_bound((X,), 1.0, 1e5, "add_remove") == pytest.approx(0.0044, rel=0.02)
    assert levels.paper_bound((X, Y), 1.0, 1e5, "add_remove") == pytest.approx(0.167, rel=0.01)
    # Measured once: 0.58 where a bound that took the categories for places on a line said 0.245.
    assert levels.paper_bound(HOSTILE["nominal"], 1.0, 1000, "replace_one") > 1
