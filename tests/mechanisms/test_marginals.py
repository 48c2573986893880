"""marginals: spends exactly its budget, keeps spikes and types, class by class; edge cases."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms import marginals
from tests.asking import asking, drawn
from tests.mechanisms.plain_ask import PlainAsk

AGE = Column("age", "integer", lower=17, upper=90, nullable=True)
GAIN = Column("gain", "integer", lower=0, upper=99_999)
SCORE = Column("score", "continuous", lower=-1.0, upper=1.0)
COLOUR = Column("colour", "nominal", categories=tuple(f"c{i}" for i in range(40)))
LABEL = Column("label", "boolean", categories=("false", "true"), nullable=True)
ALL = (AGE, GAIN, SCORE, COLOUR, LABEL)
STAGES = dict(marginals.MECHANISM.stages)


def table(rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    label = (rng.random(rows) < 0.25).astype(int)
    gain = np.where(rng.random(rows) < 0.9, 0, rng.integers(1, 100_000, rows))
    return {
        "age": np.where(
            rng.random(rows) < 0.1, AGE.size, np.clip(rng.normal(20 + 15 * label, 8, rows), 0, 73).astype(int)
        ),
        "gain": gain,
        "score": (np.clip(rng.normal(0.3, 0.05, rows), 0, 0.999) * GRID).astype(int),
        "colour": np.minimum(rng.geometric(0.3, rows) - 1, 39),
        "label": label,
    }


def release(codes, omega, epsilon, delta=None, params=None, rows=None):
    ask, accountant, _, _ = asking(codes, omega, epsilon, delta)
    model = marginals.run(ask, omega, params or marginals.Params(), STAGES)
    assert accountant.spent == accountant.total
    return model, drawn(model, rows or max(1, model.total))


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("strata", [None, "label", "colour"])
@pytest.mark.parametrize("depth", [None, 3])
def test_the_budget_is_spent_exactly_and_rows_are_as_declared(neighbours, delta, strata, depth):
    omega = Domain(ALL, neighbours, strata=strata)
    model, made = release(table(3000), omega, 0.5, delta, marginals.Params(depth=depth), rows=1001)
    assert all(len(made[c.name]) == 1001 for c in ALL)
    assert all(made[c.name].min() >= 0 and made[c.name].max() < c.codes for c in ALL)
    assert abs(model.total - 3000) < 1500
    if neighbours == "replace_one":
        assert model.total == 3000


def test_a_spike_stays_a_spike_and_codes_between_stay_fine():
    codes = table(20_000)
    _, made = release(codes, Domain(ALL), 3.0)
    assert abs((made["gain"] == 0).mean() - (codes["gain"] == 0).mean()) < 0.02
    assert len(np.unique(made["gain"])) > 500
    assert abs((made["age"] == AGE.size).mean() - 0.1) < 0.02
    near = (codes["score"] / GRID).std()
    assert abs((made["score"] / GRID).std() - near) < 0.02


def test_classes_keep_their_own_marginals():
    codes = table(20_000)
    _, made = release(codes, Domain(ALL, strata="label"), 2.0)
    for k in (0, 1):
        real, ours = (t["age"][(t["label"] == k) & (t["age"] < AGE.size)].mean() for t in (codes, made))
        assert abs(real - ours) < 1.5
    assert abs((made["label"] == 1).mean() - 0.25) < 0.02
    assert (made["label"] == LABEL.size).mean() < 0.01  # nobody is missing


def test_histograms_are_right_up_to_their_noise_and_empty_categories_stay_nearly_empty():
    codes = table(20_000)
    _, made = release(codes, Domain(ALL), 2.0)
    real, ours = (np.bincount(t["colour"], minlength=40) / len(t["colour"]) for t in (codes, made))
    assert np.abs(real - ours).sum() / 2 < 0.02
    assert ours[30:].sum() < 0.01


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 500.0])
def test_few_rows_release_at_any_epsilon(rows, neighbours, epsilon):
    one = Column("one", "integer", lower=3, upper=3)
    omega = Domain((*ALL, one), neighbours, strata="label")
    codes = {c.name: np.full(rows, c.codes - 1) for c in omega}
    model, made = release(codes, omega, epsilon, rows=4)
    assert model.total >= 0
    assert set(made["one"]) == {0}


def test_the_same_answers_and_seed_give_the_same_rows():
    omega = Domain(ALL, strata="label")
    ask, *_ = asking(table(2000), omega, 1.0)
    model = marginals.run(ask, omega, marginals.Params(), STAGES)
    one, other, third = drawn(model, 300, 5), drawn(model, 300, 5), drawn(model, 300, 6)
    assert all((one[name] == other[name]).all() for name in one)
    assert any((one[name] != third[name]).any() for name in one)


def test_the_total_is_better_known_than_its_own_question_says():
    omega = Domain(tuple(Column(f"c{i}", "nominal", categories=("a", "b")) for i in range(12)))
    codes = {column.name: np.zeros(5000, int) for column in omega}
    totals, sd = [], 0.0
    for seed in range(60):
        ask = PlainAsk(omega, codes, 0.5, seed=seed)
        totals.append(marginals.run(ask, omega, marginals.Params(), STAGES).total)
        assert ask.spent == 1
        sd = ask.answers[0].sd
    assert np.std(totals) < 0.7 * sd
    assert abs(np.mean(totals) - 5000) < 0.5 * sd


def test_a_spike_of_one_class_is_found_among_many_classes():
    label = Column("label", "nominal", categories=tuple(f"k{i}" for i in range(20)))
    omega = Domain((GAIN, label), strata="label")
    rng = np.random.default_rng(0)
    kind = rng.integers(20, size=20_000)
    codes = {"gain": np.where(kind == 3, 777, rng.integers(0, 20_000, 20_000)), "label": kind}
    ask = PlainAsk(omega, codes, 0.2, seed=1)
    made = drawn(marginals.run(ask, omega, marginals.Params(), STAGES), 20_000)
    assert (made["gain"][made["label"] == 3] == 777).mean() > 0.5
    assert (made["gain"][made["label"] != 3] == 777).mean() < 0.1


def test_with_many_rows_cells_are_finer_than_the_first_16():
    omega = Domain((Column("x", "integer", lower=0, upper=4095),))
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4096, 200_000)
    codes = {"x": x[x // 64 % 2 == 0]}  # every second of 64 stripes
    ask = PlainAsk(omega, codes, 1.0, seed=0)
    made = drawn(marginals.run(ask, omega, marginals.Params(), STAGES), 50_000)
    assert (made["x"] // 64 % 2 == 0).mean() > 0.97
