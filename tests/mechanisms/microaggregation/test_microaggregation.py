"""microaggregation: what it asks and spends, what it keeps of a table, when it falls back, the errata."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.marginals import independent
from dpsynth_cli.mechanisms.microaggregation import printed as damped
from dpsynth_cli.mechanisms.microaggregation.grid import grid
from dpsynth_cli.mechanisms.microaggregation.microaggregation import MECHANISM, RICH, Params, fits
from dpsynth_cli.mechanisms.microaggregation.mixture import Mixture
from dpsynth_cli.mechanisms.shared.sizes import sizes_and_rest
from dpsynth_cli.questions import Answer, Asking, CellCounts, CellSums, Gram, Scored
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.prices import charge_for
from dpsynth_cli.trusted.sums.batch import cells_of, path_of
from dpsynth_cli.trusted.sums.tally import Tally
from tests.asking import asking, drawn

RELATIONS = ("add_remove", "replace_one")
MIXED = (
    Column("x", "continuous", lower=-3.0, upper=5.0, nullable=True),
    Column("n", "integer", lower=-2, upper=9),
    Column("o", "ordinal", categories=("low", "mid", "high"), nullable=True),
    Column("b", "boolean", categories=("false", "true")),
    Column("day", "date", lower=18262, upper=18262 + 365, nullable=True),
    Column("one", "integer", lower=4, upper=4),
    Column("label", "nominal", categories=("p", "q", "r"), nullable=True),
)


def uniform(omega: Domain, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {column.name: rng.integers(column.codes, size=n) for column in omega}


def latent(n: int, d: int, seed: int = 0) -> tuple[tuple[Column, ...], dict[str, np.ndarray]]:
    """d attributes of 4 categories that depend on one hidden number."""
    columns = tuple(Column(f"c{j}", "nominal", categories=tuple("wxyz")) for j in range(d))
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)
    return columns, {
        f"c{j}": np.clip(np.floor(1.2 * hidden + rng.normal(size=n) + 2), 0, 3).astype(np.int64)
        for j in range(d)
    }


def pair_error(omega: Domain, real: dict[str, np.ndarray], made: dict[str, np.ndarray]) -> float:
    """The mean squared error of the 2-way marginals of different attributes."""
    errors = []
    for one, other in combinations(omega.columns, 2):
        tables = [
            np.bincount(rows[one.name] * other.codes + rows[other.name], minlength=one.codes * other.codes)
            / len(rows[one.name])
            for rows in (real, made)
        ]
        errors.append((tables[0] - tables[1]) ** 2)
    return float(np.concatenate(errors).mean())


def seeded(codes, omega, epsilon, delta=None, seed=0):
    """An `ask` with the real sums and prices, and noise that is the same in every run of the tests."""
    exact = Fraction(str(epsilon))
    accountant = Accountant.pure(exact) if delta is None else Accountant.gaussian(exact, Fraction(str(delta)))
    rng = np.random.default_rng(seed)
    bill, recorded = [], []

    def answer(questions):
        tally = Tally(questions, omega)
        tally.add(codes, len(next(iter(codes.values()))))
        given = []
        for question, sums in zip(questions, tally.sums(), strict=True):
            charge = charge_for(question, omega, accountant)
            sd = charge.price.sd
            noise = (
                rng.laplace(0, sd / math.sqrt(2), len(sums))
                if delta is None
                else rng.normal(0, sd, len(sums))
            )
            given.append(
                Answer(sums + np.rint(noise).astype(np.int64), charge.lengths, charge.price.noise, sd)
            )
            bill.append(charge)
            recorded.append((question, given[-1]))
        return given

    return Asking(answer, lambda question: charge_for(question, omega, accountant).price.sd), bill, recorded


def released(omega, codes, epsilon=1.0, delta=None, params=None):
    """A model, its bill and its answers, the same in every run."""
    ask, bill, recorded = seeded(codes, omega, epsilon, delta)
    return MECHANISM.run(ask, omega, params or Params(), MECHANISM.stages), bill, recorded


def paid(omega, codes, epsilon=1.0, delta=None, params=None):
    """The same over the real border, which spends exactly what it may."""
    ask, accountant, bill, recorded = asking(codes, omega, epsilon, delta)
    model = MECHANISM.run(ask, omega, params or Params(), MECHANISM.stages)
    assert accountant.spent == accountant.total
    return model, bill, recorded


def check_valid(model, omega, rows):
    table = drawn(model, rows)
    for column in omega:
        assert len(table[column.name]) == rows
        assert table[column.name].min() >= 0
        assert table[column.name].max() < column.codes
    return table


# --- the budget and the rows --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params", [Params(), Params(axes=2), Params(axes=0), Params(axes=1, cells=4, bins=3)]
)
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("strata", [None, "label"])
def test_spends_exactly_its_budget_and_releases_valid_rows(strata, neighbours, delta, params):
    omega = Domain(MIXED, neighbours, strata=strata)
    for epsilon in (0.3, 50):
        model, _, _ = paid(omega, uniform(omega, 400), epsilon, delta, params)
        check_valid(model, omega, 500)
        assert neighbours == "add_remove" or model.total == 400


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 5000.0])
def test_few_rows_release_at_any_epsilon(rows, neighbours, epsilon):
    for omega in (Domain(MIXED, neighbours, strata="label"), Domain(MIXED[:1], neighbours)):
        codes = {column.name: np.full(rows, column.codes - 1) for column in omega}
        for params in (Params(), Params(axes=3)):
            model, _, _ = paid(omega, codes, epsilon, None, params)
            check_valid(model, omega, 7)


def test_it_asks_marginals_then_the_gram_then_sums_in_every_cell():
    columns, codes = latent(20_000, 6)
    model, bill, _ = released(Domain(columns), codes)
    kinds = [type(charge.question.statistic) for charge in bill if charge.question.step != "total"]
    assert kinds == [CellCounts] * 6 + [Gram, CellSums]
    assert model.facts["cells"] == [3 ** model.facts["axes"][0]]
    assert model.facts["axes"][0] >= 2
    shares = {
        step: sum(c.question.share for c in bill if c.question.step == step) for step in MECHANISM.stages
    }
    assert {step: float(share) for step, share in shares.items()} == pytest.approx(dict(MECHANISM.stages))


def test_the_same_answers_and_seed_give_the_same_rows():
    columns, codes = latent(4000, 5)
    model, _, _ = released(Domain(columns), codes, 3)
    one, other, third = drawn(model, 900, 5), drawn(model, 900, 5), drawn(model, 900, 6)
    assert all((one[name] == other[name]).all() for name in one)
    assert any((one[name] != third[name]).any() for name in one)


# --- what is kept -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("neighbours", "delta"), [("add_remove", None), ("replace_one", 1e-6)])
def test_what_depends_on_each_other_stays_so(neighbours, delta):
    columns, codes = latent(20_000, 8)
    omega = Domain(columns, neighbours)
    model, _, _ = released(omega, codes, 1.0, delta)
    ask, *_ = seeded(codes, omega, 1.0, delta, seed=1)
    alone = independent(ask, omega, *sizes_and_rest(ask, omega, {"total": 0.02, "columns": 0.98}))
    ours, theirs = (pair_error(omega, codes, drawn(m, 20_000)) for m in (model, alone))
    assert ours < theirs / 5


def test_what_is_independent_stays_so():
    columns, codes = latent(20_000, 6)
    rng = np.random.default_rng(0)
    model, _, _ = released(Domain(columns), {name: rng.permutation(own) for name, own in codes.items()}, 2.0)
    made = drawn(model, 20_000)
    correlations = np.corrcoef([made[column.name] for column in columns])[~np.eye(6, dtype=bool)]
    assert model.facts["axes"][0] >= 2
    assert np.abs(correlations).max() < 0.06


def test_classes_keep_their_own_dependence():
    columns, codes = latent(40_000, 6)
    rng = np.random.default_rng(1)
    label = rng.integers(2, size=40_000)
    codes = {name: np.where(label == 1, rng.permutation(own), own) for name, own in codes.items()}
    flag = Column("flag", "boolean", categories=("false", "true"))
    omega = Domain((*columns, flag), strata="flag")
    model, _, _ = released(omega, codes | {"flag": label}, 2.0)
    made = drawn(model, 40_000)
    own = [np.corrcoef(made["c0"][made["flag"] == k], made["c1"][made["flag"] == k])[0, 1] for k in (0, 1)]
    assert own[0] > 0.35
    assert abs(own[1]) < 0.1


def test_one_way_marginals_are_those_that_were_asked_for_themselves():
    columns, codes = latent(5000, 8)
    model, _, recorded = released(Domain(columns), codes, 0.5, None, Params(axes=3))
    made = drawn(model, 50_000)
    counts = next(answer.values for question, answer in recorded if question.step == "columns")
    assert np.abs(np.bincount(made["c0"], minlength=4) / 50_000 - counts / counts.sum()).max() < 0.01


def test_numbers_stay_as_fine_as_their_marginal():
    rng = np.random.default_rng(0)
    x = rng.beta(2, 5, 30_000)
    omega = Domain((
        Column("x", "continuous", lower=0.0, upper=1.0),
        Column("y", "continuous", lower=0.0, upper=1.0),
    ))  # fmt: skip
    y = np.clip(x + rng.normal(0, 0.05, 30_000), 0, 0.999)
    model, _, _ = released(omega, {"x": (x * GRID).astype(int), "y": (y * GRID).astype(int)}, 1.0)
    made = drawn(model, 30_000)
    assert len(np.unique(made["x"])) > 20_000
    assert np.corrcoef(made["x"], made["y"])[0, 1] > 0.7


# --- the fallback -------------------------------------------------------------------------------------


@pytest.mark.parametrize("strata", [None, "c0"])
def test_too_few_rows_for_the_noise_give_marginals_and_say_so(strata):
    columns, codes = latent(3000, 6)
    omega = Domain(columns, strata=strata)
    d, classes = len(omega.modelled), omega.classes
    # The epsilon of the rule: a pair table's noise has the scale d (d - 1) / (2 share epsilon).
    rich = RICH * classes / 3000 * math.sqrt(2) * d * (d - 1) / (2 * MECHANISM.stages["gram"])
    model, bill, _ = released(omega, codes, rich / 1.5)
    assert {charge.question.step for charge in bill} == {"total", "columns"}
    kind = "class-conditional" if strata else "independent"
    assert f"{kind} marginals" in model.notes[0]
    model, bill, _ = released(omega, codes, rich * 1.5)
    assert "sums" in {charge.question.step for charge in bill}
    assert model.notes == ()


def test_stated_axes_are_never_replaced_by_the_fallback():
    columns, codes = latent(300, 6)
    model, bill, _ = released(Domain(columns), codes, 0.1, None, Params(axes=1))
    assert "sums" in {charge.question.step for charge in bill}
    assert model.notes == ()


# --- the errata ---------------------------------------------------------------------------------------


def test_every_cell_gets_noise_empty_ones_too():
    columns, codes = latent(3000, 4)
    omega = Domain(columns)
    _, _, recorded = paid(omega, codes, 1.0, None, Params(axes=3, cells=9))
    question, answer = recorded[-1]
    tally = Tally([question], omega)
    tally.add(codes, 3000)
    exact = tally.sums()[0]
    cells = exact[: 9**3 * 4].reshape(9**3, 4)
    empty = np.repeat((cells.sum(axis=1) == 0), 4)
    assert empty.sum() > 1000
    noise = (answer.values - exact)[: len(empty)]
    # At this scale a noise of 0 has a probability below 0.06.
    assert (noise[empty] == 0).mean() < 0.15
    assert noise[empty].std() == pytest.approx(answer.sd, rel=0.25)


def test_a_tie_is_broken_by_the_record_alone():
    columns = tuple(Column(f"c{j}", "boolean", categories=("false", "true")) for j in range(2))
    omega = Domain(columns)
    # Both of (0, 1) and (1, 0) lie on the cut at 1/2.
    cells = grid(
        [damped.public(c) for c in columns], np.array([[0.0], [0.5], [0.0], [0.5]]), [np.array([0.5])]
    )
    rows = {"c0": np.array([0, 1, 0, 1]), "c1": np.array([0, 0, 1, 1])}
    assert path_of(cells, rows, omega).tolist() == [0, 1, 1, 1]
    rng = np.random.default_rng(0)
    for _ in range(50):
        batch = rng.integers(4, size=rng.integers(1, 40))
        own = path_of(cells, {name: codes[batch] for name, codes in rows.items()}, omega)
        assert own.tolist() == [[0, 1, 1, 1][row] for row in batch]


def test_scores_are_whole_numbers_so_that_no_batch_changes_a_cell():
    columns, codes = latent(20_000, 7)
    _, bill, _ = released(Domain(columns), codes)
    cells = bill[-1].question.statistic.cells
    for axis in cells.axes:
        assert isinstance(axis, Scored)
        assert all(isinstance(score, int) for row in axis.scores for score in row)
        assert all(isinstance(edge, int) for edge in axis.edges)
        one_by_one = [
            int(cells_of(axis, {n: c[i : i + 1] for n, c in codes.items()}, Domain(columns))[0])
            for i in range(50)
        ]
        assert cells_of(axis, codes, Domain(columns))[:50].tolist() == one_by_one


def paper(columns, codes, epsilon=1.0):
    """The printed algorithm: the mixture, what it chose, and its bill."""
    ask, bill, _ = seeded(codes, Domain(columns, "replace_one"), epsilon)
    attributes = [damped.public(column) for column in columns]
    mixture, facts = damped.damped(ask, attributes, float(len(codes["c0"])))
    return mixture, facts, bill


def test_noisy_sums_are_thousands_of_times_better_than_noisy_damped_means():
    """E21. The printed mixture, bits rounded by themselves, has 2-way marginals sum_j w_j y_j y_j^T."""
    columns, codes = latent(20_000, 8)
    omega = Domain(columns)
    mixture, _, _ = paper(columns, codes)
    errors = []
    for i, j in combinations(range(8), 2):
        made = (mixture.tables[i] * mixture.weights[:, None]).T @ mixture.tables[j]
        real = np.bincount(codes[f"c{i}"] * 4 + codes[f"c{j}"], minlength=16).reshape(4, 4) / 20_000
        errors.append((made - real) ** 2)
    ours = pair_error(omega, codes, drawn(released(omega, codes)[0], 20_000))
    assert np.mean(errors) > 1000 * ours


def test_the_printed_noise_is_what_the_paper_prints():
    columns, codes = latent(20_000, 8)
    p, d, epsilon = 32, 8, 0.7
    _, facts, bill = paper(columns, codes, epsilon)
    scales = {}
    for charge in bill:
        scales.setdefault(charge.question.step, []).append(float(charge.price.parameter))
    assert scales["gram"] == pytest.approx([6 * p * p / epsilon])  # Lap(6p / (n epsilon)) on sums of p x x^T
    assert scales["counts"] == pytest.approx([6 / epsilon])
    # Lap(12 sqrt(p) / (b epsilon)) on damped means of x / sqrt(p), so 12 p / epsilon on the sums of b rows.
    assert min(scales["sums"]) == pytest.approx(12 * p / epsilon)
    for scale in scales["sums"]:
        octave = scale / (12 * p / epsilon)
        assert octave == pytest.approx(2 ** round(math.log2(octave)))
    assert facts["b"] == math.ceil(math.sqrt(p * math.sqrt(20_000) / epsilon))
    assert d * (d + 1) == bill[0].sensitivity.l1


def test_the_printed_net_puts_nearly_all_rows_in_one_cell_and_ours_does_not():
    """E22, and t rounded down as in (5.14): step 3 of Algorithm 2 would give one axis more (E23)."""
    columns, codes = latent(20_000, 8)
    mixture, facts, _ = paper(columns, codes)
    alpha = math.log(20_000) ** -0.25
    assert facts["t"] == math.floor(math.log(math.sqrt(20_000)) / math.log(7 / alpha)) == 1
    assert mixture.weights.max() > 0.85
    _, bill, _ = released(Domain(columns), codes)
    number = path_of(bill[-1].question.statistic.cells, codes, Domain(columns))
    assert np.bincount(number).max() < 0.4 * 20_000


def test_one_draw_for_each_attribute_where_bits_by_themselves_give_no_row():
    """E24."""
    columns, _ = latent(1, 6)
    attributes = [damped.public(column) for column in columns]
    mixture = Mixture(np.array([1.0, 2.0]), (np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]),) * 6)
    rng = np.random.default_rng(0)
    bits = rng.random((1000, 6, 4)) < mixture.tables[0][0]
    assert (bits.sum(axis=2) == 1).all(axis=1).mean() < 0.1
    made = mixture.deal(0, attributes, 3000, rng)(3000)
    for column in columns:
        assert set(np.unique(made[column.name])) <= {0, 1, 2, 3}
        share = np.bincount(made[column.name], minlength=4) / 3000
        assert np.abs(share - [0.2, 0.7 / 3, 0.8 / 3, 0.3]).max() < 0.01


def test_the_printed_algorithm_releases_valid_rows_of_a_mixed_table():
    omega = Domain(MIXED, "replace_one")
    for rows, epsilon in ((0, 1.0), (1, 5000.0), (300, 1.0)):
        ask, accountant, _, _ = asking(uniform(omega, rows), omega, epsilon)
        model = MECHANISM.run(ask, omega, Params(parameters="paper"), MECHANISM.stages)
        assert model.total == rows
        assert accountant.spent < accountant.total
        assert model.notes == (damped.UNSPENT,)
        check_valid(model, omega, 100)


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("params", "said"), [
    (Params(group_size=5), "mechanism.group_size is for guarantee: groups"),
    (Params(parameters="paper"), "parameters: paper needs neighbours: replace_one, and no unit"),
    (Params(guarantee="groups"), "guarantee: groups needs mechanism.group_size, a whole number from 2 up"),
    (Params(guarantee="groups", group_size=5, convex=("n <= 3",)),
     "mechanism.convex and mechanism.parameters are for guarantee: dp"),
    (Params(convex=("n < 3",)), "mechanism.convex: it needs exactly one of <=, >= and ="),
])  # fmt: skip
def test_parameters_that_do_not_go_together_are_refused(params, said):
    assert fits(Domain(MIXED), params) == [said]


def test_tables_that_do_not_fit_are_refused():
    wide = Column("w", "nominal", categories=tuple(f"w{i}" for i in range(5000)))
    said = "microaggregation has at most 3000 categories and bins in all, not 5017"
    assert fits(Domain((wide, MIXED[0])), Params()) == [said]
    said = "microaggregation would have too many cells: state fewer axes, cells or bins, or no strata"
    assert fits(Domain((wide, *MIXED), strata="w"), Params(axes=6)) == [said]
    assert fits(Domain(MIXED), Params(axes=6, cells=9)) == []
    assert fits(Domain(MIXED, strata="label"), Params(guarantee="groups", group_size=5)) == [
        "guarantee: groups takes no strata: all rows of a group would share the class"
    ]
    assert fits(Domain(MIXED, "replace_one", strata="label"), Params(parameters="paper")) == [
        "parameters: paper has no strata"
    ]
    assert fits(Domain(MIXED, strata="label"), Params()) == []


def test_a_hint_of_the_number_of_rows_is_used_instead_of_paying_for_one():
    columns, codes = latent(20_000, 5)
    _, bill, _ = released(Domain(columns, rows_hint=20_000), codes)
    assert "total" not in {charge.question.step for charge in bill}
    assert sum((charge.question.share for charge in bill), Fraction(0)) == 1
